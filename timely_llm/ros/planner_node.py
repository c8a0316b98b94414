"""The planner node: the ROS side of ``core/planner.py``.

Callbacks turn messages into events for the engine's thread; its commands come back through the
outbox.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType, ROSClock
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.task import Future
from std_msgs.msg import String

from timely_llm.core import events as ev
from timely_llm.core.planner import Planner
from timely_llm.msg import PlannerStatus
from timely_llm.protocols.messages import ErrorCode, Execution, PlanResult
from timely_llm.ros.conversions import instance_from_ros, time_to_ros, to_ros
from timely_llm.ros.declare import declare, refuse_unknown
from timely_llm.ros.diagnostics import diagnostics, planner_status
from timely_llm.ros.engine_thread import EngineThread, Watch
from timely_llm.ros.guard import GuardedExecutor
from timely_llm.ros.live_page import open_page
from timely_llm.ros.other_planners import OtherPlanners
from timely_llm.ros.outbox import Outbox
from timely_llm.ros.parameters import PARAMETERS
from timely_llm.ros.plan_server import PlanServer
from timely_llm.ros.planner_factory import config_text, make_planner
from timely_llm.ros.process import TICK, new_instance, run_node
from timely_llm.ros.qos import LATCHED
from timely_llm.ros.robot_link import RobotLinks
from timely_llm.ros.services import Services
from timely_llm.ros.steady_time import SteadyTime
from timely_llm.ros.times_keeper import PERIOD, TimesKeeper

# s; by default the engine's thread waits 5 ms, two steps, for the executor's to let go of Python.
_SWITCH_INTERVAL = 2e-4
_GOODBYE = 1.0  # s, for robots and viewers to acknowledge what was published last
_LISTEN = 5.0  # s; discovery alone may take 3 s on a busy machine
_FETCH = 2.0  # s, for clients to fetch the results of their goals


class PlannerNode(LifecycleNode):
    """Configure loads the model, activate accepts goals, deactivate ends all of them.

    ``executor`` is the one that spins this node. ``done`` completes when there is nothing left to
    do after ``finish``, or after the engine failed; its result is the exit status.
    """

    Thread = EngineThread

    def __init__(self, executor: GuardedExecutor, **arguments: Any) -> None:
        super().__init__("planner", **arguments)
        refuse_unknown(self, PARAMETERS)
        self.parameters = declare(self, PARAMETERS)
        log = self.get_logger()
        self._page = open_page(self.parameters, log)
        self._fleet = self._page.fleet if self._page is not None else None
        self.done: Future[int] = Future()
        self.failure: Exception | None = None  # of the last configure
        self._spinner = executor
        self._thread: EngineThread | None = None  # once its planner is built
        self._active = False
        self._watch = Watch(self.parameters["engine_timeout"], self.parameters["status_period"])
        self._hangs = False  # the engine does, and is not waited for
        self._time, self._time_lock = SteadyTime(), threading.Lock()
        file = self.parameters["times_file"]
        self._times = TimesKeeper(Path(file).expanduser() if file else None, log.warning, log.error)
        self._links = RobotLinks(self, self._heard, self._garbled)
        self._plans = PlanServer(self, self._put)
        self._others = OtherPlanners(log.warning)
        instance = self._others.own(new_instance())
        self._planner_services = Services(self, self._put, self._links, instance)
        self._outbox = Outbox(
            self,
            executor,
            self._now,
            self._links,
            self._plans,
            self._planner_services,
            self._times,
            self._fleet,
        )
        self._config = self.create_publisher(String, "planner_config", LATCHED)
        self._status = self.create_publisher(PlannerStatus, "planner_status", 10)
        self._heard_status = self.create_subscription(
            PlannerStatus, "planner_status", self._on_status, 10
        )
        self._listens_until = time.monotonic() + _LISTEN
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_timer(self.parameters["status_period"], self._publish_status)
        self.create_timer(1.0, self._publish_diagnostics)
        self.create_timer(PERIOD, self._keep_times)

    def destroy_node(self) -> None:
        if self._page is not None:
            self._page.close()
        super().destroy_node()

    # Lifecycle.

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        thread = self.Thread(self._make_planner, self._now, self._outbox.put, self._engine_failed)
        thread.start()
        try:
            info = thread.planner.engine.info
            text = config_text(self.parameters, thread.planner)
        except Exception as error:  # a model may fail in any way; rclpy would not say how
            self.failure = error
            if not self.parameters["autostart"]:
                self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        self._thread = thread
        self._put(ev.Deactivate("the planner is not active"))
        self._config.publish(String(data=text))
        self._outbox.show_robots(())
        self.get_logger().info(
            f"policy {self.parameters['policy']} on {info.backend} {info.version}, "
            f"model {info.model}, {info.kv_blocks * info.block_size} KV tokens"
        )
        return TransitionCallbackReturn.SUCCESS

    def _make_planner(self) -> Planner:
        planner = make_planner(self.parameters)
        self._times.restore(planner.state.fleet.times)
        return planner

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        if self.parameters["sole_planner"] and (others := self._listen()):
            words = f"parameter 'sole_planner': another planner is there, {others[0][:8]}"
            self.failure = RuntimeError(words)
            self.get_logger().error(words)
            return TransitionCallbackReturn.FAILURE
        self._put(ev.Activate())
        self._planner_services.admit_robots()
        self._active = True
        self._publish_status()
        return TransitionCallbackReturn.SUCCESS

    def _listen(self) -> tuple[str, ...]:
        """The other planners, once one is heard or there was time enough for it. Nobody spins this
        node yet where it is started."""
        while True:
            while taken := self._heard_status.handle.take_message(PlannerStatus, False):
                self._on_status(taken[0])
            others, now = self._others.there(time.monotonic()), time.monotonic()
            if others or now >= self._listens_until:
                return others
            time.sleep(TICK)

    def _on_status(self, message: PlannerStatus) -> None:
        self._others.hear(instance_from_ros(message.instance), time.monotonic())

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._put(ev.Deactivate())
        self._keep_times()
        self._active = False
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End all goals and free the model. The robots have to register again."""
        if self._thread is not None:
            self._end_thread("the planner was shut down")
            self._leave_nothing_open()
            self._outbox.drain(_GOODBYE)
            for robot in self._planner_services.robots:
                self._links.close(robot.robot_id)
            self._outbox.show_robots(())
            self._planner_services.instance = self._others.own(new_instance())
        return TransitionCallbackReturn.SUCCESS

    on_shutdown = on_cleanup

    def finish(self) -> None:
        """End all goals with a result, then complete ``done``; from any thread."""
        self._end_thread("the planner is shutting down")
        self._spinner.create_task(lambda: self._finished(0))

    def _engine_failed(self, error: BaseException) -> None:
        self.get_logger().fatal(f"the engine failed: {error}")
        self._spinner.create_task(lambda: self._finished(1))

    def _finished(self, status: int) -> None:
        """Leave with ``status``, but not before clients have fetched their results. Whatever else
        goes wrong by then, it leaves."""

        def leave() -> None:
            if not self.done.done():
                self.done.set_result(status)
                self._outbox.drain(_GOODBYE)

        self.create_timer(_FETCH, leave, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._leave_nothing_open()
        self._plans.when_fetched(leave)

    def _end_thread(self, words: str) -> None:
        self._active = False
        if self._thread is not None:
            self._thread.put(ev.Deactivate(words))
            self._thread.stop()
            self._thread.join(self.parameters["engine_timeout"])

    def _leave_nothing_open(self) -> None:
        """The engine's thread has ended, or is given up: what it left, or what reached it too late,
        is answered here, and what it learned is kept. Whoever asks from now on is told at once."""
        thread, self._thread = self._thread, None
        self._outbox.flush()
        code, words = ErrorCode.PLANNER_INACTIVE, "the planner has ended"
        if self._hangs:
            code, words = ErrorCode.ENGINE_FAILED, "the engine failed: its step does not end"
        for plan_id, robot_id in self._plans.live:
            if self._hangs:
                self._links.cancel(robot_id, plan_id)
            self._plans.end(PlanResult(plan_id, code, words))
        self._planner_services.abandon(words)
        times = thread.planner.state.fleet.times if thread is not None else None
        self._times.finish(times.learned() if times is not None and times.changes else None)

    def _look_after_engine(self) -> None:
        """Give up an engine whose step does not end: otherwise nobody would hear anything again."""
        if self._thread is None or self._hangs:
            return
        if self._watch.look(self._thread.turns, time.monotonic()):
            self._hangs = True
            self._outbox.close()
            limit = self.parameters["engine_timeout"]
            self._engine_failed(TimeoutError(f"its step has not ended for {limit:g} s"))

    # What goes to the engine's thread.

    def _now(self) -> float:
        """The node's time in s, from any thread; where its clock is set, it goes on counting."""
        with self._time_lock:
            clock = self.get_clock()
            assert isinstance(clock, ROSClock)
            steady = None if clock.ros_time_is_active else time.monotonic()
            return self._time.at(clock.now().nanoseconds * 1e-9, steady)

    def _put(self, event: ev.Event) -> bool:
        """Hand an event to the planner; whether there is one."""
        if self._thread is None:
            return False
        if not self._thread.put(event):
            words = "a robot reports faster than can be followed: some of its reports are dropped"
            self.get_logger().warning(words, throttle_duration_sec=5.0)
        return True

    def _heard(self, robot_id: str, report: Execution) -> None:
        self._put(ev.ExecutionArrived(robot_id, report))
        if self._fleet is not None:
            self._fleet.execution(robot_id, report)

    def _garbled(self, robot_id: str, session: int, reason: str) -> None:
        self._put(ev.ReportInvalid(robot_id, session, reason))

    def _keep_times(self) -> None:
        self._put(ev.KeepTimes())

    # What the node says of itself.

    def _publish_status(self) -> None:
        self._look_after_engine()
        if self._thread is None or self._hangs:
            return
        info, policy = self._thread.planner.engine.info, self.parameters["policy"]
        instance = self._planner_services.instance
        status = planner_status(self._now(), instance, policy, info, self._thread.snapshot)
        self._status.publish(to_ros(status))
        if self._fleet is not None:
            self._fleet.status(status)

    def _publish_diagnostics(self) -> None:
        self._outbox.repeat_robots()
        self._diagnostics.publish(
            diagnostics(
                self.get_fully_qualified_name(),
                time_to_ros(self._now()),
                self.parameters["policy"],
                self._active,
                self._thread.planner.engine.info if self._thread is not None else None,
                self._thread.snapshot if self._thread is not None else None,
                self._planner_services.robots,
                self._times,
                self._others.there(time.monotonic()),
            )
        )


def main(args: list[str] | None = None) -> NoReturn:
    """The executable ``planner_node``."""
    sys.setswitchinterval(_SWITCH_INTERVAL)
    run_node("planner", PlannerNode, args)
