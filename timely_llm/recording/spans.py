"""Spans of time on one axis: how much they overlap, how many there are at a time. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from timely_llm.bench.burst import Span


def overlap(spans: Iterable[Span], begun: float, ended: float) -> float:
    """s of ``spans`` between two times."""
    return sum(max(0.0, min(span.end, ended) - max(span.start, begun)) for span in spans)


def common(own: Sequence[Span], other: Sequence[Span]) -> list[Span]:
    """The times that lie in a span of both."""
    pairs = ((max(a.start, b.start), min(a.end, b.end)) for a in own for b in other)
    return [Span(start, end) for start, end in pairs if start < end]


class Concurrency:
    """How many of ``spans`` there are at a time; one that ends then is over."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._starts = sorted(span.start for span in spans)
        self._ends = sorted(span.end for span in spans)

    def at(self, time: float) -> int:
        """Their number at ``time``, s."""
        return bisect_right(self._starts, time) - bisect_right(self._ends, time)

    def changes(self) -> list[tuple[float, int]]:
        """Each time at which one begins or ends, and their number from then on."""
        return [(time, self.at(time)) for time in sorted({*self._starts, *self._ends})]
