"""``timely-llm serve``: the planner node in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from timely_llm.cli.options import Namespace, parameters


def serve(
    model: Annotated[
        str, typer.Option(help="path or name that vLLM loads; default: the bundled planner")
    ] = "",
    policy: Annotated[str, typer.Option(help="scheduling policy")] = "",
    pace: Annotated[
        str, typer.Option(help="preset whose step times it is slowed to, or none")
    ] = "",
    max_batch: Annotated[int, typer.Option(help="plans computed in one step; 0: default")] = 0,
    prompt_template: Annotated[str, typer.Option(help="jinja2 file of the prompt")] = "",
    chat_template: Annotated[str, typer.Option(help="jinja2 file of the chat template")] = "",
    engine_args: Annotated[str, typer.Option(help="JSON object of vLLM engine arguments")] = "",
    sampling: Annotated[str, typer.Option(help="JSON object of vLLM sampling parameters")] = "",
    skill_set: Annotated[
        list[str] | None, typer.Option(help="skill set file or folder of them; repeatable")
    ] = None,
    web: Annotated[
        str, typer.Option(metavar="[HOST:]PORT", help="show the fleet in a browser; see top")
    ] = "",
    params_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="ROS parameter file")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(help="any parameter of the node as NAME:=VALUE; repeatable")
    ] = None,
    namespace: Namespace = "",
    log_level: Annotated[str, typer.Option(help="debug, info, warn, error or fatal")] = "info",
) -> None:
    """Run the planner node in this process, until Ctrl-C.

    What is not given is as in the parameter file, else the node's default.
    """
    given: dict[str, Any] = {
        "model": model,
        "policy": policy,
        "pace": pace,
        "max_batch": max_batch,
        "prompt_template": prompt_template,
        "chat_template": chat_template,
        "engine_args": engine_args,
        "sampling": sampling,
        "skill_sets": skill_set,
        "web": web,
    }
    arguments = ["--ros-args", "--log-level", log_level]
    if namespace.strip("/"):
        arguments += ["-r", f"__ns:=/{namespace.strip('/')}"]
    if params_file is not None:
        arguments += ["--params-file", str(params_file)]
    for name, value in parameters(param or [], **given).items():
        arguments += ["-p", f"{name}:={json.dumps(value)}"]
    from timely_llm.ros.planner_node import main

    raise typer.Exit(main(["timely-llm", *arguments]))
