"""Carries out a bench: simulated runs on several processes, real ones one after the other here.

What is measured is kept as it comes, so that an interrupted bench has what there is.
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import operator
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from statistics import fmean
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from timely_llm.bench import simulated
from timely_llm.bench.config import PAPER_LOAD, Conditions, GridPoint, trace_of
from timely_llm.bench.optimum import problems
from timely_llm.bench.real import RealBench
from timely_llm.bench.results import Measured, Results
from timely_llm.bench.search import PAPER_BATCH, PAPER_UTILITY, NoSuchLoad, load_of
from timely_llm.simulation import trace_file
from timely_llm.system.processes import Interrupt, die_with_parent

Measure = Callable[[GridPoint, Conditions], Measured]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

PAPER_SEEDS = 3  # that the paper's load is looked for with
_POLL = 0.2  # s between two looks at the interrupt
EXACT, NOISE = 0.002, 0.02  # how near to the paper's utility is near enough: simulated, real


def run_bench(results: Results, console: Console, interrupt: Interrupt) -> None:
    """Carry out ``results.config``; ``Interrupted`` leaves in ``results`` what there is."""
    with _progress(console) as progress:
        runner = _Runner(results, progress, interrupt)
        if results.config.model:
            runner.run_real()
        else:
            runner.run_simulated()
    results.complete = True


def _progress(console: Console) -> Progress:
    description = TextColumn("{task.description}", markup=False)
    columns = (description, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


class _Runner:
    """Fills ``results``."""

    def __init__(self, results: Results, progress: Progress, interrupt: Interrupt) -> None:
        self.results, self.config = results, results.config
        self.progress, self.interrupt = progress, interrupt

    def run_simulated(self) -> None:
        """Simulate all points, on as many processes as are wanted; then the bounds."""
        results, scale = self.results, self.config.time_scale
        results.scales = {name: simulated.scale_of(name, scale) for name in self.config.engines}
        self._settle_points(simulated.measure)
        order = results.order
        task = self.progress.add_task("runs", total=len(order))

        def done(i: int, one: Measured) -> None:
            results.measured[order[i]] = one
            self.progress.advance(task)

        calls = [partial(simulated.measure, p, results.conditions_of(p.engine)) for p in order]
        run_jobs(operator.call, calls, self.config.jobs, self.interrupt, done)
        if self.config.bound:
            self._run_bounds()

    def run_real(self) -> None:
        """One run after the other: of each seed those of one engine setting together, so that all
        policies meet what the machine's speed does."""
        config, results = self.config, self.results
        with RealBench(config.model, self.interrupt.check, config.time_scale) as real:
            if config.record is not None:  # the first workload, at load 1
                trace = trace_of(config.workloads[0], config.seeds[0])
                trace_file.write(real.as_written(trace), config.record)

            def measure(point: GridPoint, conditions: Conditions) -> Measured:
                one = real.measure(point, conditions)
                results.scales[point.engine] = fmean(real.scales)
                return one

            self._settle_points(measure)
            task = self.progress.add_task("runs", total=len(results.order))
            for p in sorted(results.order, key=lambda p: (p.seed, p.policy, p.max_batch)):
                words = f"{p.policy}, load {p.load:g}, seed {p.seed}"
                self.progress.update(task, description=words)
                results.measured[p] = measure(p, results.conditions_of(p.engine))
                self.progress.advance(task)

    def _settle_points(self, measure: Measure) -> None:
        """Find what ``--load paper`` is, then list all points."""
        results, config = self.results, self.config
        if PAPER_LOAD in config.loads:
            for engine, workload in itertools.product(config.engines, config.workloads):
                results.paper[engine, workload] = self._paper_load(engine, workload, measure)
        results.order = config.points({key: load for key, (load, _) in results.paper.items()})

    def _paper_load(self, engine: str, workload: str, measure: Measure) -> tuple[float, float]:
        """The load and the utility that ``vllm`` has there, in the mean over the first seeds."""
        (*_, size) = dict(self.config.batches.own).get("vllm", (PAPER_BATCH,))
        words = f"load at which vllm has {PAPER_UTILITY} on {workload}"
        task = self.progress.add_task(words, total=None)
        tried: dict[float, float] = {}

        def utility(load: float) -> float:
            self.interrupt.check()
            conditions = self.results.conditions_of(engine)
            tried[load] = fmean(
                measure(GridPoint(engine, workload, load, "vllm", size, seed), conditions).utility
                for seed in self.config.seeds[:PAPER_SEEDS]
            )
            shown = f"{words}: {tried[load]:.3f} at {load:g}"
            self.progress.update(task, description=shown)
            return tried[load]

        try:
            load = load_of(utility, tolerance=NOISE if self.config.model else EXACT)
        except NoSuchLoad as error:
            raise NoSuchLoad(f"--load paper: vllm on {workload}, {engine}: {error}") from None
        self.progress.remove_task(task)
        return load, tried[load]

    def _run_bounds(self) -> None:
        """Bound all traces of the grid, each once, with the largest batch of any policy."""
        results = self.results
        sizes: dict[tuple[str, str, float, int], int] = {}
        for point in results.order:
            key = (*point.scenario, point.seed)
            sizes[key] = max(sizes.get(key, 0), point.max_batch)
        parts = {key: problems(*key, size) for key, size in sizes.items()}
        flat = [(key, part) for key, own in parts.items() for part in own]
        values: dict[tuple[str, str, float, int], list[float]] = {key: [] for key in parts}
        task = self.progress.add_task("bounds", total=len(flat))

        def done(i: int, value: float) -> None:
            key = flat[i][0]
            values[key].append(value)
            if len(values[key]) == len(parts[key]):
                _, workload, load, seed = key
                count = len(trace_of(workload, seed, load).arrivals)
                results.bounds[key] = math.fsum(values[key]) / count
            self.progress.advance(task)

        calls = [partial(one.most, results.conditions_of(one.engine)) for _, one in flat]
        run_jobs(operator.call, calls, self.config.jobs, self.interrupt, done)


# Work on several processes, which end with this one. Linux and macOS.


def run_jobs(
    work: Callable[[_Item], _Result],
    items: Sequence[_Item],
    processes: int,
    interrupt: Interrupt,
    done: Callable[[int, _Result], None],
) -> None:
    """``done(i, work(items[i]))`` for every item, in whatever order they are ready.

    Raises ``Interrupted`` as soon as ``interrupt`` is requested, and what ``work`` raises; the
    processes have ended then.
    """
    if not items:
        return
    interrupt.check()
    others = multiprocessing.active_children()
    context = multiprocessing.get_context("fork")  # what is imported and registered here is there
    pool = ProcessPoolExecutor(
        min(processes, len(items)), context, initializer=_begin, initargs=(os.getpid(),)
    )
    waiting: dict[Future[_Result], int] = {
        pool.submit(work, item): i for i, item in enumerate(items)
    }
    try:
        while waiting:
            ready, _ = wait(waiting, _POLL, FIRST_COMPLETED)
            for future in ready:
                done(waiting.pop(future), future.result())
            interrupt.check()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown()


def _begin(parent: int) -> None:
    """A worker: Ctrl-C is its parent's, which ends it; so does its parent's end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(parent)
