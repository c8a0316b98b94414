"""Families of the drone alone: look after a move, measures, open questions, figures, replans."""

from __future__ import annotations

from tools.planner import phrases, words
from tools.planner.draw import Draw, Pair, finish, random_scene
from tools.planner.tasks import FAILURES, found_then, place_words

VERBS = [
    *words.VERBS,
    *("open", "close", "push", "pull", "throw", "lift", "carry", "bring", "fetch", "deliver"),
    *("land", "take off with", "follow"),
]

_LOOK = ("try to find {}{}", "look for {}{}", "see if there is {}{}", "check for {}{}",
         "find {}{}", "try to spot {}{}")  # fmt: skip
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
    if draw.chance(0.5):
        phrasing = draw.pick(_LOOK)
        name = draw.thing(phrasing)
        where = f" {place_words(draw)[0]}" if draw.chance(0.7) else ""
        text = phrasing.format(draw.named(name), where)
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
           "tell me the distance to {}", "measure the distance to {}"),
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
    "what color is {}?", "what colour is {}?", "how many {} are there?", "who is next to {}?",
    "what is {} made of?", "is {} clean?", "is {} open?", "how does {} look?", "what is behind {}?",
    "what is on {}?", "what is wrong with {}?", "what does {} look like?", "is {} broken?",
    "describe {}", "what brand is {}?", "how old is {}?", "is {} empty?",
)  # fmt: skip


def open_question(draw: Draw) -> Pair:
    """A question for the probe skill, passed on as it is asked."""
    phrasing = draw.pick(_OPEN)
    name = draw.thing(phrasing, longest=26)
    what = name if phrasing.startswith("how many") else f"the {name}"
    core = phrasing.format(what)
    return finish(draw, "open question", core, f"->p('{core.rstrip('?')}')",
                  random_scene(draw, (name,)), "Q")  # fmt: skip


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
    ("if {} is more than {} cm away, {}", "od", ">"),
)  # fmt: skip
_SIDE = (
    ("if {} is on the left, {}", "ox", "<0.5"), ("if {} is on the right, {}", "ox", ">0.5"),
    ("if {} is on your left, {}", "ox", "<0.5"), ("if {} is on your right, {}", "ox", ">0.5"),
    ("if {} is in the upper half, {}", "oy", "<0.5"),
    ("if {} is in the lower half, {}", "oy", ">0.5"),
)  # fmt: skip


def comparison(draw: Draw) -> Pair:
    """A step that depends on where an object is."""
    then, call = phrases.step(draw)
    if draw.chance(0.5):
        phrasing, skill, sign = draw.pick(_THAN)
        name = draw.thing(phrasing)
        limit = 10 * draw.rng.randint(2, 50)
        core, test = phrasing.format(draw.named(name), limit, then), f"{sign}{limit}"
    else:
        phrasing, skill, test = draw.pick(_SIDE)
        name = draw.thing(phrasing)
        core = phrasing.format(draw.named(name), then)
    plan = f"?{skill}('{name}'){test}{{{call};->True}}->False"
    return finish(draw, "comparison", core, plan, random_scene(draw, (name,)))


_SQUARES = (
    "fly a square of {}", "fly in a square with sides of {}", "make a square of {}",
    "draw a square in the air with a side of {}", "fly a {} square", "move in a square of {}",
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
    core = phrasing.format(phrases.distance_words(draw, side), n=count)
    plan = {
        "square": f"4{{mf({side});tc(90);}}",
        "triangle": f"3{{mf({side});tc(120);}}",
        "patrol": f"{count}{{mf({side});tc(180);mf({side});tc(180);}}",
    }[kind]
    return finish(draw, "figure", core, plan, random_scene(draw))


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
