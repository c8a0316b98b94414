"""The robot node: the ROS side of ``executor.py``. One process, one robot.

Callbacks turn messages into inputs of the executor and what it returns into messages; one timer
wakes it when it asks to be woken. Nothing here decides anything about a plan.
"""

from __future__ import annotations

import sys
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import QoSSubscriptionMatchedInfo, SubscriptionEventCallbacks
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from std_srvs.srv import Trigger

from robot_adapters.base import Adapter, adapter_class, make_adapter
from robot_adapters.executor import RobotExecutor
from robot_adapters.plan_run import Timing
from robot_adapters.registration import Registration
from timely_llm import messages as values
from timely_llm.msg import Execution, PlannerStatus, Segment
from timely_llm.paths import share
from timely_llm.ros.conversions import from_ros, instance_from_ros, instance_to_ros, to_ros
from timely_llm.ros.declare import Parameter, ParameterError, declare, refuse_unknown
from timely_llm.ros.process import new_instance, run_node
from timely_llm.skills import SkillSet
from timely_llm.srv import RegisterRobot, UnregisterRobot

DEFAULT_KIND = "tello"
DEPTH = 1000  # deep enough for a whole plan's segments and reports
RELIABLE = QoSProfile(
    depth=DEPTH, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE
)
#: Fits every publisher; the next one comes soon.
STATUS_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
GOODBYE_TIMEOUT = 0.5  # s, for the planner to answer unregister_robot
DIAGNOSTICS_PERIOD = 1.0  # s

PARAMETERS: dict[str, Parameter] = {
    "robot_id": Parameter("", "id the planner knows the robot by; empty: the node's namespace"),
    "kind": Parameter("", f"kind of robot; empty: the skill set's, or {DEFAULT_KIND}"),
    "skill_set": Parameter("", "skill set file; empty: the bundled one of the kind"),
    "adapter": Parameter("simulated", "adapter by name, or module:class"),
    "planner_namespace": Parameter("", "namespace of the planner node; empty: the root"),
    "heartbeat_period": Parameter(0.2, "the robot is never silent for longer, s", (0.01, 10.0)),
    "planner_timeout": Parameter(2.0, "a planner silent for longer is lost, s", (0.1, 3600.0)),
    "register_timeout": Parameter(
        15.0, "a robot_id that is taken is asked for again for this long, s", (0.0, 3600.0)
    ),
    "overtime": Parameter(3.0, "a call may take this many times its expected time", (1.0, 100.0)),
    "patience": Parameter(15.0, "and this much more, s", (0.0, 3600.0)),
}


class RobotNode(Node):
    """``executor`` is the one that spins this node. ``done`` completes with the exit status."""

    def __init__(self, executor: Executor, **arguments: Any) -> None:
        super().__init__("robot_adapter", **arguments)
        self.parameters = declare(self, PARAMETERS)
        self.done: Future = Future()
        self.failure: Exception | None = None
        self.robot_id, self._base = self._names()
        self._skill_text, skills = self._skills()
        self._spinner = executor
        self._adapter = self._make_adapter(skills)
        timing = Timing(
            heartbeat_period=self.parameters["heartbeat_period"],
            planner_timeout=self.parameters["planner_timeout"],
            overtime=self.parameters["overtime"],
            patience=self.parameters["patience"],
        )
        self._robot = RobotExecutor(self._adapter, timing)
        self._registration = Registration(self.parameters["register_timeout"])
        self._instance = new_instance()
        self._planner = ""  # instance of the session's
        self._session = 0
        self._ask: Future | None = None
        self._told = ""  # the last thing the log said about the planner
        self._matched, self._opened_at = (
            0,
            0,
        )  # publishers of segments ever matched; at last session
        simulated = self.get_parameter("use_sim_time").value
        self._clock = self.get_clock() if simulated else Clock(clock_type=ClockType.STEADY_TIME)
        self._make_interfaces()

    # Setting up.

    def _names(self) -> tuple[str, str]:
        """The robot's id, and the namespace of its topics."""
        namespace = self.get_namespace()
        robot_id = self.parameters["robot_id"] or namespace.strip("/")
        if not robot_id:
            raise ParameterError(
                "parameter 'robot_id': must be given where the node has no namespace"
            )
        return robot_id, f"/{robot_id}" if namespace == "/" else namespace

    def _skills(self) -> tuple[str, SkillSet]:
        """The text to register with (empty: the planner knows the kind), and the skills."""
        kind, path = self.parameters["kind"], self.parameters["skill_set"]
        if not path:
            file = share("config", "skills", f"{kind or DEFAULT_KIND}.yaml")
            if not file.is_file():
                known = ", ".join(sorted(p.stem for p in file.parent.glob("*.yaml")))
                raise ParameterError(
                    f"parameter 'kind': {kind!r} has no bundled skill set (known: {known}); "
                    "give one with 'skill_set'"
                )
            return "", SkillSet.from_file(file)
        skills = SkillSet.from_file(path)
        if kind not in ("", skills.kind):
            raise ParameterError(
                f"parameter 'kind' is {kind!r}, but the skill set's is {skills.kind!r}"
            )
        return skills.text, skills

    def _make_adapter(self, skills: SkillSet) -> Adapter:
        name = self.parameters["adapter"]
        known = {
            p.name: Parameter(
                p.default,
                f"{p.description}, {p.unit}" if p.unit else p.description,
                None if p.minimum is None or p.maximum is None else (p.minimum, p.maximum),
            )
            for p in adapter_class(name).PARAMETERS
        }
        refuse_unknown(self, (*PARAMETERS, *known))
        own = declare(self, known)
        self.parameters |= own
        return make_adapter(name, self.robot_id, skills, **own)

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
        self.create_subscription(
            PlannerStatus, f"{planner}planner_status", self._on_status, STATUS_QOS
        )
        self._register = self.create_client(RegisterRobot, f"{planner}register_robot")
        self._unregister = self.create_client(UnregisterRobot, f"{planner}unregister_robot")
        self.create_service(Trigger, f"{own}/stop", self._on_stop)
        self.create_service(Trigger, f"{own}/rearm", self._on_rearm)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_timer(DIAGNOSTICS_PERIOD, self._publish_diagnostics)
        self._timer = self.create_timer(0.001, self._on_timer, clock=self._clock)

    # What comes in.

    def _now(self) -> float:
        """The robot's clock in s."""
        return self._clock.now().nanoseconds * 1e-9

    def _on_timer(self) -> None:
        self._publish(self._robot.tick(self._now()))

    def _on_segment(self, message: Segment) -> None:
        try:
            segment = from_ros(message)
        except ValueError as error:
            self.get_logger().error(f"segment ignored: {error}")
            return
        self._publish(self._robot.on_segment(segment, self._now()))

    def _on_status(self, message: PlannerStatus) -> None:
        instance = instance_from_ros(message.instance)
        self._publish(self._robot.on_planner_heartbeat(instance, self._now()))

    def _on_stop(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._publish(self._robot.on_stop(self._now()))
        self.get_logger().warning("stopped; call ~/rearm to go on")
        response.success, response.message = True, "stopped until ~/rearm"
        return response

    def _on_rearm(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._publish(self._robot.on_rearm(self._now()))
        response.success, response.message = True, "takes plans again"
        return response

    def _on_matched(self, info: QoSSubscriptionMatchedInfo) -> None:
        self._matched = info.total_count
        self._publish([])

    # What goes out.

    def _publish(self, reports: list[values.Execution]) -> None:
        """Send the reports, look after the registration, and be woken in time for what is next."""
        stamp = self.get_clock().now().to_msg()
        for report in reports:
            message = to_ros(report)
            message.stamp = stamp
            self._executions.publish(message)
        if self.done.done():
            return
        now = self._now()
        wakes = [self._robot.next_wake(now)]
        if self._robot.needs_registration:
            self._keep_registering(now)
            wakes = [self._robot.next_wake(now), self._registration.next_wake()]
        delay = min((wake for wake in wakes if wake is not None), default=now + 1.0) - now
        self._timer.timer_period_ns = max(1_000, int(delay * 1e9) + 1)
        self._timer.reset()

    def _publish_diagnostics(self) -> None:
        status = DiagnosticStatus(name=f"robot {self.robot_id}", hardware_id=self.robot_id)
        facts = {"planner": self._planner or "none"} | dict(self._adapter.diagnostics())
        if self._robot.stopped:
            status.level, status.message = DiagnosticStatus.WARN, "stopped: call ~/rearm"
        elif self._robot.needs_registration:
            status.level, status.message = DiagnosticStatus.WARN, "no planner"
        else:
            status.level, status.message = DiagnosticStatus.OK, "registered"
        status.values = [KeyValue(key=key, value=str(value)) for key, value in facts.items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)

    # Being known to a planner.

    def _keep_registering(self, now: float) -> None:
        if self._registration.due(now):
            if self._register.service_is_ready():
                self._send_registration(now)
            else:
                self._registration.nobody(now)
                self._tell(f"waits for a planner ({self._register.srv_name})")
        if self._registration.grant is not None:
            self._open_session(now)

    def _send_registration(self, now: float) -> None:
        if self._ask is not None:  # it got no answer
            self._register.remove_pending_request(self._ask)
        request = RegisterRobot.Request(
            robot_id=self.robot_id,
            kind="" if self._skill_text else self._adapter.skills.kind,
            skill_set=self._skill_text,
            robot_namespace=self._base,
            instance=instance_to_ros(self._instance),
        )
        self._registration.asked(now)
        self._ask = self._register.call_async(request)
        self._ask.add_done_callback(self._on_registered)

    def _on_registered(self, future: Future) -> None:
        if future is not self._ask or self.done.done():
            return
        self._ask = None
        response, now = future.result(), self._now()
        if response.error_code == values.ErrorCode.NONE:
            planner = instance_from_ros(response.planner_instance)
            self._registration.granted(response.session, planner, now)
        elif self._registration.refused(response.error_code, now):
            print(
                f"robot_adapter: robot {self.robot_id!r} is refused: {response.error_msg}",
                file=sys.stderr,
                flush=True,
            )
            self._publish(self._robot.shutdown(now))
            self.done.set_result(1)
            return
        else:
            self._tell(f"is not registered yet: {response.error_msg}")
        self._publish([])

    def _open_session(self, now: float) -> None:
        """Speak in the new session once the planner's segments can reach this node. The publisher
        of a planner that was killed counts as matched for a while, so it must be a new one."""
        grant = self._registration.grant
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

    def _end(self) -> None:
        self._publish(self._robot.shutdown(self._now()))
        self._timer.cancel()
        if not self._session or not self._unregister.service_is_ready():
            self._finished()
            return
        request = UnregisterRobot.Request(robot_id=self.robot_id, session=self._session)
        self._unregister.call_async(request).add_done_callback(lambda _: self._finished())
        self.create_timer(GOODBYE_TIMEOUT, self._finished)

    def _finished(self) -> None:
        if not self.done.done():
            self.done.set_result(0)


def main(args: list[str] | None = None) -> int:
    """Entry point of the executable ``robot_adapter``; returns the exit status."""
    return run_node("robot_adapter", RobotNode, args)
