"""What robots report while they execute, and what their silence means."""

from __future__ import annotations

import math
from collections.abc import Callable

from timely_llm.core import events as ev
from timely_llm.core import probes, replans
from timely_llm.core.goals import replans_of
from timely_llm.core.request import Request, State
from timely_llm.core.robots import Robot
from timely_llm.core.state import Plans
from timely_llm.protocols.messages import (
    NO_PLAN,
    ErrorCode,
    Execution,
    ExecutionState,
    PlanEventType,
    SegmentCommand,
)

STOPPED = "stopped"  # how the error of an IDLE report begins while the robot's stop is latched


def execution_arrived(plans: Plans, event: ev.ExecutionArrived, now: float) -> None:
    """Follow a robot's report. Repeats and other sessions' reports are no news."""
    robot = plans.fleet.robots.get(event.robot_id)
    report = event.execution
    first = robot is not None and not robot.spoke
    if robot is None or not robot.heard(report, now):
        return
    if first:
        _reached(plans, robot, now)
    _follow_robot(plans, robot, report, now)
    plan = plans.live.get(report.plan_id)
    if plan is not None and plan.goal.robot_id == robot.robot_id and not plan.unsent:
        _REPORTS[report.state](plans, robot, plan, report, now)
        plans.views.touch(report.plan_id)
    elif report.state in (ExecutionState.STARTED, ExecutionState.RUNNING) or _waits(plan, report):
        # It executes what is over here, or waits for more of it: a command to stop was lost.
        plans.command(robot, SegmentCommand.CANCEL, report.plan_id, now)
    elif report.state is ExecutionState.IDLE and report.plan_id == NO_PLAN:
        _end_forgotten(plans, robot, now)


def _waits(plan: Request | None, report: Execution) -> bool:
    """The robot has run dry in a plan that is over here."""
    return plan is None and report.state is ExecutionState.IDLE and report.plan_id != NO_PLAN


def _reached(plans: Plans, robot: Robot, now: float) -> None:
    """The robot speaks for the first time in its session: what waited for it reaches it now."""
    plans.look_at(lost_at(plans, robot))
    for plan in plans.live.values():
        if plan.goal.robot_id == robot.robot_id and plan.unacknowledged:
            plan.unacknowledged = dict.fromkeys(plan.unacknowledged, now)
            plans.look_at(now + plans.config.ack_timeout)


def _follow_robot(plans: Plans, robot: Robot, report: Execution, now: float) -> None:
    """Alive again, stopped or rearmed: what holds for the robot, whatever the plan."""
    stopped = robot.stopped
    if report.state is ExecutionState.IDLE:
        stopped = report.error.startswith(STOPPED)
        if stopped:
            robot.stop_sent = None
        stopped = stopped or robot.stop_sent is not None  # an IDLE from before does not rearm it
    if robot.stop_sent is not None and now >= robot.stop_sent + plans.config.ack_timeout:
        send_stop(plans, robot, now)  # the first one was lost
    if not robot.alive or stopped != robot.stopped:
        robot.alive, robot.stopped = True, stopped
        plans.robots_changed()
        plans.look_at(now + plans.config.heartbeat_timeout)
        if stopped:
            _end_all(plans, robot, ErrorCode.ROBOT_STOPPED, "is stopped", now)
        else:
            plans.next(robot, now)


def _end_forgotten(plans: Plans, robot: Robot, now: float) -> None:
    """The robot has no plan: one that it took is over there, and the report of that was lost."""
    for plan in list(plans.live.values()):
        ours = plan.goal.robot_id == robot.robot_id
        if ours and plan.taken and not plan.unacknowledged:
            error = f"robot {robot.robot_id!r} has ended the plan, but its report of it was lost"
            _robot_is_done(plans, plan, ErrorCode.DELIVERY_FAILED, error, now)


def _received(plans, robot, plan, report, now) -> None:
    plan.taken = True
    plan.unacknowledged.pop(report.segment, None)
    plan.horizon.received(report, now)


def _progress(plans, robot, plan: Request, report: Execution, now: float) -> None:
    plan.elapsed = report.elapsed
    plan.horizon.reported(report, now)
    if report.state is ExecutionState.STARTED and plan.state is not State.STOPPING:
        plans.feedback(plan, now)


def _succeeded(plans, robot: Robot, plan: Request, report: Execution, now: float) -> None:
    plan.executed(report.elapsed)
    plan.history.append(replans.done(report, robot.skills))
    _learn(plans, robot, report)
    plan.horizon.reported(report, now)


def _learn(plans: Plans, robot: Robot, report: Execution) -> None:
    """How long the call took. What failed or was broken off is no duration."""
    times = robot.times
    if times is None or not plans.fleet.times.learning:
        return
    plans.fleet.times.changes += 1
    factor = times.observe(report.call, report.elapsed)
    if factor is not None:
        plans.out.append(ev.SkillDrifted(robot.robot_id, times.name(report.call), factor))


def keep_times(plans: Plans, event: ev.KeepTimes, now: float) -> None:
    """Hand out what was learned since the last time, if there is anything."""
    learned = plans.fleet.times and plans.fleet.times.news()
    if learned:
        plans.out.append(ev.TimesLearned(learned))


def _failed(plans, robot: Robot, plan: Request, report: Execution, now: float) -> None:
    plan.executed(report.elapsed)
    call = f"{written(report)}: " if report.call.name else ""
    error = f"robot {robot.robot_id!r}: {call}{report.error}"
    _failed_or_replan(plans, robot, plan, report, error, now)


def _aborted(plans, robot: Robot, plan: Request, report: Execution, now: float) -> None:
    plan.executed(report.elapsed)
    error = f"robot {robot.robot_id!r} stopped the plan: {report.error}"
    _robot_is_done(plans, plan, ErrorCode.ROBOT_STOPPED, error, now)


def _rejected(plans, robot: Robot, plan: Request, report: Execution, now: float) -> None:
    error = f"robot {robot.robot_id!r} refused segment {report.segment}: {report.error}"
    if plan.taken:
        plans.stop(plan, ErrorCode.SEGMENT_REFUSED, error, now)
    else:  # it has nothing of the plan to be stopped
        _robot_is_done(plans, plan, ErrorCode.SEGMENT_REFUSED, error, now)


def _returned(plans, robot, plan: Request, report: Execution, now: float) -> None:
    plan.value = report.value
    plans.emit(plan, PlanEventType.RETURNED, now, result=plan.result(ErrorCode.NONE, "", now))
    _robot_is_done(plans, plan, ErrorCode.NONE, "", now)


def _replan(plans, robot: Robot, plan: Request, report: Execution, now: float) -> None:
    error = f"robot {robot.robot_id!r} ended the plan and asked for another one"
    _failed_or_replan(plans, robot, plan, report, error, now)


def _failed_or_replan(
    plans, robot: Robot, plan: Request, report: Execution, error: str, now: float
) -> None:
    asked = report.state is ExecutionState.REPLAN_REQUESTED
    if replans.may_replan(plans, robot, plan, asked):
        replans.replan(plans, robot, plan, report, error, now)
        return
    if plan.attempts:
        error = f"{error} (after {len(plan.attempts)} of {replans_of(plan.goal)} replans)"
    _robot_is_done(plans, plan, ErrorCode.SKILL_FAILED, error, now)


def _idle(plans, robot, plan: Request, report: Execution, now: float) -> None:
    plan.horizon.starve(now)


_REPORTS: dict[ExecutionState, Callable[[Plans, Robot, Request, Execution, float], None]] = {
    ExecutionState.RECEIVED: _received,
    ExecutionState.STARTED: _progress,
    ExecutionState.RUNNING: _progress,
    ExecutionState.SUCCEEDED: _succeeded,
    ExecutionState.FAILED: _failed,
    ExecutionState.ABORTED: _aborted,
    ExecutionState.REJECTED: _rejected,
    ExecutionState.PLAN_RETURNED: _returned,
    ExecutionState.REPLAN_REQUESTED: _replan,
    ExecutionState.IDLE: _idle,
}


def written(report: Execution) -> str:
    """The call of a report as a plan writes it, with the values that were used."""
    return f"{report.call.name}({','.join(report.call.evaluated or report.call.arguments)})"


def _robot_is_done(plans: Plans, plan: Request, code: ErrorCode, error: str, now: float) -> None:
    """The robot stands still: the plan ends, with why it was being stopped if it was."""
    if plan.state is State.STOPPING:
        code, error = plan.code, plan.error
    plans.end(plan, code, error, now)


def _end_all(plans: Plans, robot: Robot, code: ErrorCode, words: str, now: float) -> None:
    """The robot is lost or stopped: everything that was to run on it is over."""
    error = f"robot {robot.robot_id!r} {words}"
    for plan in list(robot.queue):
        plans.end(plan, code, error, now)
    for plan in [p for p in plans.live.values() if p.goal.robot_id == robot.robot_id]:
        if plan.segments and plan.state is not State.STOPPING and not robot.stopped:
            plans.command(robot, SegmentCommand.CANCEL, plan.plan_id, now)
        plans.end(plan, plan.code or code, plan.error or error, now)


def expire(plans: Plans, now: float) -> None:
    """Look at silence: segments not acknowledged, robots not heard, stops not confirmed."""
    if now < plans.due:
        return
    plans.due = math.inf
    for robot in plans.fleet:
        if robot.alive and now >= lost_at(plans, robot):
            robot.alive = False
            plans.robots_changed()
            silent = now - robot.last_heard
            _end_all(plans, robot, ErrorCode.ROBOT_LOST, f"is silent for {silent:.1f} s", now)
        elif robot.alive:
            plans.look_at(lost_at(plans, robot))
    for plan in list(plans.live.values()):
        _expire_plan(plans, plan, now)
    probes.expire(plans, now)


def lost_at(plans: Plans, robot: Robot) -> float:
    """When the robot is lost unless it is heard before, in s."""
    config = plans.config
    return robot.last_heard + (
        config.heartbeat_timeout if robot.spoke else config.first_report_timeout
    )


def _expire_plan(plans: Plans, plan: Request, now: float) -> None:
    config = plans.config
    if plan.state is State.STOPPING:
        if now >= plan.stop_deadline:
            error = f"{plan.error}; the robot did not confirm that it stands still"
            plans.end(plan, plan.code, error, now)
        else:
            plans.look_at(plan.stop_deadline)
    elif plan.unacknowledged and plans.robot_of(plan).spoke:
        index, sent = next(iter(plan.unacknowledged.items()))
        if now >= sent + config.ack_timeout:
            error = (
                f"robot {plan.goal.robot_id!r} did not acknowledge segment {index} within "
                f"{config.ack_timeout} s"
            )
            plans.stop(plan, ErrorCode.DELIVERY_FAILED, error, now)
        else:
            plans.look_at(sent + config.ack_timeout)


def send_stop(plans: Plans, robot: Robot, now: float) -> None:
    """Halt and latch, whatever the robot does. Repeated until it is confirmed: stopping twice does
    no harm, but a stop that was lost does."""
    plans.command(robot, SegmentCommand.STOP, NO_PLAN, now)
    robot.stopped, robot.stop_sent = True, now


def stop_robots(plans: Plans, event: ev.StopRobots, now: float) -> None:
    """Stop one robot or all: motion halts, its plans end, the stop is latched on the robot."""
    known = plans.fleet.robots
    if event.robot_id and event.robot_id not in known:
        plans.out.append(
            ev.Answered(
                event.ticket,
                ErrorCode.UNKNOWN_ROBOT,
                f"robot_id {event.robot_id!r} is not registered",
            )
        )
        return
    robots = [known[event.robot_id]] if event.robot_id else list(plans.fleet)
    for robot in robots:
        send_stop(plans, robot, now)
        _end_all(plans, robot, ErrorCode.ROBOT_STOPPED, "was stopped", now)
    plans.robots_changed()
    plans.out.append(ev.Answered(event.ticket, robots=tuple(r.robot_id for r in robots)))
