"""A running fleet followed over ROS, in a separate thread: for ``timely-llm top``."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from timely_llm.live.shared_fleet import SharedFleet
from timely_llm.protocols.messages import Execution, RobotInfo
from timely_llm.ros.client import PlannerClient, PlannerError
from timely_llm.ros.robot_link import MOST_FOLLOWED, check_namespace

Answer = Callable[[str, bool], object]  # words, and whether it was done


class FleetFeed(threading.Thread):
    """Follows the planner under ``namespace`` and all its robots from ``start`` to ``close``.

    Every way to look at it raises what ended the thread, if anything did.
    """

    def __init__(self, namespace: str = "") -> None:
        super().__init__(name="fleet", daemon=True)
        self._namespace = namespace
        self.topic = "/".join(("", *filter(None, namespace.split("/")), "planner_status"))
        self._fleet = SharedFleet()
        self._stops: queue.SimpleQueue[tuple[str, Answer]] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._robot_in: dict[str, str] = {}  # robot id by namespace
        self._watched: set[str] = set()

    def close(self) -> None:
        """Leave the ROS graph; from any other thread."""
        self._closing.set()
        self.join()

    def view(self) -> dict[str, Any]:
        """The picture of this moment (``live/view.py``)."""
        return self._fleet.view()

    def detail(self, plan_id: str) -> dict[str, Any] | None:
        """All of one plan, None where it is not known any more."""
        return self._fleet.detail(plan_id)

    def wait_whole(self, timeout: float) -> bool:
        """Wait, at most ``timeout`` s, until the planner and all of its robots are known; whether
        they are."""
        return self._fleet.wait_whole(timeout)

    def stop_robots(self, robot_id: str, answer: Answer) -> None:
        """Stop a robot, or all with an empty id. Returns at once; ``answer`` is called later, in
        the feed's thread."""
        self._stops.put((robot_id, answer))

    def run(self) -> None:
        try:
            with PlannerClient(self._namespace, "timely_llm_top") as client:
                client.watch_status(self._fleet.status)
                client.watch_events(self._fleet.event)
                client.watch_robots(self._robots)
                while not self._closing.is_set():
                    client.spin()
                    self._watch_robots(client)
                    self._stop_robots(client)
        except Exception as error:
            self._fleet.fail(error)

    # In the feed's thread.

    def _robots(self, robots: tuple[RobotInfo, ...]) -> None:
        self._fleet.robots(robots)
        self._robot_in = {robot.robot_namespace: robot.robot_id for robot in robots}

    def _execution(self, namespace: str, report: Execution) -> None:
        robot_id = self._robot_in.get(namespace)
        if robot_id is not None:
            self._fleet.execution(robot_id, report)

    def _watch_robots(self, client: PlannerClient) -> None:
        for name in self._robot_in.keys() - self._watched:
            if len(self._watched) >= MOST_FOLLOWED:
                return
            self._watched.add(name)
            with contextlib.suppress(ValueError):  # what names no topics reports nothing
                check_namespace(name)
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
