"""How a demo is shown while it runs: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.live import Live

from timely_llm.cli.script_file import Instruction
from timely_llm.cli.tables import live_table
from timely_llm.live.fleet_state import FleetState
from timely_llm.protocols.messages import ErrorCode, PlanEvent, PlanEventType
from timely_llm.validation.outgoing import visible


class Display:
    """Shows a run as it goes; times in s since the script began. This one shows nothing."""

    def sent(self, item: Instruction, now: float) -> None:
        """An instruction was sent."""

    def event(self, event: PlanEvent, now: float) -> None:
        """The planner said what happened to a plan."""

    def tick(self, now: float) -> None:
        """Time went on."""


class LineDisplay(Display):
    """One line for each thing that happens: for logs."""

    def __init__(self, console: Console, title: str) -> None:
        self.console = console
        self._print(title)

    def sent(self, item: Instruction, now: float) -> None:
        goal = item.goal
        urgency = goal.urgency.name.lower()
        self._print(f"{now:7.2f} s  {goal.robot_id}  {urgency} goal: {goal.instruction}")

    def event(self, event: PlanEvent, now: float) -> None:
        text = ""
        if event.type is PlanEventType.SEGMENT:
            text = f"segment {event.segment}: {event.text}"
        elif event.result and event.type in (PlanEventType.ENDED, PlanEventType.REFUSED):
            result, code = event.result, event.result.error_code
            name = "succeeded" if code is ErrorCode.NONE else f"{code.name}: {result.error_msg}"
            text = f"{name}; response {result.response_time:.2f} s"
        elif event.type in (
            PlanEventType.PREEMPTED,
            PlanEventType.EVICTED,
            PlanEventType.REPLANNED,
        ):
            text = event.type.name.lower()
        if text:
            self._print(f"{now:7.2f} s  {event.robot_id}  {text}")

    def _print(self, text: str) -> None:
        self.console.print(
            visible(text), highlight=False, markup=False, emoji=False, soft_wrap=True
        )


class TableDisplay(Display):
    """A table that follows the fleet: for terminals."""

    PERIOD = 0.15  # s between two pictures

    def __init__(self, live: Live, fleet: FleetState, robots: Sequence[str], title: str) -> None:
        self.live, self.fleet, self.robots, self.title = live, fleet, robots, title
        self._shown = -1.0

    def tick(self, now: float) -> None:
        if now >= self._shown + self.PERIOD:
            self._shown = now
            title, width = f"{now:5.1f} s, {self.title}", self.live.console.width
            table = live_table(self.fleet, self.robots, now, title, width)
            self.live.update(table, refresh=True)


@contextlib.contextmanager
def open_display(
    console: Console, fleet: FleetState, robots: Sequence[str], title: str
) -> Iterator[Display]:
    """A table on a terminal, lines elsewhere."""
    if not console.is_terminal:
        yield LineDisplay(console, title)
        return
    with Live(console=console, auto_refresh=False) as live:
        yield TableDisplay(live, fleet, robots, title)
