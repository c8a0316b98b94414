"""``timely-llm plan``: one instruction for one robot of a planner that runs elsewhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from timely_llm.cli.console import say
from timely_llm.cli.exit_status import EXIT_FAILED, EXIT_INTERRUPTED
from timely_llm.cli.options import Namespace, Timeout
from timely_llm.protocols import messages, utility
from timely_llm.system.processes import Interrupt

Urgency = StrEnum("Urgency", "critical urgent normal low background")
WhenBusy = StrEnum("WhenBusy", "queue preempt reject")
OnFailure = StrEnum("OnFailure", "abort replan")


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
    from timely_llm.ros.client import PlannerClient

    goal = messages.PlanGoal(
        robot_id=robot,
        instruction=instruction,
        scene=scene,
        urgency=utility.Urgency[urgency.upper()],
        when_busy=messages.WhenBusy[when_busy.upper()],
        on_failure=messages.OnFailure[on_failure.upper()],
        max_replans=max_replans,
    )
    with Interrupt() as interrupt, PlannerClient(namespace) as client:
        client.wait_for_planner(timeout, interrupt.check)
        result = client.follow(client.send(goal, _print_feedback), lambda: interrupt.requested)
    _print_result(result)
    if result.error_code is not messages.ErrorCode.NONE:
        raise typer.Exit(EXIT_INTERRUPTED if interrupt.requested else EXIT_FAILED)


def _print_feedback(feedback: messages.PlanFeedback) -> None:
    if feedback.text:
        say(f"segment {feedback.segment}: {feedback.text}")
    elif feedback.state is messages.FeedbackState.QUEUED:
        say(f"queued: place {feedback.queue_position}")
    elif feedback.state is messages.FeedbackState.STOPPING:
        say("stopping the robot")


def _print_result(result: messages.PlanResult) -> None:
    from timely_llm.live.terminal_text import fixed, seconds

    if result.error_code is messages.ErrorCode.NONE:
        say("succeeded" + (f", returned {result.value}" if result.value else ""))
    else:
        say(f"{result.error_code.name}: {result.error_msg}")
    if not result.plan:
        return
    rows: dict[str, object] = {
        "plan": result.plan.replace("\n", "\n" + " " * 13),
        "segments": result.num_segments,
        "response": seconds(result.response_time if result.response_time >= 0 else None),
        "waiting": seconds(result.waiting_time),
        "execution": seconds(result.execution_time),
        "utility": fixed(result.utility, 2),
        "tokens": f"{result.prompt_tokens} in the prompt, {result.generated_tokens} generated",
        "plan id": result.plan_id,
    }
    if result.replans:
        rows["replans"] = result.replans
    for name, value in rows.items():
        say(f"  {name:10} {value}")
