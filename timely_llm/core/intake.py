"""Goals coming in and being cancelled: checks, and whose turn it is on a busy robot."""

from __future__ import annotations

from timely_llm.core import events as ev
from timely_llm.core import probes
from timely_llm.core.goals import check_goal, urgency_of
from timely_llm.core.request import Request, State
from timely_llm.core.robots import Refused, Robot
from timely_llm.core.state import Plans
from timely_llm.protocols.messages import ErrorCode, PlanEventType, PlanResult, WhenBusy
from timely_llm.protocols.utility import Urgency


def goal_arrived(plans: Plans, event: ev.GoalArrived, now: float) -> None:
    """Start the goal, queue it, or end it with the reason."""
    goal = event.goal
    if event.plan_id in plans.live:
        return  # the same goal again; its own result is still to come
    utility = plans.config.utility_of(goal)
    plan = Request(event.plan_id, plans.number(), goal, utility, arrival=now)
    plans.live[plan.plan_id] = plan
    plans.emit(plan, PlanEventType.ACCEPTED, now, goal=goal)
    try:
        if not plans.active:
            raise Refused(ErrorCode.PLANNER_INACTIVE, "the planner is not active")
        check_goal(goal, plans.config.limits)
        robot = plans.fleet.find(goal.robot_id)
        _check_robot(robot)
        _admit(plans, robot, plan, now)
    except Refused as refusal:
        plans.end(plan, refusal.code, refusal.error, now)


def goal_invalid(plans: Plans, event: ev.GoalInvalid, now: float) -> None:
    """A goal that could not be read still gets its result."""
    plans.out.append(ev.EndGoal(PlanResult(event.plan_id, ErrorCode.INVALID_GOAL, event.reason)))


def goal_canceled(plans: Plans, event: ev.GoalCanceled, now: float) -> None:
    """Stop the goal wherever it is; one that has ended already has its result."""
    plan = plans.live.get(event.plan_id)
    if plan is not None:
        plans.stop(plan, ErrorCode.CANCELED, "canceled by the client", now)


def deactivate(plans: Plans, event: ev.Deactivate, now: float) -> None:
    """End every goal now; robots are told to stand still."""
    plans.active = False
    for robot in plans.fleet:
        for plan in list(robot.queue):
            plans.end(plan, event.code, event.reason, now)
    probes.end_all(plans, event.code, event.reason)
    for plan in list(plans.live.values()):
        plans.stop(plan, event.code, event.reason, now)
        plans.end(plan, plan.code or event.code, plan.error or event.reason, now)


def activate(plans: Plans, event: ev.Activate, now: float) -> None:
    plans.active = True


def _check_robot(robot: Robot) -> None:
    if not robot.alive:
        raise Refused(ErrorCode.ROBOT_LOST, f"robot {robot.robot_id!r} does not answer")
    if robot.stopped:
        raise Refused(
            ErrorCode.ROBOT_STOPPED, f"robot {robot.robot_id!r} is stopped: rearm it first"
        )


def _admit(plans: Plans, robot: Robot, plan: Request, now: float) -> None:
    goal = plan.goal
    if robot.current is None:
        robot.current = plan
        plans.start(plan, robot, now)
    elif goal.when_busy is WhenBusy.REJECT:
        raise Refused(ErrorCode.ROBOT_BUSY, f"robot {robot.robot_id!r} executes another plan")
    elif goal.when_busy is WhenBusy.PREEMPT:
        _preempt(plans, robot, robot.current, plan, now)
    elif len(robot.queue) >= plans.config.limits.queue:
        raise Refused(
            ErrorCode.ROBOT_BUSY,
            f"{len(robot.queue)} goals wait for robot {robot.robot_id!r}: at most "
            f"{plans.config.limits.queue}",
        )
    else:
        robot.queue.append(plan)
        plans.emit(plan, PlanEventType.QUEUED, now)
        plans.feedback(plan, now, position=len(robot.queue))


def _preempt(plans: Plans, robot: Robot, old: Request, plan: Request, now: float) -> None:
    """Take the robot: at once if urgent, else with the first valid segment."""
    if urgency_of(plan.goal) > urgency_of(old.goal) and old.state is not State.STOPPING:
        raise Refused(
            ErrorCode.OUTRANKED,
            f"robot {robot.robot_id!r} executes a plan of urgency {urgency_of(old.goal).name}: "
            f"{urgency_of(plan.goal).name} does not preempt it",
        )
    plan.replaces, plan.replaced = True, old
    robot.current = plan
    plans.start(plan, robot, now)
    if plan.ended:  # refused after all: ``old`` has its robot back
        return
    if old.replaces and not old.segments:  # the robot still works on what ``old`` was to replace
        plan.replaced = old.replaced
        preempted(plans, old, now)
    halts = urgency_of(plan.goal) <= Urgency.URGENT and plan.replaced is not None
    if halts and plan.replaced.state not in (State.STOPPING, State.ENDED):
        plans.emit(plan.replaced, PlanEventType.PREEMPTED, now)
        plans.stop(plan.replaced, ErrorCode.PREEMPTED, "an urgent goal took the robot", now)


def preempted(plans: Plans, old: Request, now: float) -> None:
    """``old`` has lost its robot to another plan, which tells the robot so."""
    if old.state not in (State.STOPPING, State.ENDED):
        plans.emit(old, PlanEventType.PREEMPTED, now)
        plans.end(old, ErrorCode.PREEMPTED, "another goal took the robot", now)
