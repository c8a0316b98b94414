"""Families of tasks that drones and arms share: find, go to, questions, conditions, loops.

Each function draws one task and gives a ``Pair``. ``Robot`` holds what differs between the kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tools.planner import amounts, phrases, words
from tools.planner.draw import Draw, Pair, finish, random_scene, scene_of
from tools.planner.phrases import Step


@dataclass(frozen=True, slots=True)
class Robot:
    """A kind's skills for finding and reaching things, and its single steps."""

    scan: str
    goto: str
    steps: tuple[tuple[Callable[[Draw], Step], int], ...]


DRONE = Robot("s", "g", phrases.STEPS)
ARM = Robot("sc", "gt", ((phrases.wait, 3), (phrases.say, 2)))
ROVER = Robot("", "", ((partial(phrases.move, body=phrases.ROLLING), 6),
                       (partial(phrases.turn, body=phrases.ROLLING), 4)))  # fmt: skip

_FIND = (
    "find {}", "look for {}", "search for {}", "locate {}", "can you find {}?", "try to find {}",
    "could you look for {}?", "see if you can find {}", "hunt for {}", "where is {}?", "seek {}",
    "can you locate {}?", "spot {}", "could you search for {}?", "turn until you see {}",
    "keep turning until you see {}", "turn around until {} is in view", "scan for {}",
    "turn till {} shows up", "look all around for {}", "have a look around for {}",
    "search the room for {}", "i am looking for {}", "i have lost {}, look for it", "detect {}",
    "where did {} go? look for it", "bring {} into view", "get {} in sight", "track down {}",
    "turn about till you have {} in front of you", "look round until {} turns up",
    "there should be {} somewhere, find it", "go on turning until you spot {}",
)  # fmt: skip
_FIND_FOR = ("can you find {} for {}?", "could you find {} for {}?", "find me {} for {}",
             "try to find {} for {}")  # fmt: skip
_LOOK = ("find {}", "look for {}", "search for {}", "locate {}", "spot {}", "scan for {}",
         "have a look round for {}", "hunt for {}", "track down {}",
         "keep turning until you see {}",
         "look all around for {}", "there is {} around here somewhere. find it",
         "turn until you see {}",
         "somebody has lost {}. look for it", "seek out {}", "try to find {}",
         "search the place for {}",
         "where is {}? turn till you see it",
         "{} must be somewhere. look around for it")  # fmt: skip
_AND_GO = (" and go to it", " and go there", ", then go to it", ". if you find it, go to it",
           " and fly over to it", " and take yourself there", ". if it is there, go to it",
           " and approach it",
           ". once you have it in view, go there", ", and if you do find it, fly to it",
           " and head over to it", ". when you see it, go up to it", " and get close to it",
           " and go over to it if it is there", ", and once spotted, approach it")  # fmt: skip
_FIND_IF = (
    "could you find {}? if so, go to it.", "can you find {}? if so, go to it.",
    "if you find {}, go to it.", "look for {}. if you find it, go to it.",
    "can you find {}? if yes, go there.", "search for {} and go to it if you find it.",
    "is there {} around? if so, go to it.", "try to find {}; if you can, go to it.",
    "if there is {} anywhere, go to it.", "look around for {} and if it is there, go to it.",
    "could you locate {}? if so, approach it.", "scan for {}. if found, go to it.",
    "is there {} about? go there then.", "check whether there is {} around, and go there if so.",
)  # fmt: skip
_GOTO = (
    "go to {}", "move to {}", "approach {}", "get close to {}", "head to {}", "come to {}",
    "go over to {}", "get to {}", "move towards {}", "visit {}", "reach {}", "go near {}",
    "move over to {}", "go up to {}", "head over to {}", "make your way to {}", "get near {}",
    "bring yourself to {}", "i want you at {}", "take yourself to {}", "i need you close to {}",
    "go and stand by {}", "get over to {}", "you should be near {}", "go right up to {}",
    "proceed to {}", "travel to {}", "call on {}", "join {}", "see {} over there? go to it",
    "i'd like you next to {}", "go close to {}", "position yourself near {}", "off to {} you go",
    "go where {} is", "swing by {}", "come over to {}", "drop by {}", "pop over to {}",
)  # fmt: skip
_FLYTO = ("fly to {}", "fly over to {}", "fly up to {}", "fly towards {}", "fly close to {}")
ABOVE = (
    "move above {}", "hover above {}", "hover over {}", "go above {}", "position yourself over {}",
    "move the gripper over {}", "bring the gripper above {}", "stay over {}", "get above {}",
    "place yourself above {}", "move over {}", "go over {}", "go above {} and leave it alone",
    "reach over {}", "hold the gripper above {}", "point the gripper at {}", "stop above {}",
    "move over {} without touching it", "put the gripper above {}", "park over {}",
    "go to {} and don't pick it up", "stay clear of {}, but above it",
)  # fmt: skip
_SIDES = ("on", "under", "behind", "near", "next to", "beside", "in", "above", "in front of")


def place_words(draw: Draw, sides: tuple[str, ...] = _SIDES) -> tuple[str, str]:
    """Words such as "on the table", and the place's name."""
    place = draw.place() if draw.chance(0.7) else draw.other_thing()
    return f"{draw.pick(sides)} the {place}", place


def found_then(call: str, body: str, end: str = "") -> str:
    """``?call==True{body}->False``, the form of the published plans."""
    return f"?{call}==True{{{body}}}->False{end}"


def find(draw: Draw, robot: Robot) -> Pair:
    """Search for an object and, where it is for something or said so, go there; T0 and T4 of the
    published tasks."""
    kind = draw.rng.random()
    going, end = True, ""
    phrasing = draw.pick(_FIND_FOR if kind < 0.12 else _FIND_IF if kind < 0.35 else _FIND)
    if kind > 0.65:
        phrasing = draw.pick(_LOOK) + draw.pick(_AND_GO)
    elif kind >= 0.35:
        going = False
    name = draw.thing(phrasing)
    what, place = draw.named(name), ""
    if draw.chance(0.35) and 0.12 <= kind <= 0.65:
        where, place = place_words(draw)
        what += f" {where}"
    core = phrasing.format(what, draw.pick(words.PURPOSES))
    if kind < 0.12:
        end = ";"
        if draw.chance(0.5):
            asked = core.endswith("?")
            core = f"{core.rstrip('?')} {place_words(draw)[0]}{'?' * asked}"
    plan = found_then(f"{robot.scan}('{name}')", f"{robot.goto}('{name}')", end)
    if not going:
        plan = f"->{robot.scan}('{name}')"
    return finish(draw, "find", core, plan, random_scene(draw, (name,), place))


def go_to(draw: Draw, robot: Robot) -> Pair:
    """Go to an object: look for it first, whatever the scene said, for that may be long ago."""
    other = _FLYTO if robot is DRONE else ABOVE
    phrasing = draw.pick(other if draw.chance(0.3 if robot is DRONE else 0.6) else _GOTO)
    name = draw.thing(phrasing)
    core = phrasing.format(draw.named(name))
    plan = found_then(f"{robot.scan}('{name}')", f"{robot.goto}('{name}')", ";")
    names = [name] if draw.chance(0.5) else []
    for extra in [draw.other_thing() for _ in range(draw.pick((0, 1, 2)))]:
        if name not in extra and extra not in name:
            names.append(extra)
    draw.rng.shuffle(names)
    return finish(draw, "go to", core, plan, scene_of(draw, names))


_ASK_ONE = (
    "is there {}{}?", "can you see {}{}?", "do you see {}{}?", "is {} visible{}?", "any {}{}?",
    "are there {}{}?", "do you have {} in view{}?", "could you tell me if there is {}{}?",
    "check whether there is {}{}", "tell me if you see {}{}", "is {} there{}?",
    "can you spot {}{}?",
    "is there {} in front of you{}?", "have you got {} in sight{}?", "do you spot {}{}?",
    "is it true that {} is in view{}?", "{}{}, yes or no?", "any sign of {}{}?",
    "can you make out {}{}?",
    "tell me whether {} is visible{}", "let me know if there is {}{}", "do you happen to see {}{}?",
    "is there such a thing as {}{}?", "is {} in the picture{}?", "say yes if you see {}{}",
    "am i right that there is {}{}?", "i wonder if {} is there{}", "report whether you see {}{}",
    "does your camera see {}{}?", "would you say there is {}{}?", "has anybody left {}{}?",
    "do you have {} within reach{}?", "is {} lying there{}?", "{} - is it there{}?",
)  # fmt: skip
_ASK_TWO = (
    "are there {} {} {}{}?", "is there {} {} {}{}?", "can you see {} {} {}{}?",
    "do you see {} {} {}{}?", "tell me if there are {} {} {}{}", "check for {} {} {}{}",
    "do you spot {} {} {}{}?", "have you got {} {} {} in sight{}?", "is {} {} {} in your view{}?",
    "let me know whether you see {} {} {}{}", "{} {} {}: in view{}?",
)  # fmt: skip


def question(draw: Draw) -> Pair:
    """Yes or no about what is in view; T1 of the published tasks."""
    where, place = ("", "")
    if draw.chance(0.6):
        where, place = place_words(draw)
        where = " " + where
    if draw.chance(0.45):
        phrasing = draw.pick(_ASK_ONE)
        names = [draw.thing(phrasing)]
        core, condition = phrasing.format(draw.named(names[0]), where), f"iv('{names[0]}')"
    else:
        phrasing = draw.pick(_ASK_TWO)
        first = draw.thing(phrasing)
        names = [first, draw.thing(phrasing, (first,))]
        joint = draw.pick(("and", "and", "or"))
        core = phrasing.format(draw.named(first), joint, draw.named(names[1]), where)
        condition = ("&" if joint == "and" else "|").join(f"iv('{name}')" for name in names)
    plan = f"?{condition}->{{l('Yes');->True}}l('No');->False"
    return finish(draw, "question", core, plan, random_scene(draw, names, place), "Q")


_IF_SEEN = (
    "if you see {}, {}", "if there is {}, {}", "{1} if you see {0}", "if you can see {}, {}",
    "when {} is visible, {}", "if {} is in view, {}", "in case you see {}, {}",
    "should you see {}, {}", "check for {} and if you see it, {}", "should {} be in view, {}",
    "whenever {} is in view, {}", "provided that you see {}, {}", "only if you see {}, {}",
    "is there {}? then {}", "do you see {}? if so, {}", "{1}, but only if {0} is in view",
    "{1} just in case you see {0}", "as long as {} is in sight, {}", "see {}? {}",
    "if {} is in front of you, {}", "if {} happens to be there, {}", "if {} is there, {}",
    "assuming that {} is in sight, {}", "{1} in case there is {0}", "if your camera shows {}, {}",
    "if there's {} in front of you right now, {}", "is {} in front of you? {} then",
)  # fmt: skip
_IF_NOT = ("if you do not see {}, {}", "if there is no {}, {}", "if {} is not visible, {}",
           "unless you see {}, {}", "if you can't see {}, {}", "if {} is missing, {}",
           "there is no {}? {} then", "if there's no {} in sight, {}", "{1} unless you see {0}",
           "provided that there is no {} around, {}", "with {} out of view, {}",
           "{1} if there is no {0}",
           "if you don't see {}, {}", "no {}? {}", "in case there is no {}, {}",
           "if {} is nowhere to be seen, {}", "only if {} is not in view, {}")  # fmt: skip
_IF_FOUND = ("if you find {}, {}", "look for {} and if you find it, {}",
             "search for {}; if you find it, {}", "find {} and then {}", "once you find {}, {}",
             "if you can find {}, {}", "look for {}. when you have it in view, {}",
             "track down {}; when you see it, {}", "hunt for {}, and with it in view, {}",
             "find {}, then {}", "turn until you see {}, then {}",
             "look for {} and {} when you see it",
             "search for {}, and the moment you see it, {}",
             "keep turning till you see {}. then {}",
             "look all around for {}. found it? then {}", "{} comes first, so find it. then {}",
             "where is {}? turn till you see it, then {}", "scan for {} and once it is found {}",
             "as soon as you have found {}, {}", "locate {}, and after that {}")  # fmt: skip
OTHERWISE = (
    ", otherwise {}",
    ", else {}",
    ". otherwise, {}",
    ", if not, {}",
    ". if not, {}",
    "; if not, {}",
    ", or else {}",
    ". if it is not so, {}",
    ", failing that, {}",
    "; otherwise just {}",
    ". else {}",
    ", in any other case {}",
    ". in the other case, {}",
)
_NOTHING = (", otherwise do nothing", ". nothing to do otherwise", ", else leave it",
            ". that's all",
            ". if not, do nothing", ", otherwise stay as you are")  # fmt: skip
_ANYWAY = (". after that, in any case, {}", ". then, either way, {}",
           ". whether or not you see it, {} then",
           ". in both cases, {} at the end", ". and then {} anyway")  # fmt: skip


def condition(draw: Draw, robot: Robot) -> Pair:
    """Do something if an object is (not) there, perhaps something else otherwise."""
    negated, search = draw.chance(0.2), draw.chance(0.3)
    phrasing = draw.pick(_IF_NOT if negated else _IF_FOUND if search else _IF_SEEN)
    name = draw.thing(phrasing)
    words_then, plan_then = phrases.step(draw, robot.steps)
    what = name if "no {}" in phrasing or "no {0}" in phrasing else draw.named(name)
    core = phrasing.format(what, words_then)
    call = f"{robot.scan if search and not negated else 'iv'}('{name}')=={not negated}"
    rest = ""
    ending = draw.rng.random() if not phrasing.startswith("{1}") else 1.0
    if ending < 0.4:
        words_else, plan_else = phrases.step(draw, robot.steps)
        core += draw.pick(OTHERWISE).format(words_else)
        rest = f"{plan_else};"
    elif ending < 0.5:
        core += draw.pick(_NOTHING)
    elif ending < 0.58:
        words_last, plan_last = phrases.step(draw, robot.steps)
        core += draw.pick(_ANYWAY).format(words_last)
        return finish(draw, "condition", core, f"?{call}{{{plan_then};}}{plan_last};",
                      random_scene(draw, (name,)))  # fmt: skip
    plan = f"?{call}{{{plan_then};->True}}{rest}->False"
    return finish(draw, "condition", core, plan, random_scene(draw, (name,)))


_REPEAT = (
    "repeat {n} times: {}", "{} {n} times", "do this {n} times: {}", "{n} times: {}",
    "{}, and repeat that {n} times", "for {n} rounds, {}", "{} and do it {n} times",
    "loop {n} times: {}", "{n} times over, {}", "{}, {n} times in a row", "{}. do that {n} times",
    "{}. {n} rounds of that", "{}. {n} of those in a row", "{}: {n} times, please",
    "i want this {n} times: {}", "do the following {n} times: {}", "{}. {n} times altogether",
    "{n} rounds of this: {}", "go through this {n} times: {}", "{n} x {}",
    "keep at it {n} times: {}",
    "{n} times in a row: {}", "{}, {n} times in all", "make it {n} times: {}",
    "in a loop of {n}: {}", "let me see this {n} times: {}",
)  # fmt: skip


def times(draw: Draw, count: int) -> str:
    """How often, as in "three times"."""
    return amounts.in_words(draw, count) if draw.chance(0.5) else str(count)


def loop(draw: Draw, robot: Robot) -> Pair:
    """Repeat one to three steps."""
    phrasing = draw.pick(_REPEAT)
    count = draw.rng.randint(2, 10) if draw.chance(0.85) else draw.rng.randint(11, 20)
    parts = [phrases.step(draw, robot.steps) for _ in range(draw.pick((1, 2, 2, 3)))]
    text = parts[0][0]
    if len(parts) > 1:
        joint = draw.pick((" and ", ", then ", " and then ", ", "))
        text = ", ".join(part[0] for part in parts[:-1]) + joint + parts[-1][0]
    core = phrasing.format(text, n=times(draw, count))
    if count == 2 and draw.chance(0.6):
        twice = phrasing.replace("{n} times", "twice").replace("{n} x", "twice")
        core = twice.format(text, n="two")
    plan = f"{count}{{{''.join(part[1] + ';' for part in parts)}}}"
    return finish(draw, "loop", core, plan, random_scene(draw))


def steps(draw: Draw, robot: Robot) -> Pair:
    """Two to five steps in a row."""
    parts = [phrases.step(draw, robot.steps) for _ in range(draw.pick((2, 2, 3, 3, 4, 5)))]
    core = phrases.joined(draw, [part[0] for part in parts])
    return finish(draw, "steps", core, "".join(part[1] + ";" for part in parts),
                  random_scene(draw))  # fmt: skip


def single(family: str, maker: Callable[[Draw], Step]) -> Callable[[Draw], Pair]:
    """A family of one step alone."""

    def draw_one(draw: Draw) -> Pair:
        text, plan = maker(draw)
        return finish(draw, family, text, f"{plan};", random_scene(draw))

    return draw_one


_IMPOSSIBLE = (
    "{} {}", "{} {}", "{} {} for me", "{} {} and come back", "{} it, i mean {}",
    "{} {} while i am out",
    "{} {} as fast as possible", "{} {} with care", "{} all of it, also {}", "{} {} into pieces",
    "would you {} {} tonight", "i want you to {} {} properly", "{} {} until it is done",
    "could you {} {} for my mother", "{} {} and then {} it again", "help me {} {}",
)  # fmt: skip
NOTHING = "refuse('I do not understand')"
_NONSENSE = (
    "{m} {n} {t}s towards {a}", "{m} {a} the {a}", "{m} {n} {t}s", "{t} {t} {t}", "{w} the {t}",
    "{a} {t} {m} {n}", "{w} {w} {t}", "the {t} of the {a} is {a}", "{m} until yesterday {t}",
    "{n} {t} per {a}", "{w} {w}", "{m} like {a}", "{m} {n} {w}s to the {a}", "why {a} {t} the {m}",
    "{t} and {w}, but not {n}", "{m} into the {a}", "{w} {t} {w}", "be the {t} of {a}",
)  # fmt: skip
_CONTRARY = (
    "stay exactly where you are and {m}", "do not move at all, and {m}", "{m} without moving",
    "{m} and stay where you are meanwhile", "{m} while standing still",
    "without moving an inch, {m}",
    "keep still and at the same time {m}", "remain in place and also {m}",
    "{m} and in the same moment {o}", "{m} and {o} at once", "{m} and {o}, both at the same time",
)  # fmt: skip
_LOUD = ("loud", "blue", "monday", "tuesday", "happiness", "seven", "purple", "music", "soup",
         "quiet",
         "justice", "winter", "sour", "noon", "sleepy", "salty", "gravity", "friday",
         "poetry")  # fmt: skip


def refusal(draw: Draw, verbs: list[str], body: phrases.Body = phrases.FLYING) -> Pair:
    """What no skill does: the verb comes back in the answer. Talk, errands, and what makes no
    sense."""
    kind = draw.rng.random()
    if kind < 0.12:
        talk = draw.value("{talk}", lambda: draw.pick(words.CHITCHAT))
        return finish(draw, "refusal", talk, "refuse('I only plan robot tasks')",
                      random_scene(draw), "Q")  # fmt: skip
    if kind < 0.4:
        return _errand(draw)
    if kind < 0.6:
        return _senseless(draw, body)
    phrasing = draw.pick(_IMPOSSIBLE)
    verb = draw.value(phrasing, lambda: draw.pick(verbs))
    what = draw.named(draw.other_thing())
    core = phrasing.format(verb, what, verb)
    if draw.chance(0.3):
        core += f" {place_words(draw)[0]}"
    return finish(draw, "refusal", core, f"refuse('I cannot {verb}')", random_scene(draw))


def _errand(draw: Draw) -> Pair:
    phrasing = draw.pick(("{errand}", "{errand} now", "{errand}, will you", "{errand} {where}"))
    errand = draw.value(phrasing, lambda: draw.pick(words.ERRANDS))
    core = phrasing.format(errand=errand, where=draw.pick(("at home", "tomorrow", "for anna")))
    return finish(draw, "refusal", core, "refuse('I cannot do that')", random_scene(draw))


def _senseless(draw: Draw, body: phrases.Body) -> Pair:
    """Words that ask for nothing that can be, or for a thing and its contrary."""
    if draw.chance(0.4):
        phrasing = draw.pick(_CONTRARY)
        skill = draw.pick(body.moves)
        move, other = (
            phrases.move(draw, each, body)[0] for each in (skill, phrases.OPPOSITE[skill])
        )
        core = phrasing.format(m=move, o=other)
    else:
        phrasing = draw.pick(_NONSENSE)
        verb = draw.pick(("fly", "go", "drive", "turn", "wait", "take", "put", "move", "roll"))
        made = draw.value(phrasing, lambda: words.made_up(draw.rng))
        core = phrasing.format(m=verb, n=draw.rng.randint(2, 12), w=made, a=draw.pick(_LOUD),
                               t=draw.other_thing())  # fmt: skip
    return finish(draw, "refusal", core, NOTHING, random_scene(draw))


def out_of_limits(draw: Draw, makers: tuple[Callable[[Draw], Step], ...], then: Robot) -> Pair:
    """A number beyond the skill's limits, perhaps with a step before or after it: the answer names
    the limits."""
    text, answer = draw.pick(makers)(draw)
    if draw.chance(0.25):
        other = phrases.step(draw, then.steps)[0]
        text = phrases.joined(draw, [text, other] if draw.chance(0.7) else [other, text])
    return finish(draw, "out of limits", text, answer, random_scene(draw))


def correction(draw: Draw, robot: Robot) -> Pair:
    """Somebody changes their mind: the last word counts."""
    wrong = phrases.step(draw, robot.steps)[0]
    text, plan = phrases.step(draw, robot.steps)
    core = draw.pick(_CORRECTIONS).format(wrong, text)
    return finish(draw, "correction", core, f"{plan};", random_scene(draw))


_CORRECTIONS = (
    "{}. no wait, {}", "{}, no, sorry, {}", "{}... i mean, {}", "{}. scratch that: {}",
    "{} - no, not that! {}", "{}. oh no, forget it, {} instead", "{}, or rather: {}",
    "don't {}, {} instead", "{}. wrong, i meant {}", "i said {}, but i meant {}",
    "{}. hang on, make that {}", "not {}, but {}", "{}, er, no: {}",
)  # fmt: skip


# How a person, or the planner of a robot, tells of a plan that failed.
FAILURES = (
    "you provided me with plan {plan}, but i encountered a failure because {what}. "
    "execution history: {done}",
    "your plan was {plan}. it failed because {what}. execution history: {done}",
    "plan {plan} failed: {what}. already executed: {done}",
    "i was executing {plan} when {what}. execution history: {done}",
)
