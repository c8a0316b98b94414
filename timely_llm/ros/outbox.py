"""How the planner's commands leave the node: ``Outbox._carry_out`` says what becomes of each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import assert_never

from rclpy.duration import Duration
from rclpy.node import Node

from timely_llm.core import events as ev
from timely_llm.live.shared_fleet import SharedFleet
from timely_llm.msg import PlanEvent, RobotList
from timely_llm.protocols.messages import RobotInfo
from timely_llm.ros.conversions import event_to_ros, robots_to_ros
from timely_llm.ros.guard import GuardedExecutor
from timely_llm.ros.plan_server import PlanServer
from timely_llm.ros.qos import LATCHED, RELIABLE
from timely_llm.ros.robot_link import RobotLinks
from timely_llm.ros.services import Services
from timely_llm.ros.times_keeper import TimesKeeper

_HELD = 0.1  # s that events and feedback may wait while the engine steps
_REPEATS = 2  # of a list of robots


class Outbox:
    """Carries out the planner's commands: segments in the engine's thread, at once; everything
    else in that of ``executor``. ``clock`` gives the node's time in s; ``fleet`` is
    what the web page shows, if there is one."""

    def __init__(
        self,
        node: Node,
        executor: GuardedExecutor,
        clock: Callable[[], float],
        links: RobotLinks,
        plans: PlanServer,
        services: Services,
        times: TimesKeeper,
        fleet: SharedFleet | None,
    ) -> None:
        self._executor, self._clock, self._links, self._plans = executor, clock, links, plans
        self._services, self._times, self._fleet = services, times, fleet
        self._log = node.get_logger()
        self._events = node.create_publisher(PlanEvent, "plan_events", RELIABLE)
        self._robots = node.create_publisher(RobotList, "robots", LATCHED)
        self._repeats = 0  # of the list of robots that are to come
        self._waiting: list[ev.Command] = []
        self._held_since = 0.0
        self._flush_due = False
        self._lock = threading.Lock()
        self._closed = False

    def put(self, commands: Sequence[ev.Command], rests: bool) -> None:
        """Take the commands of a turn; ``rests``: the engine has nothing to do after it. In the
        engine's thread.

        Python runs one thread at a time, so whatever the executor's does in the middle of a step
        makes the step longer. Events and feedback, which hold nobody up, are handed over when the
        engine rests, together with what somebody waits for, or after ``_HELD``.
        """
        if self._closed:
            return
        kept = []
        for command in commands:
            if isinstance(command, ev.SendSegment):
                self._try(command)
            else:
                kept.append(command)
        if not kept and not self._waiting:
            return
        awaited = any(not isinstance(each, ev.EmitEvent | ev.EmitFeedback) for each in kept)
        now = time.monotonic()
        with self._lock:
            if not self._waiting:
                self._held_since = now
            self._waiting += kept
            due = rests or awaited or now >= self._held_since + _HELD
            wake = due and not self._flush_due
            self._flush_due |= due
        if wake:
            self._executor.create_task(self.flush)

    def close(self) -> None:
        """Drop what an engine that was given up still puts: its goals have ended."""
        self._closed = True

    def flush(self) -> None:
        """Carry out everything that waits."""
        with self._lock:
            commands, self._waiting, self._flush_due = self._waiting, [], False
        for command in commands:
            self._try(command)

    def _try(self, command: ev.Command) -> None:
        """Carry out ``command``; what goes wrong with it is logged, and costs no other one. A
        segment that could not be sent is missed by its acknowledgement."""
        try:
            self._carry_out(command)
        except Exception:
            self._executor.tell()

    def drain(self, timeout: float) -> None:
        """Wait, at most ``timeout`` s, until everybody has what was published: what a process has
        published and nobody has acknowledged is lost when the process ends."""
        limit = time.monotonic() + timeout
        publishers = (*self._links.publishers, self._events, self._robots)
        for publisher in publishers:
            publisher.wait_for_all_acked(Duration(seconds=max(0.0, limit - time.monotonic())))

    def _carry_out(self, command: ev.Command) -> None:
        match command:
            case ev.SendSegment(robot_id, segment):
                self._links.send(robot_id, segment)
            case ev.EmitEvent(event):
                self._events.publish(event_to_ros(event, self._services.instance))
                if self._fleet is not None:
                    self._fleet.event(event)
            case ev.EmitFeedback(feedback):
                self._plans.feedback(feedback)
            case ev.EndGoal(result):
                self._plans.end(result)
            case ev.Registered() | ev.Answered() | ev.Probed():
                self._services.answer(command)
            case ev.RobotsChanged(robots):
                self.show_robots(robots)
            case ev.RobotFaulted(robot_id, words):
                self._log.error(
                    f"robot {robot_id!r} is given up: {words}", throttle_duration_sec=1.0
                )
            case ev.TimesLearned(learned):
                self._times.keep(learned)
            case ev.SkillDrifted(robot_id, skill, factor):
                self._times.drifted(robot_id, skill, factor)
            case _:
                assert_never(command)

    def show_robots(self, robots: tuple[RobotInfo, ...]) -> None:
        """Publish the registered robots."""
        self._services.robots = robots
        self._repeats = _REPEATS
        self._publish_robots()
        if self._fleet is not None:
            self._fleet.robots(robots)

    def repeat_robots(self) -> None:
        """Publish them again, ``_REPEATS`` times after a change: call it once a second. Where one
        list follows the other at once, Fast DDS may leave the last one with a reader, untold, until
        the next comes."""
        if self._repeats:
            self._repeats -= 1
            self._publish_robots()

    def _publish_robots(self) -> None:
        robots, instance = self._services.robots, self._services.instance
        self._robots.publish(robots_to_ros(robots, instance, self._clock()))
