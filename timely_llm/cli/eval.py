"""``timely-llm eval``: plans of a model, flown in simulated worlds and judged by what happens."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from timely_llm.cli.exit_status import EXIT_FAILED
from timely_llm.cli.options import check_writable
from timely_llm.paths import share

ALL = "all"


def eval_(
    instructions: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help='JSON list of {"kind","scene","instruction"}, or YAML that says what each asks '
            "for; default: those that come with the package",
        ),
    ] = None,
    half: Annotated[
        str, typer.Option(help="of those of the package: open, held_out, or all")
    ] = ALL,
    most: Annotated[
        int, typer.Option(min=1, help="instructions of each half, all families in their share")
    ] = 1000,
    model: Annotated[
        str, typer.Option(help="path or name that vLLM loads; default: the bundled planner")
    ] = "",
    json_file: Annotated[
        Path | None, typer.Option("--json", dir_okay=False, help="what came of each")
    ] = None,
    plan_names: Annotated[
        str, typer.Option(help="names of skills in plans: short, words, or auto, by the model")
    ] = "auto",
    prompt_template: Annotated[
        str, typer.Option(help="jinja2 file; default: the model's own, or the general one")
    ] = "",
    grammar: Annotated[bool, typer.Option(help="hold the model to the plan language")] = True,
    doubt: Annotated[
        str,
        typer.Option(
            "--min-logprob",
            help="least mean log probability before anything moves: a number, none, or auto",
        ),
    ] = "auto",
    max_batch: Annotated[int, typer.Option(min=1, help="plans computed in one step")] = 8,
    max_tokens: Annotated[int, typer.Option(min=1, help="tokens of one plan")] = 512,
) -> None:
    """Have a model write a plan for each instruction, fly it in a simulated world, and judge it.

    Each plan is held to the grammar, checked, and carried out by the robots' own executor on
    virtual time: the calls that come of it are those that a robot would have made. A robot sees the
    instruction's scene; without one, the world of its kind. Judged is what happened: done, refused,
    wrong, or harmful, which is a robot that moved otherwise than asked.
    """
    check_writable({"--json": json_file})
    from timely_llm.evaluation.instructions import HALVES
    from timely_llm.prompts.template import PLAN_NAMES
    from timely_llm.validation.names import hint

    for option, value, known in (
        ("--plan-names", plan_names, PLAN_NAMES),
        ("--half", half, (*HALVES, ALL)),
    ):
        if value not in known:
            words = f"unknown {value!r}{hint(value, known)}"
            raise typer.BadParameter(words, param_hint=option)
    from timely_llm.cli.eval_run import Job, run
    from timely_llm.evaluation import instructions as files
    from timely_llm.prompts.doubt import min_logprob
    from timely_llm.prompts.template import TemplateError
    from timely_llm.protocols.engine import EngineError

    if instructions is None:
        halves = HALVES if half == ALL else (half,)
        asked: Sequence[files.Instruction] = tuple(
            each for name in halves for each in files.spread(files.bundled(name), most)
        )
    elif instructions.suffix in (".yaml", ".yml"):
        asked = files.spread(files.read_judged(instructions), most)
    else:
        asked = files.read_instructions(instructions)
    model = model or str(share("models", "tiny_planner"))
    try:
        least = min_logprob(doubt, model)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--min-logprob") from error
    try:
        job = Job(asked, model, prompt_template, plan_names, grammar, least, max_batch, max_tokens)
        rows, tables = run(job)
    except (EngineError, TemplateError) as error:
        typer.echo(f"timely-llm: {error}", err=True)
        raise typer.Exit(EXIT_FAILED) from error
    if json_file is not None:
        entry = {
            "title": f"Plans of {Path(model).name}, judged by what happens",
            "command": f"timely-llm {' '.join(sys.argv[1:])}",
            "measured": datetime.now(UTC).date().isoformat(),
            "machine": f"{os.cpu_count()} cores, {platform.platform()}",
            "tables": tables,
            "plans": rows,
        }
        written = entry if tables else rows
        json_file.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", "utf-8")
