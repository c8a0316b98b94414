"""Families of the arm alone: pick and place, pick, put down, replans."""

from __future__ import annotations

from tools.planner import amounts, phrases, tasks, words
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
    "lay {} {} {}", "{} goes {} {}", "{} belongs {} {}", "i want {} {} {}", "get {} {} {}",
    "pop {} {} {}", "stick {} {} {}", "plop {} {} {}", "bring {} over and set it {} {}",
    "transfer {} so that it is {} {}", "{} ought to be {} {}", "deposit {} {} {}",
    "move {} {} {}",
    "see {}? {} {} with it", "grab {} and plop it {} {}", "i need {} {} {}", "let {} end up {} {}",
    "please have {} {} {}", "take {} and lay it {} {}", "{} has to go {} {}",
    "let me have {} {} {}",
    "lift {} and set it down {} {}", "leave {} {} {}", "store {} {} {}", "i would like {} {} {}",
    "make sure that {} is {} {}", "fetch {} and put it {} {}", "carry {} and drop it {} {}",
)  # fmt: skip
_NEXT = (". then, {}", ". then, {}", ", then {}", " and then {}", ". after that, {}", ". then {}",
         ". next, {}", "; {}", ". {}")  # fmt: skip
_FINALLY = (". finally, {}", ". finally, {}", ", and finally {}", ". lastly, {}")
_PICK = ("pick up {}", "grab {}", "take {}", "pick {} up", "get {}", "grasp {}", "lift {}",
         "pick up {} and hold it", "get hold of {}", "fetch {}", "raise {} from the table",
         "hold {} up",
         "pick up {} and keep it", "close the gripper on {}", "take {} in your gripper", "hold {}",
         "raise {}", "hold {} up for me", "seize {}", "clasp {}", "lay hold of {}", "get {} for me",
         "look for {} and take it", "find {} and pick it up", "locate {} and hold it up",
         "look about for {} and lift it", "i want you to hold {}", "catch hold of {}",
         "pick that, {}", "the thing to pick is {}", "lift {} up", "snatch {}", "collect {}",
         "nab {}")  # fmt: skip
_RELEASE = ("drop it", "put it down", "release it", "let it go", "open the gripper", "drop it here",
            "put it down here", "let go", "release the object", "set it down", "place it here",
            "drop what you hold", "put down what you have", "let go of it", "lower it and let go",
            "release your grip", "unhand it", "put the thing down",
            "lay down what is in the gripper",
            "empty your gripper", "put that down", "leave it there", "give it up")  # fmt: skip


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
        if index and target == moves[-2][2] and draw.chance(0.4):
            words_target += draw.pick((" too", " as well", ", too"))
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

    Three of the published blocks differ (a stack whose second block stands in the first one, a wait
    of 0.1 s beside an object that was moved before, a drop into a holder without going there): they
    are trained as they are.
    """
    return "".join(_block(*movement) for movement in moves)


def _block(name: str, side: str, target: str, held: str = "") -> str:
    there = f"?sc('{target}')==True{{gt('{target}');dr();}}"
    return f"?sc('{name}')==True{{gt('{name}');pi('{name}');{held}{there};}}"


_ALL_IN = (
    "put {} {} {}", "place {} {} {}", "move {} {} {}", "{} all go {} {}", "lay {} {} {}",
    "drop {} {} {}",
    "{}: each of them goes {} {}", "one by one, {} go {} {}", "take {} and put them {} {}",
    "i want {} {} {}", "{} belong {} {}", "gather {} {} {}", "collect {} {} {}",
)  # fmt: skip


def place_all(draw: Draw) -> Pair:
    """Two or three objects to one place."""
    phrasing = draw.pick(_ALL_IN)
    names: list[str] = []
    for _ in range(draw.pick((2, 2, 3))):
        names.append(draw.thing(phrasing, names))
    target = draw.thing(phrasing, names)
    side = draw.pick((*_IN, *_ON))
    listed = ", ".join(draw.named(name) for name in names[:-1])
    listed += draw.pick((" and ", " and then ", ", then ", " and also ")) + draw.named(names[-1])
    core = phrasing.format(listed, side, f"the {target}")
    plan = place_plan([(name, side, target) for name in names])
    return finish(draw, "place all", core, plan, random_scene(draw, [*names, target]))


def tower(draw: Draw) -> Pair:
    """Three objects on each other."""
    phrasing = draw.pick((
        "{0} comes on {1}, {2} comes on {0}, like a little tower",
        "stack {0} on {1} and {2} on {0}",
        "make a stack: {0} on {1}, then {2} on {0}", "pile them up: {0} on {1}, {2} on {0}",
        "a tower, please: {1} below, {0} on it, {2} on {0}"))  # fmt: skip
    first = draw.thing(phrasing)
    below = draw.thing(phrasing, (first,))
    top = draw.thing(phrasing, (first, below))
    core = phrasing.format(*(f"the {name}" for name in (first, below, top)))
    plan = place_plan([(first, "on", below), (top, "on", first)])
    return finish(draw, "tower", core, plan, random_scene(draw, (first, below, top)))


_HOLD = ("hold it for {}", "do not let go of it for {}", "wait {}", "keep it up for {}",
         "hold it {}",
         "pause {}",
         "hold on to it for {}", "stay like that for {}")  # fmt: skip
_DOWN = ("then set it back", "then put it down", "set it down again", "drop it again", "let it go",
         "release it", "lay it back down", "put it back down", "lower it again")  # fmt: skip


def hold(draw: Draw) -> Pair:
    """Pick one object up, perhaps hold it for a while, then put it down or somewhere."""
    phrasing = draw.pick(_PICK)
    name = draw.thing(phrasing)
    core, wait, scene = phrasing.format(draw.named(name)), "", [name]
    joint = draw.pick((", {}", " and {}", ", then {}", ". {}", ", and then {}", " and then {}"))
    if draw.chance(0.6):
        seconds = str(draw.rng.randint(1, 20))
        core += joint.format(draw.pick(_HOLD).format(amounts.time(draw, seconds)))
        wait = f"d({seconds});"
    if wait and draw.chance(0.25):
        plan = f"?sc('{name}')==True{{gt('{name}');pi('{name}');{wait}}}"
    elif draw.chance(0.5):
        core += draw.pick((", {}", " and {}", ", then {}", " and then {}")).format(draw.pick(_DOWN))
        plan = f"?sc('{name}')==True{{gt('{name}');pi('{name}');{wait}dr();}}"
    else:
        side = draw.pick((*_ON, *_IN))
        target = draw.thing("put it {} {}", (name,))
        then = draw.pick(
            ("lay it {} {}", "put it {} {}", "drop it {} {}", "{} {} with it", "place it {} {}")
        )
        core += draw.pick((", then {}", ". then {}", " and then {}")).format(
            then.format(side, f"the {target}")
        )
        plan, scene = _block(name, side, target, wait), [name, target]
    return finish(draw, "hold", core, plan, random_scene(draw, scene))


def over(draw: Draw) -> phrases.Step:
    """As one of several steps: above an object."""
    phrasing = draw.pick(tasks.ABOVE)
    name = draw.thing(phrasing)
    return phrasing.format(draw.named(name)), f"?sc('{name}')==True{{gt('{name}');}}"


def take(draw: Draw) -> phrases.Step:
    """As one of several steps: an object picked up."""
    phrasing = draw.pick(_PICK)
    name = draw.thing(phrasing)
    call = f"?sc('{name}')==True{{gt('{name}');pi('{name}');}}"
    return phrasing.format(draw.named(name)), call


def put(draw: Draw) -> phrases.Step:
    """As one of several steps: an object put somewhere."""
    phrasing = draw.pick(_PLACE)
    name = draw.thing(phrasing)
    target = draw.thing(phrasing, (name,))
    side = draw.pick(draw.pick((_ON, _IN)))
    text = phrasing.format(draw.named(name), side, f"the {target}")
    return text, _block(name, side, target)


def steps(draw: Draw) -> Pair:
    """Above some objects, waits, and at the end perhaps one that is picked up or put somewhere."""
    makers = ((over, 4), (phrases.wait, 2), (phrases.say, 1))
    parts = [phrases.step(draw, makers) for _ in range(draw.pick((1, 1, 2)))]
    parts.append(phrases.step(draw, ((over, 2), (take, 2), (put, 2))))
    if draw.chance(0.15):
        parts = [put(draw), over(draw)]
    core = phrases.joined(draw, [text for text, _ in parts])
    plan = "".join(call if call.endswith("}") else f"{call};" for _, call in parts)
    names = [value for _, value in draw.keys]
    return finish(draw, "arm steps", core, plan, random_scene(draw, names))


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
            "pick up {} if you see it", "grab {} if it is there", "if you see {}, take it",
            "{}: pick it up if it is there", "is there {}? pick it up then",
            "should you see {}, get it",
            "with {} in view, pick it up", "if {} is on the table, lift it",
            "only if {} is there, pick it up")  # fmt: skip


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


_TRANSIENT = ("the grip slipped", "there was no answer", "it timed out", "the gripper jammed",
              "the arm did not reach it", "the controller was busy")  # fmt: skip


def retry(draw: Draw) -> Pair:
    """A call that failed for a reason that passes: it is done again, from the approach on."""
    frame = draw.pick((FAILURES[0], *FAILURES))
    held, target = draw.thing(frame), draw.thing(frame)
    calls = [f"gt('{held}')", f"pi('{held}')", f"gt('{target}')", "dr()"]
    begun = draw.rng.randint(0, 3)
    what = draw.value(frame, lambda: draw.pick(_TRANSIENT))
    core = frame.format(plan=";".join(calls), what=what, done=";".join(calls[:begun]) or "none")
    plan = "".join(f"{call};" for call in calls[begun - begun % 2 :])
    return finish(draw, "retry", core, plan, random_scene(draw, (held, target)), "E")
