"""A stand-in for the planner: it registers whoever asks, sends what a test tells it to send, and
keeps every report. It knows nothing of plans."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

import rclpy
from nodes import LATCHED, LIMIT
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger

from timely_llm.msg import Execution, PlannerStatus, RobotList, Segment
from timely_llm.protocols import messages as values
from timely_llm.protocols.messages import ErrorCode, ExecutionState, SegmentCommand
from timely_llm.ros.conversions import (
    from_ros,
    instance_from_ros,
    instance_to_ros,
    robots_to_ros,
    to_ros,
)
from timely_llm.srv import Probe, RegisterRobot, UnregisterRobot

QOS = QoSProfile(depth=1000)
STATUS_PERIOD = 0.1  # s
FAST = {"robot_id": "r1", "heartbeat_period": 0.05, "planner_timeout": 1.0}
"""Parameters of a robot node that has no time to lose."""


class FakePlanner:
    """Plays the planner in this process. ``refusal`` (code, words) is its answer to
    registrations, unless it is None."""

    def __init__(self, refusal: tuple[ErrorCode, str] | None = None) -> None:
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node("fake_planner", context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self.instance = secrets.token_hex(16)
        self.refusal = refusal
        self.session = 0
        self.requests: list[Any] = []
        self.unregistered: list[Any] = []
        self.probes: list[Any] = []
        self.reports: list[values.Execution] = []
        self._publishers: dict[str, Any] = {}
        self.node.create_service(RegisterRobot, "register_robot", self._register)
        self.node.create_service(UnregisterRobot, "unregister_robot", self._unregister)
        self.node.create_service(Probe, "probe", self._answer)
        status = self.node.create_publisher(PlannerStatus, "planner_status", 10)
        message = PlannerStatus(instance=instance_to_ros(self.instance))
        self._robots = self.node.create_publisher(RobotList, "robots", LATCHED)
        self._timer = self.node.create_timer(STATUS_PERIOD, lambda: status.publish(message))

    def die(self) -> None:
        """From one moment to the next, as far as the robot can tell."""
        if self.context.ok():
            self._executor.shutdown()
            self.node.destroy_node()
            self.context.shutdown()

    def fall_silent(self) -> None:
        """Hang: it is there, but says nothing."""
        self._timer.cancel()

    # Waiting.

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Spin until ``condition()`` is true and return it."""
        limit = time.monotonic() + LIMIT
        while time.monotonic() < limit:
            if found := condition():
                return found
            self._executor.spin_once(timeout_sec=0.05)
        raise AssertionError(f"waited {LIMIT} s for {what}; reports: {self.told()}")

    def report(self, state: ExecutionState, start: int = 0, **fields: Any) -> values.Execution:
        """The first report from ``start`` on with this state and these fields; waits for it."""

        def found() -> values.Execution | None:
            for report in self.reports[start:]:
                if report.state is state and all(
                    getattr(report, name) == value for name, value in fields.items()
                ):
                    return report
            return None

        return self.until(found, f"{state.name} {fields}")

    def heartbeats(self, count: int) -> None:
        """Wait for so many more reports of whatever kind."""
        start = len(self.reports)
        self.until(lambda: len(self.reports) >= start + count, f"{count} reports")

    def registered(self, session: int | None = None) -> int:
        """Wait until the robot speaks in the session (default: the last one)."""
        self.until(
            lambda: any(r.session == (session or self.session or -1) for r in self.reports),
            "a report of the session",
        )
        return self.session

    def told(self) -> list[tuple]:
        """All reports but heartbeats, as (state, call, error)."""
        return [
            (r.state.name, r.call.name, r.error)
            for r in self.reports
            if r.state not in (ExecutionState.RUNNING, ExecutionState.IDLE)
        ]

    def calls(self, state: ExecutionState = ExecutionState.STARTED) -> list[str]:
        """Calls with their evaluated arguments, in order."""
        return [
            f"{r.call.name}({','.join(r.call.evaluated)})" for r in self.reports if r.state is state
        ]

    # Doing.

    def send(
        self, plan_id: str, index: int, text: str, last: bool = False,
        command: SegmentCommand = SegmentCommand.RUN, session: int | None = None,
        namespace: str = "/r1",
    ) -> None:  # fmt: skip
        session = self.session if session is None else session
        segment = values.Segment(session, plan_id, index, command, text, (), last)
        self._publishers[namespace].publish(to_ros(segment))

    def show(self, *robots: values.RobotInfo) -> None:
        """Publish the list of the robots that the planner knows."""
        self._robots.publish(robots_to_ros(robots, self.instance, 0.0))

    def trigger(self, name: str) -> Trigger.Response:
        client = self.node.create_client(Trigger, name)
        self.until(client.service_is_ready, name)
        future = client.call_async(Trigger.Request())
        return self.until(lambda: future.done() and future.result(), f"answer of {name}")

    def _register(self, request: Any, response: Any) -> Any:
        self.requests.append(request)
        response.planner_instance = instance_to_ros(self.instance)
        if self.refusal is not None:
            response.error_code, response.error_msg = int(self.refusal[0]), self.refusal[1]
            return response
        self.session += 1
        response.session = self.session
        self.listen(request.robot_namespace)
        return response

    def listen(self, namespace: str) -> None:
        """Open the robot's topics."""
        if namespace not in self._publishers:
            self._publishers[namespace] = self.node.create_publisher(
                Segment, f"{namespace}/segments", QOS
            )
            self.node.create_subscription(
                Execution,
                f"{namespace}/execution",
                lambda message: self.reports.append(from_ros(message)),
                QOS,
            )

    def _answer(self, request: Any, response: Any) -> Any:
        self.probes.append(request)
        response.answer = "a banana"
        if request.question == "what now":
            response.error_code, response.error_msg = int(ErrorCode.TIMEOUT), "too slow"
        return response

    def _unregister(self, request: Any, response: Any) -> Any:
        self.unregistered.append((request.robot_id, request.session))
        return response


def instance_of(request: Any) -> str:
    """Of the adapter that sent this registration."""
    return instance_from_ros(request.instance)
