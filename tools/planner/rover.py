"""Families of the rover alone: the square that it has a skill for."""

from __future__ import annotations

from tools.planner import amounts, words
from tools.planner.draw import Draw, Pair, finish, random_scene
from tools.planner.tasks import times

VERBS = [
    *(verb for verb in words.VERBS if verb not in ("drive", "park")),
    *("open", "close", "pull", "throw", "lift", "carry", "bring", "fetch", "deliver", "follow"),
    *("watch", "photograph", "film", "greet", "find", "grab", "count", "inspect", "measure"),
]
MOST_SIDE = 200  # cm, of the skill; a longer square is driven side by side
_SQUARES = (
    "drive a square of {}", "drive in a square with sides of {}", "make a square of {}",
    "a {} square",
    "draw a square with a side of {}", "drive a {} square", "move in a square of {}",
    "drive around a square of {}", "do a square, {} each side", "trace a square with {} sides",
    "a square, {} a side", "go round a square whose sides are {}", "square of {}, go",
    "do one lap of a square with sides of {}", "drive along a square, {} on each side",
)  # fmt: skip
_LAPS = ("{n} laps of a square of {}", "drive round a {} square {n} times", "{n} squares of {}",
         "{n} times round a square with sides of {}", "do {n} rounds of a {} square",
         "go around a {} square, {n} laps")  # fmt: skip


def square(draw: Draw) -> Pair:
    """One square, or several in a row."""
    laps = draw.rng.randint(2, 6) if draw.chance(0.3) else 1
    phrasing = draw.pick(_SQUARES if laps == 1 else _LAPS)
    longest = 500 if laps == 1 and draw.chance(0.3) else MOST_SIDE

    def choose() -> int:
        return draw.pick((10 * draw.rng.randint(1, longest // 10), 5 * draw.rng.randint(1, 40),
                          50 * draw.rng.randint(1, longest // 50)))  # fmt: skip

    side = draw.value(phrasing, choose)
    core = phrasing.format(amounts.distance(draw, side), n=times(draw, laps))
    plan = f"sq({side});" if side <= MOST_SIDE else f"4{{mf({side});tc(90);}}"
    if laps > 1:
        plan = f"{laps}{{{plan}}}"
    return finish(draw, "square", core, plan, random_scene(draw))
