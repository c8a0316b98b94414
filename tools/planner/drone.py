"""Families of the drone alone: look after a move, measures, open questions, figures, replans."""

from __future__ import annotations

from tools.planner import amounts, phrases, words
from tools.planner.draw import Draw, Pair, finish, numbered_scene, random_scene, scene_of
from tools.planner.tasks import (
    DRONE,
    FAILURES,
    OTHERWISE,
    Robot,
    found_then,
    place_words,
    times,
)

VERBS = [
    *words.VERBS,
    *("open", "close", "push", "pull", "throw", "lift", "carry", "bring", "fetch", "deliver"),
    *("land", "take off with", "follow"),
]

_LOOK = ("try to find {}{}", "look for {}{}", "see if there is {}{}", "check for {}{}",
         "find {}{}", "try to spot {}{}")  # fmt: skip
_FIND = ("find {}", "look for {}", "search for {}", "locate {}", "look around for {}", "spot {}",
         "try to find {}", "turn until you see {}")  # fmt: skip
_CHECK = ("check {1}, if you see {0}, {2}", "look {1}; if you see {0}, {2}",
          "check {1} and if there is {0}, {2}", "then check {1}, if you see {0}, {2}",
          "if you see {0} {1}, {2}", "and if {0} is {1}, {2}")  # fmt: skip
_OF_IT = ("take a picture of it", "take a photo of it", "photograph it", "snap a picture of it",
          "take a picture")  # fmt: skip
_PARTS = ("the top of the", "the bottom of the", "behind the", "on the", "under the",
          "on top of the", "the left of the", "inside the", "below the", "above the")  # fmt: skip


def move_and_look(draw: Draw) -> Pair:
    """A move, then a look from there; T2 and T3 of the published tasks."""
    moved, call = phrases.move(draw) if draw.chance(0.8) else phrases.turn(draw)
    joint = draw.pick((" and {}", " and then {}", ", then {}", ", and {}", ". then {}"))
    kind = draw.rng.random()
    if kind < 0.35:
        phrasing = draw.pick(_FIND)
        name = draw.thing(phrasing)
        text, plan = phrasing.format(draw.named(name)), f"{call};->s('{name}')"
    elif kind < 0.65:
        phrasing = draw.pick(_LOOK)
        name = draw.thing(phrasing)
        text = phrasing.format(draw.named(name), f" {place_words(draw)[0]}")
        plan = f"{call};" + found_then(f"iv('{name}')", f"g('{name}')", ";")
    else:
        phrasing = draw.pick(_CHECK)
        name = draw.thing(phrasing)
        place = f"{draw.pick(_PARTS)} {draw.place()}"
        text = phrasing.format(draw.named(name), place, draw.pick(_OF_IT))
        plan = f"{call};" + found_then(f"iv('{name}')", "tp();->True")
    return finish(draw, "move and look", moved + joint.format(text), plan,
                  random_scene(draw, (name,)))  # fmt: skip


_MEASURES = {
    "od": ("how far is {}?", "what is the distance to {}?", "how far away is {}?",
           "tell me the distance to {}", "measure the distance to {}", "how many cm to {}?",
           "how near is {}?", "what is the distance between you and {}?",
           "how close are you to {}?",
           "how many centimetres is {} away from you?"),
    "ow": ("how wide is {}?", "what is the width of {}?", "tell me the width of {}"),
    "oh": ("how tall is {}?", "what is the height of {}?", "how high is {}?",
           "tell me the height of {}"),
    "ox": ("what is the x position of {}?", "what is the horizontal position of {}?",
           "tell me the x coordinate of {}"),
    "oy": ("what is the y position of {}?", "what is the vertical position of {}?",
           "tell me the y coordinate of {}"),
}  # fmt: skip


def measure(draw: Draw) -> Pair:
    """A number about one object."""
    skill = draw.pick(("od", *_MEASURES))
    phrasing = draw.pick(_MEASURES[skill])
    name = draw.thing(phrasing)
    core = phrasing.format(draw.named(name))
    return finish(draw, "measure", core, f"->{skill}('{name}')", random_scene(draw, (name,)), "Q")


_OPEN = (
    "who is next to {}?",
    "what is {} made of?", "is {} clean?", "is {} open?", "how does {} look?", "what is behind {}?",
    "what is on {}?", "what is wrong with {}?", "what does {} look like?", "is {} broken?",
    "describe {}", "what brand is {}?", "how old is {}?", "is {} empty?",
)  # fmt: skip


def open_question(draw: Draw) -> Pair:
    """A question for the probe skill, passed on as it is asked."""
    phrasing = draw.pick(_OPEN)
    name = draw.thing(phrasing, longest=26)
    core = phrasing.format(f"the {name}")
    return finish(draw, "open question", core, f"->p('{core.rstrip('?')}')",
                  random_scene(draw, (name,)), "Q")  # fmt: skip


_COUNT = ("how many {} are there?", "how many {} do you see?", "count the {}",
          "how many {} can you see?",
          "how many {} are in view?", "what is the number of {} in front of you?",
          "how many {} are in the picture?", "can you count the {}?",
          "how many {} are standing there?",
          "tell me how many {} you see", "number of {} in sight?",
          "how many {} have you got there?",
          "how many {} lie there?", "how many {} can you count from there?")  # fmt: skip


def count(draw: Draw) -> Pair:
    """How many of a thing the scene has."""
    phrasing = draw.pick(_COUNT)
    name = draw.thing(phrasing, longest=20)
    while name.endswith("s") or " " in name:
        name = draw.thing(phrasing, longest=20)
    many = draw.pick((0, 1, 2, 2, 3, 3, 4))
    same = draw.chance(0.6)
    colours = draw.rng.sample(words.COLOURS, many)
    names = [name if same else f"{colour} {name}" for colour in colours]
    others = [other for other in (draw.other_thing() for _ in range(2)) if name not in other]
    scene = numbered_scene(draw, [*names, *others[: draw.pick((0, 1, 2))]])
    core = phrasing.format(f"{name}es" if name[-1] in "xh" else f"{name}s")
    return finish(draw, "count", core, f"l('{many}');->{many}", scene, "Q")


_COLOUR = ("what colour is {}?", "what color is {}?", "which colour does {} have?",
           "tell me the colour of {}",
           "what is the colour of {}?", "what color is {} that you see?", "{} - what colour is it?",
           "what colour has {}?", "say which color {} is")  # fmt: skip


def colour(draw: Draw) -> Pair:
    """The colour of a thing whose name in the scene tells it."""
    phrasing = draw.pick(_COLOUR)
    name = draw.thing(phrasing, longest=20)
    while " " in name:
        name = draw.thing(phrasing, longest=20)
    found = draw.pick(words.COLOURS)
    others = [
        f"{draw.pick(words.COLOURS)} {draw.other_thing()}" for _ in range(draw.pick((0, 1, 2)))
    ]
    names = [f"{found} {name}", *(other for other in others if name not in other)]
    draw.rng.shuffle(names)
    plan = f"l('{found}');->'{found}'"
    return finish(draw, "colour", phrasing.format(f"the {name}"), plan, scene_of(draw, names), "Q")


_COMPARED = {
    ("ox", "<"): ("what stands more to the left, {} or {}?",
                  "is {} or {} the one on the left?"),
    ("ox", ">"): ("is {} or {} the one on the right?",
                  "what is more to the right, {} or {}?"),
    ("od", "<"): ("which is nearer, {} or {}?", "what is closer to you, {} or {}?"),
    ("od", ">"): ("which is farther away, {} or {}?", "which one is further off, {} or {}?"),
    ("ow", ">"): ("which is wider, {} or {}?", "which looks the wider one, {} or {}?"),
    ("oh", ">"): ("which is taller, {} or {}?", "which one is higher, {} or {}?"),
}  # fmt: skip


def compared(draw: Draw) -> Pair:
    """Which of two things is nearer, wider, or further to one side."""
    (skill, sign), phrasings = draw.pick(tuple(_COMPARED.items()))
    phrasing = draw.pick(phrasings)
    first = draw.thing(phrasing)
    second = draw.thing(phrasing, (first,))
    core = phrasing.format(f"the {first}", f"the {second}")
    plan = (
        f"?{skill}('{first}'){sign}{skill}('{second}'){{l('the {first}');->'{first}'}}"
        f"l('the {second}');->'{second}'"
    )
    names = [first, second] if draw.chance(0.5) else [second, first]
    return finish(draw, "compared", core, plan, scene_of(draw, names), "Q")


_ASKED_THEN = (" and tell me if you see {}", " and say whether {} is there",
               ", then tell me if you can see {}",
               ". do you see {} from there?", ". can you see {} then?", ", is {} in view then?",
               " and report whether {} is visible",
               ". tell me then whether you see {}")  # fmt: skip


def look_and_tell(draw: Draw) -> Pair:
    """A move or a turn, then a question about what is in view."""
    moved, call = phrases.move(draw) if draw.chance(0.5) else phrases.turn(draw)
    phrasing = draw.pick(_ASKED_THEN)
    name = draw.thing(phrasing)
    plan = f"{call};?iv('{name}')->{{l('Yes');->True}}l('No');->False"
    core = moved + phrasing.format(draw.named(name))
    return finish(draw, "look and tell", core, plan, random_scene(draw, (name,)))


_ABSTRACT = ("find something {}", "go to something {}", "look for something {}",
             "search for anything {}", "can you find something {}?", "find me something {}",
             "is there anything {}? go to it.", "locate something {}")  # fmt: skip


def abstract(draw: Draw) -> Pair:
    """Search for what fits a description."""
    phrasing = draw.pick(_ABSTRACT)
    kind = draw.value(phrasing, lambda: draw.pick(words.KINDS_OF_THING))
    plan = f"_1=sa('{kind}');?_1!=False{{g(_1);->True}}->False"
    return finish(draw, "abstract", phrasing.format(kind), plan, random_scene(draw))


_THAN = (
    ("if {} is closer than {} cm, {}", "od", "<"), ("if {} is nearer than {} cm, {}", "od", "<"),
    ("if {} is farther than {} cm, {}", "od", ">"),
    ("if {} is less than {} cm away, {}", "od", "<"),
    ("if {} is more than {} cm away, {}", "od", ">"), ("if {} is within {} cm, {}", "od", "<"),
    ("if {} is beyond {} cm, {}", "od", ">"), ("is {} less than {} cm off? then {}", "od", "<"),
    ("should {} be nearer than {} cm, {}", "od", "<"),
    ("when {} is over {} cm away, {}", "od", ">"),
    ("in case {} is within {} cm of you, {}", "od", "<"),
    ("if the distance to {} is more than {} cm, {}", "od", ">"),
    ("if the distance to {} is below {} cm, {}", "od", "<"),
)  # fmt: skip
_SIDE = (
    ("if {} is on the left, {}", "ox", "<0.5"), ("if {} is on the right, {}", "ox", ">0.5"),
    ("if {} is on your left, {}", "ox", "<0.5"), ("if {} is on your right, {}", "ox", ">0.5"),
    ("if {} is in the upper half, {}", "oy", "<0.5"),
    ("if {} is in the lower half, {}", "oy", ">0.5"),
    ("if {} is in the left half of the picture, {}", "ox", "<0.5"),
    ("if {} is in the right half of the picture, {}", "ox", ">0.5"),
    ("when {} is left of the middle, {}", "ox", "<0.5"),
    ("when {} is right of the middle, {}", "ox", ">0.5"),
    ("should {} be left of the centre, {}", "ox", "<0.5"),
    ("should {} be right of the centre, {}", "ox", ">0.5"),
    ("if you see {} on your left side, {}", "ox", "<0.5"),
    ("if you see {} on your right side, {}", "ox", ">0.5"),
)  # fmt: skip


def comparison(draw: Draw) -> Pair:
    """A step that depends on where an object is."""
    then, call = phrases.step(draw)
    if draw.chance(0.5):
        phrasing, skill, sign = draw.pick(_THAN)
        name = draw.thing(phrasing)
        limit = draw.pick((10 * draw.rng.randint(2, 50), 50 * draw.rng.randint(1, 10)))
        far = amounts.distance(draw, limit) if draw.chance(0.6) else f"{limit} cm"
        core = phrasing.replace("{} cm", "{}").format(draw.named(name), far, then)
        test = f"{sign}{limit}"
    else:
        phrasing, skill, test = draw.pick(_SIDE)
        name = draw.thing(phrasing)
        core = phrasing.format(draw.named(name), then)
    rest = ""
    if draw.chance(0.4):
        otherwise, other = phrases.step(draw)
        core += draw.pick(OTHERWISE).format(otherwise)
        rest = f"{other};"
    plan = f"?{skill}('{name}'){test}{{{call};->True}}{rest}->False"
    return finish(draw, "comparison", core, plan, random_scene(draw, (name,)))


_BOTH = ("if you have {} {} {} in view, {}", "if you see {} {} {}, {}",
         "{3} if {0} {1} {2} are there",
         "with {} {} {} in view, {}", "only if {} {} {} are in view, {}",
         "should you see {} {} {}, {}",
         "if there is {} {} {}, {}", "{3}, but only if you see {0} {1} {2}")  # fmt: skip


def both(draw: Draw) -> Pair:
    """A step that depends on two objects."""
    phrasing = draw.pick(_BOTH)
    first = draw.thing(phrasing)
    second = draw.thing(phrasing, (first,))
    joint = draw.pick(("and", "and", "or"))
    then, call = phrases.step(draw)
    core = phrasing.format(draw.named(first), joint, draw.named(second), then)
    if joint == "or":
        core = core.replace(" are ", " is ")
    sign = "&" if joint == "and" else "|"
    plan = f"?iv('{first}'){sign}iv('{second}')->{{{call};->True}}->False"
    return finish(draw, "condition on two", core, plan, random_scene(draw, (first, second)))


_SQUARES = (
    "fly a square of {}", "fly in a square with sides of {}", "make a square of {}",
    "draw a square in the air with a side of {}", "fly a {} square", "move in a square of {}",
    "a square, {} along each side", "do a square with {} a side",
    "trace a square, each side {} long",
    "fly once round a square of {}",
)  # fmt: skip
_TRIANGLES = ("fly a triangle of {}", "fly in a triangle with sides of {}", "make a triangle of {}",
              "fly a {} triangle")  # fmt: skip
_PATROLS = ("patrol {} back and forth {n} times", "fly {} back and forth {n} times",
            "go back and forth {} {n} times", "patrol {} {n} times")  # fmt: skip
_SWEEPS = (
    "turn in steps of {} degrees up to {n} times until you see {x}",
    "look around in {} degree steps, at most {n} of them, until you see {x}",
    "turn {} degrees at a time, at most {n} times, until {x} is visible",
)


def figure(draw: Draw) -> Pair:
    """Loops with a shape: squares, triangles, patrols, stepwise looks around."""
    kind = draw.pick(("square", "triangle", "patrol", "sweep"))
    if kind == "sweep":
        phrasing = draw.pick(_SWEEPS)
        name = draw.thing(phrasing)
        angle, count = draw.pick((15, 20, 30, 36, 40, 45, 60, 90)), draw.rng.randint(2, 20)
        core = phrasing.format(angle, n=count, x=draw.named(name))
        plan = f"{count}{{?iv('{name}')==True{{->True}}tc({angle});}}->False"
        return finish(draw, "figure", core, plan, random_scene(draw, (name,)))
    phrasing = draw.pick({"square": _SQUARES, "triangle": _TRIANGLES, "patrol": _PATROLS}[kind])
    side = draw.value(phrasing, lambda: phrases.some_distance(draw))
    count = draw.rng.randint(2, 10)
    core = phrasing.format(amounts.distance(draw, side), n=times(draw, count))
    plan = {
        "square": f"4{{mf({side});tc(90);}}",
        "triangle": f"3{{mf({side});tc(120);}}",
        "patrol": f"{count}{{mf({side});tc(180);mf({side});tc(180);}}",
    }[kind]
    return finish(draw, "figure", core, plan, random_scene(draw))


_SEARCHES = ("look for {}", "search for {}", "find {}", "keep turning until you see {}",
             "locate {}",
             "turn around and look for {}", "hunt for {}", "look all around for {}", "spot {}",
             "there should be {} somewhere, look for it", "have a look round for {}",
             "track down {}",
             "search the place for {}")  # fmt: skip
_TELL = (" and report whether you found it", " and tell me if it is there",
         ". let me know if you find it",
         " and say if there is one", ". is it there? tell me", " and let me know")  # fmt: skip
_NOT_FOUND = (". if you do not find it, {}", ". not there? {} then", ". if it is nowhere, {}",
              "; if there is none, {}", ". should you not find it, {}",
              ". in case there is none, {}",
              ". no luck? then {}")  # fmt: skip
_FOUND = (". when you have it in view, {}", "; once it has come into sight, {}",
          ". right when it appears, {}",
          ". found it? then {}", " and {} when you see it", "; as soon as it is in sight, {}",
          ". after that {}", ", and once it is in front of you, {}",
          ". if you find it, {}")  # fmt: skip


def search(draw: Draw, robot: Robot = DRONE) -> Pair:
    """Look for an object, then tell of it, do something where it was found, or where it was not."""
    phrasing = draw.pick(_SEARCHES)
    name = draw.thing(phrasing)
    core, call = phrasing.format(draw.named(name)), f"{robot.scan}('{name}')==True"
    kind = draw.rng.random()
    if kind < 0.25:
        core += draw.pick(_TELL)
        plan = f"?{call}{{l('Yes');->True}}l('No');->False"
    elif kind < 0.45:
        text, step = phrases.step(draw, robot.steps)
        core += draw.pick(_NOT_FOUND).format(text)
        plan = f"?{call}{{->True}}{step};->False"
    else:
        parts = [phrases.step(draw, robot.steps) for _ in range(draw.pick((1, 1, 2)))]
        core += draw.pick(_FOUND).format(" and ".join(text for text, _ in parts))
        plan = f"?{call}{{{''.join(f'{step};' for _, step in parts)}->True}}->False"
    return finish(draw, "search", core, plan, random_scene(draw, (name,)))


_GOING = ("go to {}", "fly to {}", "bring yourself to {}", "pop over to {}", "approach {}",
          "visit {}",
          "head over to {}", "fly over to {}", "get close to {}")  # fmt: skip
_FINDING = ("look for {}", "find {}", "search for {}", "locate {}", "spot {}")


def tour(draw: Draw) -> Pair:
    """One or two objects to go to or look for, with steps in between: each needs the one before."""
    texts: list[str] = []
    names: list[str] = []
    plan, depth = "", 0
    kinds = draw.pick(("gs", "gss", "sgs", "gg", "gsg", "fg", "gf", "gfs", "ff", "fs", "sgg"))
    for kind in kinds:
        if kind == "s":
            text, call = phrases.step(draw)
            plan += f"{call};"
        else:
            phrasing = draw.pick(_GOING if kind == "g" else _FINDING)
            name = draw.thing(phrasing, names)
            names.append(name)
            text = phrasing.format(draw.named(name))
            plan += f"?s('{name}')==True{{" + (f"g('{name}');" if kind == "g" else "")
            depth += 1
        texts.append(text)
    plan += "->True" + "}" * depth + "->False"
    scene = scene_of(draw, names) if draw.chance(0.4) else random_scene(draw, names)
    return finish(draw, "tour", phrases.joined(draw, texts), plan, scene)


_PHOTOS = ("take {n} pictures", "shoot {n} photos", "take {n} photos in a row", "{n} pictures",
           "get {n} shots",
           "i want {n} photos", "snap {n} pictures one after the other",
           "make {n} photos")  # fmt: skip
_APART = ("{p} and let {t} pass after each one", "{p}, waiting {t} after each",
          "{p} with {t} between them",
          "{p}, one every {t}", "{p}, {t} between each", "{p} at intervals of {t}")  # fmt: skip
_ROUND = ("take a photo every {} degrees, all the way round",
          "one picture each {} degrees for a full turn",
          "photograph everything around you in steps of {} degrees",
          "full circle in {} degree steps, with a photo at each",
          "go all the way round in steps of {} degrees, a picture at every one")  # fmt: skip
_FOUR = ("photograph all four sides, turning right by 90 degrees each time",
         "take a picture in each of the four directions", "a photo to every side, four in all",
         "shoot the view to all four sides, with a quarter turn right after each",
         "a picture after every quarter turn right, four of them, the first one straight away",
         "take a picture, turn right 90 degrees, go on like that for a full circle")  # fmt: skip


def photos(draw: Draw) -> Pair:
    """Several pictures: in a row, at intervals, or all around."""
    kind = draw.rng.random()
    number = draw.rng.randint(2, 10)
    if kind < 0.2:
        return finish(draw, "photos", draw.pick(_FOUR), "4{tp();tc(90);}", random_scene(draw))
    if kind < 0.45:
        phrasing = draw.pick(_ROUND)
        step = draw.value(phrasing, lambda: draw.pick((30, 36, 40, 45, 60, 72, 90, 120, 180)))
        plan = f"{360 // step}{{tp();tc({step});}}"
        return finish(draw, "photos", phrasing.format(step), plan, random_scene(draw))
    phrasing = draw.pick(_PHOTOS)
    core = phrasing.format(n=times(draw, number))
    if kind < 0.65:
        draw.value(phrasing, lambda: core)
        return finish(draw, "photos", core, f"{number}{{tp();}}", random_scene(draw))
    phrasing = draw.pick(_APART)
    seconds = draw.value(phrasing, lambda: str(draw.rng.randint(1, 12)))
    core = phrasing.format(p=core, t=amounts.time(draw, seconds))
    return finish(draw, "photos", core, f"{number}{{tp();d({seconds});}}", random_scene(draw))


_FAILURES = (
    *FAILURES,
    "replan: {what}. plan: {plan}. done so far: {done}",
    "urgent! {what}. the plan was {plan}, i did {done}",
)
_MOTIONS = ("mf", "mf", "mb", "ml", "mr", "mu", "md")


def way_out(threat: str, motion: str) -> str:
    """How the drone evades before it goes on."""
    if threat == "pass":
        return "d(3)"
    if threat == "approach":
        return "mb(50)" if motion in ("ml", "mr") else "mr(50)"
    return "mr(50)" if motion == "md" or (threat == "block" and motion == "mu") else "mu(50)"


def replan(draw: Draw) -> Pair:
    """An urgent replan from an execution history; T5 to T7 of the published tasks."""
    frame = draw.pick((_FAILURES[0], *_FAILURES))
    plan, done, rest = (_interrupted if draw.chance(0.6) else _half_done)(draw, frame)
    threat = draw.pick(tuple(words.THREATS))
    event = draw.pick(words.THREATS[threat])
    name = draw.thing(event)
    article = draw.pick(("a", "a", "the", "an" if name[0] in "aeiou" else "a"))
    core = frame.format(plan=plan, what=f"{article} {name} {event}", done=done)
    motion = rest[0].split("(")[0]
    answer = "".join(f"{call};" for call in (way_out(threat, motion), *rest))
    scene = random_scene(draw, (name,), name) if draw.chance(0.7) else "[]"
    return finish(draw, "replan", core, answer, scene, "E")


def _interrupted(draw: Draw, frame: str) -> tuple[str, str, list[str]]:
    """One motion, part of it done, both in steps of 50 cm or 45 degrees: the rest is left."""
    turning = draw.chance(0.15)
    skill = draw.pick(("tc", "tu")) if turning else draw.pick(_MOTIONS)
    unit, most = (45, 8) if turning else (50, 10)

    def choose() -> tuple[int, int]:
        whole = draw.rng.randint(2, most)
        return unit * whole, unit * draw.rng.randint(1, whole - 1)

    whole, part = draw.value(f"{frame}|{skill}", choose)
    written = draw.pick((f"{skill},{whole}", f"{skill}({whole})"))
    return written, f"{skill}({part})", [f"{skill}({whole - part})"]


def _half_done(draw: Draw, frame: str) -> tuple[str, str, list[str]]:
    """Some of several motions done: the others are left."""
    calls = []
    for _ in range(draw.pick((2, 3, 3, 4))):
        maker = phrases.turn if draw.chance(0.3) else phrases.move
        calls.append(maker(draw)[1])
    count = draw.rng.randint(0, len(calls) - 1)
    done = ";".join(calls[:count]) if count else draw.pick(("none", "nothing"))
    return ";".join(calls), done, calls[count:]


_TRANSIENT = ("the camera was busy", "there was no answer", "the motor stalled", "it timed out",
              "the command was lost", "the camera did not answer", "a gust of wind came",
              "the link was lost for a moment", "the picture was blurred")  # fmt: skip


def retry(draw: Draw) -> Pair:
    """A call that failed for a reason that passes, or for a thing out of view: the rest is done
    again, or the thing is looked for."""
    frame = draw.pick((_FAILURES[0], *_FAILURES))
    calls = []
    if draw.chance(0.3):
        name = draw.thing(frame)
        core = frame.format(plan=f"g('{name}')", what=f"{name} is not in view", done="none")
        answer = found_then(f"s('{name}')", f"g('{name}')", ";")
        return finish(draw, "retry", core, answer, random_scene(draw, (name,)), "E")
    for _ in range(draw.pick((2, 2, 3, 4))):
        makers = ((phrases.move, 3), (phrases.turn, 2), (phrases.picture, 4))
        calls.append(phrases.step(draw, makers)[1])
    begun = draw.rng.randint(0, len(calls) - 1)
    done = ";".join(calls[:begun]) or "none"
    what = draw.value(frame, lambda: draw.pick(_TRANSIENT))
    core = frame.format(plan=";".join(calls), what=what, done=done)
    answer = "".join(f"{call};" for call in calls[begun:])
    return finish(draw, "retry", core, answer, random_scene(draw), "E")
