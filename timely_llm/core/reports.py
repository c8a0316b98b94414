"""What robots report while they execute, and what their silence means."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from timely_llm.core import events as ev
from timely_llm.core.config import replans_of
from timely_llm.core.replans import attempt_of, done, may_replan, refused_attempt
from timely_llm.core.request import Request, State
from timely_llm.core.robots import Robot
from timely_llm.core.state import PlannerState
from timely_llm.protocols.messages import (
    NO_PLAN,
    ErrorCode,
    Execution,
    ExecutionState,
    PlanEventType,
    SegmentCommand,
)

_Follow = Callable[[Robot, Request, Execution, float], None]


class Reports:
    """Follows what robots say, and notices what they do not say."""

    def __init__(self, state: PlannerState) -> None:
        self._state = state
        self._follow: dict[ExecutionState, _Follow] = {
            ExecutionState.RECEIVED: self._received,
            ExecutionState.STARTED: self._progress,
            ExecutionState.RUNNING: self._progress,
            ExecutionState.SUCCEEDED: self._succeeded,
            ExecutionState.FAILED: self._failed,
            ExecutionState.ABORTED: self._aborted,
            ExecutionState.REJECTED: self._rejected,
            ExecutionState.PLAN_RETURNED: self._returned,
            ExecutionState.REPLAN_REQUESTED: self._replan,
            ExecutionState.REFUSED: self._refused,
            ExecutionState.IDLE: self._idle,
        }

    def arrived(self, event: ev.ExecutionArrived, now: float) -> None:
        """Follow a robot's report. Repeats and other sessions' reports are no news. Whatever goes
        wrong with one costs its robot, and no other."""
        robot = self._state.fleet.robots.get(event.robot_id)
        if robot is None:
            return
        try:
            self._follow_report(robot, event.execution, now)
        except Exception as error:
            words = f"its report could not be handled: {error}"
            self._give_up(robot, words, traceback.format_exc(), now)

    def invalid(self, event: ev.ReportInvalid, now: float) -> None:
        """A report that could not be read; one of another session is a stranger's."""
        robot = self._state.fleet.robots.get(event.robot_id)
        if robot is not None and event.session == robot.session:
            self._give_up(robot, event.reason, event.reason, now)

    def _give_up(self, robot: Robot, reason: str, log: str, now: float) -> None:
        """What the robot does is not known: it is lost until its next report, and is to stop."""
        robot.alive = False
        self._state.out.append(ev.RobotFaulted(robot.robot_id, log))
        self._state.robots_changed()
        self._end_all(robot, ErrorCode.ROBOT_LOST, f"is given up: {reason}", now)

    def _follow_report(self, robot: Robot, report: Execution, now: float) -> None:
        state, first = self._state, not robot.spoke
        if not robot.heard(report, now):
            return
        if first:
            state.look_at(state.lost_at(robot))
            state.reached(robot, now)
        self._follow_robot(robot, report, now)
        request = state.requests.get(report.plan_id)
        if request is not None and request.goal.robot_id == robot.robot_id and not request.unsent:
            self._follow[report.state](robot, request, report, now)
            state.views.touch(report.plan_id)
        elif report.state in (ExecutionState.STARTED, ExecutionState.RUNNING) or (
            request is None and report.state is ExecutionState.IDLE and report.plan_id != NO_PLAN
        ):
            # It executes what is over here, or waits for more of it: a command to stop was lost.
            state.command(robot, SegmentCommand.CANCEL, report.plan_id, now)
        elif report.state is ExecutionState.IDLE and report.plan_id == NO_PLAN:
            self._end_forgotten(robot, now)

    def _follow_robot(self, robot: Robot, report: Execution, now: float) -> None:
        """Alive again, stopped or rearmed: what holds for the robot, whatever the plan."""
        state = self._state
        news = robot.follow(report)
        if robot.stop_sent is not None and now >= robot.stop_sent + state.config.ack_timeout:
            state.stop_robot(robot, now)  # the first one was lost
        if not news:
            return
        state.robots_changed()
        state.look_at(now + state.config.heartbeat_timeout)
        if robot.stopped:
            self._end_all(robot, ErrorCode.ROBOT_STOPPED, "is stopped", now)
        else:
            state.next(robot, now)

    def _end_forgotten(self, robot: Robot, now: float) -> None:
        """The robot has no plan: one that it took is over, and the report of that was lost."""
        for request in self._state.requests_of(robot):
            if request.taken and not request.unacknowledged:
                name = repr(robot.robot_id)
                words = f"robot {name} has ended the plan, but its report of it was lost"
                self._state.end_stopped(request, ErrorCode.DELIVERY_FAILED, words, now)

    # One report each: the robot stands still after those that end the request.

    def _received(self, robot: Robot, request: Request, report: Execution, now: float) -> None:
        request.received(report, now)

    def _progress(self, robot: Robot, request: Request, report: Execution, now: float) -> None:
        request.progressed(report, now)
        if report.state is ExecutionState.STARTED and request.state is not State.STOPPING:
            self._state.feedback(request, now)

    def _succeeded(self, robot: Robot, request: Request, report: Execution, now: float) -> None:
        request.executed(report.elapsed)
        request.remember(done(report, self._state.prompts.named(robot.skills)))
        self._learn(robot, report)
        request.horizon.reported(report, now)

    def _learn(self, robot: Robot, report: Execution) -> None:
        """How long the call took. What failed or was broken off is no duration."""
        times, learned = robot.times, self._state.fleet.times
        if times is None or learned is None or not learned.learning:
            return
        learned.changes += 1
        factor = times.observe(report.call, report.elapsed)
        if factor is not None:
            skill = times.name(report.call)
            self._state.out.append(ev.SkillDrifted(robot.robot_id, skill, factor))

    def keep_times(self, event: ev.KeepTimes, now: float) -> None:
        """Hand out what was learned since the last time, if there is anything."""
        times = self._state.fleet.times
        learned = times.news() if times else None
        if learned:
            self._state.out.append(ev.TimesLearned(learned))

    def _failed(self, robot: Robot, request: Request, report: Execution, now: float) -> None:
        request.executed(report.elapsed)
        values = ",".join(report.call.evaluated or report.call.arguments)
        call = f"{report.call.name}({values}): " if report.call.name else ""
        error = f"robot {robot.robot_id!r}: {call}{report.error}"
        self._fail(robot, request, report, error, now)

    def _aborted(self, robot: Robot, request: Request, report: Execution, now: float) -> None:
        request.executed(report.elapsed)
        error = f"robot {robot.robot_id!r} stopped the plan: {report.error}"
        self._state.end_stopped(request, ErrorCode.ROBOT_STOPPED, error, now)

    def _rejected(self, robot: Robot, request: Request, report: Execution, now: float) -> None:
        error = f"robot {robot.robot_id!r} refused segment {report.segment}: {report.error}"
        if request.taken:
            self._state.stop(request, ErrorCode.SEGMENT_REFUSED, error, now)
        else:  # it has nothing of the plan to be stopped
            self._state.end_stopped(request, ErrorCode.SEGMENT_REFUSED, error, now)

    def _returned(self, robot: Robot, request: Request, report: Execution, now: float) -> None:
        request.returned(report.value)
        result = request.result(ErrorCode.NONE, "", now)
        self._state.emit(request, PlanEventType.RETURNED, now, result=result)
        self._state.end_stopped(request, ErrorCode.NONE, "", now)

    def _refused(self, robot: Robot, request: Request, report: Execution, now: float) -> None:
        self._state.end_stopped(request, ErrorCode.REFUSED, report.error, now)

    def _replan(self, robot: Robot, request: Request, report: Execution, now: float) -> None:
        error = f"robot {robot.robot_id!r} ended the plan and asked for another one"
        self._fail(robot, request, report, error, now)

    def _fail(
        self, robot: Robot, request: Request, report: Execution, error: str, now: float
    ) -> None:
        """The plan has failed on its robot: the goal ends, or is planned again. A robot that was to
        stop and reports this may not stand still: the goal says so."""
        if request.state is State.STOPPING:
            self._state.end(request, request.code, f"{request.error}; {error}", now)
            return
        asked = report.state is ExecutionState.REPLAN_REQUESTED
        if self._state.active and may_replan(robot, request, asked):
            attempt = attempt_of(request, self._state.prompts.named(robot.skills), report)
            self._state.replan(request, attempt, ErrorCode.SKILL_FAILED, error, now)
            return
        error = _after_replans(request, error)
        self._state.end_stopped(request, ErrorCode.SKILL_FAILED, error, now)

    def _idle(self, robot: Robot, request: Request, report: Execution, now: float) -> None:
        request.horizon.starve(now)
        if request.refused and not request.unacknowledged:
            self._go_on_without(robot, request, now)

    # What the planner's own check refuses.

    def refused(self, request: Request, error: str, now: float) -> None:
        """The check refuses what was written next, and nothing of that is sent: the goal ends, or
        is planned again once the robot has done what it got before."""
        robot = self._state.robot_of(request)
        if robot is None or not self._state.active or not may_replan(robot, request, asked=False):
            words = _after_replans(request, error)
            self._state.stop(request, ErrorCode.INVALID_PLAN, words, now)
            return
        self._state.refuse(request, error)
        if request.unsent:
            self._go_on_without(robot, request, now)

    def _go_on_without(self, robot: Robot, request: Request, now: float) -> None:
        """The robot waits, and what was written next was refused."""
        if self._state.active and may_replan(robot, request, asked=False):
            attempt, error = refused_attempt(request), request.refused
            self._state.replan(request, attempt, ErrorCode.INVALID_PLAN, error, now)
        else:
            self._state.stop(request, ErrorCode.INVALID_PLAN, request.refused, now)

    # Stops, and silence.

    def _end_all(self, robot: Robot, code: ErrorCode, words: str, now: float) -> None:
        """The robot is lost or stopped: everything that was to run on it is over."""
        self._state.end_all(
            robot,
            code,
            f"robot {robot.robot_id!r} {words}",
            now,
            cancel=lambda request: request.state is not State.STOPPING and not robot.stopped,
        )

    def stop_robots(self, event: ev.StopRobots, now: float) -> None:
        """Stop one robot or all: motion halts, its plans end, the stop is latched on the robot."""
        state = self._state
        known = state.fleet.robots
        if event.robot_id and event.robot_id not in known:
            words = f"robot_id {event.robot_id!r} is not registered"
            state.out.append(ev.Answered(event.ticket, ErrorCode.UNKNOWN_ROBOT, words))
            return
        robots = [known[event.robot_id]] if event.robot_id else list(state.fleet)
        for robot in robots:
            state.stop_robot(robot, now)
            self._end_all(robot, ErrorCode.ROBOT_STOPPED, "was stopped", now)
        state.robots_changed()
        names = tuple(robot.robot_id for robot in robots)
        state.out.append(ev.Answered(event.ticket, robots=names))

    def expire(self, now: float) -> None:
        """Look at silence: segments not acknowledged, robots not heard, stops not confirmed."""
        state = self._state
        for robot in state.fleet:
            if robot.alive and now >= state.lost_at(robot):
                robot.alive = False
                state.robots_changed()
                silent = now - robot.last_heard
                self._end_all(robot, ErrorCode.ROBOT_LOST, f"is silent for {silent:.1f} s", now)
            elif robot.alive:
                state.look_at(state.lost_at(robot))
        for request in list(state.requests.values()):
            self._expire(request, now)

    def _expire(self, request: Request, now: float) -> None:
        state = self._state
        if request.state is State.STOPPING:
            if now >= request.stop_deadline:
                error = f"{request.error}; the robot did not confirm that it stands still"
                state.end(request, request.code, error, now)
            else:
                state.look_at(request.stop_deadline)
            return
        robot = state.robot_of(request)
        if not request.unacknowledged or robot is None or not robot.spoke:
            return
        index, sent = next(iter(request.unacknowledged.items()))
        timeout = state.config.ack_timeout
        if now < sent + timeout:
            state.look_at(sent + timeout)
            return
        name = repr(request.goal.robot_id)
        error = f"robot {name} did not acknowledge segment {index} within {timeout} s"
        state.stop(request, ErrorCode.DELIVERY_FAILED, error, now)


def _after_replans(request: Request, error: str) -> str:
    """The goal's last words: how often it was planned again, if it was."""
    if not request.attempts:
        return error
    return f"{error} (after {len(request.attempts)} of {replans_of(request.goal)} replans)"
