"""A client of the planner: sends goals, follows them, lists and stops robots. Plain values outside.

Everything happens in the thread that calls ``spin``, which also runs the callbacks; so a program
with its own loop stays in charge, of Ctrl-C too.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.client import Client
from rclpy.qos import QoSProfile
from rclpy.task import Future

from timely_llm import msg, srv
from timely_llm.action import Plan
from timely_llm.protocols import messages as values
from timely_llm.ros.conversions import (
    event_from_ros,
    from_ros,
    instance_from_ros,
    to_ros,
    uuid_to_ros,
)
from timely_llm.ros.process import TICK, GuestNode
from timely_llm.ros.qos import BURST, LATCHED, RELIABLE, STATUS
from timely_llm.ros.robot_link import EXECUTION, robot_topic

MEETING = 2.0  # s, for the planner to see this client
ANSWER = 0.5  # s without an answer, after which a request is sent again
SILENCE = 3.0  # s without a heartbeat, after which the planner is taken for dead
PAUSE = 1.0  # s; longer ones between two looks are the program's own, and no silence


class PlannerError(RuntimeError):
    """The planner went away, or refused a request; the text says which."""


class NoPlanner(PlannerError):
    """No planner answers; the text says where it was sought."""


def no_planner(where: str, waited: float) -> NoPlanner:
    """The error that says where a planner was sought, for how long (s), and how to start one."""
    domain = os.environ.get("ROS_DOMAIN_ID", "0")
    return NoPlanner(
        f"no planner answers on {where} in ROS domain {domain} (waited {waited:g} s): start one "
        "with `timely-llm serve`, or give its --namespace, or set ROS_DOMAIN_ID"
    )


class PlanRequest:
    """A goal on its way. Once it has ended it has a ``result``, or an ``error`` where its planner
    is gone; what the robot did of it is then unknown. ``planners`` are the instances that may have
    it, ``sent`` is when, in s that the client listened."""

    def __init__(
        self, goal: values.PlanGoal, planners: frozenset[str] = frozenset(), sent: float = 0.0
    ) -> None:
        self.goal = goal
        self.plan_id = uuid.uuid4().hex
        self.planners, self.sent = planners, sent
        self.result: values.PlanResult | None = None
        self.error: PlannerError | None = None
        self.cancel_requested = False
        self._handle: Any = None

    @property
    def ended(self) -> bool:
        """Whether its result is here, or its planner is gone."""
        return self.result is not None or self.error is not None

    def cancel(self) -> None:
        """Ask the planner to stop the plan; its result still comes."""
        self.cancel_requested = True
        if self._handle is not None and not self.ended:
            self._handle.cancel_goal_async()

    def _accepted(self, future: Future[Any]) -> None:
        handle: Any = future.result()
        if not handle.accepted:
            code = values.ErrorCode.PLANNER_INACTIVE
            self.result = values.PlanResult(self.plan_id, code, "the planner refused the goal")
            return
        self._handle = handle
        handle.get_result_async().add_done_callback(self._done)
        if self.cancel_requested:
            handle.cancel_goal_async()

    def _done(self, future: Future[Any]) -> None:
        self.result = result_of(self.plan_id, future.result())


def result_of(plan_id: str, response: Any) -> values.PlanResult:
    """The goal's result out of the action's response. The planner's response has an empty one,
    whose code means nothing, where it has none: asked for too late, or a goal of another planner.
    """
    try:
        result: values.PlanResult = from_ros(response.result)
    except ValueError as error:
        words = f"the goal's result cannot be read: {error}"
        return values.PlanResult(plan_id, values.ErrorCode.ENGINE_FAILED, words)
    good = result.error_code is values.ErrorCode.NONE
    if good and response.status != GoalStatus.STATUS_SUCCEEDED:
        words = "the planner has no result of this goal, or no longer"
        return values.PlanResult(plan_id, values.ErrorCode.TIMEOUT, words)
    return result


class _PlanClient(ActionClient[Any, Any, Any]):
    """rclpy's makes two futures for each goal and lets go of one: it would keep the other for ever,
    and look at all of them at every message. It keeps them for the executor to call back later;
    without, they call back at once."""

    def add_future(self, future: Future[Any]) -> None:
        """Keep none."""

    def remove_future(self, future: Future[Any]) -> None:
        """None is kept."""


class PlannerClient(GuestNode):
    """The planner under ``namespace``; ``status`` is its last heartbeat. Use it in a ``with``; one
    at a time in a process. While it spins, a goal whose planner has been silent for ``SILENCE``
    ends with an error, whoever else speaks meanwhile."""

    def __init__(self, namespace: str = "", name: str = "timely_llm_client") -> None:
        super().__init__(name, namespace)
        self._plan = _PlanClient(
            self.node,
            Plan,
            "plan",
            goal_service_qos_profile=BURST,
            result_service_qos_profile=BURST,
            cancel_service_qos_profile=BURST,
            feedback_sub_qos_profile=BURST,
        )
        self.status: values.PlannerStatus | None = None
        self._open: list[PlanRequest] = []
        self._heard: dict[str, float] = {}  # of each living planner, in s that we listened
        self._listened, self._looked = 0.0, time.monotonic()
        self._subscribe(msg.PlannerStatus, "planner_status", 10, from_ros, self._on_status)

    def close(self) -> None:
        """Leave the ROS graph. An action client that is not destroyed keeps the node there."""
        with contextlib.suppress(Exception):
            self._plan.destroy()
        super().close()

    @property
    def planners(self) -> tuple[str, ...]:
        """Instances of the planners that are alive; more than one is one too many."""
        return tuple(sorted(self._heard))

    # Waiting.

    def wait(
        self,
        done: Callable[[], bool],
        timeout: float | None = None,
        check: Callable[[], None] | None = None,
    ) -> bool:
        """Run callbacks until ``done`` or for ``timeout`` s; whether it is done. ``check`` is
        called again and again and may raise."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not done():
            if check is not None:
                check()
            if deadline is not None and time.monotonic() >= deadline:
                return False
            self.spin()
        return True

    def spin(self, seconds: float = TICK) -> None:
        """Run callbacks for ``seconds``, and end the goals whose planner is gone."""
        super().spin(seconds)
        now = time.monotonic()
        self._listened += min(now - self._looked, PAUSE)
        self._looked = now
        heard = {name: at for name, at in self._heard.items() if at + SILENCE > self._listened}
        self._heard = heard
        self._open = [request for request in self._open if not request.ended]
        for request in self._open:
            request.planners = request.planners or frozenset(heard)
            if request.sent + SILENCE <= self._listened and request.planners.isdisjoint(heard):
                request.error = self._loss(request)

    def _loss(self, request: PlanRequest) -> PlannerError:
        """What is said of a goal whose planner is gone."""
        names = " or ".join(name[:8] for name in sorted(request.planners)) or "sought"
        words = f"the planner {names} ({self.resolve('plan')}) is silent for {SILENCE:g} s: "
        others = " and ".join(name[:8] for name in sorted(self._heard))
        return PlannerError(words + (f"there is {others} now" if others else "is it dead?"))

    def wait_for_planner(self, timeout: float, check: Callable[[], None] | None = None) -> None:
        """Wait until the planner answers, or raise ``NoPlanner`` that says where it was sought
        and how to start one."""
        if not self.wait(self._plan.server_is_ready, timeout, check):
            raise no_planner(self.resolve("plan"), timeout)
        self._meet(check)

    def _meet(self, check: Callable[[], None] | None) -> None:
        """Wait until the planner sees this client, too; until then a goal or its acceptance may be
        lost. A node's endpoints are announced in order, so a planner that answers on the newest
        one knows all of them. A planner that is busy is waited for only for ``MEETING``."""
        with contextlib.suppress(PlannerError):
            request = srv.ListRobots.Request()
            response = self._call(srv.ListRobots, "list_robots", request, MEETING, check)
            self._heard[instance_from_ros(response.instance)] = self._listened

    # Goals.

    def send(
        self,
        goal: values.PlanGoal,
        on_feedback: Callable[[values.PlanFeedback], None] | None = None,
    ) -> PlanRequest:
        """Send a goal; its result, or the error, appears in the request while callbacks run."""
        request = PlanRequest(goal, frozenset(self._heard), self._listened)
        self._open.append(request)
        future = self._plan.send_goal_async(
            to_ros(goal),
            feedback_callback=lambda m: on_feedback(from_ros(m.feedback)) if on_feedback else None,
            goal_uuid=uuid_to_ros(request.plan_id),
        )
        future.add_done_callback(request._accepted)
        return request

    def follow(self, request: PlanRequest, canceled: Callable[[], bool]) -> values.PlanResult:
        """Wait for the goal's result; cancel the goal as soon as ``canceled`` says so.
        ``PlannerError`` where the planner falls silent meanwhile."""

        def check() -> None:
            if canceled() and not request.cancel_requested:
                request.cancel()

        self.wait(lambda: request.ended, check=check)
        if request.error is not None:
            raise request.error
        assert request.result is not None
        return request.result

    # Robots.

    def robots(self, timeout: float = 5.0) -> tuple[values.RobotInfo, ...]:
        """All registered robots."""
        response = self._call(srv.ListRobots, "list_robots", srv.ListRobots.Request(), timeout)
        return tuple(from_ros(robot) for robot in response.robots)

    def stop(self, robot_id: str = "", timeout: float = 5.0) -> tuple[str, ...]:
        """Stop one robot, or all with an empty id; returns the ids. ``PlannerError`` with the
        planner's words where it refuses."""
        request = srv.StopRobot.Request(robot_id=robot_id)
        response = self._call(srv.StopRobot, "stop_robot", request, timeout)
        if response.error_code:
            name = values.ErrorCode(response.error_code).name
            raise PlannerError(f"{name}: {response.error_msg}")
        return tuple(response.stopped)

    def _call(
        self,
        kind: Any,
        name: str,
        request: Any,
        timeout: float,
        check: Callable[[], None] | None = None,
    ) -> Any:
        """The planner's answer. The request is sent again and again: a planner that has died counts
        as ready for a while, and what went to it, the one in its place never gets."""
        client: Client[Any, Any] = self.node.create_client(kind, name, qos_profile=BURST)
        limit = time.monotonic() + timeout
        answers: list[Any] = []
        try:
            if not self.wait(client.service_is_ready, timeout, check):
                raise no_planner(self.resolve(name), timeout)
            while (left := limit - time.monotonic()) > 0:
                client.call_async(request).add_done_callback(lambda f: answers.append(f.result()))
                if self.wait(lambda: bool(answers), min(left, ANSWER), check):
                    return answers[0]
            raise PlannerError(f"{self.resolve(name)} did not answer within {timeout:g} s")
        finally:
            self.node.destroy_client(client)

    # Topics.

    def watch_events(self, callback: Callable[[values.PlanEvent], None]) -> None:
        """Every change of every plan."""
        self._subscribe(msg.PlanEvent, "plan_events", RELIABLE, event_from_ros, callback)

    def watch_status(self, callback: Callable[[values.PlannerStatus], None]) -> None:
        """The planner's heartbeat."""
        self._subscribe(msg.PlannerStatus, "planner_status", STATUS, from_ros, callback)

    def watch_robots(self, callback: Callable[[tuple[values.RobotInfo, ...]], None]) -> None:
        """The registered robots, now and at every change."""

        def read(message: msg.RobotList) -> tuple[values.RobotInfo, ...]:
            return tuple(from_ros(robot) for robot in message.robots)

        self._subscribe(msg.RobotList, "robots", LATCHED, read, callback)

    def watch_execution(
        self, robot_namespace: str, callback: Callable[[values.Execution], None]
    ) -> None:
        """What one robot reports while it executes."""
        topic = robot_topic(f"/{robot_namespace.strip('/')}", EXECUTION)
        self._subscribe(msg.Execution, topic, RELIABLE, from_ros, callback)

    def _subscribe(
        self,
        kind: Any,
        topic: str,
        qos: QoSProfile | int,
        read: Callable[[Any], Any],
        callback: Callable[[Any], None],
    ) -> None:
        def received(message: Any) -> None:
            try:
                value = read(message)
            except ValueError as error:
                words = f"message on {topic} ignored: {error}"
                self.node.get_logger().warning(words, throttle_duration_sec=5.0)
            else:
                callback(value)

        self.node.create_subscription(kind, topic, received, qos)

    def _on_status(self, status: values.PlannerStatus) -> None:
        self._heard[status.instance] = self._listened
        self.status = status
