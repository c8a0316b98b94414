"""The planner node: the ROS side of ``planner.py``.

Callbacks turn messages into events for the engine's thread; its commands come back and become
messages. Segments are published from that thread at once, all else from the executor's.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import Executor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.task import Future
from std_msgs.msg import String

from timely_llm import events as ev
from timely_llm import messages as values
from timely_llm import srv
from timely_llm.messages import ErrorCode
from timely_llm.msg import PlanEvent, PlannerStatus, RobotList
from timely_llm.planner import Planner
from timely_llm.ros.building import config_text, make_planner
from timely_llm.ros.conversions import (
    event_to_ros,
    instance_from_ros,
    instance_to_ros,
    robots_to_ros,
    time_to_ros,
    to_ros,
)
from timely_llm.ros.declare import declare, refuse_unknown
from timely_llm.ros.diagnostics import diagnostics
from timely_llm.ros.engine_thread import EngineThread
from timely_llm.ros.outlets import DEPTH, Outlets
from timely_llm.ros.parameters import PARAMETERS
from timely_llm.ros.plan_server import PlanServer
from timely_llm.ros.process import new_instance, run_node

_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# s; by default the engine's thread waits 5 ms, two steps, for the executor's to let go of Python.
_SWITCH_INTERVAL = 2e-4
_INACTIVE = "the planner is not configured"


class PlannerNode(LifecycleNode):
    """Configure loads the model, activate accepts goals, deactivate ends all of them.

    ``executor`` is the one that spins this node. ``done`` completes when there is nothing left to
    do after ``finish``, or after the engine failed; its result is the exit status.
    """

    Thread = EngineThread

    def __init__(self, executor: Executor, **arguments: Any) -> None:
        super().__init__("planner", **arguments)
        refuse_unknown(self, PARAMETERS)
        self.parameters = declare(self, PARAMETERS)
        self.done: Future = Future()
        self.failure: Exception | None = None  # of the last configure
        self._spinner = executor
        self._instance = new_instance()
        self._thread: EngineThread | None = None
        self._planner: Planner | None = None
        self._active = False
        self._robots: tuple[values.RobotInfo, ...] = ()
        self._answers: dict[int, Future] = {}
        self._tickets = itertools.count(1)
        self._outbox: deque[ev.Command] = deque()
        self._flush_due = False
        self._outbox_lock = threading.Lock()
        self._last_now = 0.0
        self._carry_out: dict[type, Callable[[Any], None]] = {
            ev.EmitEvent: self._publish_event,
            ev.EmitFeedback: lambda command: self._plans.feedback(command.feedback),
            ev.EndGoal: lambda command: self._plans.end(command.result),
            ev.Registered: self._answer,
            ev.Answered: self._answer,
            ev.Probed: self._answer,
            ev.RobotsChanged: self._robots_changed,
        }
        self._outlets = Outlets(self, self._heard)
        self._make_interfaces()

    def _make_interfaces(self) -> None:
        self._plans = PlanServer(self, self._put_goal)
        self._events = self.create_publisher(PlanEvent, "plan_events", DEPTH)
        self._robot_list = self.create_publisher(RobotList, "robots", _LATCHED)
        self._config = self.create_publisher(String, "planner_config", _LATCHED)
        self._status = self.create_publisher(PlannerStatus, "planner_status", 10)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_service(srv.RegisterRobot, "register_robot", self._register)
        self.create_service(srv.UnregisterRobot, "unregister_robot", self._unregister)
        self.create_service(srv.ListRobots, "list_robots", self._list)
        self.create_service(srv.StopRobot, "stop_robot", self._stop)
        self.create_service(srv.Probe, "probe", self._probe)
        self.create_timer(self.parameters["status_period"], self._publish_status)
        self.create_timer(1.0, self._publish_diagnostics)

    # Lifecycle.

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        thread = self.Thread(
            lambda: make_planner(self.parameters), self._now, self._commands, self._engine_failed
        )
        thread.start()
        try:
            planner = thread.wait_ready()
            text = config_text(self.parameters, planner)
        except Exception as error:  # a model may fail in any way; rclpy would not say how
            self.failure = error
            if not self.parameters["autostart"]:
                self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        self._thread, self._planner = thread, planner
        thread.put(ev.Deactivate("the planner is not active"))
        self._config.publish(String(data=text))
        self._publish_robots()
        info = planner.engine.info
        self.get_logger().info(
            f"policy {self.parameters['policy']} on {info.backend} {info.version}, "
            f"model {info.model}, {info.kv_blocks * info.block_size} KV tokens"
        )
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._thread.put(ev.Activate())
        self._active = True
        self._publish_status()
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._thread.put(ev.Deactivate())
        self._active = False
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._end_thread()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._active = False
        self._end_thread()
        return TransitionCallbackReturn.SUCCESS

    def _end_thread(self) -> None:
        """End all goals and free the model. The robots have to register anew."""
        if self._thread is not None:
            self._thread.put(ev.Deactivate("the planner was shut down"))
            self._thread.stop()
            self._thread.join()
            self._thread = self._planner = None
            self._leave_nothing_open()
            self._forget_robots()
            self._instance = new_instance()

    def finish(self) -> None:
        """End all goals with a result, then complete ``done``; from any thread."""
        self._active = False
        if self._thread is not None:
            self._thread.put(ev.Deactivate("the planner is shutting down"))
            self._thread.stop()
            self._thread.join()
        self._spinner.create_task(lambda: self._finished(0))

    def _finished(self, status: int) -> None:
        self._leave_nothing_open()
        if not self.done.done():
            self.done.set_result(status)

    def _leave_nothing_open(self) -> None:
        """The engine's thread has ended: what reached it too late is answered here."""
        self._flush()
        code, words = ErrorCode.PLANNER_INACTIVE, "the planner has ended"
        for plan_id in self._plans.live:
            self._plans.end(values.PlanResult(plan_id, code, words))
        for ticket in tuple(self._answers):
            self._answer(ev.Answered(ticket, code, words))

    def _engine_failed(self, error: BaseException) -> None:
        self.get_logger().fatal(f"the engine failed: {error}")
        self._spinner.create_task(lambda: self._finished(1))

    # Between the executor and the engine's thread.

    def _now(self) -> float:
        """The node's time in s; never backwards, also where simulated time is set back."""
        self._last_now = max(self._last_now, self.get_clock().now().nanoseconds * 1e-9)
        return self._last_now

    def _commands(self, commands: list[ev.Command]) -> None:
        """In the engine's thread: publish segments, hand over the rest."""
        kept = []
        for command in commands:
            if isinstance(command, ev.SendSegment):
                self._outlets.send(command.robot_id, command.segment)
            else:
                kept.append(command)
        if not kept:
            return
        with self._outbox_lock:
            self._outbox.extend(kept)
            wake, self._flush_due = not self._flush_due, True
        if wake:
            self._spinner.create_task(self._flush)

    def _flush(self) -> None:
        with self._outbox_lock:
            commands, self._flush_due = list(self._outbox), False
            self._outbox.clear()
        for command in commands:
            self._carry_out[type(command)](command)

    def _put_goal(self, event: ev.Event) -> None:
        if self._thread is not None:
            self._thread.put(event)
        elif isinstance(event, ev.GoalArrived | ev.GoalInvalid):
            code = ErrorCode.PLANNER_INACTIVE
            self._plans.end(values.PlanResult(event.plan_id, code, _INACTIVE))

    def _heard(self, robot_id: str, report: values.Execution) -> None:
        if self._thread is not None:
            self._thread.put(ev.ExecutionArrived(robot_id, report))

    def _ask(self, make: Callable[[int], ev.Event]) -> Future:
        """Put an event that is answered; the future gets the answer."""
        ticket, future = next(self._tickets), Future()
        if self._thread is None:
            future.set_result(ev.Answered(ticket, ErrorCode.PLANNER_INACTIVE, _INACTIVE))
        else:
            self._answers[ticket] = future
            self._thread.put(make(ticket))
        return future

    def _answer(self, answer: ev.Registered | ev.Answered | ev.Probed) -> None:
        self._answers.pop(answer.ticket).set_result(answer)

    # Services.

    async def _register(
        self, request: srv.RegisterRobot.Request, response: srv.RegisterRobot.Response
    ) -> srv.RegisterRobot.Response:
        namespace = request.robot_namespace or f"/{request.robot_id}"
        answer = await self._ask(
            lambda ticket: ev.RegisterRobot(
                ticket,
                request.robot_id,
                request.kind,
                request.skill_set,
                namespace,
                instance_from_ros(request.instance),
            )
        )
        response.error_code, response.error_msg = int(answer.code), answer.error
        response.planner_instance = instance_to_ros(self._instance)
        if answer.code is ErrorCode.NONE:
            response.session = answer.session
            self._outlets.open(request.robot_id, namespace, answer.session)
            self.get_logger().info(f"robot {request.robot_id!r} registered")
        else:
            self.get_logger().warning(f"robot {request.robot_id!r} refused: {answer.error}")
        return response

    async def _unregister(
        self, request: srv.UnregisterRobot.Request, response: srv.UnregisterRobot.Response
    ) -> srv.UnregisterRobot.Response:
        answer = await self._ask(
            lambda ticket: ev.UnregisterRobot(ticket, request.robot_id, request.session)
        )
        response.error_code, response.error_msg = int(answer.code), answer.error
        if answer.code is ErrorCode.NONE:
            self._outlets.close(request.robot_id)
            self.get_logger().info(f"robot {request.robot_id!r} unregistered")
        return response

    async def _stop(
        self, request: srv.StopRobot.Request, response: srv.StopRobot.Response
    ) -> srv.StopRobot.Response:
        answer = await self._ask(lambda ticket: ev.StopRobots(ticket, request.robot_id))
        response.error_code, response.error_msg = int(answer.code), answer.error
        response.stopped = list(answer.robots)
        return response

    async def _probe(
        self, request: srv.Probe.Request, response: srv.Probe.Response
    ) -> srv.Probe.Response:
        answer = await self._ask(
            lambda ticket: ev.AskProbe(
                ticket,
                request.robot_id,
                request.session,
                request.question,
                request.scene,
                request.timeout,
            )
        )
        response.error_code, response.error_msg = int(answer.code), answer.error
        if answer.code is ErrorCode.NONE:
            response.answer = answer.answer
        return response

    def _list(
        self, request: srv.ListRobots.Request, response: srv.ListRobots.Response
    ) -> srv.ListRobots.Response:
        response.instance = instance_to_ros(self._instance)
        response.robots = [to_ros(robot) for robot in self._robots]
        return response

    # Topics.

    def _publish_event(self, command: ev.EmitEvent) -> None:
        self._events.publish(event_to_ros(command.event, self._instance))

    def _robots_changed(self, command: ev.RobotsChanged) -> None:
        self._robots = command.robots
        self._publish_robots()

    def _forget_robots(self) -> None:
        for robot in self._robots:
            self._outlets.close(robot.robot_id)
        self._robots = ()
        self._publish_robots()

    def _publish_robots(self) -> None:
        self._robot_list.publish(robots_to_ros(self._robots, self._instance, self._now()))

    def _publish_status(self) -> None:
        if self._thread is None:
            return
        snapshot, info = self._thread.snapshot, self._planner.engine.info
        counts = snapshot.counts
        self._status.publish(
            PlannerStatus(
                stamp=time_to_ros(self._now()),
                instance=instance_to_ros(self._instance),
                policy=self.parameters["policy"],
                model=info.model,
                engine=f"{info.backend} {info.version}",
                pace=info.pace,
                robots=counts.robots,
                waiting=counts.waiting,
                running=counts.running,
                suspended=counts.suspended,
                executing=counts.executing,
                kv_blocks_used=counts.kv_blocks_used,
                kv_blocks_total=counts.kv_blocks_total,
                step_time=snapshot.step_time,
                overhead=snapshot.overhead,
                prompt_tokens_recomputed=counts.recomputed_tokens,
            )
        )

    def _publish_diagnostics(self) -> None:
        snapshot = self._thread.snapshot if self._thread is not None else None
        self._diagnostics.publish(
            diagnostics(
                self.get_fully_qualified_name(),
                time_to_ros(time.time()),
                self._active,
                self.parameters,
                self._planner.engine.info if self._planner is not None else None,
                snapshot,
                self._robots,
            )
        )


def main(args: list[str] | None = None) -> int:
    """The executable ``planner_node``; returns the exit status."""
    sys.setswitchinterval(_SWITCH_INTERVAL)
    return run_node("planner", PlannerNode, args)
