"""Time utility: what a response is worth at the moment it comes. Pure numbers, nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum


class Urgency(IntEnum):
    """How urgent a goal is; values as in ``action/Plan``. Lower is more urgent."""

    UNSPECIFIED = 0
    CRITICAL = 1
    URGENT = 2
    NORMAL = 3
    LOW = 4
    BACKGROUND = 5


MOST = 1e6
"""s, 1/s and 1: sums of them, and their products with any time, are numbers."""


@dataclass(frozen=True, slots=True)
class TimeUtility:
    """U(t) = min(beta, alpha (t - ert) + beta): TimelyLLM, Eq. 1.

    ``ert`` is the expected response time in s (>= 0), ``alpha`` the slope after it in 1/s (<= 0)
    and ``beta`` the utility of a response within ``ert`` (> 0); none is beyond ``MOST``. Anything
    else is a ``ValueError`` that names the field.
    """

    ert: float
    alpha: float
    beta: float

    def __post_init__(self) -> None:
        for name in ("ert", "alpha", "beta"):
            if not abs(getattr(self, name)) <= MOST:
                words = f"must be finite, {-MOST:g} to {MOST:g}"
                raise ValueError(f"utility.{name} is {getattr(self, name)}: {words}")
        if self.ert < 0:
            raise ValueError(f"utility.ert is {self.ert} s: must be at least 0")
        if self.alpha > 0:
            raise ValueError(f"utility.alpha is {self.alpha}/s: must be at most 0")
        if self.beta <= 0:
            raise ValueError(f"utility.beta is {self.beta}: must be above 0")

    def __call__(self, t: float) -> float:
        """Utility of a response that comes ``t`` s after the request."""
        return min(self.beta, self.alpha * (t - self.ert) + self.beta)

    @property
    def cutoff(self) -> float:
        """The time in s at which the utility is zero; infinite for a flat utility."""
        return self.ert - self.beta / self.alpha if self.alpha < 0 else math.inf

    def continuation(self) -> TimeUtility:
        """TUF_1 of a suspended generation: same slope and height, ERT 0 (TimelyLLM, 4.2)."""
        return TimeUtility(0.0, self.alpha, self.beta)


URGENT = (Urgency.CRITICAL, Urgency.URGENT)
"""What figures of urgent plans count."""

# NORMAL and URGENT are TimelyLLM's two classes (section 7.1); the others continue their row.
PRESETS: dict[Urgency, TimeUtility] = {
    Urgency.CRITICAL: TimeUtility(0.1, -20.0, 4.0),
    Urgency.URGENT: TimeUtility(0.2, -6.6667, 2.0),
    Urgency.NORMAL: TimeUtility(1.0, -2.0, 1.0),
    Urgency.LOW: TimeUtility(3.0, -0.2, 0.5),
    Urgency.BACKGROUND: TimeUtility(10.0, -0.01, 0.25),
}
