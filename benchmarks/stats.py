"""Paired samples in, figures with intervals out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import bootstrap

RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its bootstrap interval of ``CONFIDENCE``."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True, slots=True)
class Summary:
    """Of one sample, in the sample's unit."""

    count: int
    median: float
    mean: float
    p99: float


def milliseconds(found: Summary) -> str:
    """Median, mean and p99 of times in s."""
    return ", ".join(f"{v * 1e3:.2f}" for v in (found.median, found.mean, found.p99)) + " ms"


def summary(sample: Sequence[float]) -> Summary:
    values = np.asarray(sample, dtype=float)
    return Summary(
        len(values),
        float(np.median(values)),
        float(values.mean()),
        float(np.percentile(values, 99)),
    )


def difference(a: Sequence[float], b: Sequence[float], seed: int = 0) -> Interval:
    """Median of the pairs' differences ``a - b``."""
    return _bootstrap(np.asarray(a, float) - np.asarray(b, float), seed)


def ratio(a: Sequence[float], b: Sequence[float], seed: int = 0) -> Interval:
    """Median of the pairs' ratios ``a / b``."""
    return _bootstrap(np.asarray(a, float) / np.asarray(b, float), seed)


def _bootstrap(values: np.ndarray, seed: int) -> Interval:
    found = bootstrap(
        (values,),
        np.median,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=seed,
    ).confidence_interval
    return Interval(float(np.median(values)), float(found.low), float(found.high))
