"""The robot node: the ROS side of ``executor/executor.py``. One process, one robot.

Callbacks turn messages into inputs of the executor and what it returns into messages; one timer
wakes it when it asks to be woken. Nothing here decides anything about a plan.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from functools import partial
from typing import Any, NoReturn

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.client import Client
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import QoSSubscriptionMatchedInfo, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import Trigger

from robot_adapters.adapter import OnNode, make_adapter
from robot_adapters.executor.executor import Question, RobotExecutor
from robot_adapters.node_parameters import asks_model, declare_all, names, skill_set, timing
from robot_adapters.registration import Grant, Registration
from timely_llm.msg import Execution, PlannerStatus, RobotList, Segment
from timely_llm.protocols import messages as values
from timely_llm.ros.conversions import (
    from_ros,
    instance_from_ros,
    instance_to_ros,
    to_ros,
    uuid_to_ros,
)
from timely_llm.ros.guard import GuardedExecutor
from timely_llm.ros.process import new_instance, run_node
from timely_llm.ros.qos import BURST, LATCHED, RELIABLE, STATUS
from timely_llm.ros.steady_time import SteadyTime
from timely_llm.srv import Probe, RegisterRobot, UnregisterRobot
from timely_llm.validation.outgoing import visible

CLOSE_TIMEOUT = 2.0  # s, for the robot to halt and let go when the node ends
MOST_UNANSWERED = 8  # requests to be registered that may still be answered
GOODBYE_TIMEOUT = 2.0  # s, for the planner to answer unregister_robot
DIAGNOSTICS_PERIOD = 1.0  # s
MOST_STRANGERS = 20  # segments of other sessions that are answered between two ticks


class RobotNode(Node):
    """``executor`` is the one that spins this node. ``done`` completes with the exit status."""

    def __init__(self, executor: GuardedExecutor, **arguments: Any) -> None:
        super().__init__("robot_adapter", **arguments)
        self.parameters, own = declare_all(self)
        self.done: Future = Future()
        self.failure: Exception | None = None
        self.robot_id, self._base = names(self.parameters, self.get_namespace())
        self._skill_text, skills = skill_set(self.parameters)
        self._spinner = executor
        ask = self._ask_model if asks_model(self.parameters) else None
        adapter = make_adapter(self.parameters["adapter"], self.robot_id, skills, **own)
        if isinstance(adapter, OnNode):
            adapter.attach(self)
        self._robot = RobotExecutor(adapter, timing(self.parameters), ask)
        self._adapter = self._robot.adapter
        self._registration = Registration(self.parameters["register_timeout"])
        self._unanswered: deque[Future] = deque()
        self._instance = new_instance()
        self._planner = ""  # instance of the session's
        self._session = 0
        self._told = ""  # the last thing the log said about the planner
        self._strangers = 0  # segments of other sessions since the last tick
        self._faults: dict[str, str] = {}  # of the adapter, that the log has told of
        self._status = 0  # of the process at its end
        self._end_by = math.inf  # s, whether the robot has halted or not
        self._left = False  # the planner has been told
        self._matched = 0  # publishers of segments, ever
        self._opened_at = 0  # of them, when the last session began
        simulated = self.get_parameter("use_sim_time").value
        self._time = SteadyTime()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._robot_clock: Clock = self.get_clock() if simulated else steady
        self._make_interfaces()
        executor.failed = self._fail

    # Setting up.

    def _make_interfaces(self) -> None:
        planner = self.parameters["planner_namespace"].strip("/")
        planner = f"/{planner}/" if planner else "/"
        own = "~" if self.get_namespace() != "/" else f"{self._base}/{self.get_name()}"
        self._executions = self.create_publisher(Execution, f"{self._base}/execution", RELIABLE)
        self._segments = self.create_subscription(
            Segment,
            f"{self._base}/segments",
            self._on_segment,
            RELIABLE,
            event_callbacks=SubscriptionEventCallbacks(matched=self._on_matched),
        )
        self.create_subscription(PlannerStatus, f"{planner}planner_status", self._on_status, STATUS)
        self.create_subscription(RobotList, f"{planner}robots", self._on_robots, LATCHED)

        def client(kind: Any, name: str) -> Client:
            return self.create_client(kind, f"{planner}{name}", qos_profile=BURST)

        self._register: Client = client(RegisterRobot, "register_robot")
        self._unregister: Client = client(UnregisterRobot, "unregister_robot")
        self._probe: Client = client(Probe, "probe")
        self._stop = self.create_service(Trigger, f"{own}/stop", self._on_stop)
        self.create_service(Trigger, f"{own}/rearm", self._on_rearm)
        if self._adapter.recovers:
            self.create_service(Trigger, f"{own}/recover", self._on_recover)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_timer(DIAGNOSTICS_PERIOD, self._publish_diagnostics, clock=self._robot_clock)
        self._timer = self.create_timer(0.001, self._on_timer, clock=self._robot_clock)

    # What comes in.

    def _now(self) -> float:
        """The robot's clock in s; simulated time that is set back goes on from where it was."""
        return self._time.at(self._robot_clock.now().nanoseconds * 1e-9)

    def _on_timer(self) -> None:
        self._strangers = 0
        self._publish(self._robot.tick(self._now()))

    def _on_segment(self, message: Segment) -> None:
        self._stop_first()
        if message.session != self._session and message.command != Segment.STOP:
            self._strangers += 1
            if self._strangers > MOST_STRANGERS:
                return
        try:
            segment = from_ros(message)
        except ValueError as error:
            self.get_logger().error(visible(f"segment ignored: {error}"), throttle_duration_sec=5.0)
            return
        self._publish(self._robot.on_segment(segment, self._now()))

    def _on_status(self, message: PlannerStatus) -> None:
        instance, now = instance_from_ros(message.instance), self._now()
        self._registration.heard(instance, now)
        self._publish(self._robot.on_planner_heartbeat(instance, now))

    def _on_robots(self, message: RobotList) -> None:
        listed = {robot.robot_id: (robot.session, robot.alive) for robot in message.robots}
        session, alive = listed.get(self.robot_id, (0, False))
        instance = instance_from_ros(message.instance)
        self._publish(self._robot.on_listed(instance, session, alive, self._now()))

    def _stop_first(self) -> None:
        """Serve who asks for a stop now. The executor takes messages in the order of their coming,
        and somebody may send segments by the thousand."""
        with self._stop.handle:
            request, header = self._stop.handle.service_take_request(Trigger.Request)
        if header is not None:
            self._stop.send_response(self._on_stop(request, Trigger.Response()), header)

    def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._publish(self._robot.on_stop(self._now()))
        self.get_logger().warning("stopped; call ~/rearm to go on")
        return self._answer(response, "stopped until ~/rearm")

    def _on_rearm(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._publish(self._robot.on_rearm(self._now()))
        return self._answer(response, "takes plans again")

    def _answer(self, response: Trigger.Response, words: str) -> Trigger.Response:
        undone = self._adapter.unconfirmed
        response.success = not undone
        response.message = f"{undone}; it is tried again until it does" if undone else words
        return response

    def _on_recover(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        reason = self._adapter.recover(self._now())
        response.success = not reason
        response.message = reason or "recovering; the diagnostics show what comes of it"
        self._publish([])
        return response

    def _on_matched(self, info: QoSSubscriptionMatchedInfo) -> None:
        self._matched = info.total_count
        self._publish([])

    # What goes out.

    def _publish(self, reports: list[values.Execution]) -> None:
        """Send the reports, look after the registration, and be woken in time for what is next."""
        stamp = self._robot_clock.now().to_msg()
        for report in reports:
            message = to_ros(report)
            message.stamp = stamp
            self._executions.publish(message)
        self._tell_faults()
        now = self._now()
        if self._robot.closed:
            self._leave(now)
            return
        wakes = [self._robot.next_wake(now)]
        if self._robot.needs_registration:
            self._keep_registering(now)
            wakes = [self._robot.next_wake(now), self._registration.next_wake()]
        elif grant := self._registration.grant:  # a later one than the session's
            self._open_session(grant, now)
        self._wake_at(min((wake for wake in wakes if wake is not None), default=now + 1.0), now)

    def _wake_at(self, when: float, now: float) -> None:
        self._timer.timer_period_ns = max(1_000, int((when - now) * 1e9) + 1)
        self._timer.reset()

    def _tell_faults(self) -> None:
        """Log what the adapter does wrong, once."""
        before, self._faults = self._faults, dict(self._adapter.faults)
        for name, words in self._faults.items():
            if before.get(name) != words:
                self.get_logger().error(visible(f"{name}: {words}"))

    def _publish_diagnostics(self) -> None:
        status = DiagnosticStatus(name=f"robot {self.robot_id}", hardware_id=self.robot_id)
        facts = {"planner": self._planner or "none"} | self._adapter.diagnostics()
        self._tell_faults()
        if self._adapter.unconfirmed:
            status.level, status.message = DiagnosticStatus.ERROR, self._adapter.unconfirmed
        elif self._robot.stopped:
            status.level, status.message = DiagnosticStatus.WARN, "stopped: call ~/rearm"
        elif self._robot.needs_registration:
            status.level, status.message = DiagnosticStatus.WARN, "no planner"
        else:
            status.level, status.message = DiagnosticStatus.OK, "registered"
        status.values = [KeyValue(key=key, value=value) for key, value in facts.items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._robot_clock.now().to_msg()
        self._diagnostics.publish(array)

    # Questions to the model.

    def _ask_model(self, question: Question) -> None:
        request = Probe.Request(
            robot_id=self.robot_id,
            session=self._session,
            plan_id=uuid_to_ros(question.plan_id),
            question=question.text,
            scene=question.scene,
            timeout=question.timeout,
        )
        future = self._probe.call_async(request)
        future.add_done_callback(lambda answered: self._on_answer(question, answered.result()))

    def _on_answer(self, question: Question, response: Probe.Response) -> None:
        good = response.error_code == values.ErrorCode.NONE
        answer, error = (response.answer, "") if good else (None, response.error_msg)
        plan_id, call = question.plan_id, question.call_number
        self._publish(self._robot.on_answer(plan_id, call, answer, error, self._now()))

    # Being known to a planner.

    def _keep_registering(self, now: float) -> None:
        if self._registration.due(now):
            if self._register.service_is_ready():
                self._send_registration(now)
            else:
                self._registration.nobody(now)
                self._tell(f"waits for a planner ({self._register.srv_name})")
        if grant := self._registration.grant:
            self._open_session(grant, now)

    def _send_registration(self, now: float) -> None:
        request = RegisterRobot.Request(
            robot_id=self.robot_id,
            kind="" if self._skill_text else self._adapter.skills.kind,
            skill_set=self._skill_text,
            robot_namespace=self._base,
            instance=instance_to_ros(self._instance),
        )
        number = self._registration.asked(now)
        future = self._register.call_async(request)
        future.add_done_callback(lambda answered: self._on_registered(number, answered.result()))
        self._unanswered.append(future)
        if len(self._unanswered) > MOST_UNANSWERED:  # rclpy keeps what a dead planner was asked
            self._register.remove_pending_request(self._unanswered.popleft())

    def _on_registered(self, number: int, response: RegisterRobot.Response) -> None:
        if self._robot.closed:
            return
        now = self._now()
        if response.error_code == values.ErrorCode.NONE:
            planner = instance_from_ros(response.planner_instance)
            self._registration.granted(number, response.session, planner, now)
        elif not self._registration.is_news(number):
            return
        elif self._registration.refused(response.error_code, now):
            words = visible(f"robot {self.robot_id!r} is refused: {response.error_msg}")
            print(f"robot_adapter: {words}", file=sys.stderr, flush=True)
            self._end(1)
            return
        else:
            self._tell(f"is not registered yet: {response.error_msg}")
        self._publish([])

    def _open_session(self, grant: Grant, now: float) -> None:
        """Speak in the new session once the planner's segments can reach this node. The publisher
        of a planner that was killed counts as matched for a while, so it must be a new one."""
        fresh = grant.planner == self._planner or self._matched > self._opened_at
        if not fresh or not self._segments.get_publisher_count():
            return
        self._registration.opened()
        self._planner, self._session = grant.planner, grant.session
        self._opened_at = self._matched
        self._tell(f"is registered with planner {grant.planner[:8]}")
        self._publish(self._robot.new_session(grant.session, now, grant.planner))

    def _tell(self, words: str) -> None:
        """Log what has changed, once."""
        if words != self._told:
            self._told = words
            self.get_logger().info(f"robot {self.robot_id!r} {words}")

    # The end.

    def finish(self) -> None:
        """Halt, unregister, complete ``done``; from any thread."""
        self._spinner.create_task(self._end)

    def _fail(self) -> None:
        """What nobody foresaw was raised in a callback: the robot is not left in mid-motion."""
        if self._robot.closed:
            self._finished(1)
        else:
            self._end(1)

    def _end(self, status: int = 0) -> None:
        now = self._now()
        reports = self._robot.shutdown(now)
        self._status, self._end_by = status, now + CLOSE_TIMEOUT
        self._publish(reports)

    def _leave(self, now: float) -> None:
        """The node ends: as soon as the robot has confirmed that it stands, say goodbye."""
        undone = self._adapter.unconfirmed
        if undone and now < self._end_by:
            self._wake_at(self._adapter.next_poll(now) or now, now)
            return
        self._timer.cancel()
        if self._left:
            return
        self._left = True
        if undone:
            self._status = 1
            self.get_logger().error(f"ends, but {undone}")
        if not self._session or not self._unregister.service_is_ready():
            self._finished(self._status)
            return
        request = UnregisterRobot.Request(robot_id=self.robot_id, session=self._session)
        answer = self._unregister.call_async(request)
        answer.add_done_callback(lambda _: self._finished(self._status))
        limit = partial(self._finished, self._status)
        self.create_timer(GOODBYE_TIMEOUT, limit, clock=self._robot_clock)

    def _finished(self, status: int) -> None:
        if not self.done.done():
            self.done.set_result(status)


def main(args: list[str] | None = None) -> NoReturn:
    """Entry point of the executable ``robot_adapter``."""
    run_node("robot_adapter", RobotNode, args)
