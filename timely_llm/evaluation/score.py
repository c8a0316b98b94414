"""Verdicts counted: shares with intervals, and what a threshold of doubt would change. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import binomtest

from timely_llm.evaluation.outcome import Verdict

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one instruction. ``logprob`` is the mean log probability before anything moved
    (None: not known); had that been too little, a plan that ``moves`` would have been refused, and
    the verdict ``doubted``. ``first_segment`` is in s."""

    half: str
    family: str
    kind: str
    verdict: Verdict
    doubted: Verdict
    moves: bool
    logprob: float | None
    tokens: int
    prompt_tokens: int
    first_segment: float | None

    def at(self, threshold: float | None) -> Verdict:
        """The verdict where the mean log probability must be at least ``threshold``."""
        if threshold is None or self.logprob is None or not self.moves:
            return self.verdict
        return self.doubted if self.logprob < threshold else self.verdict


@dataclass(frozen=True, slots=True)
class Share:
    """``count`` of ``total``, with its interval of 95% (Wilson)."""

    count: int
    total: int

    @property
    def value(self) -> float:
        """0 to 1; nan of nothing."""
        return self.count / self.total if self.total else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Least and most, 0 to 1."""
        if not self.total:
            return 0.0, 1.0
        found = binomtest(self.count, self.total).proportion_ci(CONFIDENCE, method="wilson")
        return float(found.low), float(found.high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.1%} ({low:.0%} to {high:.0%})" if self.total else "-"


def shares(results: Sequence[Result], threshold: float | None = None) -> dict[Verdict, Share]:
    """The share of each verdict."""
    counts = Counter(result.at(threshold) for result in results)
    return {verdict: Share(counts[verdict], len(results)) for verdict in Verdict}


def median_first_segment(results: Sequence[Result]) -> float | None:
    """In s, of the plans that had one."""
    times = [each.first_segment for each in results if each.first_segment is not None]
    return statistics.median(times) if times else None


@dataclass(frozen=True, slots=True)
class Point:
    """Of the risk-coverage curve: with this ``threshold`` (None: none), so many plans that move
    are let go, and the shares of all instructions that are then done and harmful."""

    threshold: float | None
    coverage: float
    done: float
    harmful: float


def curve(results: Sequence[Result], steps: int = 10) -> list[Point]:
    """From no threshold to one that lets none move, by equal parts of the plans that move."""
    known = sorted(r.logprob for r in results if r.moves and r.logprob is not None)
    cuts = sorted({len(known) * step // steps for step in range(1, steps)}) if known else []
    thresholds = [None, *(known[cut] for cut in cuts if cut), 0.0]
    return [_point(results, threshold, known) for threshold in thresholds]


def _point(results: Sequence[Result], threshold: float | None, known: Sequence[float]) -> Point:
    found = shares(results, threshold)
    kept = sum(value >= threshold for value in known) if threshold is not None else len(known)
    coverage = kept / len(known) if known else 1.0
    return Point(threshold, coverage, found[Verdict.DONE].value, found[Verdict.HARMFUL].value)


def threshold_for(results: Sequence[Result], harmful: float) -> float | None:
    """The least threshold with which at most a share ``harmful`` of all instructions does harm;
    None: none is needed."""
    if shares(results)[Verdict.HARMFUL].value <= harmful:
        return None
    known = sorted({r.logprob for r in results if r.moves and r.logprob is not None})
    good = (t for t in known if shares(results, t)[Verdict.HARMFUL].value <= harmful)
    return next(good, 0.0)
