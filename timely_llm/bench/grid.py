"""The grid of ``timely-llm bench``: which runs there are, what each gives, and what they say
together. Pure: who carries the runs out, and on how many processes, is not decided here.

A run is a ``Cell``: one trace under one policy on one engine. Policies are compared pair by pair,
on the same traces.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from timely_llm.protocols.utility import URGENT, Urgency
from timely_llm.simulation.metrics import mean_rows
from timely_llm.simulation.workloads.tasks import DECODE_STEP

PAPER_LOAD = "paper"  # the load at which ``vllm`` has the paper's utility: see ``bench/search.py``
BATCHES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)  # tried where the best one is looked for
DEFAULT_BATCH = 8  # TimelyLLM's

Row = dict[str, Any]

# Two-sided 95% quantiles of Student's t for 1, 2, ... degrees of freedom; 1.96 from 30 on.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160),
    *(2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056),
    *(2.052, 2.048, 2.045),
)


@dataclass(frozen=True, slots=True)
class Batches:
    """How many generations compute in one step: ``sizes``, but ``own`` for the policies it names.

    With several sizes every one is a run, and with ``best`` only the one with the highest mean
    utility is kept, for each policy, workload and load.
    """

    sizes: tuple[int, ...] = (DEFAULT_BATCH,)
    own: tuple[tuple[str, tuple[int, ...]], ...] = ()
    best: bool = False

    def of(self, policy: str) -> tuple[int, ...]:
        return dict(self.own).get(policy, self.sizes)


@dataclass(frozen=True, slots=True)
class Grid:
    """All runs of a bench: every combination. A load may be ``PAPER_LOAD``."""

    engines: tuple[str, ...]
    workloads: tuple[str, ...]
    loads: tuple[float | str, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    batches: Batches = Batches()


@dataclass(frozen=True, slots=True)
class Cell:
    """One run."""

    engine: str
    workload: str
    load: float
    policy: str
    max_batch: int
    seed: int


@dataclass(frozen=True, slots=True)
class TimeScale:
    """What 1 s of the workload lasts on an engine, in s: ``factor``, and where ``auto`` is set so
    many times the engine's decode step over the paper's."""

    factor: float = 1.0
    auto: bool = False

    def of(self, decode_step: Callable[[], float]) -> float:
        return self.factor * decode_step() / DECODE_STEP if self.auto else self.factor


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for all runs. Times in s.

    A workload shrunk by ``time_scale`` (``TimeScale``) meets the engine as the workload itself
    meets an engine that is slower by the same factor.
    ``plan_overhead`` and ``decision_overhead`` are added to each plan and to each decision.
    """

    network: float = 0.008
    refusals: bool = False
    cut: float = 60.0
    plan_overhead: float = 0.0
    decision_overhead: float = 0.0
    time_scale: float = 1.0


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

    cell: Cell
    row: Row
    samples: tuple[Sample, ...]
    maximum: float


@dataclass(frozen=True, slots=True)
class Summary:
    """The runs that differ in the seed alone: the mean of their rows, and the utility of each, in
    the order of ``seeds``.

    ``lead`` is by how much the mean utility is above that of the best other policy on the same
    traces, as a share of the maximum (None: no seed is shared with another policy), and
    ``lead_error`` half its 95% interval (None: one seed).
    """

    cell: Cell  # of the first seed
    row: Row
    utilities: tuple[float, ...]
    seeds: tuple[int, ...]
    maximum: float
    lead: float | None = None
    lead_error: float | None = None

    @property
    def utility(self) -> float:
        return math.fsum(self.utilities) / len(self.utilities)


def cells(grid: Grid, paper: Mapping[tuple[str, str], float] | None = None) -> tuple[Cell, ...]:
    """The runs in the order of the report. ``paper`` has the loads that ``PAPER_LOAD`` stands for,
    by engine and workload."""
    found = []
    for engine, workload, load, policy in itertools.product(
        grid.engines, grid.workloads, grid.loads, grid.policies
    ):
        value = (paper or {})[engine, workload] if load == PAPER_LOAD else float(load)
        for size, seed in itertools.product(grid.batches.of(policy), grid.seeds):
            found.append(Cell(engine, workload, value, policy, size, seed))
    return tuple(dict.fromkeys(found))


def samples_of(outcomes: Iterable[Any]) -> tuple[Sample, ...]:
    """The goals of a run (``simulate.Outcome``) for figures."""
    return tuple(
        Sample(outcome.urgency, outcome.response_s, outcome.waiting_s, outcome.utility)
        for outcome in outcomes
    )


# What the runs say together.


def summaries(measured: Iterable[Measured], best: bool = False) -> tuple[Summary, ...]:
    """One for all runs that differ in the seed alone, in the order in which they come first; with
    ``best``, of each policy only the batch size of the highest mean utility (the smaller of two
    equal ones) at each engine, workload and load."""
    groups: dict[tuple, list[Measured]] = {}
    for one in measured:
        c = one.cell
        key = (c.engine, c.workload, c.load, c.policy, c.max_batch)
        groups.setdefault(key, []).append(one)
    found = [_summary(group) for group in groups.values()]
    if best:
        kept: dict[tuple, Summary] = {}
        for one in found:
            key = (*_where(one.cell), one.cell.policy)
            if key not in kept or _better(one, kept[key]):
                kept[key] = one
        found = [one for one in found if one in kept.values()]
    return tuple(_with_lead(one, found) for one in found)


def kept_cells(found: Iterable[Summary], measured: Iterable[Measured]) -> tuple[Measured, ...]:
    """The runs that ``found`` stand for."""
    wanted = {(*_where(s.cell), s.cell.policy, s.cell.max_batch) for s in found}
    return tuple(
        one
        for one in measured
        if (*_where(one.cell), one.cell.policy, one.cell.max_batch) in wanted
    )


def _better(one: Summary, other: Summary) -> bool:
    """On the seeds that both have; without such, the one of more seeds."""
    pairs = _paired(one, other)
    gain = math.fsum(own - its for own, its in pairs)
    if not pairs:
        gain = len(one.seeds) - len(other.seeds)
    return (gain, other.cell.max_batch) > (0, one.cell.max_batch)


def _paired(one: Summary, other: Summary) -> list[tuple[float, float]]:
    """The utilities of both on the seeds that both have."""
    its = dict(zip(other.seeds, other.utilities, strict=True))
    own = zip(one.seeds, one.utilities, strict=True)
    return [(utility, its[seed]) for seed, utility in own if seed in its]


def _where(cell: Cell) -> tuple[str, str, float]:
    return (cell.engine, cell.workload, cell.load)


def _summary(group: Sequence[Measured]) -> Summary:
    return Summary(
        cell=group[0].cell,
        row=mean_rows([one.row for one in group]),
        utilities=tuple(one.row["utility_mean"] for one in group),
        seeds=tuple(one.cell.seed for one in group),
        maximum=math.fsum(one.maximum for one in group) / len(group),
    )


def _with_lead(one: Summary, found: Sequence[Summary]) -> Summary:
    """The least of the leads over all other policies that have seeds of ``one``."""
    leads = []
    for other in found:
        if _where(other.cell) != _where(one.cell) or other.cell.policy == one.cell.policy:
            continue
        if pairs := _paired(one, other):
            leads.append(interval([(own - its) / one.maximum for own, its in pairs]))
    if not leads:
        return one
    mean, error = min(leads, key=lambda lead: lead[0])
    return replace(one, lead=mean, lead_error=error)


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean of ``values`` and half its 95% confidence interval by Student's t; None for one value.

    ``ValueError`` without values.
    """
    if not values:
        raise ValueError("no values")
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return mean, None
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    quantile = _T95[count - 2] if count - 2 < len(_T95) else 1.96
    return mean, quantile * deviation / math.sqrt(count)


def report_json(measured: Iterable[Measured], partial: bool, settings: Row) -> Row:
    """The report: a row a run, in the order of the grid. ``settings`` say how they were made."""
    report: Row = {"results": [_row_json(one) for one in measured], "settings": settings}
    if partial:
        report["partial"] = True
    return report


def _row_json(one: Measured) -> Row:
    return {name: _rounded(value) for name, value in one.row.items()} | {
        "max_batch": one.cell.max_batch
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
