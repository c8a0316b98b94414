"""Carries out a bench: simulated runs on several processes, real ones one after the other here.

What is measured is kept as it comes, so that an interrupted bench has what there is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from timely_llm.bench import bounds as bench_bound
from timely_llm.bench import cells as bench_cells
from timely_llm.bench.bounds import Question
from timely_llm.bench.burst import Lane, burst_of, lanes
from timely_llm.bench.grid import (
    PAPER_LOAD,
    Cell,
    Conditions,
    Grid,
    Measured,
    Summary,
    TimeScale,
    cells,
    kept_cells,
    report_json,
    summaries,
)
from timely_llm.bench.jobs import run_jobs
from timely_llm.bench.search import PAPER_BATCH, PAPER_UTILITY, NoSuchLoad, load_of
from timely_llm.simulation import trace_file
from timely_llm.simulation.trace import Trace
from timely_llm.system.processes import Interrupt

if TYPE_CHECKING:
    from timely_llm.bench.real import RealBench

Measure = Callable[[Cell, Conditions], Measured]
Place = tuple[str, str, float, int]  # engine, workload, load and seed

PAPER_SEEDS = 3  # that the paper's load is looked for with
EXACT, NOISE = 0.002, 0.02  # how near to the paper's utility is near enough: simulated, real


@dataclass(slots=True)
class Plan:
    """What is to be run, in ``jobs`` processes. ``model`` set: the one engine of the grid is real
    vLLM with it.
    ``bound``: compute the upper bounds, too. ``record``: write to this file what the real model
    answers, as a trace."""

    grid: Grid
    conditions: Conditions
    time_scale: TimeScale = TimeScale()
    model: str = ""
    jobs: int = 1
    bound: bool = False
    record: Path | None = None


@dataclass(slots=True)
class Results:
    """What there is so far. ``scales`` is what 1 s of the workload lasts, by engine, in the mean
    over its runs; ``paper`` are the loads found, with the utility of ``vllm`` there."""

    plan: Plan
    measured: dict[Cell, Measured] = field(default_factory=dict)
    order: tuple[Cell, ...] = ()
    bounds: dict[Place, float] = field(default_factory=dict)
    paper: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    scales: dict[str, float] = field(default_factory=dict)
    complete: bool = False

    def conditions_of(self, engine: str) -> Conditions:
        return replace(self.plan.conditions, time_scale=self.scales.get(engine, 1.0))

    def ordered(self) -> tuple[Measured, ...]:
        """The runs in the order of the grid, each with its bound if there is one."""
        found = (self.measured[cell] for cell in self.order if cell in self.measured)
        return tuple(self._with_bound(one) for one in found)

    def _with_bound(self, one: Measured) -> Measured:
        c = one.cell
        value = self.bounds.get((c.engine, c.workload, c.load, c.seed))
        return one if value is None else replace(one, row=one.row | {"bound": value})

    @property
    def expected(self) -> int:
        """How many runs there are to be."""
        grid = self.plan.grid
        sizes = sum(len(grid.batches.of(policy)) for policy in grid.policies)
        places = len(grid.engines) * len(grid.workloads) * len(grid.loads)
        return places * sizes * len(grid.seeds)

    def summaries(self) -> tuple[Summary, ...]:
        return summaries(self.ordered(), self.plan.grid.batches.best)

    def kept(self) -> tuple[Measured, ...]:
        """Of several batch sizes those runs that count."""
        return kept_cells(self.summaries(), self.ordered())

    def as_json(self) -> dict[str, Any]:
        """The report, as plain JSON values."""
        conditions, maxima = self.plan.conditions, {}
        for one in self.measured.values():
            maxima.setdefault(one.cell.workload, round(one.maximum, 6))
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


def run_bench(results: Results, console: Console, interrupt: Interrupt) -> None:
    """Carry out ``results.plan``; ``Interrupted`` leaves in ``results`` what there is."""
    with _progress(console) as progress:
        if results.plan.model:
            from timely_llm.bench.real import RealBench

            plan = results.plan
            with RealBench(plan.model, interrupt.check, plan.time_scale) as real:
                if plan.record is not None:
                    _record(plan, plan.record, real.as_written)
                measure = _noting_scale(results, real)
                _settle_paper_loads(results, measure, progress, interrupt)
                _run_here(results, measure, progress)
        else:
            engines, scale = results.plan.grid.engines, results.plan.time_scale
            results.scales = {name: bench_cells.scale_of(name, scale) for name in engines}
            _settle_paper_loads(results, bench_cells.measure, progress, interrupt)
            _run_apart(results, progress, interrupt)
            if results.plan.bound:
                _run_bounds(results, progress, interrupt)
    results.complete = True


def _record(plan: Plan, path: Path, as_written: Callable[[Trace], Trace]) -> None:
    """The first workload of the grid, at load 1, with the model's own answers."""
    trace = bench_cells.trace_of(plan.grid.workloads[0], plan.grid.seeds[0])
    trace_file.write(as_written(trace), path)


def _noting_scale(results: Results, real: RealBench) -> Measure:
    """Runs on ``real``; what a second of the workload lasted goes to ``results``."""
    found: dict[str, list[float]] = {}

    def measure(cell: Cell, conditions: Conditions) -> Measured:
        one = real.measure(cell, conditions)
        scales = found.setdefault(cell.engine, [])
        scales.append(real.scale)
        results.scales[cell.engine] = math.fsum(scales) / len(scales)
        return one

    return measure


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    description = TextColumn("{task.description}", markup=False)
    columns = (description, BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        yield progress


def _settle_paper_loads(
    results: Results, measure: Measure, progress: Progress, interrupt: Interrupt
) -> None:
    """Find what ``--load paper`` is, then list all cells."""
    grid = results.plan.grid
    if PAPER_LOAD in grid.loads:
        for engine, workload in itertools.product(grid.engines, grid.workloads):
            found = _paper_load(results, engine, workload, measure, progress, interrupt)
            results.paper[engine, workload] = found
    results.order = cells(grid, {key: load for key, (load, _) in results.paper.items()})


def _paper_load(
    results: Results,
    engine: str,
    workload: str,
    measure: Measure,
    progress: Progress,
    interrupt: Interrupt,
) -> tuple[float, float]:
    """The load and the utility that ``vllm`` has there, in the mean over the first seeds."""
    grid = results.plan.grid
    (*_, size) = dict(grid.batches.own).get("vllm", (PAPER_BATCH,))
    words = f"load at which vllm has {PAPER_UTILITY} on {workload}"
    task = progress.add_task(words, total=None)
    tried: dict[float, float] = {}

    def utility(load: float) -> float:
        interrupt.check()
        runs = [
            measure(Cell(engine, workload, load, "vllm", size, seed), results.conditions_of(engine))
            for seed in grid.seeds[:PAPER_SEEDS]
        ]
        tried[load] = math.fsum(one.row["utility_mean"] for one in runs) / len(runs)
        progress.update(task, description=f"{words}: {tried[load]:.3f} at {load:g}")
        return tried[load]

    rough = NOISE if results.plan.model else EXACT
    try:
        load = load_of(utility, tolerance=rough)
    except NoSuchLoad as error:
        raise NoSuchLoad(f"--load paper: vllm on {workload}, {engine}: {error}") from None
    progress.remove_task(task)
    return load, tried[load]


def _run_here(results: Results, measure: Measure, progress: Progress) -> None:
    """One run after the other: of each seed those of one engine setting together, so that all
    policies meet what the machine's speed does."""
    task = progress.add_task("runs", total=len(results.order))
    for cell in sorted(results.order, key=lambda cell: (cell.seed, cell.policy, cell.max_batch)):
        progress.update(task, description=f"{cell.policy}, load {cell.load:g}, seed {cell.seed}")
        results.measured[cell] = measure(cell, results.conditions_of(cell.engine))
        progress.advance(task)


def _run_apart(results: Results, progress: Progress, interrupt: Interrupt) -> None:
    """Simulate all cells, on as many processes as are wanted."""
    order, plan = results.order, results.plan
    task = progress.add_task("runs", total=len(order))

    def done(i: int, one: Measured) -> None:
        results.measured[order[i]] = one
        progress.advance(task)

    pairs = [(cell, results.conditions_of(cell.engine)) for cell in order]
    run_jobs(_measure_pair, pairs, plan.jobs, interrupt, done)


def _measure_pair(pair: tuple[Cell, Conditions]) -> Measured:
    return bench_cells.measure(*pair)


def _run_bounds(results: Results, progress: Progress, interrupt: Interrupt) -> None:
    """Bound all traces of the grid, each once, with the largest batch of any policy."""
    sizes: dict[Place, int] = {}
    for c in results.order:
        key = (c.engine, c.workload, c.load, c.seed)
        sizes[key] = max(sizes.get(key, 0), c.max_batch)
    asked = {key: bench_bound.questions(*key, size) for key, size in sizes.items()}
    flat = [(key, question) for key, own in asked.items() for question in own]
    answers: dict[Place, list[float]] = {key: [] for key in asked}
    task = progress.add_task("bounds", total=len(flat))

    def done(i: int, value: float) -> None:
        key = flat[i][0]
        answers[key].append(value)
        if len(answers[key]) == len(asked[key]):
            _, workload, load, seed = key
            count = len(bench_cells.trace_of(workload, seed, load).arrivals)
            results.bounds[key] = math.fsum(answers[key]) / count
        progress.advance(task)

    pairs = [(question, results.conditions_of(question.engine)) for _, question in flat]
    run_jobs(_answer_pair, pairs, results.plan.jobs, interrupt, done)


def _answer_pair(pair: tuple[Question, Conditions]) -> float:
    return bench_bound.answer(*pair)


def burst_lanes(results: Results) -> tuple[str, dict[str, tuple[Lane, ...]]]:
    """What is shown of one burst, the first of the grid's first workload and load: its title, and
    the burst under vllm (else the worst policy) and under the best one."""
    found = results.summaries()
    first = found[0].cell
    here = [s for s in found if (s.cell.engine, s.cell.workload, s.cell.load) == _place(first)]
    here.sort(key=lambda s: s.utility)
    low = next((s for s in here if s.cell.policy == "vllm"), here[0])
    trace = bench_cells.trace_of(first.workload, first.seed, first.load)
    burst = burst_of(trace, first.load)
    shown = {
        f"{s.cell.policy}, max batch {s.cell.max_batch}": lanes(
            trace, bench_cells.setting_of(s.cell, results.conditions_of(first.engine)), burst
        )
        for s in (low, here[-1])
    }
    at = trace.arrivals[burst.start].at
    return f"One burst of {first.workload} at load {first.load:g}, at {at:.1f} s", shown


def _place(cell: Cell) -> tuple[str, str, float]:
    return (cell.engine, cell.workload, cell.load)
