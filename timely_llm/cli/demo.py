"""``timely-llm demo``: its options, checked before a process is started."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from timely_llm import policies
from timely_llm.cli.options import check_writable, parameters
from timely_llm.estimation.presets import PACES
from timely_llm.paths import share
from timely_llm.system.processes import Interrupt

LOG_WIDTH = 132  # characters of a table that no terminal limits
DEFAULT_PACE = "rtx4090-llama3-8b"


def demo(
    json_file: Annotated[
        Path | None, typer.Option("--json", dir_okay=False, help="write the report to this file")
    ] = None,
    policy: Annotated[str, typer.Option(help="scheduling policy")] = "least_loss",
    pace: Annotated[
        str, typer.Option(help="preset whose step times the planner is slowed to; none: raw speed")
    ] = DEFAULT_PACE,
    baseline: Annotated[
        bool, typer.Option("--baseline/--no-baseline", help="fly it under vllm too")
    ] = True,
    fleet: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="fleet file")
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="script of instructions; default: the fleet file's"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="of the robots' chance; default: the fleet file's")
    ] = None,
    model: Annotated[str, typer.Option(help="default: the bundled planner")] = "",
    engine: Annotated[str, typer.Option(help="vllm or simulated", hidden=True)] = "vllm",
    param: Annotated[
        list[str] | None,
        typer.Option(help="any further parameter of the planner as NAME:=VALUE; repeatable"),
    ] = None,
    logs: Annotated[
        Path | None, typer.Option(help="keep what the processes write in this folder")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(help="record each policy's flight into a bag DIR/POLICY", metavar="DIR"),
    ] = None,
) -> None:
    """Fly a fleet of simulated robots: the planner and each robot in a process of its own.

    Plays a script of instructions, then the same under vLLM's own scheduling, and compares.
    """
    from timely_llm.cli.console import plain_console
    from timely_llm.cli.demo_run import BASELINE, DemoOptions, run_demo, with_seed
    from timely_llm.cli.fleet_file import load_fleet
    from timely_llm.cli.script_file import load_script

    chosen = load_fleet(fleet or share("config", "fleets", "demo.yaml"))
    options = DemoOptions(
        fleet=chosen if seed is None else with_seed(chosen, seed),
        script=load_script(
            script or chosen.script or share("config", "scripts", "demo.yaml"), chosen.ids
        ),
        policy=policy,
        pace=pace,
        planner=tuple(parameters(param or [], model=model, engine=engine).items()),
        baseline=baseline,
        json_file=json_file,
        log_folder=logs,
        record=record,
    )
    _check_names(policy, pace)
    check_writable({"--json": json_file})
    for bag in (record / policy, record / BASELINE) if record is not None else ():
        if bag.exists():
            raise typer.BadParameter(f"{bag} is there already", param_hint="--record")
    with Interrupt() as interrupt:
        raise typer.Exit(run_demo(options, plain_console(LOG_WIDTH), interrupt))


def _check_names(policy: str, pace: str) -> None:
    """Refuse an unknown policy or pace before any process is started."""
    try:
        policies.get(policy)
    except policies.UnknownPolicy as error:
        raise typer.BadParameter(str(error), param_hint="--policy") from error
    known = ("none", *PACES)
    if pace not in known:
        raise typer.BadParameter(
            f"{pace!r} is unknown (known: {', '.join(known)})", param_hint="--pace"
        )
