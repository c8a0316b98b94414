"""How many tokens a plan will still have, for policies that rank by remaining time. Pure.

A predictor sees a goal's words and what is written of its plan, and is asked at the start and again
every ``WINDOW`` tokens (ELIS, sections 3.3 and 4.1). ``PastLengths`` knows only the plans that came
before; ``Oracle`` and ``Noisy`` know the answer, for simulations in which somebody does.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

WINDOW = 50  # tokens until a predictor is asked again (ELIS, section 3.3)


@dataclass(frozen=True, slots=True)
class PredictorView:
    """A plan as a predictor sees it: ``text`` and its ``tokens`` are what is written so far.
    ``kind`` is the robot's, ``number`` the request's own."""

    plan_id: str
    number: int
    kind: str
    instruction: str
    scene: str
    text: str
    tokens: int


class Predictor(Protocol):
    """Predicts the rest of a plan. Deterministic: equal questions in equal order, equal answers."""

    def remaining(self, plan: PredictorView) -> float:
        """Expected tokens still to come, the end token included; finite, at least 0."""

    def ended(self, plan: PredictorView) -> None:
        """The plan came to its own end: ``plan`` shows the whole of it."""


class PastLengths:
    """The mean rest of those of the last ``KEPT`` plans of the same kind that were longer than this
    one is by now; ``prior`` tokens in all where there was none."""

    KEPT = 200

    def __init__(self, prior: float = 64.0) -> None:
        if not (math.isfinite(prior) and prior > 0):
            raise ValueError(f"prior is {prior} tokens: must be finite and above 0")
        self._prior = prior
        self._lengths: dict[str, deque[int]] = {}

    def remaining(self, plan: PredictorView) -> float:
        rests = [n - plan.tokens for n in self._lengths.get(plan.kind, ()) if n > plan.tokens]
        if rests:
            return sum(rests) / len(rests)
        return max(1.0, self._prior - plan.tokens)

    def ended(self, plan: PredictorView) -> None:
        self._lengths.setdefault(plan.kind, deque(maxlen=self.KEPT)).append(plan.tokens)


class Oracle:
    """Knows: ``total(plan)`` is the number of tokens of the whole plan."""

    def __init__(self, total: Callable[[PredictorView], float]) -> None:
        self._total = total

    def remaining(self, plan: PredictorView) -> float:
        return max(0.0, self._total(plan) - plan.tokens)

    def ended(self, plan: PredictorView) -> None: ...


class Noisy:
    """``inner`` times a log-normal error, drawn again at each question from ``seed``, the request's
    number and the tokens so far: two runs of one trace see the same errors.

    ``error`` is the standard deviation of the logarithm (>= 0); the median of the factor is 1. As
    the error is a share of what remains, it shrinks while the plan is written, as that of ELIS's
    predictor does (its Figure 2b). Its R2 of 0.852 leaves sqrt(1 - 0.852) = 0.38 of the lengths'
    standard deviation, which is about their mean in its chats: the default.
    """

    def __init__(self, inner: Predictor, error: float = 0.38, seed: int = 0) -> None:
        if not (math.isfinite(error) and 0 <= error <= 10):
            raise ValueError(f"error is {error}: must be between 0 and 10")
        self._inner, self._error, self._seed = inner, error, seed

    def remaining(self, plan: PredictorView) -> float:
        draw = random.Random(f"{self._seed} {plan.number} {plan.tokens}")
        return self._inner.remaining(plan) * math.exp(draw.gauss(0.0, self._error))

    def ended(self, plan: PredictorView) -> None:
        self._inner.ended(plan)
