"""The load at which a policy has a given utility, by bisection. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable

PAPER_UTILITY = 0.74  # mean of a goal of WID2 under ``vllm`` (TimelyLLM, Figure 7), at
PAPER_BATCH = 12  # sequences in a step at most
LEAST, MOST = 1 / 64, 256.0


class NoSuchLoad(ValueError):
    """No load in the range searched has the utility. The text says what was met instead."""


def load_of(
    utility: Callable[[float], float],
    target: float = PAPER_UTILITY,
    *,
    least: float = LEAST,
    most: float = MOST,
    tolerance: float = 0.002,
    steps: int = 16,
) -> float:
    """The load at which ``utility(load)``, which falls with the load, is ``target``.

    Starts from load 1, doubles or halves until the target is between two loads, then bisects their
    logarithms until the utility is within ``tolerance`` or ``steps`` have been taken. Returns the
    nearer one, in four digits; ``NoSuchLoad`` says what was met where there is none.
    """
    tried: dict[float, float] = {}

    def at(load: float) -> float:
        if load not in tried:
            tried[load] = utility(load)
        return tried[load]

    low, high = _bracket(at, target, least, most)
    for _ in range(steps):
        if min(abs(value - target) for value in tried.values()) <= tolerance:
            return min(tried, key=lambda load: abs(tried[load] - target))
        middle = float(f"{math.sqrt(low * high):.4g}")
        if at(middle) > target:
            low = middle
        else:
            high = middle
    return min((low, high), key=lambda load: abs(at(load) - target))


def _bracket(
    at: Callable[[float], float], target: float, least: float, most: float
) -> tuple[float, float]:
    """Two loads with the target between them: it is above it at the first and not at the second."""
    load = 1.0
    if at(load) > target:
        while at(load) > target:
            load *= 2
            if load > most:
                raise NoSuchLoad(
                    f"the utility is still {at(load / 2):.3f} at load {load / 2:g}: it does not "
                    f"fall to {target}"
                )
        return load / 2, load
    while at(load) <= target:
        load /= 2
        if load < least:
            raise NoSuchLoad(
                f"the utility is only {at(load * 2):.3f} at load {load * 2:g}: it does not reach "
                f"{target}"
            )
    return load, load * 2
