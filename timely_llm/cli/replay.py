"""``timely-llm replay``: a recorded bag again, under other policies, against what happened."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timely_llm.cli.bench import EngineKind
from timely_llm.cli.console import say
from timely_llm.cli.exit_status import EXIT_FAILED, EXIT_INTERRUPTED
from timely_llm.cli.options import check_writable
from timely_llm.validation.outgoing import json_text, visible

if TYPE_CHECKING:
    from timely_llm.recording.compare import Replayed
    from timely_llm.recording.costs import Costs
    from timely_llm.recording.recorded_trace import RecordedTrace
    from timely_llm.recording.recording import Recording

_WIDTH = 132  # characters of a table that no terminal limits
Bag = Annotated[Path, typer.Argument(help="a bag: its folder, or its .mcap or .db3 file")]
BagNamespace = Annotated[
    str | None, typer.Option("--namespace", help="the planner's, where several were recorded")
]


def replay(
    bag: Bag,
    policies: Annotated[
        str,
        typer.Option("--policy", help="apart by commas; recorded: the bag's own; all: every one"),
    ] = "recorded,vllm,least_loss",
    engine: Annotated[
        EngineKind, typer.Option(help="the simulator, or real vLLM in real time")
    ] = EngineKind.sim,
    max_batch: Annotated[
        int, typer.Option(min=0, max=1024, help="plans computed in one step; 0: as recorded")
    ] = 0,
    model: Annotated[
        str, typer.Option(help="with --engine vllm; default: the recorded one, else the bundled")
    ] = "",
    json_file: Annotated[
        Path | None, typer.Option("--json", dir_okay=False, help="write the report to this file")
    ] = None,
    namespace: BagNamespace = None,
) -> None:
    """Re-run the goals of a recorded bag under other policies, and compare with what happened.

    The simulator replays the recorded plans, token counts and execution times, with engine steps,
    network and overhead as measured in the bag.
    """
    from timely_llm.recording.compare import Replayed, as_recorded, report_json
    from timely_llm.recording.replay import batch_of, what_happened
    from timely_llm.recording.replay import replay as simulate

    check_writable({"--json": json_file})
    recording, recorded, costs = load(bag, namespace)
    chosen, size = _names(policies, recording), max_batch or batch_of(recording)
    runs = [as_recorded(recording, what_happened(recorded))]
    status = 0
    if engine is EngineKind.sim:
        for name in chosen:
            run = simulate(recording, recorded, costs, name, size)
            runs.append(Replayed(name, "sim", size, run))
    else:
        path = model or _model(recording)
        status = _real(recording, recorded, costs, chosen, size, path, runs)
    report = report_json(recording, recorded, costs, runs)
    if status:
        report["partial"] = True
    _print(report)
    if json_file is not None:
        json_file.write_text(json_text(report, indent=1) + "\n", encoding="utf-8")
    raise typer.Exit(status)


def load(bag: Path, namespace: str | None) -> tuple[Recording, RecordedTrace, Costs]:
    """A bag's recording, its trace and its costs; ``BadParameter`` where it cannot be replayed."""
    from timely_llm.recording.bag import BagError, read
    from timely_llm.recording.costs import costs_of
    from timely_llm.recording.goals import goals_of
    from timely_llm.recording.recorded_trace import NothingToReplay, trace_of

    try:
        recording = read(bag, namespace)
        goals = goals_of(recording)
        return recording, trace_of(recording, goals), costs_of(goals)
    except (BagError, NothingToReplay) as error:
        raise typer.BadParameter(visible(str(error)), param_hint="BAG") from error


def _names(text: str, recording: Recording) -> list[str]:
    """The policies, each once; ``recorded`` is the bag's own."""
    from timely_llm import policies

    names: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        if name == "recorded":
            name = str(recording.parameters.get("policy") or "")
            if not name:
                words = "the bag does not say which policy was recorded: name one"
                raise typer.BadParameter(words, param_hint="--policy")
        try:
            names += policies.names() if name == "all" else [policies.get(name).name]
        except policies.UnknownPolicy as error:
            raise typer.BadParameter(str(error), param_hint="--policy") from error
    return list(dict.fromkeys(names))


def _real(
    recording: Recording,
    recorded: RecordedTrace,
    costs: Costs,
    chosen: list[str],
    size: int,
    model: str,
    runs: list[Replayed],
) -> int:
    """Add a run of each policy on real vLLM to ``runs``; the exit status."""

    from timely_llm.protocols.engine import EngineError
    from timely_llm.recording.compare import Replayed
    from timely_llm.recording.real import run_real
    from timely_llm.recording.replay import setting_of
    from timely_llm.system.processes import Interrupt, Interrupted

    with Interrupt() as interrupt:
        try:
            for name in chosen:
                setting = setting_of(recording, recorded, costs, name, size)
                run = run_real(recorded, setting, model, recording.parameters, interrupt.check)
                runs.append(Replayed(name, "vllm", size, run))
        except Interrupted:
            return EXIT_INTERRUPTED
        except EngineError as error:
            say(f"timely-llm: {error}", error=True)
            return EXIT_FAILED
    return 0


def _model(recording: Recording) -> str:
    """The recorded model where it is on this machine, else the bundled one."""
    from timely_llm.paths import share

    given = str(recording.engine.get("model") or "")
    return given if given and os.path.exists(given) else str(share("models", "tiny_planner"))


def _print(report: dict[str, Any]) -> None:
    from timely_llm.cli.console import plain_console
    from timely_llm.cli.replay_table import notes, replay_table

    console = plain_console(_WIDTH)
    console.print(replay_table(report))
    for line in notes(report):
        console.print(line)
