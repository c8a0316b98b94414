"""The state of a fleet between threads: one follows the messages, others look at it."""

from __future__ import annotations

import threading
import time
from typing import Any

from timely_llm.live.fleet_state import FleetState
from timely_llm.live.view import detail, view
from timely_llm.protocols.messages import Execution, PlanEvent, PlannerStatus, RobotInfo


class SharedFleet:
    """A ``FleetState`` behind a lock, on the monotonic clock. From any thread."""

    def __init__(self) -> None:
        self.state = FleetState()
        self.changed = threading.Condition()
        self.failure: Exception | None = None  # why it is not followed any more

    def status(self, status: PlannerStatus) -> None:
        """The planner's heartbeat."""
        with self.changed:
            self.state.follow_status(status, time.monotonic())
            self.changed.notify_all()

    def robots(self, robots: tuple[RobotInfo, ...]) -> None:
        """The registered robots."""
        with self.changed:
            self.state.follow_robots(robots)
            self.changed.notify_all()

    def event(self, event: PlanEvent) -> None:
        """A change of a plan."""
        with self.changed:
            self.state.follow_event(event, time.monotonic())

    def execution(self, robot_id: str, report: Execution) -> None:
        """A robot's report."""
        with self.changed:
            self.state.follow_execution(robot_id, report, time.monotonic())

    def fail(self, error: Exception) -> None:
        """Whoever looks from now on gets ``error`` raised."""
        with self.changed:
            self.failure = error
            self.changed.notify_all()

    def view(self) -> dict[str, Any]:
        """The picture of this moment (``live/view.py``)."""
        with self.changed:
            self._check()
            return view(self.state, time.monotonic())

    def detail(self, plan_id: str) -> dict[str, Any] | None:
        """All of one plan, None where it is not known any more."""
        with self.changed:
            self._check()
            return detail(self.state, plan_id, time.monotonic())

    def wait_whole(self, timeout: float) -> bool:
        """Wait, at most ``timeout`` s, until the planner and all of its robots are known; whether
        they are."""

        def whole() -> bool:
            self._check()
            status = self.state.status
            return status is not None and len(self.state.robots) >= status.robots

        with self.changed:
            return self.changed.wait_for(whole, timeout)

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure
