"""Families of tasks that drones and arms share: find, go to, questions, conditions, loops.

Each function draws one task and gives a ``Pair``. ``Robot`` holds what differs between the kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.planner import phrases, words
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

_FIND = (
    "find {}", "look for {}", "search for {}", "locate {}", "can you find {}?", "try to find {}",
    "could you look for {}?", "see if you can find {}", "hunt for {}", "where is {}?", "seek {}",
    "can you locate {}?", "spot {}", "could you search for {}?", "go and find {}",
)  # fmt: skip
_FIND_IF = (
    "could you find {}? if so, go to it.", "can you find {}? if so, go to it.",
    "if you find {}, go to it.", "look for {}. if you find it, go to it.",
    "can you find {}? if yes, go there.", "search for {} and go to it if you find it.",
    "is there {} around? if so, go to it.", "try to find {}; if you can, go to it.",
    "if there is {} anywhere, go to it.", "look around for {} and if it is there, go to it.",
    "could you locate {}? if so, approach it.", "scan for {}. if found, go to it.",
)  # fmt: skip
_GOTO = (
    "go to {}", "move to {}", "approach {}", "get close to {}", "head to {}", "come to {}",
    "go over to {}", "get to {}", "move towards {}", "visit {}", "reach {}", "go near {}",
    "move over to {}",
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
    """Search for an object and go there; T0 and T4 of the published tasks."""
    conditional = draw.chance(0.4)
    phrasing = draw.pick(_FIND_IF if conditional else _FIND)
    name = draw.thing(phrasing)
    what, place = draw.named(name), ""
    if draw.chance(0.2):
        what += f" for {draw.pick(words.PURPOSES)}"
    if draw.chance(0.35):
        where, place = place_words(draw)
        what += f" {where}"
    plan = found_then(f"{robot.scan}('{name}')", f"{robot.goto}('{name}')",
                      "" if conditional else ";")  # fmt: skip
    return finish(draw, "find", phrasing.format(what), plan, random_scene(draw, (name,), place))


def go_to(draw: Draw, robot: Robot) -> Pair:
    """Go to an object: look for it first, whatever the scene said, for that may be long ago."""
    phrasing = draw.pick(_GOTO)
    name = draw.thing(phrasing)
    core = phrasing.format(draw.named(name))
    plan = found_then(f"{robot.scan}('{name}')", f"{robot.goto}('{name}')", ";")
    names = [name] if draw.chance(0.5) else []
    for other in [draw.other_thing() for _ in range(draw.pick((0, 1, 2)))]:
        if name not in other and other not in name:
            names.append(other)
    draw.rng.shuffle(names)
    return finish(draw, "go to", core, plan, scene_of(draw, names))


_ASK_ONE = (
    "is there {}{}?", "can you see {}{}?", "do you see {}{}?", "is {} visible{}?", "any {}{}?",
    "are there {}{}?", "do you have {} in view{}?", "could you tell me if there is {}{}?",
    "check whether there is {}{}", "tell me if you see {}{}",
)  # fmt: skip
_ASK_TWO = (
    "are there {} {} {}{}?", "is there {} {} {}{}?", "can you see {} {} {}{}?",
    "do you see {} {} {}{}?", "tell me if there are {} {} {}{}", "check for {} {} {}{}",
    "do you spot {} {} {}{}?",
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
    "should you see {}, {}", "check for {} and if you see it, {}",
)  # fmt: skip
_IF_NOT = ("if you do not see {}, {}", "if there is no {}, {}", "if {} is not visible, {}",
           "unless you see {}, {}", "if you can't see {}, {}", "if {} is missing, {}")  # fmt: skip
_IF_FOUND = ("if you find {}, {}", "look for {} and if you find it, {}",
             "search for {}; if you find it, {}", "find {} and then {}", "once you find {}, {}",
             "if you can find {}, {}")  # fmt: skip
_ELSE = (", otherwise {}", ", else {}", ". otherwise, {}", ", if not, {}", ". if not, {}")


def condition(draw: Draw, robot: Robot) -> Pair:
    """Do something if an object is (not) there, perhaps something else otherwise."""
    negated, search = draw.chance(0.2), draw.chance(0.3)
    phrasing = draw.pick(_IF_NOT if negated else _IF_FOUND if search else _IF_SEEN)
    name = draw.thing(phrasing)
    words_then, plan_then = phrases.step(draw, robot.steps)
    what = name if phrasing == "if there is no {}, {}" else draw.named(name)
    core = phrasing.format(what, words_then)
    call = f"{robot.scan if search and not negated else 'iv'}('{name}')=={not negated}"
    rest = ""
    if phrasing != "{1} if you see {0}" and draw.chance(0.4):
        words_else, plan_else = phrases.step(draw, robot.steps)
        core += draw.pick(_ELSE).format(words_else)
        rest = f"{plan_else};"
    plan = f"?{call}{{{plan_then};->True}}{rest}->False"
    return finish(draw, "condition", core, plan, random_scene(draw, (name,)))


_REPEAT = (
    "repeat {n} times: {}", "{} {n} times", "do this {n} times: {}", "{n} times: {}",
    "{}, and repeat that {n} times", "for {n} rounds, {}", "{} and do it {n} times",
    "loop {n} times: {}",
)  # fmt: skip


def loop(draw: Draw, robot: Robot) -> Pair:
    """Repeat one to three steps."""
    phrasing = draw.pick(_REPEAT)
    count = draw.rng.randint(2, 10) if draw.chance(0.8) else draw.rng.randint(11, 20)
    parts = [phrases.step(draw, robot.steps) for _ in range(draw.pick((1, 2, 2, 3)))]
    number = words.NUMBER_WORDS.get(count, count) if draw.chance(0.5) else count
    text = parts[0][0]
    if len(parts) > 1:
        text = ", ".join(part[0] for part in parts[:-1]) + " and " + parts[-1][0]
    core = phrasing.format(text, n=number)
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


def refusal(draw: Draw, verbs: list[str]) -> Pair:
    """What no skill does: the verb comes back in the answer."""
    kind = draw.rng.random()
    if kind < 0.12:
        talk = draw.value("{talk}", lambda: draw.pick(words.CHITCHAT))
        return finish(
            draw, "refusal", talk, "l('I only plan robot tasks');->False", random_scene(draw), "Q"
        )
    phrasing = draw.pick(_IMPOSSIBLE)
    verb = draw.value(phrasing, lambda: draw.pick(verbs))
    what = draw.named(draw.other_thing())
    core = phrasing.format(verb, what)
    if draw.chance(0.3):
        core += f" {place_words(draw)[0]}"
    return finish(draw, "refusal", core, f"l('I cannot {verb}');->False", random_scene(draw))


_IMPOSSIBLE = ("{} {}", "{} {}", "{} {} for me", "{} {} and come back", "{} it, i mean {}",
               "{} {} as fast as possible", "{} {} with care", "{} all of it, also {}")  # fmt: skip


def out_of_limits(draw: Draw, makers: tuple[Callable[[Draw], Step], ...]) -> Pair:
    """A number beyond the skill's limits: the answer names them."""
    text, reason = draw.pick(makers)(draw)
    return finish(draw, "out of limits", text, f"l('{reason}');->False", random_scene(draw))


# How a person, or the planner of a robot, tells of a plan that failed.
FAILURES = (
    "you provided me with plan {plan}, but i encountered a failure because {what}. "
    "execution history: {done}",
    "your plan was {plan}. it failed because {what}. execution history: {done}",
    "plan {plan} failed: {what}. already executed: {done}",
    "i was executing {plan} when {what}. execution history: {done}",
)
