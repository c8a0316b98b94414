"""A running fleet followed over ROS, in a thread of its own: for ``timely-llm top``."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from timely_llm.live.fleet_state import FleetState
from timely_llm.live.view import detail, view
from timely_llm.protocols.messages import Execution, PlanEvent, PlannerStatus, RobotInfo
from timely_llm.ros.client import PlannerClient, PlannerError

Answer = Callable[[str, bool], object]  # words, and whether it was done


class FleetFeed(threading.Thread):
    """Follows the planner under ``namespace`` and all its robots from ``start`` to ``close``.

    ``view`` and ``detail`` raise what ended the thread, if anything did.
    """

    def __init__(self, namespace: str = "") -> None:
        super().__init__(name="fleet", daemon=True)
        self._namespace = namespace
        self.topic = "/".join(("", *filter(None, namespace.split("/")), "planner_status"))
        self._fleet, self._lock = FleetState(), threading.Lock()
        self._heard = threading.Condition(self._lock)
        self._stops: queue.SimpleQueue[tuple[str, Answer]] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._error: Exception | None = None
        self._robot_in: dict[str, str] = {}  # robot id by namespace
        self._watched: set[str] = set()

    def close(self) -> None:
        """Leave the ROS graph; from any other thread."""
        self._closing.set()
        self.join()

    def view(self) -> dict[str, Any]:
        """The picture of this moment (``live/view.py``)."""
        with self._lock:
            self._check()
            return view(self._fleet, time.monotonic())

    def detail(self, plan_id: str) -> dict[str, Any] | None:
        """All of one plan, None where it is not known any more."""
        with self._lock:
            self._check()
            return detail(self._fleet, plan_id, time.monotonic())

    def stop_robots(self, robot_id: str, answer: Answer) -> None:
        """Stop a robot, or all with an empty id. Returns at once; ``answer`` is called later, in
        the feed's thread."""
        self._stops.put((robot_id, answer))

    def wait_whole(self, timeout: float) -> bool:
        """Wait until the planner and all of its robots are known; whether they are."""

        def whole() -> bool:
            status = self._fleet.status
            known = status is not None and len(self._fleet.robots) >= status.robots
            return known or self._error is not None

        with self._heard:
            found = self._heard.wait_for(whole, timeout)
            self._check()
            return found

    def run(self) -> None:
        try:
            with PlannerClient(self._namespace, "timely_llm_top") as client:
                client.watch_status(self._status)
                client.watch_events(self._event)
                client.watch_robots(self._robots)
                while not self._closing.is_set():
                    client.spin()
                    self._watch_robots(client)
                    self._stop_robots(client)
        except Exception as error:
            with self._heard:
                self._error = error
                self._heard.notify_all()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    # In the feed's thread.

    def _status(self, status: PlannerStatus) -> None:
        with self._heard:
            self._fleet.follow_status(status, time.monotonic())
            self._heard.notify_all()

    def _event(self, event: PlanEvent) -> None:
        with self._lock:
            self._fleet.follow_event(event, time.monotonic())

    def _robots(self, robots: tuple[RobotInfo, ...]) -> None:
        with self._heard:
            self._fleet.follow_robots(robots)
            self._heard.notify_all()
        self._robot_in = {robot.robot_namespace: robot.robot_id for robot in robots}

    def _execution(self, namespace: str, report: Execution) -> None:
        robot_id = self._robot_in.get(namespace)
        if robot_id is not None:
            with self._lock:
                self._fleet.follow_execution(robot_id, report, time.monotonic())

    def _watch_robots(self, client: PlannerClient) -> None:
        for name in self._robot_in.keys() - self._watched:
            self._watched.add(name)
            client.watch_execution(name, partial(self._execution, name))

    def _stop_robots(self, client: PlannerClient) -> None:
        while True:
            try:
                robot_id, answer = self._stops.get_nowait()
            except queue.Empty:
                return
            try:
                stopped = client.stop(robot_id)
            except PlannerError as error:
                answer(str(error), False)
            else:
                answer(f"stopped: {', '.join(stopped) or 'there is no robot'}", True)
