"""``timely-llm profile``: its options. What it does with them is in ``cli/profile_run.py``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from timely_llm.cli.exit_status import EXIT_FAILED
from timely_llm.cli.options import check_writable
from timely_llm.paths import share


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
    arguments = _json_object(engine_args)
    grammar = None if kind == "none" else endless(_grammar(kind))
    sizes = (
        _numbers("--batches", batches),
        _numbers("--prefills", prefills),
        _numbers("--contexts", contexts),
    )
    check_writable({"--out": out})
    from timely_llm.bench.profiling import ProfileError
    from timely_llm.cli.profile_run import Job, run
    from timely_llm.engine.config import EngineConfig
    from timely_llm.protocols.engine import EngineError

    engine = EngineConfig(
        model or str(share("models", "tiny_planner")),
        max_batch,
        engine_args=arguments,
        sampling={"ignore_eos": True},
    )
    try:
        run(Job(engine, kind, grammar, sizes, steps, budget, seed), out)
    except (EngineError, ProfileError) as error:
        typer.echo(f"timely-llm: {error}", err=True)
        raise typer.Exit(EXIT_FAILED) from error


def endless(grammar: str) -> str:
    """A grammar of one plan after the other without end, each as ``grammar`` has it."""
    return grammar.replace("root ::= plan\n", "root ::= plan root\n", 1)


def _json_object(text: str) -> dict[str, Any]:
    from timely_llm.validation.reader import json_object

    try:
        return json_object(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--engine-args") from error


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
