"""When a Tello is kept in the air, and when it comes down. No network here: it asks its ``Flight``.

Kept in the air only while the planner's heartbeat arrives: without it nothing is said, and whatever
else fails, the drone lands by itself after 15 s of silence.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from robot_adapters.adapter import Notice
from robot_adapters.tello.flight import Flight, Job

KEEPALIVE = "rc 0 0 0 0"  # the only command without an answer; it moves nothing
TRY_AGAIN = 3.0  # s, after a landing that failed


class Landing:
    """``values`` are the adapter's parameters; all times s on the robot's clock."""

    def __init__(self, flight: Flight, values: Mapping[str, Any]) -> None:
        self._flight, self._values = flight, values
        self._idle_since = 0.0
        self._held_since: float | None = None
        self._stopped_since: float | None = None
        self._plan_over = False
        self._lost = False  # the planner
        self._kept = 0.0  # when it was last kept in the air
        self._job: Job | None = None
        self._not_before = 0.0

    @property
    def holding(self) -> bool:
        """There is no planner."""
        return self._held_since is not None

    @property
    def landing(self) -> bool:
        """A landing is in progress."""
        return self._job is not None and not self._job.done.is_set()

    def busy(self, now: float) -> None:
        """A call begins."""
        self._plan_over = False
        self._kept = now

    def idle(self, now: float) -> None:
        """A call has ended or was given up. A hold and a stop count from when they began: stopping
        again and again does not keep it in the air."""
        self._idle_since = now

    def hold(self, now: float) -> None:
        """There is no planner: nothing keeps the drone in the air, and soon it lands."""
        self._held_since = now
        self._silence(True)

    def resume(self, now: float) -> None:
        """There is a planner again."""
        self._held_since, self._idle_since = None, now
        self._silence(False)

    def notice(self, notice: Notice, now: float) -> None:
        """What the executor says besides calls."""
        match notice:
            case Notice.STOPPED:
                self._stopped_since = now if self._stopped_since is None else self._stopped_since
            case Notice.REARMED:
                self._stopped_since, self._idle_since = None, now
            case Notice.PLAN_OVER:
                self._plan_over, self._idle_since = True, now
            case Notice.PLANNER_LOST:
                self._silence(True)

    def look(self, now: float, busy: bool) -> None:
        """Land where it is due, keep it in the air where it is not."""
        if not self._flight.flying:
            return
        due = self._due(busy)
        if due is not None and now >= max(due, self._not_before):
            if not self.landing:
                self._job = self._flight.submit("landing", self._flight.land)
                self._not_before = now + TRY_AGAIN
        elif not self._lost and now >= self._kept + self._values["keepalive"]:
            self._keep(now)

    def _keep(self, now: float) -> None:
        """Not while a command is being carried out: the two would get in each other's way."""
        if not self._flight.link.asking and not self.landing:
            self._kept = now
            with contextlib.suppress(OSError):
                self._flight.link.send(KEEPALIVE)

    def _due(self, busy: bool) -> float | None:
        """When it must land at the latest; None: not as things are."""
        if busy:
            return None
        times = []
        if self._held_since is not None:
            times.append(self._held_since + self._values["hover_time"])
        if self._stopped_since is not None and self._values["land_after_stop"] >= 0:
            times.append(self._stopped_since + self._values["land_after_stop"])
        if self._stopped_since is None and self._values["land_idle"] > 0:
            times.append(self._idle_since + self._values["land_idle"])
        if self._plan_over and self._values["land_after_plan"] and self._stopped_since is None:
            times.append(self._idle_since)
        if not self._flight.connected or self._low():
            times.append(self._idle_since)
        return min(times, default=None)

    def _low(self) -> bool:
        return bool(self._flight.link.state().get("bat", 100) < self._values["min_battery"])

    def _silence(self, silent: bool) -> None:
        self._lost = self._flight.silent = silent

    def words(self) -> str:
        """For people."""
        if self._flight.trouble:
            return self._flight.trouble
        if self.landing:
            return "lands"
        where = "in the air" if self._flight.flying else "on the ground"
        if self._stopped_since is not None:
            return f"stopped, {where}"
        return f"without planner, {where}" if self.holding else where
