"""What ``timely-llm profile`` does: measures an engine's step times with a model, fits them, writes
a profile and prints how good it is."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from timely_llm.bench.latency_fit import FitReport, Sample, fit, judge, points
from timely_llm.bench.profile_file import Loop, load, write
from timely_llm.bench.profiling import Rig, grid
from timely_llm.bench.real import NotMeasured, measure_loop
from timely_llm.cli.console import plain_console
from timely_llm.engine.config import EngineConfig
from timely_llm.engine.factory import build
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.engine import Engine

ENOUGH = 100  # steps of a shape
TARGET = 0.05  # of the mean error against held-out medians
TIMEBILL = {"prefill": 0.0122, "decode": 0.0169}  # TimeBill, section 6.2, on a GPU
BUSY = 0.25  # load average per core, above which other work is reported
_WIDTH = 110  # characters of a table that no terminal limits


@dataclass(frozen=True, slots=True)
class Job:
    """What to measure: an engine, over a grid of ``sizes`` (batches, prompt
    tokens, context tokens; none: chosen to fit) with ``steps`` of each shape, and for how long
    (``budget``, s). ``kind`` names the ``grammar``, an endless one, that bounds what is written."""

    engine: EngineConfig
    kind: str
    grammar: str | None
    sizes: tuple[Sequence[int], Sequence[int], Sequence[int]]
    steps: int
    budget: float
    seed: int


def run(job: Job, out: Path) -> None:
    """Start the engine, measure, fit, write, print. ``EngineError`` and ``ProfileError`` for what
    cannot be measured."""
    console = plain_console(_WIDTH)
    engine = build(job.engine)
    with closing(engine):
        machine = _machine()
        if machine["load"] > BUSY * machine["cores"]:
            console.print(
                f"load average {machine['load']} on {machine['cores']} cores: other work "
                "disturbs the measurement"
            )
        begun = time.monotonic()
        samples = _measure(engine, job, console)
        seconds = time.monotonic() - begun
    report = judge(samples)
    latency = fit(list(points(samples).values()))
    least = min(one.steps for one in report.shapes)
    write(
        out,
        model=job.engine.model,
        info=engine.info,
        prefill_chunk=engine.info.prefill_chunk,
        arguments=job.engine.engine_args,
        grammar="" if job.grammar is None else job.kind,
        machine=machine | {"load_after": _load()},
        measured={
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "seconds": round(seconds, 1),
            "steps_of_a_cell": least,
            "seed": job.seed,
        },
        latency=latency,
        report=report,
        loop=_loop(job, latency, console),
    )
    load(out)
    console.print(_shapes_table(report))
    _print_errors(report, console)
    if least < ENOUGH:
        console.print(f"only {least} steps of each cell ({ENOUGH} are wanted): give more --budget")
    console.print(f"{out}: {len(samples)} steps in {len(report.shapes)} cells, {seconds:.0f} s")


def _loop(job: Job, latency: StepLatency, console: Console) -> Loop:
    """What the planner's loop makes of the steps; it adds nothing where that cannot be measured."""
    try:
        loop = measure_loop(job.engine.model, job.engine.engine_args, job.engine.max_batch, latency)
    except NotMeasured as error:
        console.print(f"what the planner's loop adds was not measured: {error}")
        return Loop(latency(1))
    console.print(
        f"in the planner's loop: steps {loop.mean_over_median:.3f} times their medians on average, "
        f"{loop.step * 1e3:.2f} ms of its own a step, {loop.goal * 1e3:.2f} ms a goal"
    )
    return loop


def _measure(engine: Engine, job: Job, console: Console) -> list[Sample]:
    """The measured steps, with a progress bar on a terminal."""
    shapes = grid(engine, engine.info.prefill_chunk, *job.sizes)
    end = time.monotonic() + job.budget
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(f"{len(shapes)} cells")

        def going_on(done: int, rounds: int) -> bool:
            progress.update(task, completed=done, total=rounds)
            return time.monotonic() < end

        return Rig(engine, job.grammar, job.seed).measure(shapes, job.steps, going_on)


def _shapes_table(report: FitReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("batch", "prompt", "KV tokens", "steps", "median", "mean", "held out"):
        table.add_column(name, justify="right")
    table.add_column("predicted unseen", justify="right")
    table.add_column("error", justify="right")
    for one in report.shapes:
        times = (one.median, one.mean, one.held_out, one.predicted)
        table.add_row(
            str(one.shape.batch),
            f"{one.prefill:.0f}",
            f"{one.kv:.0f}",
            str(one.steps),
            *(f"{time * 1e3:.2f} ms" for time in times),
            f"{one.error:.1%}",
        )
    return table


def _print_errors(report: FitReport, console: Console) -> None:
    total = report.unseen["all"]
    verdict = "reached" if total <= TARGET else "missed"
    console.print(
        f"MAPE, held-out medians of cells that the fit has not seen: {total:.2%} "
        f"(target: at most {TARGET:.0%}, {verdict})"
    )
    for kind, name in (("decode", "decode"), ("prefill", "prefill"), ("mixed", "both")):
        if kind in report.unseen:
            compared = f" (TimeBill, on a GPU: {TIMEBILL[kind]:.2%})" if kind in TIMEBILL else ""
            console.print(f"  {name:8} {report.unseen[kind]:.2%}{compared}")
    lines = (
        ("held-out medians of cells that it has seen", report.seen, report.floor),
        ("single held-out steps", report.step, report.step_floor),
        ("single steps, as learned online before each", report.online, report.online_floor),
    )
    for what, error, floor in lines:
        console.print(f"  {what}: {error:.2%}; noise floor (A/A): {floor:.2%}")


def _load() -> float:
    return round(os.getloadavg()[0], 2)


def _machine() -> dict[str, Any]:
    """What the steps were measured on."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        found = re.search(r"^model name\s*: (.+)$", info.read_text(), re.MULTILINE)
        name = found.group(1).strip() if found else name
    machine = {
        "processor": name,
        "cores": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "load": _load(),
    }
    if torch.cuda.is_available():
        machine["gpu"] = torch.cuda.get_device_name()
    return machine
