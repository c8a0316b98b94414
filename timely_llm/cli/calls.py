"""``timely-llm plan``, ``robots`` and ``stop``: calls to a planner that runs elsewhere."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from timely_llm.cli.exit_status import EXIT_FAILED, EXIT_INTERRUPTED
from timely_llm.cli.options import Namespace, Timeout

if TYPE_CHECKING:
    from timely_llm.protocols.messages import PlanFeedback, PlanResult


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


class OnFailure(StrEnum):
    abort = "abort"
    replan = "replan"


def plan(
    robot: Annotated[str, typer.Argument(metavar="ROBOT", help="id of the robot")],
    instruction: Annotated[str, typer.Argument(metavar="INSTRUCTION", help="what it shall do")],
    scene: Annotated[str, typer.Option(help="what it sees, as the prompt shall have it")] = "",
    urgency: Annotated[Urgency, typer.Option()] = Urgency.normal,
    when_busy: Annotated[
        WhenBusy, typer.Option(help="if the robot has another plan")
    ] = WhenBusy.queue,
    on_failure: Annotated[
        OnFailure, typer.Option(help="if a skill fails: end, or plan again from what was done")
    ] = OnFailure.abort,
    max_replans: Annotated[
        int,
        typer.Option(
            min=0, help="at most, also those that a plan asks for by rp(); 0: one with replan"
        ),
    ] = 0,
    namespace: Namespace = "",
    timeout: Timeout = 5.0,
) -> None:
    """Plan and carry out one instruction on one robot; shows its segments, then the result.

    Ctrl-C cancels the goal: the robot stops, and the result still comes.
    """
    from timely_llm.protocols import messages as values
    from timely_llm.protocols import utility
    from timely_llm.ros.client import PlannerClient
    from timely_llm.system.processes import Interrupt

    goal = values.PlanGoal(
        robot_id=robot,
        instruction=instruction,
        scene=scene,
        urgency=utility.Urgency[urgency.name.upper()],
        when_busy=values.WhenBusy[when_busy.name.upper()],
        on_failure=values.OnFailure[on_failure.name.upper()],
        max_replans=max_replans,
    )
    with Interrupt() as interrupt, PlannerClient(namespace) as client:
        client.wait_for_planner(timeout, interrupt.check)
        request = client.send(goal, _print_feedback)
        client.follow(request, lambda: interrupt.requested)
    _print_result(request.result)
    if request.result.error_code is not values.ErrorCode.NONE:
        raise typer.Exit(EXIT_INTERRUPTED if interrupt.requested else EXIT_FAILED)


def _print_feedback(feedback: PlanFeedback) -> None:
    from timely_llm.protocols.messages import FeedbackState

    if feedback.text:
        print(f"segment {feedback.segment}: {feedback.text}", flush=True)
    elif feedback.state is FeedbackState.QUEUED:
        print(f"queued: place {feedback.queue_position}", flush=True)
    elif feedback.state is FeedbackState.STOPPING:
        print("stopping the robot", flush=True)


def _print_result(result: PlanResult) -> None:
    from timely_llm.cli.tables import seconds
    from timely_llm.protocols.messages import ErrorCode

    if result.error_code is ErrorCode.NONE:
        print("succeeded" + (f", returned {result.value}" if result.value else ""))
    else:
        print(f"{result.error_code.name}: {result.error_msg}")
    if not result.plan:
        return
    response = result.response_time if result.response_time >= 0 else None
    rows = {
        "plan": result.plan.replace("\n", "\n" + " " * 13),
        "segments": result.num_segments,
        "response": seconds(response),
        "waiting": seconds(result.waiting_time),
        "execution": seconds(result.execution_time),
        "utility": f"{result.utility:.2f}",
        "tokens": f"{result.prompt_tokens} in the prompt, {result.generated_tokens} generated",
        "plan id": result.plan_id,
    }
    if result.replans:
        rows["replans"] = result.replans
    for name, value in rows.items():
        print(f"  {name:10} {value}")


def robots(namespace: Namespace = "", timeout: Timeout = 5.0) -> None:
    """List the registered robots."""
    from rich.console import Console

    from timely_llm.cli.tables import robots_table
    from timely_llm.ros.client import PlannerClient

    with PlannerClient(namespace) as client:
        found = client.robots(timeout)
    if found:
        Console().print(robots_table(found))
    else:
        print("no robot is registered")


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
