"""``timely-llm eval``: plans of a model, flown in simulated worlds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from timely_llm.cli.exit_status import EXIT_FAILED
from timely_llm.cli.options import check_writable
from timely_llm.paths import share


def eval_(
    instructions: Annotated[
        Path,
        typer.Option(
            exists=True, dir_okay=False, help='JSON list of {"kind","scene","instruction"}'
        ),
    ],
    model: Annotated[
        str, typer.Option(help="path or name that vLLM loads; default: the bundled planner")
    ] = "",
    json_file: Annotated[
        Path | None, typer.Option("--json", dir_okay=False, help="what came of each, a JSON list")
    ] = None,
    plan_names: Annotated[
        str, typer.Option(help="names of skills in plans: short, words, or auto, by the model")
    ] = "auto",
    prompt_template: Annotated[
        str, typer.Option(help="jinja2 file; default: the model's own, or the general one")
    ] = "",
    max_batch: Annotated[int, typer.Option(min=1, help="plans computed in one step")] = 8,
    max_tokens: Annotated[int, typer.Option(min=1, help="tokens of one plan")] = 512,
) -> None:
    """Have a model write a plan for each instruction, and fly it in a simulated world.

    Each plan is held to the grammar, checked, and carried out by the robots' own executor on
    virtual time: the calls that come of it are those that a robot would have made. A robot sees the
    instruction's scene; without one, the world of its kind.
    """
    check_writable({"--json": json_file})
    from timely_llm.prompts.template import PLAN_NAMES
    from timely_llm.validation.names import hint

    if plan_names not in PLAN_NAMES:
        words = f"unknown {plan_names!r}{hint(plan_names, PLAN_NAMES)}"
        raise typer.BadParameter(words, param_hint="--plan-names")
    from timely_llm.cli.eval_run import Job, run
    from timely_llm.evaluation.instructions import read_instructions
    from timely_llm.prompts.template import TemplateError
    from timely_llm.protocols.engine import EngineError

    asked = read_instructions(instructions)
    model = model or str(share("models", "tiny_planner"))
    try:
        job = Job(asked, model, prompt_template, plan_names, max_batch, max_tokens)
        rows = run(job)
    except (EngineError, TemplateError) as error:
        typer.echo(f"timely-llm: {error}", err=True)
        raise typer.Exit(EXIT_FAILED) from error
    if json_file is not None:
        json_file.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
