"""What the runs of a bench gave, and what they say together. Pure: who carried the runs out, and on
how many processes, is not known here.

Policies are compared pair by pair, on the same traces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any, TypeVar

from scipy.special import stdtrit

from timely_llm.bench.config import BenchConfig, Conditions, GridPoint
from timely_llm.protocols.utility import URGENT, Urgency
from timely_llm.simulation.loop import Run
from timely_llm.simulation.metrics import Row, maximum_utility, mean_rows, row
from timely_llm.simulation.trace import Trace

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Sample:
    """One goal, for figures: times in s of the workload; ``response`` None: no segment came."""

    urgency: Urgency
    response: float | None
    waiting: float
    utility: float

    @property
    def urgent(self) -> bool:
        return self.urgency in URGENT


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run gave: its row of the report, its goals, and the most that a goal of its workload
    can be worth in the mean."""

    point: GridPoint
    row: Row
    samples: tuple[Sample, ...]
    maximum: float

    @property
    def utility(self) -> float:
        """Mean of a goal."""
        return self.row["utility_mean"]

    @classmethod
    def of(cls, point: GridPoint, trace: Trace, run: Run) -> Measured:
        """``run`` of ``point`` in numbers, times in s of the workload."""
        found = row(
            trace, run, engine=point.engine, policy=point.policy, load=point.load, seed=point.seed
        )
        found["workload"] = point.workload  # with its options
        samples = tuple(
            Sample(outcome.urgency, outcome.response_s, outcome.waiting_s, outcome.utility)
            for outcome in run.outcomes
        )
        return cls(point, found, samples, maximum_utility(trace))


@dataclass(frozen=True, slots=True)
class Summary:
    """The runs that differ in the seed alone: the mean of their rows, and the utility of each, in
    the order of ``seeds``.

    ``lead`` is by how much the mean utility is above that of the best other policy on the same
    traces, as a share of the maximum (None: no seed is shared with another policy), and
    ``lead_error`` half its 95% interval (None: one seed).
    """

    point: GridPoint  # of the first seed
    row: Row
    utilities: tuple[float, ...]
    seeds: tuple[int, ...]
    maximum: float
    lead: float | None = None
    lead_error: float | None = None

    @property
    def utility(self) -> float:
        return fmean(self.utilities)


@dataclass(slots=True)
class Results:
    """What there is so far. ``bounds`` are upper bounds of the mean utility, by scenario and seed;
    ``paper`` the loads found, with the utility of ``vllm`` there, by engine and workload;
    ``scales`` what 1 s of the workload lasts in s, by engine, in the mean over its runs."""

    config: BenchConfig
    measured: dict[GridPoint, Measured] = field(default_factory=dict)
    order: tuple[GridPoint, ...] = ()
    bounds: dict[tuple[Any, ...], float] = field(default_factory=dict)
    paper: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    scales: dict[str, float] = field(default_factory=dict)
    complete: bool = False

    def conditions_of(self, engine: str) -> Conditions:
        return replace(self.config.conditions, time_scale=self.scales.get(engine, 1.0))

    def ordered(self) -> tuple[Measured, ...]:
        """The runs in the order of the grid, each with its bound if there is one."""
        found = (self.measured[point] for point in self.order if point in self.measured)
        return tuple(self._with_bound(one) for one in found)

    def _with_bound(self, one: Measured) -> Measured:
        value = self.bounds.get((*one.point.scenario, one.point.seed))
        return one if value is None else replace(one, row=one.row | {"bound": value})

    def summaries(self) -> tuple[Summary, ...]:
        return summaries(self.ordered(), self.config.batches.best)

    def kept(self) -> tuple[Measured, ...]:
        """Of several batch sizes those runs that count."""
        return kept_runs(self.summaries(), self.ordered())

    def as_json(self) -> Row:
        """The report, as plain JSON values."""
        conditions = self.config.conditions
        maxima: dict[str, float] = {}
        for one in self.ordered():  # not in the order in which they end
            maxima.setdefault(one.point.workload, round(one.maximum, 6))
        settings = {
            "time_scale": self.scales,
            "paper_load": [
                {"engine": engine, "workload": workload, "load": load, "utility_vllm": utility}
                for (engine, workload), (load, utility) in self.paper.items()
            ],
            "utility_maximum": {name: maxima[name] for name in sorted(maxima)},
            "network_s": conditions.network,
            "cut_s": conditions.cut,
            "refusals": conditions.refusals,
            "plan_overhead_s": conditions.plan_overhead,
            "decision_overhead_s": conditions.decision_overhead,
        }
        return report_json(self.kept(), not self.complete, settings)


# What the runs say together.


def grouped(items: Iterable[_Item], key: Callable[[_Item], Any]) -> dict[Any, list[_Item]]:
    """Items by ``key(item)``, keys in the order in which they come first."""
    groups: dict[Any, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def summaries(measured: Iterable[Measured], best: bool = False) -> tuple[Summary, ...]:
    """One for all runs that differ in the seed alone, in the order in which they come first; with
    ``best``, of each policy only the batch size of the highest mean utility (the smaller of two
    equal ones) at each engine, workload and load."""
    found = [_summary(group) for group in grouped(measured, lambda one: one.point.setup).values()]
    if best:
        sizes = grouped(found, lambda one: (one.point.scenario, one.point.policy))
        found = [_best(group) for group in sizes.values()]
    scenarios = grouped(found, lambda one: one.point.scenario)
    return tuple(_with_lead(one, scenarios[one.point.scenario]) for one in found)


def kept_runs(found: Iterable[Summary], measured: Iterable[Measured]) -> tuple[Measured, ...]:
    """The runs that ``found`` stand for."""
    wanted = {one.point.setup for one in found}
    return tuple(one for one in measured if one.point.setup in wanted)


def _summary(group: Sequence[Measured]) -> Summary:
    return Summary(
        point=group[0].point,
        row=mean_rows([one.row for one in group]),
        utilities=tuple(one.utility for one in group),
        seeds=tuple(one.point.seed for one in group),
        maximum=fmean(one.maximum for one in group),
    )


def _best(group: Sequence[Summary]) -> Summary:
    best = group[0]
    for one in group[1:]:
        if _better(one, best):
            best = one
    return best


def _better(one: Summary, other: Summary) -> bool:
    """On the seeds that both have; without such, the one of more seeds."""
    pairs = _paired(one, other)
    gain = math.fsum(own - its for own, its in pairs)
    if not pairs:
        gain = len(one.seeds) - len(other.seeds)
    return (gain, other.point.max_batch) > (0, one.point.max_batch)


def _paired(one: Summary, other: Summary) -> list[tuple[float, float]]:
    """The utilities of both on the seeds that both have."""
    its = dict(zip(other.seeds, other.utilities, strict=True))
    own = zip(one.seeds, one.utilities, strict=True)
    return [(utility, its[seed]) for seed, utility in own if seed in its]


def _with_lead(one: Summary, scenario: Iterable[Summary]) -> Summary:
    """The least of the leads over all other policies that have seeds of ``one``."""
    others = [other for other in scenario if other.point.policy != one.point.policy]
    compared = [pairs for other in others if (pairs := _paired(one, other))]
    if not compared:
        return one
    leads = (interval([(own - its) / one.maximum for own, its in pairs]) for pairs in compared)
    mean, error = min(leads, key=lambda lead: lead[0])
    return replace(one, lead=mean, lead_error=error)


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean of ``values`` and half its 95% confidence interval by Student's t; None for one value.

    ``ValueError`` without values.
    """
    mean, count = fmean(values), len(values)
    if count == 1:
        return mean, None
    quantile = round(float(stdtrit(count - 1, 0.975)), 3)  # three digits, as tables print it
    return mean, quantile * stdev(values) / math.sqrt(count)


def report_json(measured: Iterable[Measured], partial: bool, settings: Mapping[str, Any]) -> Row:
    """The report: a row a run, in the order of the grid. ``settings`` say how they were made."""
    rows = [_rounded(one.row) | {"max_batch": one.point.max_batch} for one in measured]
    report: Row = {"results": rows, "settings": settings}
    return report | {"partial": True} if partial else report


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
