"""``timely-llm stop``: halts robots through a planner that runs elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from timely_llm.cli.console import say
from timely_llm.cli.options import Namespace, Timeout


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
    say(f"stopped: {', '.join(stopped) or 'there is no robot'}")
