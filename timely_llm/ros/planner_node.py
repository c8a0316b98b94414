"""The planner node: the ROS side of ``core/planner.py``.

Callbacks turn messages into events for the engine's thread; its commands come back and become
messages. Segments are published from that thread at once, all else from the executor's.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import Executor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.task import Future
from std_msgs.msg import String

from timely_llm.core import events as ev
from timely_llm.core.planner import Planner
from timely_llm.msg import PlanEvent, PlannerStatus, RobotList
from timely_llm.protocols.messages import ErrorCode, Execution, PlanResult, RobotInfo
from timely_llm.ros.conversions import event_to_ros, robots_to_ros, time_to_ros, to_ros
from timely_llm.ros.declare import declare, refuse_unknown
from timely_llm.ros.diagnostics import diagnostics, planner_status
from timely_llm.ros.engine_thread import EngineThread, Watch
from timely_llm.ros.live_page import open_page
from timely_llm.ros.parameters import PARAMETERS
from timely_llm.ros.plan_server import PlanServer
from timely_llm.ros.planner_factory import config_text, make_planner
from timely_llm.ros.process import new_instance, run_node
from timely_llm.ros.qos import LATCHED, RELIABLE
from timely_llm.ros.robot_link import RobotLinks
from timely_llm.ros.services import Services
from timely_llm.ros.steady_time import SteadyTime
from timely_llm.ros.times_keeper import PERIOD, TimesKeeper

# s; by default the engine's thread waits 5 ms, two steps, for the executor's to let go of Python.
_SWITCH_INTERVAL = 2e-4
_GOODBYE = 1.0  # s, for the robots to acknowledge the last commands
_HELD = 0.1  # s that events and feedback may be kept while the engine steps


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
        self._page = open_page(self.parameters, self.get_logger())
        self.done: Future = Future()
        self.failure: Exception | None = None  # of the last configure
        self._spinner = executor
        self._thread: EngineThread | None = None
        self._planner: Planner | None = None
        self._active = False
        self._watch = Watch(self.parameters["engine_timeout"], self.parameters["status_period"])
        self._hangs = False  # the engine does, and is not waited for
        self._time, self._time_lock = SteadyTime(), threading.Lock()
        self._outbox: deque[ev.Command] = deque()
        self._outbox_lock = threading.Lock()
        self._flush_due = False
        self._held_since = 0.0
        self._robot_links = RobotLinks(self, self._heard)
        self._times = self._make_times()
        self._plans = PlanServer(self, self._put_goal)
        self._requests = Services(self, self._put, self._robot_links, new_instance())
        self._carry_out: dict[type, Callable[[Any], None]] = {
            ev.EmitEvent: self._publish_event,
            ev.EmitFeedback: lambda command: self._plans.feedback(command.feedback),
            ev.EndGoal: lambda command: self._plans.end(command.result),
            ev.Registered: self._requests.answer,
            ev.Answered: self._requests.answer,
            ev.Probed: self._requests.answer,
            ev.RobotsChanged: lambda command: self._publish_robots(command.robots),
            ev.TimesLearned: lambda command: self._times.keep(command.learned),
            ev.SkillDrifted: lambda c: self._times.drifted(c.robot_id, c.skill, c.factor),
        }
        self._make_topics()

    def _make_topics(self) -> None:
        self._events = self.create_publisher(PlanEvent, "plan_events", RELIABLE)
        self._robot_list = self.create_publisher(RobotList, "robots", LATCHED)
        self._config = self.create_publisher(String, "planner_config", LATCHED)
        self._status = self.create_publisher(PlannerStatus, "planner_status", 10)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_timer(self.parameters["status_period"], self._publish_status)
        self.create_timer(1.0, self._publish_diagnostics)
        self.create_timer(PERIOD, lambda: self._put(ev.KeepTimes()))

    def _make_times(self) -> TimesKeeper:
        name, log = self.parameters["times_file"], self.get_logger()
        return TimesKeeper(Path(name).expanduser() if name else None, log.warning, log.error)

    def destroy_node(self) -> None:
        self._page.close()
        super().destroy_node()

    # Lifecycle.

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._times = self._make_times()
        thread = self.Thread(self._make_planner, self._now, self._commands, self._engine_failed)
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
        self._publish_robots(())
        info = planner.engine.info
        self.get_logger().info(
            f"policy {self.parameters['policy']} on {info.backend} {info.version}, "
            f"model {info.model}, {info.kv_blocks * info.block_size} KV tokens"
        )
        return TransitionCallbackReturn.SUCCESS

    def _make_planner(self) -> Planner:
        planner = make_planner(self.parameters)
        self._times.restore(planner.plans.fleet.times)
        return planner

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._thread.put(ev.Activate())
        self._requests.admit_robots()
        self._active = True
        self._publish_status()
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._thread.put(ev.Deactivate())
        self._thread.put(ev.KeepTimes())
        self._active = False
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        return self._unload()

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        return self._unload()

    def _unload(self) -> TransitionCallbackReturn:
        """End all goals and free the model. The robots have to register again."""
        if self._thread is not None:
            self._end_thread("the planner was shut down")
            self._keep_times()
            self._thread = self._planner = None
            self._leave_nothing_open()
            self._robot_links.drain(_GOODBYE)
            for robot in self._requests.robots:
                self._robot_links.close(robot.robot_id)
            self._publish_robots(())
            self._requests.instance = new_instance()
        return TransitionCallbackReturn.SUCCESS

    def _end_thread(self, words: str) -> None:
        self._active = False
        if self._thread is not None:
            self._thread.put(ev.Deactivate(words))
            self._thread.stop()
            self._thread.join(self.parameters["engine_timeout"])

    def finish(self) -> None:
        """End all goals with a result, then complete ``done``; from any thread."""
        self._end_thread("the planner is shutting down")
        self._spinner.create_task(lambda: self._finished(0))

    def _engine_failed(self, error: BaseException) -> None:
        self.get_logger().fatal(f"the engine failed: {error}")
        self._spinner.create_task(lambda: self._finished(1))

    def _finished(self, status: int) -> None:
        self._leave_nothing_open()
        self._robot_links.drain(_GOODBYE)
        self._keep_times()
        if not self.done.done():
            self.done.set_result(status)

    def _keep_times(self) -> None:
        """The engine's thread has ended: nothing is learned any more."""
        times = self._planner.plans.fleet.times if self._planner is not None else None
        self._times.finish(times.learned() if times is not None and times.changes else None)

    def _leave_nothing_open(self) -> None:
        """The engine's thread has ended, or is given up: what it left, or what reached it too late,
        is answered here."""
        self._flush()
        code, words = ErrorCode.PLANNER_INACTIVE, "the planner has ended"
        if self._hangs:
            code, words = ErrorCode.ENGINE_FAILED, "the engine failed: its step does not end"
        for plan_id, robot_id in self._plans.live:
            if self._hangs:
                self._robot_links.cancel(robot_id, plan_id)
            self._plans.end(PlanResult(plan_id, code, words))
        self._requests.abandon(words)

    def _look_after_engine(self) -> None:
        """Give up an engine whose step does not end: nobody would be told anything any more."""
        if self._thread is None or self._hangs:
            return
        if self._watch.look(self._thread.turns, time.monotonic()):
            self._hangs = True
            limit = self.parameters["engine_timeout"]
            self._engine_failed(TimeoutError(f"its step has not ended for {limit:g} s"))

    # Between the executor and the engine's thread.

    def _now(self) -> float:
        """The node's time in s, from any thread; where its clock is set, it goes on counting."""
        with self._time_lock:
            clock = self.get_clock()
            steady = None if clock.ros_time_is_active else time.monotonic()
            return self._time.at(clock.now().nanoseconds * 1e-9, steady)

    def _put(self, event: ev.Event) -> bool:
        """Hand an event to the planner; whether there is one."""
        if self._thread is None:
            return False
        self._thread.put(event)
        return True

    def _put_goal(self, event: ev.Event) -> None:
        if not self._put(event) and isinstance(event, ev.GoalArrived | ev.GoalInvalid):
            words = "the planner is not configured"
            self._plans.end(PlanResult(event.plan_id, ErrorCode.PLANNER_INACTIVE, words))

    def _heard(self, robot_id: str, report: Execution) -> None:
        self._put(ev.ExecutionArrived(robot_id, report))
        self._page.execution(robot_id, report)

    def _commands(self, commands: list[ev.Command], rests: bool) -> None:
        """In the engine's thread: publish segments, hand over the rest.

        Python runs one thread at a time, so whatever the executor's does in the middle of a step
        makes the step longer. Events and feedback, which hold nobody up, are handed over when the
        engine rests, together with what somebody waits for, or after ``_HELD``.
        """
        if self._hangs:
            return  # it goes on after all: its goals have ended
        kept = []
        awaited = rests
        for command in commands:
            if isinstance(command, ev.SendSegment):
                self._robot_links.send(command.robot_id, command.segment)
            else:
                kept.append(command)
                awaited = awaited or not isinstance(command, ev.EmitEvent | ev.EmitFeedback)
        if not kept and not self._outbox:
            return
        now = time.monotonic()
        with self._outbox_lock:
            if not self._outbox:
                self._held_since = now
            self._outbox.extend(kept)
            due = awaited or now >= self._held_since + _HELD
            wake = due and not self._flush_due
            self._flush_due = self._flush_due or due
        if wake:
            self._spinner.create_task(self._flush)

    def _flush(self) -> None:
        with self._outbox_lock:
            commands, self._flush_due = list(self._outbox), False
            self._outbox.clear()
        for command in commands:
            self._carry_out[type(command)](command)

    # Topics.

    def _publish_event(self, command: ev.EmitEvent) -> None:
        self._events.publish(event_to_ros(command.event, self._requests.instance))
        self._page.event(command.event)

    def _publish_robots(self, robots: tuple[RobotInfo, ...]) -> None:
        self._requests.robots = robots
        self._robot_list.publish(robots_to_ros(robots, self._requests.instance, self._now()))
        self._page.robots(robots)

    def _publish_status(self) -> None:
        self._look_after_engine()
        if self._thread is None or self._hangs:
            return
        info, policy = self._planner.engine.info, self.parameters["policy"]
        snapshot, instance = self._thread.snapshot, self._requests.instance
        status = planner_status(self._now(), instance, policy, info, snapshot)
        self._status.publish(to_ros(status))
        self._page.status(status)

    def _publish_diagnostics(self) -> None:
        self._diagnostics.publish(
            diagnostics(
                self.get_fully_qualified_name(),
                time_to_ros(self._now()),
                self.parameters["policy"],
                self._active,
                self._planner.engine.info if self._planner is not None else None,
                self._thread.snapshot if self._thread is not None else None,
                self._requests.robots,
                self._times,
            )
        )


def main(args: list[str] | None = None) -> NoReturn:
    """The executable ``planner_node``."""
    sys.setswitchinterval(_SWITCH_INTERVAL)
    run_node("planner", PlannerNode, args)
