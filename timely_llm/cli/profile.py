"""``timely-llm profile``: measures an engine's step times with a model, fits them, and writes a
profile. Options, clock and printing; what is measured stands in ``evaluation/``."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timely_llm.cli.exit_status import EXIT_FAILED
from timely_llm.cli.options import check_writable
from timely_llm.paths import share

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from timely_llm.bench.latency_fit import FitReport, Sample
    from timely_llm.bench.profile_file import Loop
    from timely_llm.estimation.step_time import StepLatency
    from timely_llm.protocols.engine import Engine

ENOUGH = 100  # steps of a cell
TARGET = 0.05  # of the mean error against held-out medians
TIMEBILL = {"prefill": 0.0122, "decode": 0.0169}  # TimeBill, section 6.2, on a GPU
QUIET = 0.25  # load average per core, above which other work is reported
_WIDTH = 110  # characters of a table that no terminal limits


@dataclass(frozen=True, slots=True)
class Job:
    """What to measure: the model with its engine arguments, the grid, and for how long."""

    model: str
    arguments: Mapping[str, Any]
    max_batch: int
    kind: str
    grammar: str | None
    batches: tuple[int, ...]
    prefills: tuple[int, ...]
    contexts: tuple[int, ...]
    steps: int
    budget: float
    seed: int


def profile(
    out: Annotated[Path, typer.Option(dir_okay=False, help="the profile to write, YAML")],
    model: Annotated[
        str, typer.Option(help="path or name that vLLM loads; default: the bundled planner")
    ] = "",
    max_batch: Annotated[int, typer.Option(min=1, help="plans computed in one step")] = 16,
    engine_args: Annotated[str, typer.Option(help="JSON object of vLLM engine arguments")] = "{}",
    kind: Annotated[
        str,
        typer.Option(
            help="kind of robot, or skill set file, whose grammar bounds what is written; none"
        ),
    ] = "tello",
    batches: Annotated[str, typer.Option(help="batch sizes, apart by commas")] = "",
    prefills: Annotated[str, typer.Option(help="prompt tokens, apart by commas")] = "",
    contexts: Annotated[
        str, typer.Option(help="KV tokens of a sequence, apart by commas; two or more")
    ] = "",
    steps: Annotated[int, typer.Option(min=8, help="measured steps of each cell")] = 200,
    budget: Annotated[
        float, typer.Option(min=1.0, help="s to measure for; if it is short, steps are fewer")
    ] = 300.0,
    seed: Annotated[int, typer.Option(help="of the order of cells and of the prompts")] = 0,
) -> None:
    """Measure an engine's step times with a model, fit them, and write a profile.

    A grid of steps (batch, prompt tokens, context) is measured in turns on the real engine. The
    profile is an engine for the simulator: `timely-llm bench --preset FILE`.
    """
    job = Job(
        model=model or str(share("models", "tiny_planner")),
        arguments=_json_object(engine_args),
        max_batch=max_batch,
        kind=kind,
        grammar=None if kind == "none" else endless(_grammar(kind)),
        batches=_numbers("--batches", batches),
        prefills=_numbers("--prefills", prefills),
        contexts=_numbers("--contexts", contexts),
        steps=steps,
        budget=budget,
        seed=seed,
    )
    check_writable({"--out": out})
    from timely_llm.bench.profiling import ProfileError
    from timely_llm.cli.console import plain_console
    from timely_llm.protocols.engine import EngineError

    try:
        _run(job, out, plain_console(_WIDTH))
    except (EngineError, ProfileError) as error:
        typer.echo(f"timely-llm: {error}", err=True)
        raise typer.Exit(EXIT_FAILED) from error


def endless(grammar: str) -> str:
    """A grammar of one plan after the other without end, each as ``grammar`` has it."""
    plans = re.sub(r"^root ::=", "one_of_many ::=", grammar, count=1, flags=re.MULTILINE)
    return f"root ::= one_of_many root\n{plans}"


def _run(job: Job, out: Path, console: Console) -> None:
    """Start the engine, measure, fit, write, print."""
    from timely_llm.bench.latency_fit import fit, judge, points
    from timely_llm.bench.profile_file import load, write
    from timely_llm.engine.config import EngineConfig
    from timely_llm.engine.factory import build

    engine = build(
        EngineConfig(
            job.model,
            job.max_batch,
            engine_args=job.arguments,
            sampling={"ignore_eos": True},
        )
    )
    try:
        machine = _machine()
        if machine["load"] > QUIET * machine["cores"]:
            console.print(
                f"load average {machine['load']} on {machine['cores']} cores: other work "
                "disturbs the measurement"
            )
        begun = time.monotonic()
        samples = _measure(engine, job, console)
        seconds = time.monotonic() - begun
    finally:
        engine.close()
    report = judge(samples)
    latency = fit(list(points(samples).values()))
    least = min(one.steps for one in report.shapes)
    write(
        out,
        model=job.model,
        info=engine.info,
        prefill_chunk=engine.info.prefill_chunk,
        arguments=job.arguments,
        grammar="" if job.grammar is None else job.kind,
        machine=machine | {"load_after": _load()},
        measured={
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "seconds": round(seconds, 1),
            "steps_of_a_cell": least,
            "seed": job.seed,
        },
        latency=latency,
        report=report,
        loop=_loop(job, latency, console),
    )
    load(out)
    console.print(_cells_table(report))
    _print_errors(report, console)
    if least < ENOUGH:
        console.print(f"only {least} steps of each cell ({ENOUGH} are wanted): give more --budget")
    console.print(f"{out}: {len(samples)} steps in {len(report.shapes)} cells, {seconds:.0f} s")


def _loop(job: Job, latency: StepLatency, console: Console) -> Loop:
    """What the planner's loop makes of the steps; it adds nothing where that cannot be measured."""
    from timely_llm.bench.loop_share import NotMeasured, measure_loop
    from timely_llm.bench.profile_file import Loop

    try:
        loop = measure_loop(job.model, job.arguments, job.max_batch, latency)
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
    from rich.progress import Progress

    from timely_llm.bench.profiling import Rig, grid

    shapes = grid(engine, engine.info.prefill_chunk, job.batches, job.prefills, job.contexts)
    rig = Rig(engine, job.grammar, job.seed)
    end = time.monotonic() + job.budget
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(f"{len(shapes)} cells")

        def going_on(done: int, rounds: int) -> bool:
            progress.update(task, completed=done, total=rounds)
            return time.monotonic() < end

        return rig.measure(shapes, job.steps, going_on)


# What is printed.


def _cells_table(report: FitReport) -> Table:
    from rich import box
    from rich.table import Table

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
            beside = f" (TimeBill, on a GPU: {TIMEBILL[kind]:.2%})" if kind in TIMEBILL else ""
            console.print(f"  {name:8} {report.unseen[kind]:.2%}{beside}")
    lines = (
        ("held-out medians of cells that it has seen", report.seen, report.floor),
        ("single held-out steps", report.step, report.step_floor),
        ("single steps, as learned online before each", report.online, report.online_floor),
    )
    for what, error, floor in lines:
        console.print(f"  {what}: {error:.2%}; noise floor (A/A): {floor:.2%}")


# Options and machine.


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"is not JSON: {error}", param_hint="--engine-args") from error
    if not isinstance(value, dict):
        raise typer.BadParameter("is not a JSON object", param_hint="--engine-args")
    return value


def _numbers(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers apart by commas, in order; none of an empty text."""
    numbers = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        if not part.isdecimal() or int(part) < 1:
            raise typer.BadParameter(f"{part!r}: must be a whole number above 0", param_hint=option)
        numbers.append(int(part))
    return tuple(sorted(set(numbers)))


def _grammar(kind: str) -> str:
    """The grammar of a kind that comes with the package, or of a skill set file."""
    from timely_llm.language.grammar import plan_grammar
    from timely_llm.language.loader import load_skill_set
    from timely_llm.validation.names import did_you_mean
    from timely_llm.validation.reader import FileError

    known: Sequence[str] = sorted(path.stem for path in share("config", "skills").glob("*.yaml"))
    path = share("config", "skills", f"{kind}.yaml") if kind in known else Path(kind)
    if not path.is_file():
        raise typer.BadParameter(
            f"{kind!r} is neither a file nor one of none, {', '.join(known)}"
            f"{did_you_mean(kind, known)}",
            param_hint="--kind",
        )
    try:
        return plan_grammar(load_skill_set(path))
    except FileError as error:
        raise typer.BadParameter(str(error), param_hint="--kind") from error


def _load() -> float:
    return round(os.getloadavg()[0], 2)


def _machine() -> dict[str, Any]:
    """What the steps were measured on."""
    import torch

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
