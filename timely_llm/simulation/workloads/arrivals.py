"""When goals or events of goals come: times in s from 0, drawn from a given generator."""

from __future__ import annotations

import random

GAMMA_SHAPE = 0.73
GAMMA_SCALE = 10.41
"""s; of the gaps between requests in two months of FabriX's log (ELIS, section 4.1, Figure 4)."""


MAX_ARRIVALS = 100_000  # of a process, in the mean


def positive(name: str, value: float, unit: str = "") -> None:
    """``ValueError`` unless ``value`` is finite and above 0."""
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} is {value:g}{unit}: must be finite and above 0")


def poisson(
    rate: float, rng: random.Random, *, count: int | None = None, until: float = 0.0
) -> list[float]:
    """Times of a Poisson process of ``rate`` (1/s): ``count`` of them, or all before ``until``."""
    positive("rate", rate, "/s")
    if count is None:
        positive("time", until, " s")
        if not rate * until <= MAX_ARRIVALS:
            raise ValueError(
                f"rate {rate:g}/s for a time of {until:g} s is about {rate * until:g} arrivals: "
                f"at most {MAX_ARRIVALS}"
            )
    times: list[float] = []
    now = rng.expovariate(rate)
    while len(times) < count if count is not None else now < until:
        times.append(now)
        now += rng.expovariate(rate)
    return times


def gamma(
    count: int,
    rng: random.Random,
    *,
    rate: float | None = None,
    shape: float = GAMMA_SHAPE,
    scale: float = GAMMA_SCALE,
) -> list[float]:
    """``count`` times with Gamma distributed gaps.

    With ``rate`` (1/s) the scale is chosen so that the mean gap is its inverse; the shape, and with
    it the burstiness, stays.
    """
    if rate is not None:
        positive("rate", rate, "/s")
        scale = 1.0 / (rate * shape)
    positive("shape", shape)
    positive("scale", scale, " s")
    times, now = [], 0.0
    for _ in range(count):
        now += rng.gammavariate(shape, scale)
        times.append(now)
    return times
