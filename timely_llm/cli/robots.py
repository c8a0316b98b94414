"""``timely-llm robots``: who is registered with a planner that runs elsewhere."""

from __future__ import annotations

from timely_llm.cli.console import say
from timely_llm.cli.options import Namespace, Timeout


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
        say("no robot is registered")
