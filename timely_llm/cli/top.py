"""``timely-llm top``: the running fleet on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from timely_llm.cli.console import say
from timely_llm.cli.options import Namespace, Timeout

if TYPE_CHECKING:
    from timely_llm.ros.fleet_feed import FleetFeed


def top(
    namespace: Namespace = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="print the picture once, as JSON, and end")
    ] = False,
    timeout: Timeout = 10.0,
) -> None:
    """Show the running fleet: robots, plans as they are written and flown, goals, engine, results.

    Keys: Enter the details of a plan, s stop the robot, a stop all robots, q quit. Stopping goes
    through the planner; it does not replace emergency-stop hardware.
    """
    if not as_json and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise typer.BadParameter("this is no terminal: give --json", param_hint="top")
    from timely_llm.ros.fleet_feed import FleetFeed

    feed = FleetFeed(namespace)
    feed.start()
    try:
        if as_json:
            _print_json(feed, timeout)
        else:
            from timely_llm.live.terminal import TopApp

            app = TopApp(feed, namespace)
            app.run()
            if app.failure is not None:
                raise app.failure
    finally:
        feed.close()


def _print_json(feed: FleetFeed, timeout: float) -> None:
    from timely_llm.ros.client import no_planner
    from timely_llm.validation.outgoing import json_text

    if not feed.wait_whole(timeout):
        raise no_planner(feed.topic, timeout)
    say(json_text(feed.view(), indent=2))
