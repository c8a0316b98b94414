"""Families of robots that move: there and back, bobbing, stairs, polygons. Of drones and rovers."""

from __future__ import annotations

from tools.planner import amounts, phrases
from tools.planner.draw import Draw, Pair, finish, random_scene
from tools.planner.phrases import FLYING, OPPOSITE, Body, Step
from tools.planner.tasks import times

_WAY = {"mf": "forward", "mb": "back", "ml": "left", "mr": "right", "mu": "up", "md": "down"}
_BACK = ("come back", "come back again", "go back to where you were", "return", "then come home",
         "get back to where you began", "undo that", "return to the start",
         "move back to the start",
         "come back to where you are now", "and back again",
         "go back the way you came")  # fmt: skip
_SAME = ("{w} {} again", "{} {w} again", "then go {w} {}", "come back {w} {}", "{} back {w}",
         "back {w} {}", "go back {w} by {}", "return {} {w}", "come {} {w} again")  # fmt: skip
_AND = (" and {}", ", then {}", " and then {}", ", and {}", ", {}", ". then {}", "; {}")


def there_and_back(draw: Draw, body: Body = FLYING) -> Pair:
    """A move, perhaps something there, and the same move back."""
    skill = draw.pick(body.moves)
    text, call = phrases.move(draw, skill, body)
    centimetres = int(call[3:-1])
    back = draw.pick(_BACK)
    if draw.chance(0.4):
        amount = amounts.distance(draw, centimetres)
        same = _SAME[:3] if skill in ("mf", "mb") else _SAME
        back = draw.pick(same).format(amount, w=_WAY[OPPOSITE[skill]])
    elif skill in ("mu", "md") and draw.chance(0.7):
        back = draw.pick(("come back {}", "go back {}", "come {} again", "return {}")).format(
            _WAY[OPPOSITE[skill]]
        )
    middle = _middle(draw, body)
    texts = [text, *(each for each, _ in middle), back]
    joint = draw.pick(_AND)
    core = texts[0]
    for each in texts[1:]:
        core += (joint if draw.chance(0.5) else draw.pick(_AND)).format(each)
    calls = [call, *(each for _, each in middle), f"{OPPOSITE[skill]}({centimetres})"]
    plan = "".join(f"{each};" for each in calls)
    return finish(draw, "there and back", core, plan, random_scene(draw))


def _middle(draw: Draw, body: Body) -> list[Step]:
    if body is not FLYING or draw.chance(0.15):
        return []
    makers = ((phrases.picture, 5), (phrases.wait, 3), (phrases.say, 1))
    first = phrases.step(draw, makers)
    if draw.chance(0.15):
        return [first, phrases.step(draw, makers)]
    return [first]


_BOB = {
    ("mu", "md"): ("rise {0} and sink {0} again, {n} times", "go up and down {n} times by {}",
                   "{n} times up {0} and down {0}", "{0} up and {0} down, {n} times"),
    ("ml", "mr"): ("sway left and right {n} times, {} each way", "{n} times left {0} and right {0}",
                   "{0} to the left and {0} to the right, {n} times over"),
    ("mr", "ml"): ("{0} to the right, {0} to the left, {n} times",
                   "swing {0} right and {0} left {n} times"),
    ("mf", "mb"): ("shuttle {n} times, {} out and {} in", "{n} times {0} forward and {0} back",
                   "{0} ahead and {0} back, {n} times over",
                   "rock forward and back {n} times by {0}",
                   "{n} times a run of {0} out and {0} in",
                   "{0} on, {0} back, and that {n} times"),
    ("tu", "tc"): ("wag {n} times by {0}, first left, then right",
                   "{n} times {0} left and {0} right",
                   "shake your head {n} times, {0} left, then {0} right",
                   "turn {0} left and {0} right, {n} times"),
    ("tc", "tu"): ("wag {n} times by {0}, first right, then left",
                   "{0} right, {0} left, {n} times over"),
}  # fmt: skip


def bob(draw: Draw, body: Body = FLYING) -> Pair:
    """A move or turn and its contrary, several times."""
    ways = [each for each in _BOB if each[0] in (*body.moves, "tu", "tc")]
    first, second = draw.pick(ways)
    phrasing = draw.pick(_BOB[first, second])
    count = draw.rng.randint(2, 8)
    if first in ("tu", "tc"):
        size = draw.value(phrasing, lambda: 5 * draw.rng.randint(2, 24))
        text = amounts.angle(draw, size)
    else:
        size = draw.value(phrasing, lambda: phrases.some_distance(draw, body.shortest, 150))
        text = amounts.distance(draw, size)
    core = phrasing.replace("{}", "{0}").format(text, n=times(draw, count))
    if count == 2:
        core = core.replace("two times", "twice")
    plan = f"{count}{{{first}({size});{second}({size});}}"
    return finish(draw, "bob", core, plan, random_scene(draw))


_STAIRS = ("{n} times over, go {a} ahead and {b} up, like on stairs",
           "climb {n} stairs, each {a} forward and {b} up",
           "a staircase of {n} steps, {a} forward and {b} higher each",
           "{n} stair steps: {a} ahead and {b} up each time")  # fmt: skip
_ZIGZAG = ("zigzag {n} times: {a} ahead, then {b} to the left", "{n} times {a} on and {b} left",
           "in {n} stages go {a} forward and shift {b} left each time")  # fmt: skip


def stairs(draw: Draw) -> Pair:
    """Forward and up or aside, several times."""
    up = draw.chance(0.6)
    phrasing = draw.pick(_STAIRS if up else _ZIGZAG)
    count = draw.rng.randint(2, 5)
    ahead = draw.value(phrasing, lambda: 10 * draw.rng.randint(2, 12))
    rise = 5 * draw.rng.randint(4, 9)
    core = phrasing.format(
        n=times(draw, count), a=amounts.distance(draw, ahead), b=amounts.distance(draw, rise)
    )
    plan = f"{count}{{mf({ahead});{'mu' if up else 'ml'}({rise});}}"
    return finish(draw, "stairs", core, plan, random_scene(draw))


_SHAPES = {3: "triangle", 4: "square", 5: "pentagon", 6: "hexagon", 8: "octagon"}
_POLYGONS = (
    "trace a {s} whose sides are {}, with turns to the {w}",
    "go round a {s}, {} a side, turning {w}",
    "move in a {s} with sides of {}, {w} turns", "a {s} of {} a side, turning {w}",
    "do a {s}, sides {}, always turning {w}",
)  # fmt: skip
_BY_HAND = ("{n} times: {} ahead, then turn {w} by {d} degrees",
            "a {s}: move {} on, then {d} degrees {w}, over and over, {n} sides in all",
            "{s}: {} straight, {d} degrees {w}, and so on until it is closed")  # fmt: skip


def polygon(draw: Draw, body: Body = FLYING) -> Pair:
    """A regular figure with a said side of turning."""
    corners = draw.pick((3, 4, 5, 6, 6, 8))
    phrasing = draw.pick(_POLYGONS if draw.chance(0.6) else _BY_HAND)
    side = draw.value(phrasing, lambda: phrases.some_distance(draw, body.shortest, 300))
    way = draw.pick(("right", "left"))
    core = phrasing.format(
        amounts.distance(draw, side), s=_SHAPES[corners], w=way, n=times(draw, corners),
        d=360 // corners,
    )  # fmt: skip
    turn = f"{'tc' if way == 'right' else 'tu'}({360 // corners})"
    return finish(draw, "polygon", core, f"{corners}{{mf({side});{turn};}}", random_scene(draw))


_CHANGED = ("{a}, no, make it {b}", "{a}, no wait, {b}", "{a}... er, {b}", "{a}, sorry, {b}",
            "{a} - no, {b}",
            "{a}, hang on, rather {b}", "{a}, i mean {b}", "{a}, or let's say {b}")  # fmt: skip


def changed_amount(draw: Draw, body: Body = FLYING) -> Pair:
    """A move whose amount is corrected while it is said."""
    skill = draw.pick(body.moves)
    text, call = phrases.move(draw, skill, body)
    while "(20)" in call or "(40)" in call:  # perhaps without an amount
        text, call = phrases.move(draw, skill, body)
    phrasing = draw.pick(_CHANGED)
    size = draw.value(phrasing, lambda: phrases.some_distance(draw, body.shortest, 150))
    core = phrasing.format(a=text, b=amounts.distance(draw, size))
    return finish(draw, "changed amount", core, f"{skill}({size});", random_scene(draw))
