"""Families of the arm alone: pick and place, pick, put down, replans."""

from __future__ import annotations

from tools.planner import phrases, words
from tools.planner.draw import Draw, Pair, finish, random_scene
from tools.planner.tasks import FAILURES, found_then

VERBS = [
    *words.VERBS,
    *("open", "close", "push", "pull", "throw", "turn", "rotate", "tilt", "carry", "deliver"),
    *("fly to", "follow", "shake", "kick", "roll", "point at"),
]

_ON = ("on", "on", "onto", "on top of", "over")
_IN = ("in", "into", "inside")
_NEAR = ("near", "near", "next to", "beside", "close to", "by")
_PLACE = (
    "pick up {} and drop it {} {}", "pick up {} and drop it {} {}", "pick up {} and put it {} {}",
    "put {} {} {}", "place {} {} {}", "take {} and put it {} {}", "grab {} and place it {} {}",
    "pick {} up and place it {} {}", "get {} and drop it {} {}", "set {} {} {}", "drop {} {} {}",
    "pick up {} and lay it {} {}", "move {} and put it {} {}",
)  # fmt: skip
_NEXT = (". then, {}", ". then, {}", ", then {}", " and then {}", ". after that, {}", ". then {}",
         ". next, {}", "; {}", ". {}")  # fmt: skip
_FINALLY = (". finally, {}", ". finally, {}", ", and finally {}", ". lastly, {}")
_PICK = ("pick up {}", "grab {}", "take {}", "pick {} up", "get {}", "grasp {}", "lift {}",
         "pick up {} and hold it", "get hold of {}", "fetch {}")  # fmt: skip
_RELEASE = ("drop it", "put it down", "release it", "let it go", "open the gripper", "drop it here",
            "put it down here", "let go", "release the object", "set it down", "place it here",
            "drop what you hold")  # fmt: skip


def place(draw: Draw) -> Pair:
    """One to three objects picked up and put somewhere; T8 to T10 of the published tasks."""
    count = draw.pick((1, 1, 2, 2, 2, 3))
    template = draw.pick(_PLACE)
    moves: list[tuple[str, str, str]] = []
    parts: list[str] = []
    for index in range(count):
        if index and draw.chance(0.3):
            template = draw.pick(_PLACE)
        name, side, target = _movement(draw, template, moves)
        moves.append((name, side, target))
        words_target = f"the {target}" if draw.chance(0.8) else draw.named(target)
        parts.append(template.format(draw.named(name), side, words_target))
    core = _in_order(draw, parts)
    names = [name for name, _, _ in moves] + [target for _, _, target in moves]
    return finish(draw, "pick and place", core, place_plan(moves), random_scene(draw, names))


def _movement(
    draw: Draw, template: str, earlier: list[tuple[str, str, str]]
) -> tuple[str, str, str]:
    used = [text for movement in earlier for text in movement]
    name = draw.thing(template, used)
    side = draw.pick(draw.pick((_ON, _IN, _NEAR)))
    if earlier and draw.chance(0.3):
        return name, side, draw.pick(earlier)[0]
    if earlier and draw.chance(0.15):
        return name, side, draw.pick(earlier)[2]
    return name, side, draw.thing(template, [*used, name])


def _in_order(draw: Draw, parts: list[str]) -> str:
    text, joint = parts[0], draw.pick(_NEXT)
    for index, part in enumerate(parts[1:], 2):
        last = index == len(parts) > 2 and draw.chance(0.7)
        text += draw.pick(_FINALLY if last else (joint, joint, draw.pick(_NEXT))).format(part)
    return text + draw.pick(("", "."))


def place_plan(moves: list[tuple[str, str, str]]) -> str:
    """The plan in the form of the published ones, one block for each object.

    What goes in something is dropped without going there again. Two of the published plans differ
    (a stack whose second block stands in the first one, a wait of 0.1 s beside an object that was
    moved before): they are trained as they are.
    """
    return "".join(_block(*movement) for movement in moves)


def _block(name: str, side: str, target: str) -> str:
    arrive = "" if side in _IN else f"gt('{target}');"
    there = f"?sc('{target}')==True{{{arrive}dr();}}"
    return f"?sc('{name}')==True{{gt('{name}');pi('{name}');{there};}}"


def pick(draw: Draw) -> Pair:
    """Pick one object up."""
    phrasing = draw.pick(_PICK)
    name = draw.thing(phrasing)
    plan = f"?sc('{name}')==True{{gt('{name}');pi('{name}');}}"
    return finish(draw, "pick", phrasing.format(draw.named(name)), plan,
                  random_scene(draw, (name,)))  # fmt: skip


def release(draw: Draw) -> Pair:
    """Put down what is held, perhaps after a wait or a message."""
    text, plan = draw.pick(_RELEASE), "dr();"
    if draw.chance(0.4):
        first = phrases.step(draw, ((phrases.wait, 2), (phrases.say, 1)))
        text, plan = phrases.joined(draw, [first[0], text]), f"{first[1]};{plan}"
    return finish(draw, "put down", text, plan, random_scene(draw))


_IF_PICK = ("if you see {}, pick it up", "if there is {}, pick it up", "if you see {}, grab it",
            "if {} is visible, pick it up", "check for {} and pick it up if you see it",
            "pick up {} if you see it", "grab {} if it is there")  # fmt: skip


def pick_if(draw: Draw) -> Pair:
    """Pick an object up if it is in view."""
    phrasing = draw.pick(_IF_PICK)
    name = draw.thing(phrasing)
    plan = found_then(f"iv('{name}')", f"gt('{name}');pi('{name}');->True")
    return finish(draw, "pick if seen", phrasing.format(draw.named(name)), plan,
                  random_scene(draw, (name,)))  # fmt: skip


def replan(draw: Draw) -> Pair:
    """Something gets in the way of the arm: wait 3 s, then do what is left."""
    frame = draw.pick((FAILURES[0], *FAILURES))
    event = draw.pick(words.THREATS[draw.pick(("pass", "block", "approach"))])
    name = draw.thing(event)
    held, target = draw.thing(frame), draw.thing(frame)
    calls = [f"gt('{held}')", f"pi('{held}')", f"gt('{target}')", "dr()"]
    count = draw.rng.randint(1, 3)
    core = frame.format(
        plan=";".join(calls), what=f"a {name} {event}", done=";".join(calls[:count])
    )
    plan = "".join(f"{call};" for call in ("d(3)", *calls[count:]))
    return finish(draw, "replan", core, plan, random_scene(draw, (name, held, target)), "E")
