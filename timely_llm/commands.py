"""The commands of ``timely-llm``: their options, and what they print. Imports what is slow (ROS,
vLLM, tables) only in the command that needs it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timely_llm import __version__
from timely_llm.bench_command import bench
from timely_llm.cli import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_NO_PLANNER, EXIT_USAGE
from timely_llm.commands_sim import sim_tello
from timely_llm.paths import share
from timely_llm.profile_command import profile

if TYPE_CHECKING:
    from timely_llm.messages import PlanFeedback, PlanResult

LOG_WIDTH = 132  # characters of a table that no terminal limits
DEFAULT_PACE = "rtx4090-llama3-8b"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Plans for a fleet of robots from one local vLLM, in segments that the robots' own "
    "progress resumes.",
    epilog="Exit status: 0 done, 1 failed, 2 used wrongly, 3 no planner, 130 interrupted.",
)


class Urgency(StrEnum):
    critical = "critical"
    urgent = "urgent"
    normal = "normal"
    low = "low"
    background = "background"


class WhenBusy(StrEnum):
    queue = "queue"
    preempt = "preempt"
    reject = "reject"


Namespace = Annotated[
    str, typer.Option(help="ROS namespace of the planner; its action is NAMESPACE/plan")
]
Timeout = Annotated[float, typer.Option(min=0.1, help="s to wait for the planner to answer")]


def status_of(error: Exception) -> int | None:
    """The exit status for an error whose text says it all; None: it is a fault of ours."""
    from timely_llm.yaml_reader import YamlError

    if isinstance(error, YamlError | OSError):
        return EXIT_USAGE
    from timely_llm.local_fleet import FleetError
    from timely_llm.processes import Interrupted
    from timely_llm.ros.client import NoPlanner, PlannerError

    statuses = {
        NoPlanner: EXIT_NO_PLANNER,
        PlannerError: EXIT_FAILED,
        FleetError: EXIT_FAILED,
        Interrupted: EXIT_INTERRUPTED,
    }
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), None)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"timely-llm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    pass


@app.command()
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
    }
    arguments = ["--ros-args", "--log-level", log_level]
    if namespace.strip("/"):
        arguments += ["-r", f"__ns:=/{namespace.strip('/')}"]
    if params_file is not None:
        arguments += ["--params-file", str(params_file)]
    for name, value in _parameters(param or [], **given).items():
        arguments += ["-p", f"{name}:={json.dumps(value)}"]
    from timely_llm.ros.planner_node import main

    raise typer.Exit(main(["timely-llm", *arguments]))


@app.command()
def plan(
    robot: Annotated[str, typer.Argument(metavar="ROBOT", help="id of the robot")],
    instruction: Annotated[str, typer.Argument(metavar="INSTRUCTION", help="what it shall do")],
    scene: Annotated[str, typer.Option(help="what it sees, as the prompt shall have it")] = "",
    urgency: Annotated[Urgency, typer.Option()] = Urgency.normal,
    when_busy: Annotated[
        WhenBusy, typer.Option(help="if the robot has another plan")
    ] = WhenBusy.queue,
    namespace: Namespace = "",
    timeout: Timeout = 5.0,
) -> None:
    """Plan and carry out one instruction on one robot; shows its segments, then the result.

    Ctrl-C cancels the goal: the robot stops, and the result still comes.
    """
    from timely_llm import messages as values
    from timely_llm import utility
    from timely_llm.processes import Interrupt
    from timely_llm.ros.client import PlannerClient

    goal = values.PlanGoal(
        robot_id=robot,
        instruction=instruction,
        scene=scene,
        urgency=utility.Urgency[urgency.name.upper()],
        when_busy=values.WhenBusy[when_busy.name.upper()],
    )
    with Interrupt() as interrupt, PlannerClient(namespace) as client:
        client.wait_for_planner(timeout, interrupt.check)
        request = client.send(goal, _print_feedback)
        client.follow(request, lambda: interrupt.requested)
    _print_result(request.result)
    if request.result.error_code is not values.ErrorCode.NONE:
        raise typer.Exit(EXIT_INTERRUPTED if interrupt.requested else EXIT_FAILED)


def _print_feedback(feedback: PlanFeedback) -> None:
    from timely_llm.messages import FeedbackState

    if feedback.text:
        print(f"segment {feedback.segment}: {feedback.text}", flush=True)
    elif feedback.state is FeedbackState.QUEUED:
        print(f"queued: place {feedback.queue_position}", flush=True)
    elif feedback.state is FeedbackState.STOPPING:
        print("stopping the robot", flush=True)


def _print_result(result: PlanResult) -> None:
    from timely_llm.messages import ErrorCode
    from timely_llm.tables import seconds

    if result.error_code is ErrorCode.NONE:
        print("succeeded" + (f", returned {result.value}" if result.value else ""))
    else:
        print(f"{result.error_code.name}: {result.error_msg}")
    if not result.plan:
        return
    response = result.response_time if result.response_time >= 0 else None
    rows = {
        "plan": result.plan,
        "segments": result.num_segments,
        "response": seconds(response),
        "waiting": seconds(result.waiting_time),
        "execution": seconds(result.execution_time),
        "utility": f"{result.utility:.2f}",
        "tokens": f"{result.prompt_tokens} in the prompt, {result.generated_tokens} generated",
        "plan id": result.plan_id,
    }
    for name, value in rows.items():
        print(f"  {name:10} {value}")


@app.command()
def robots(namespace: Namespace = "", timeout: Timeout = 5.0) -> None:
    """List the registered robots."""
    from rich.console import Console

    from timely_llm.ros.client import PlannerClient
    from timely_llm.tables import robots_table

    with PlannerClient(namespace) as client:
        found = client.robots(timeout)
    if found:
        Console().print(robots_table(found))
    else:
        print("no robot is registered")


@app.command()
def stop(
    robot: Annotated[str, typer.Argument(metavar="[ROBOT]", help="id of the robot")] = "",
    all_robots: Annotated[bool, typer.Option("--all", help="stop all robots")] = False,
    namespace: Namespace = "",
    timeout: Timeout = 5.0,
) -> None:
    """Stop a robot, or all: motion halts, its plans end, and it stays stopped until it is rearmed.

    This goes through the planner. Every robot also has a service ~/stop of its own, which works
    without one. Neither replaces emergency-stop hardware.
    """
    if bool(robot) == all_robots:
        raise typer.BadParameter("give the id of one robot, or --all", param_hint="ROBOT")
    from timely_llm.ros.client import PlannerClient

    with PlannerClient(namespace) as client:
        stopped = client.stop(robot, timeout)
    print(f"stopped: {', '.join(stopped) or 'there is no robot'}")


@app.command()
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
        Path | None, typer.Option(exists=True, dir_okay=False, help="script of instructions")
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
) -> None:
    """Fly a fleet of simulated robots: the planner and each robot in a process of its own.

    Plays a script of instructions, then the same under vLLM's own scheduling, and compares.
    """
    from rich.console import Console

    from timely_llm.demo import DemoOptions, run_demo, with_seed
    from timely_llm.fleet_file import load_fleet
    from timely_llm.processes import Interrupt
    from timely_llm.script_file import load_script

    chosen = load_fleet(fleet or share("config", "fleets", "demo.yaml"))
    options = DemoOptions(
        fleet=chosen if seed is None else with_seed(chosen, seed),
        script=load_script(script or share("config", "scripts", "demo.yaml"), chosen.ids),
        policy=policy,
        pace=pace,
        planner=tuple(_parameters(param or [], model=model, engine=engine).items()),
        baseline=baseline,
        json_file=json_file,
        log_folder=logs,
    )
    _check_names(policy, pace)
    if json_file is not None and not os.access(json_file.absolute().parent, os.W_OK):
        raise typer.BadParameter(f"cannot write {json_file}", param_hint="--json")
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=LOG_WIDTH)
    with Interrupt() as interrupt:
        raise typer.Exit(run_demo(options, console, interrupt))


app.command()(bench)
app.command("sim-tello")(sim_tello)
app.command()(profile)


def _parameters(items: Iterable[str], **given: Any) -> dict[str, Any]:
    """Parameters from NAME:=VALUE texts, values as in YAML (a JSON object stays a text), and from
    those ``given`` that are not empty."""
    import yaml

    parameters = {name: value for name, value in given.items() if value}
    for item in items:
        name, sign, text = item.partition(":=")
        if not sign:
            raise typer.BadParameter(f"{item!r}: must be NAME:=VALUE", param_hint="--param")
        value = yaml.safe_load(text)
        parameters[name] = text if value is None or isinstance(value, dict) else value
    return parameters


def _check_names(policy: str, pace: str) -> None:
    """Refuse an unknown policy or pace before any process is started."""
    from timely_llm import latency, policies

    try:
        policies.get(policy)
    except policies.UnknownPolicy as error:
        raise typer.BadParameter(str(error), param_hint="--policy") from error
    known = ("none", *latency.PRESETS)
    if pace not in known:
        raise typer.BadParameter(
            f"{pace!r} is unknown (known: {', '.join(known)})", param_hint="--pace"
        )
