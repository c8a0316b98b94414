"""Running sums over all plans since somebody listens: for rates and for Prometheus. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

from timely_llm.protocols.messages import ErrorCode, PlanGoal, PlanResult
from timely_llm.protocols.utility import Urgency

RESPONSE_BOUNDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # s
WAITING_BOUNDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # s


def urgency_word(urgency: Urgency) -> str:
    """How an urgency is written for people; unspecified is normal."""
    return (Urgency.NORMAL if urgency is Urgency.UNSPECIFIED else urgency).name.lower()


@dataclass(slots=True)
class Histogram:
    """How many values lie at or below each bound, as Prometheus counts them."""

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Pairs of bound and cumulative count, up to "+Inf"."""
        pairs, count = [], 0
        for bound, more in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            count += more
            pairs.append((bound, float(count)))
        return pairs


@dataclass(slots=True)
class Tally:
    """Plans by urgency and by how they ended; tokens, segments, utility and times."""

    segments: int = 0
    tokens: int = 0
    results: Counter[tuple[str, str]] = field(default_factory=Counter)  # urgency, error code
    utility: float = 0.0
    response: Histogram = field(default_factory=lambda: Histogram(RESPONSE_BOUNDS))
    waiting: Histogram = field(default_factory=lambda: Histogram(WAITING_BOUNDS))

    @property
    def plans(self) -> int:
        return sum(self.results.values())

    @property
    def succeeded(self) -> int:
        return sum(n for (_, code), n in self.results.items() if code == ErrorCode.NONE.name)

    def segment(self, tokens: int) -> None:
        """A segment of ``tokens`` was sent."""
        self.segments += 1
        self.tokens += tokens

    def ended(self, goal: PlanGoal, result: PlanResult) -> None:
        """A plan has its result."""
        self.results[urgency_word(goal.urgency), result.error_code.name] += 1
        self.utility += result.utility
        if result.response_time >= 0:
            self.response.add(result.response_time)
            self.waiting.add(result.waiting_time)
