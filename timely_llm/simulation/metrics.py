"""The figures of a run: one row of a report. Pure.

Every goal that arrived stays in n. ``utility_mean`` counts a goal without a first segment with its
utility at the cut; ``utility_clipped_mean`` is the mean of max(0, U).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from timely_llm.protocols.utility import URGENT
from timely_llm.simulation.loop import Run
from timely_llm.simulation.trace import Trace

Row = dict[str, Any]


def row(
    trace: Trace,
    run: Run,
    *,
    engine: str,
    policy: str,
    load: float,
    seed: int,
    bound: float | None = None,
) -> Row:
    """The row of a report. ``bound`` is the best mean utility that is possible, if it is known.

    ``met_...`` are shares of goals whose response came within the expected response time, and
    ``slo_attainment`` those that kept their own targets (``Outcome``). ``dropped`` goals had no
    first segment by the cut although they were not refused. A mean over no goals is None.
    """
    outcomes = run.outcomes
    urgent = [outcome for outcome in outcomes if outcome.urgency in URGENT]
    normal = [outcome for outcome in outcomes if outcome.urgency not in URGENT]
    return {
        "engine": engine,
        "workload": trace.name,
        "policy": policy,
        "load": load,
        "seed": seed,
        "n": len(outcomes),
        "utility_mean": mean(o.utility for o in outcomes),
        "utility_clipped_mean": mean(max(0.0, o.utility) for o in outcomes),
        "utility_urgent_mean": mean(o.utility for o in urgent),
        "utility_normal_mean": mean(o.utility for o in normal),
        "met_urgent": mean(o.met for o in urgent),
        "met_normal": mean(o.met for o in normal),
        "response_s": spread(o.response_s for o in outcomes if o.response_s is not None),
        "waiting_s": spread(o.waiting_s for o in outcomes),
        "dropped": sum(o.response_s is None and not o.refused for o in outcomes),
        "refused": sum(o.refused for o in outcomes),
        "slo_attainment": mean(o.slo_met for o in outcomes),
        "bound": bound,
    }


def maximum_utility(trace: Trace) -> float:
    """The mean utility if every goal had its response at once: differences are shares of it.
    ``ValueError`` without goals."""
    return fmean(arrival.task.utility.beta for arrival in trace.arrivals)


def mean_rows(rows: Sequence[Row]) -> Row:
    """The mean of rows that differ in the seed alone; counts are summed, the seed is None.

    ``ValueError`` without rows. Percentiles are means of the runs' percentiles.
    """
    if not rows:
        raise ValueError("no rows")
    return {name: _together(name, [one[name] for one in rows]) for name in rows[0]}


_SUMMED = ("n", "dropped", "refused")
_NAMES = ("engine", "workload", "policy", "load")


def _together(name: str, values: Sequence[Any]) -> Any:
    if name in _NAMES:
        return values[0]
    if name == "seed":
        return values[0] if len(values) == 1 else None
    if name in _SUMMED:
        return sum(values)
    if isinstance(values[0], dict):
        return {key: mean_known(value[key] for value in values) for key in values[0]}
    return mean_known(values)


def mean_known(values: Iterable[float | None]) -> float | None:
    """The mean of those that are known."""
    return mean(value for value in values if value is not None)


def mean(values: Iterable[float]) -> float | None:
    """The mean, exactly rounded; None of no values."""
    known = list(values)
    return fmean(known) if known else None


def spread(values: Iterable[float]) -> dict[str, float | None]:
    """Mean, median and 99th percentile in s, by linear interpolation; None of no values."""
    known = sorted(values)
    return {"mean": mean(known), "p50": percentile(known, 0.5), "p99": percentile(known, 0.99)}


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The value at ``share`` of an ordered sample, interpolated as numpy does."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
