"""Fits step times to measured steps, and says how well. Pure: samples in, coefficients out.

Steps of a few shapes are measured, visited in turn. The steps of every second visit of each shape
are held out: fits see the others' medians only, and are judged by the held-out medians.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from timely_llm.estimation.step_time import LatencyEstimate, StepLatency


class StepShape(NamedTuple):
    """What a step computes, nominally: ``batch`` decoding sequences over ``context`` KV tokens
    each, and ``prefill`` prompt tokens in the same step."""

    batch: int
    prefill: int
    context: int

    @property
    def kind(self) -> str:
        if not self.prefill:
            return "decode"
        return "mixed" if self.batch else "prefill"


class Sample(NamedTuple):
    """One measured step: what it computed in fact, and how long it took in s. ``kv`` are the tokens
    of all its decoding sequences. Visits of a shape count from 0."""

    shape: StepShape
    visit: int
    batch: int
    prefill: int
    kv: int
    seconds: float


class Point(NamedTuple):
    """A shape's median step: means of what was computed, median time in s."""

    shape: StepShape
    batch: int
    prefill: float
    kv: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ShapeReport:
    """A shape's steps and times in s. ``predicted`` is for the held-out steps by a fit that has not
    seen the shape."""

    shape: StepShape
    steps: int
    prefill: float
    kv: float
    median: float
    mean: float
    held_out: float
    predicted: float

    @property
    def error(self) -> float:
        return abs(self.predicted / self.held_out - 1.0)


@dataclass(frozen=True, slots=True)
class FitReport:
    """How good a fit is: mean absolute percentage errors, as shares.

    ``unseen``, by kind of shape and for ``all``: held-out medians, each predicted by a fit to the
    other shapes. ``seen``: held-out medians by the fit to all shapes. ``floor``: held-out medians
    by the medians of the same shapes' other half, the noise of medians on this machine (A/A).
    ``step`` and ``step_floor`` are the same for single held-out steps. ``online``: single steps of
    the second half of the time, each predicted by what ``LatencyEstimate`` had learned before it;
    ``online_floor``: the same steps by the medians of their own shapes over all the time.
    """

    unseen: dict[str, float]
    seen: float
    floor: float
    step: float
    step_floor: float
    online: float
    online_floor: float
    shapes: tuple[ShapeReport, ...]


def halves(samples: Iterable[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Steps to fit to, and steps held out: those of even and of odd visits."""
    both: tuple[list[Sample], list[Sample]] = ([], [])
    for sample in samples:
        both[sample.visit % 2].append(sample)
    return both


def points(samples: Iterable[Sample]) -> dict[StepShape, Point]:
    """The median step of each shape."""
    shapes: dict[StepShape, list[Sample]] = {}
    for sample in samples:
        shapes.setdefault(sample.shape, []).append(sample)
    return {
        shape: Point(
            shape,
            some[0].batch,
            fmean(sample.prefill for sample in some),
            fmean(sample.kv for sample in some),
            median(sample.seconds for sample in some),
        )
        for shape, some in shapes.items()
    }


def fit(some: Sequence[Point]) -> StepLatency:
    """The non-negative least squares fit in relative errors.

    A decode time for each batch size that was measured, none shorter than that of a smaller one;
    in between on straight lines. ``ValueError`` without a step of decoding sequences alone.
    """
    sizes = sorted({point.batch for point in some if point.batch and not point.prefill})
    if not sizes:
        raise ValueError("no step of decoding sequences alone was measured")
    rows = np.array([_row(point, sizes) for point in some])
    times = np.array([point.seconds for point in some])
    terms, _ = nnls(rows / times[:, None], np.ones(len(some)))
    knots = np.cumsum(terms[: len(sizes)])
    context, alone, mixed, linear, square = (float(term) for term in terms[len(sizes) :])
    decode = np.interp(range(1, sizes[-1] + 1), sizes, knots)
    slope = float(knots[-1] - knots[0]) / max(1, sizes[-1] - sizes[0])
    return StepLatency(
        tuple(float(time) for time in decode),
        slope,
        context,
        linear,
        square,
        alone,
        mixed,
    )


def _row(point: Point, sizes: Sequence[int]) -> list[float]:
    """The factors of the terms: of the smallest batch, of what each further measured size adds,
    of context, and of prefill (alone, mixed, linear, square)."""
    batch, prefill = point.batch, point.prefill
    steps = [min(1.0, max(0.0, (batch - a) / (b - a))) for a, b in pairwise(sizes)]
    return [
        float(batch > 0),
        *steps,
        point.kv if batch else 0.0,
        float(prefill > 0 and not batch),
        float(prefill > 0 and batch > 0),
        prefill,
        prefill * prefill,
    ]


def mape(some: Iterable[tuple[float, float]]) -> float:
    """Mean absolute percentage error, as a share, of pairs (predicted, measured); 0 of none."""
    errors = [abs(predicted / measured - 1.0) for predicted, measured in some]
    return fmean(errors) if errors else 0.0


def judge(samples: Sequence[Sample]) -> FitReport:
    """How well fits to one half of the steps predict the other half. ``ValueError`` where a shape
    has no second visit, or nothing decodes alone."""
    training, held_out = halves(samples)
    known, wanted, every = points(training), points(held_out), points(samples)
    missing = [shape for shape in known if shape not in wanted]
    if missing or not known:
        raise ValueError(f"{len(missing)} cells were visited once: at least twice is needed")
    whole = fit(list(known.values()))
    unseen = {shape: _predict(_without(known, shape), wanted[shape]) for shape in known}
    kinds: dict[str, list[tuple[float, float]]] = {}
    for shape, predicted in unseen.items():
        for kind in ("all", shape.kind):
            kinds.setdefault(kind, []).append((predicted, wanted[shape].seconds))
    late = list(zip(replay(samples), samples, strict=True))[len(samples) // 2 :]
    return FitReport(
        unseen={kind: mape(pairs) for kind, pairs in kinds.items()},
        seen=mape((_predict(whole, point), point.seconds) for point in wanted.values()),
        floor=mape((known[shape].seconds, point.seconds) for shape, point in wanted.items()),
        step=mape((whole(s.batch, s.prefill, s.kv), s.seconds) for s in held_out),
        step_floor=mape((known[s.shape].seconds, s.seconds) for s in held_out),
        online=mape((predicted, sample.seconds) for predicted, sample in late),
        online_floor=mape((every[sample.shape].seconds, sample.seconds) for _, sample in late),
        shapes=tuple(_shape_report(samples, every[c], wanted[c], unseen[c]) for c in sorted(known)),
    )


def replay(samples: Iterable[Sample]) -> list[float]:
    """The time in s that the planner would have predicted for each step before it was made, having
    started from the step times of another machine."""
    estimate, predictions = LatencyEstimate(StepLatency((0.02,), per_prefill_token=1e-4)), []
    for sample in samples:
        predictions.append(estimate(sample.batch, sample.prefill, sample.kv))
        estimate.observe(sample.batch, sample.prefill, sample.kv, sample.seconds)
    return predictions


def _without(known: dict[StepShape, Point], shape: StepShape) -> StepLatency:
    """A fit to the other shapes; to all where no other one decodes alone."""
    others = [point for other, point in known.items() if other != shape]
    decodes = any(point.batch and not point.prefill for point in others)
    return fit(others if decodes else list(known.values()))


def _predict(latency: StepLatency, point: Point) -> float:
    return latency(point.batch, point.prefill, point.kv)


def _shape_report(
    samples: Iterable[Sample], all_: Point, held_out: Point, predicted: float
) -> ShapeReport:
    times = [sample.seconds for sample in samples if sample.shape == all_.shape]
    return ShapeReport(
        all_.shape,
        len(times),
        all_.prefill,
        all_.kv,
        all_.seconds,
        fmean(times),
        held_out.seconds,
        predicted,
    )
