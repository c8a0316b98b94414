"""Goals that come and are cancelled: what is refused, and whose turn it is on a busy robot."""

from __future__ import annotations

from dataclasses import replace

from timely_llm.core import events as ev
from timely_llm.core.config import Limits, urgency_of
from timely_llm.core.probes import Probes
from timely_llm.core.request import Request, State
from timely_llm.core.robots import Refused, Robot
from timely_llm.core.state import PlannerState
from timely_llm.protocols.messages import (
    LONGEST_TIME,
    ErrorCode,
    PlanEventType,
    PlanGoal,
    PlanResult,
    WhenBusy,
    head,
)
from timely_llm.protocols.utility import Urgency


class Goals:
    """Takes goals in and ends them on their clients' wish."""

    def __init__(self, state: PlannerState, probes: Probes) -> None:
        self._state, self._probes = state, probes

    def arrived(self, event: ev.GoalArrived, now: float) -> None:
        """Start the goal, queue it, or end it with the reason."""
        state, goal = self._state, event.goal
        if event.plan_id in state.requests:
            return  # the same goal again; its own result is still to come
        request = state.accept(event.plan_id, _bounded(goal, state.config.limits), now)
        try:
            if not state.active:
                raise Refused(ErrorCode.PLANNER_INACTIVE, "the planner is not active")
            check_goal(goal, state.config.limits)
            robot = state.fleet.find(goal.robot_id)
            _check_robot(robot)
            self._admit(robot, request, now)
        except Refused as refusal:
            state.end(request, refusal.code, refusal.error, now)

    def invalid(self, event: ev.GoalInvalid, now: float) -> None:
        """A goal that could not be read still gets its result."""
        result = PlanResult(event.plan_id, ErrorCode.INVALID_GOAL, event.reason)
        self._state.out.append(ev.EndGoal(result))

    def canceled(self, event: ev.GoalCanceled, now: float) -> None:
        """Stop the goal wherever it is; one that has ended already has its result."""
        request = self._state.requests.get(event.plan_id)
        if request is not None:
            self._state.stop(request, ErrorCode.CANCELED, "canceled by the client", now)

    def activate(self, event: ev.Activate, now: float) -> None:
        """Accept goals from now on."""
        self._state.active = True

    def deactivate(self, event: ev.Deactivate, now: float) -> None:
        """End every goal now; robots have to stand still."""
        state = self._state
        state.active = False
        for robot in state.fleet:
            for request in list(robot.queue):
                state.end(request, event.code, event.reason, now)
        self._probes.end_all(event.code, event.reason)
        for request in list(state.requests.values()):
            state.stop(request, event.code, event.reason, now)
            state.end_stopped(request, event.code, event.reason, now)

    def _admit(self, robot: Robot, request: Request, now: float) -> None:
        """Whose turn is it? ``Refused`` where it is another's and this one may not wait."""
        state, goal = self._state, request.goal
        limit = state.config.limits.queue
        if robot.current is None:
            state.assign(robot, request, now)
        elif goal.when_busy is WhenBusy.REJECT:
            words = f"robot {robot.robot_id!r} executes another plan"
            raise Refused(ErrorCode.ROBOT_BUSY, words)
        elif goal.when_busy is WhenBusy.PREEMPT:
            self._preempt(robot, robot.current, request, now)
        elif len(robot.queue) >= limit:
            words = f"{len(robot.queue)} goals wait for robot {robot.robot_id!r}: at most {limit}"
            raise Refused(ErrorCode.ROBOT_BUSY, words)
        else:
            state.enqueue(robot, request, now)

    def _preempt(self, robot: Robot, old: Request, request: Request, now: float) -> None:
        """Take the robot: at once if urgent, else with the first valid segment."""
        urgency, held = urgency_of(request.goal), urgency_of(old.goal)
        if urgency > held and old.state is not State.STOPPING:
            raise Refused(
                ErrorCode.OUTRANKED,
                f"robot {robot.robot_id!r} executes a plan of urgency {held.name}: "
                f"{urgency.name} does not preempt it",
            )
        replaced = self._state.take_over(robot, request, now)
        if replaced is None or urgency > Urgency.URGENT:
            return
        if replaced.state not in (State.STOPPING, State.ENDED):
            self._state.emit(replaced, PlanEventType.PREEMPTED, now)
            words = "an urgent goal took the robot"
            self._state.stop(replaced, ErrorCode.PREEMPTED, words, now)


def _check_robot(robot: Robot) -> None:
    if not robot.alive:
        raise Refused(ErrorCode.ROBOT_LOST, f"robot {robot.robot_id!r} does not answer")
    if robot.stopped:
        raise Refused(
            ErrorCode.ROBOT_STOPPED, f"robot {robot.robot_id!r} is stopped: rearm it first"
        )


def _bounded(goal: PlanGoal, limits: Limits) -> PlanGoal:
    """The goal, with no more of its texts than one may have that is not refused for them."""
    instruction, scene = head(goal.instruction, limits.instruction), head(goal.scene, limits.scene)
    if (instruction, scene) == (goal.instruction, goal.scene):
        return goal
    return replace(goal, instruction=instruction, scene=scene)


def check_goal(goal: PlanGoal, limits: Limits) -> None:
    """``Refused`` with ``INVALID_GOAL``, naming the field and the limit, unless the goal is sound.

    The utility was checked when it was made.
    """

    def refuse(reason: str) -> None:
        raise Refused(ErrorCode.INVALID_GOAL, reason)

    if not goal.instruction.strip():
        refuse("instruction is empty")
    for name in ("instruction", "scene"):
        length, limit = len(getattr(goal, name)), getattr(limits, name)
        if length > limit:
            refuse(f"{name} has {length} characters: at most {limit}")
    for name in ("ttft", "tpot", "time_budget"):
        value = getattr(goal, name)
        if not 0.0 <= value <= LONGEST_TIME:
            refuse(f"{name} is {value} s: must be 0 to {LONGEST_TIME:g} s (0: none)")
    if goal.max_replans > limits.replans:
        refuse(f"max_replans is {goal.max_replans}: at most {limits.replans}")
