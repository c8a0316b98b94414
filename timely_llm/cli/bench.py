"""``timely-llm bench``: its options, and what it writes.

The options are checked in ``bench/config.py``, the runs carried out in ``bench/runner.py``.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timely_llm.bench import DEFAULT_PRESET
from timely_llm.cli.console import say
from timely_llm.cli.exit_status import EXIT_FAILED, EXIT_INTERRUPTED
from timely_llm.cli.options import check_writable, make_folder
from timely_llm.validation.outgoing import json_text

if TYPE_CHECKING:
    from timely_llm.bench.config import BenchConfig
    from timely_llm.bench.results import Results

_WIDTH = 160  # characters of a table that no terminal limits


class EngineKind(StrEnum):
    sim = "sim"
    vllm = "vllm"


def bench(
    engine: Annotated[
        EngineKind, typer.Option(help="the simulator, or real vLLM in real time")
    ] = EngineKind.sim,
    preset: Annotated[
        str, typer.Option(help="simulated engines: presets or profile files, apart by commas")
    ] = DEFAULT_PRESET,
    model: Annotated[
        str,
        typer.Option(
            help="path or name that vLLM loads, by default the bundled planner; with --engine sim: "
            "refuse profiles of another one"
        ),
    ] = "",
    workload: Annotated[
        str, typer.Option(help="workloads or trace files (.jsonl), apart by commas")
    ] = "wid2",
    load: Annotated[
        str,
        typer.Option(
            help="factors that divide inter-arrival times, apart by commas; paper: where vllm has "
            "the paper's utility"
        ),
    ] = "1",
    policies: Annotated[str, typer.Option(help="apart by commas; all: every one")] = "all",
    max_batch: Annotated[
        str,
        typer.Option(
            help="plans computed in one step: 8, or 2,4,8 (each), or best, or best:4,8 (the best "
            "of them for each policy); 8,vllm=12 sets one policy's"
        ),
    ] = "8",
    seeds: Annotated[str, typer.Option(help="10: ten of them from 0; or 0,3,7; or 5-9")] = "1",
    time_scale: Annotated[
        str,
        typer.Option(
            help="what 1 s of the workload lasts on the engine, whose times are shown in s of the "
            "workload; auto: its decode step over 21.8 ms; auto:1.5: as much again and a half"
        ),
    ] = "1",
    json_file: Annotated[
        Path | None, typer.Option("--json", dir_okay=False, help="write the report to this file")
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(file_okay=False, help="write figures as HTML to this folder")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="processes for simulated runs; 0: one for each core")
    ] = 0,
    bound: Annotated[
        bool, typer.Option("--bound/--no-bound", help="compute the clairvoyant upper bound too")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="real vLLM: write the workload with the model's own answers to this trace file, "
            "for the simulator to replay",
        ),
    ] = None,
    refusals: Annotated[
        bool, typer.Option("--refusals/--no-refusals", help="refuse goals that come to nothing")
    ] = False,
    network: Annotated[
        float, typer.Option(min=0.0, help="s until a segment is at its robot")
    ] = 0.008,
    plan_overhead: Annotated[
        float, typer.Option(min=0.0, help="s that each plan costs beside its steps (simulator)")
    ] = 0.0,
    decision_overhead: Annotated[
        float, typer.Option(min=0.0, help="s that each decision costs (simulator)")
    ] = 0.0,
) -> None:
    """Run policies side by side on one workload: on the simulator, or on real vLLM.

    Every policy meets the same arrivals, answers and execution times. A run is cut 60 s after the
    last arrival; a goal without a first segment scores its utility at the cut. Ctrl-C writes what
    there is, marked as partial.
    """
    given = locals()
    from timely_llm.bench.config import BadOption, config_of

    try:
        config = config_of(**given)
    except BadOption as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from error
    check_writable({"--json": json_file, "--record": record})
    make_folder("--plots", plots)
    raise typer.Exit(_run(config))


def _run(config: BenchConfig) -> int:
    """Carry out the bench and write what came of it, all of it or not; the exit status."""
    from rich.console import Console

    from timely_llm.bench.results import Results
    from timely_llm.bench.runner import run_bench
    from timely_llm.bench.search import NoSuchLoad
    from timely_llm.protocols.engine import EngineError
    from timely_llm.system.processes import Interrupt, Interrupted

    results = Results(config)
    with Interrupt() as interrupt:
        try:
            run_bench(results, Console(stderr=True), interrupt)
        except Interrupted:
            _write(results, config.plots)
            say(f"interrupted: {len(results.measured)} of {config.expected} runs")
            return EXIT_INTERRUPTED
        except BaseException as error:
            if results.measured:
                _write(results, None)
            if not isinstance(error, EngineError | NoSuchLoad):
                raise
            say(f"timely-llm: {error}", error=True)
            return EXIT_FAILED
    _write(results, config.plots)
    return 0


def _write(results: Results, plots: Path | None) -> None:
    """The report, then the table, then the figures, these to ``plots``."""
    file = results.config.json_file
    if file is not None:
        file.write_text(json_text(results.as_json(), indent=1) + "\n", encoding="utf-8")
    _print(results)
    if plots is not None and results.measured:
        _draw(results, plots)


def _draw(results: Results, folder: Path) -> None:
    from timely_llm.bench import plots
    from timely_llm.bench.burst import burst_timelines

    figures = plots.figures(results.summaries(), results.kept())
    if not results.config.model:
        title, shown = burst_timelines(results)
        figures["burst"] = plots.timeline(shown, title)
    for name, figure in figures.items():
        path = folder / f"{name}.html"
        path.write_text(plots.page(figure, name), encoding="utf-8")
        say(path)


def _print(results: Results) -> None:
    from rich.console import Console

    from timely_llm.bench.config import engine_of
    from timely_llm.bench.search import PAPER_UTILITY
    from timely_llm.bench.table import LEGEND, tables, urgency_tables
    from timely_llm.cli.console import plain_console

    console = plain_console(_WIDTH)
    for engine in () if results.config.model else results.config.engines:
        console.print(f"{engine}: {engine_of(engine).source}")
    for (engine, workload), (load, utility) in results.paper.items():
        console.print(
            f"vllm has {utility:.3f} on {workload} at load {load:g} on {engine} "
            f"(the paper: {PAPER_UTILITY})"
        )
    console.print(tables(results.summaries(), results.scales))
    console.print(urgency_tables(results.kept()))
    Console(stderr=True, style="dim", highlight=False).print(LEGEND)
