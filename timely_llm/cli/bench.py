"""``timely-llm bench``: its options, checked before anything runs, and what it writes.

What a run is stands in ``bench/grid.py``; how they are carried out in ``bench/runner.py``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from timely_llm.cli.exit_status import EXIT_FAILED, EXIT_INTERRUPTED
from timely_llm.cli.output_files import check_writable, make_folder

if TYPE_CHECKING:
    from timely_llm.bench.runner import Plan, Results

DEFAULT_PRESET = "rtx4090-llama3-8b"
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
    from timely_llm.bench import config as options
    from timely_llm.bench.grid import Conditions
    from timely_llm.bench.runner import Plan

    try:
        conditions = Conditions(
            network=options.seconds("--network", network),
            refusals=refusals,
            plan_overhead=options.seconds("--plan-overhead", plan_overhead),
            decision_overhead=options.seconds("--decision-overhead", decision_overhead),
        )
        real = _model(model, preset) if engine is EngineKind.vllm else ""
        grid = options.grid(preset, real, workload, load, policies, max_batch, seeds)
        if model and not real:
            options.check_profiles(grid.engines, model)
        scale = options.time_scale(time_scale)
    except options.BadOption as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from error
    if real:
        _check_real(bound, grid.policies, plan_overhead, decision_overhead)
    if record is not None and not real:
        raise typer.BadParameter("only --engine vllm has answers of its own", param_hint="--record")
    check_writable({"--json": json_file, "--record": record})
    make_folder("--plots", plots)
    plan = Plan(grid, conditions, scale, real, jobs or os.cpu_count() or 1, bound, record)
    raise typer.Exit(_run(plan, json_file, plots))


def _model(model: str, preset: str) -> str:
    """Path or name of the real engine's model; by default the bundled one."""
    from timely_llm.paths import share

    if preset != DEFAULT_PRESET:
        raise typer.BadParameter(
            "a preset is for --engine sim; real vLLM takes --model", param_hint="--preset"
        )
    return model or str(share("models", "tiny_planner"))


def _check_real(
    bound: bool, policies: Sequence[str], plan_overhead: float, decision_overhead: float
) -> None:
    """Refuse what a real engine cannot be given."""
    if bound:
        raise typer.BadParameter(
            "bounds need step times as numbers: use --engine sim with a profile of the engine",
            param_hint="--bound",
        )
    for option, value in {
        "--plan-overhead": plan_overhead,
        "--decision-overhead": decision_overhead,
    }.items():
        if value:
            raise typer.BadParameter("on real vLLM it is measured", param_hint=option)
    for name in policies:
        policy, _, predictor = name.partition(":")
        if predictor:
            raise typer.BadParameter(
                f"{name}: the {predictor} predictor knows the trace's answers, real vLLM writes "
                f"its own: use {policy}",
                param_hint="--policies",
            )


def _run(plan: Plan, json_file: Path | None, plots: Path | None) -> int:
    """Carry out the bench and write what came of it, all of it or not; the exit status."""
    from rich.console import Console

    from timely_llm.bench.runner import Results, run_bench
    from timely_llm.bench.search import NoSuchLoad
    from timely_llm.protocols.engine import EngineError
    from timely_llm.system.processes import Interrupt, Interrupted

    results = Results(plan)
    with Interrupt() as interrupt:
        try:
            run_bench(results, Console(stderr=True), interrupt)
        except Interrupted:
            _write(results, json_file, plots)
            print(f"interrupted: {len(results.measured)} of {results.expected} runs", flush=True)
            return EXIT_INTERRUPTED
        except (EngineError, NoSuchLoad) as error:
            if results.measured:
                _write(results, json_file, None)
            print(f"timely-llm: {error}", file=sys.stderr)
            return EXIT_FAILED
        except BaseException:
            if results.measured:
                _write(results, json_file, None)
            raise
    _write(results, json_file, plots)
    return 0


def _write(results: Results, json_file: Path | None, plots: Path | None) -> None:
    """The report, then the table, then the figures."""
    if json_file is not None:
        json_file.write_text(json.dumps(results.as_json(), indent=1) + "\n", encoding="utf-8")
    _print(results)
    if plots is not None and results.measured:
        _draw(results, plots)


def _draw(results: Results, folder: Path) -> None:
    from timely_llm.bench import plots
    from timely_llm.bench.burst_plot import timeline
    from timely_llm.bench.plot_style import page
    from timely_llm.bench.runner import burst_lanes

    figures = plots.figures(results.summaries(), results.kept())
    if not results.plan.model:
        title, shown = burst_lanes(results)
        figures["burst"] = timeline(shown, title)
    for name, figure in figures.items():
        path = folder / f"{name}.html"
        path.write_text(page(figure, name), encoding="utf-8")
        print(path)


def _print(results: Results) -> None:
    from rich.console import Console

    from timely_llm.bench.cells import engine_of
    from timely_llm.bench.search import PAPER_UTILITY
    from timely_llm.bench.table import LEGEND, tables, urgency_tables
    from timely_llm.cli.console import plain_console

    console = plain_console(_WIDTH)
    if not results.plan.model:
        for engine in results.plan.grid.engines:
            console.print(f"{engine}: {engine_of(engine).source}")
    for (engine, workload), (load, utility) in results.paper.items():
        console.print(
            f"vllm has {utility:.3f} on {workload} at load {load:g} on {engine} "
            f"(the paper: {PAPER_UTILITY})"
        )
    console.print(tables(results.summaries(), results.scales))
    console.print(urgency_tables(results.kept()))
    Console(stderr=True, style="dim", highlight=False).print(LEGEND)
