"""What plans and robots are doing now, followed from the planner's events and the robots' reports.

Values and state only: whoever receives the messages hands them in, with the time in s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from timely_llm.live.summary import PlanRecord, record
from timely_llm.protocols.messages import (
    Execution,
    ExecutionState,
    PlanEvent,
    PlanEventType,
    PlanGoal,
    PlanResult,
)

#: What a plan is doing after an event of this type; the others change nothing that is shown.
_STATES = {
    PlanEventType.ACCEPTED: "accepted",
    PlanEventType.QUEUED: "queued",
    PlanEventType.STARTED: "writing",
    PlanEventType.SUSPENDED: "suspended",
    PlanEventType.RESUMED: "writing",
    PlanEventType.EVICTED: "evicted",
    PlanEventType.PREEMPTED: "preempted",
    PlanEventType.REFUSED: "refused",
    PlanEventType.RETURNED: "returned",
    PlanEventType.ENDED: "ended",
    PlanEventType.REPLANNED: "replanning",
}
_OVER = (PlanEventType.REFUSED, PlanEventType.ENDED)


@dataclass(slots=True)
class LivePlan:
    """One plan: what is written of it, what its robot does of that, and how long the robot has
    stood still for want of it, in s."""

    plan_id: str
    goal: PlanGoal
    state: str = "sent"
    segments: list[str] = field(default_factory=list)
    call: str = ""  # in progress
    segment: int = -1  # that the call was written in
    waited: float = 0.0
    waits_since: float | None = None
    over: bool = False
    result: PlanResult | None = None

    def waiting(self, now: float) -> float:
        """s that the robot has stood still for want of this plan, up to ``now``."""
        return self.waited + (0.0 if self.waits_since is None else now - self.waits_since)

    def _wait(self, now: float) -> None:
        if self.waits_since is None and not self.over:
            self.waits_since = now

    def _work(self, now: float) -> None:
        self.waited, self.waits_since = self.waiting(now), None

    def follow_event(self, event: PlanEvent, now: float) -> None:
        self.state = _STATES.get(event.type, self.state)
        if event.type is PlanEventType.SEGMENT:
            # Segments of a plan count up; one that is missing here was lost on its way to us.
            self.segments.append(event.text)
            self.state = "written" if event.last else self.state
        elif event.type in (PlanEventType.STARTED, PlanEventType.ACCEPTED, PlanEventType.REPLANNED):
            self._wait(now)
        elif event.type is PlanEventType.QUEUED:
            self.waits_since = None  # its clock starts when the robot is free
        elif event.type in _OVER:
            self._work(now)
            self.over, self.call = True, ""

    def follow_robot(self, report: Execution, now: float) -> None:
        if self.over:
            return
        if report.state in (ExecutionState.STARTED, ExecutionState.RUNNING):
            self._work(now)
            arguments = report.call.evaluated or report.call.arguments
            self.call, self.segment = f"{report.call.name}({','.join(arguments)})", report.segment
        elif report.state in (ExecutionState.SUCCEEDED, ExecutionState.IDLE):
            self._wait(now)
            self.call = ""
        elif report.state is not ExecutionState.RECEIVED:
            self._work(now)
            self.call = ""


class Board:
    """All plans of a fleet, by robot; ``robots`` in the order in which they are shown."""

    def __init__(self, robots: Iterable[str]) -> None:
        self.robots = tuple(robots)
        self.plans: dict[str, LivePlan] = {}

    def sent(self, plan_id: str, goal: PlanGoal) -> None:
        """A goal is on its way."""
        self.plans[plan_id] = LivePlan(plan_id, goal)

    def event(self, event: PlanEvent, now: float) -> None:
        """Follow an event of a plan; plans of other clients are not shown."""
        if event.plan_id in self.plans:
            self.plans[event.plan_id].follow_event(event, now)

    def execution(self, robot_id: str, report: Execution, now: float) -> None:
        """Follow a report of a robot."""
        plan = self.plans.get(report.plan_id)
        if plan is not None and plan.goal.robot_id == robot_id:
            plan.follow_robot(report, now)

    def ended(self, plan_id: str, result: PlanResult) -> None:
        """The goal has its result."""
        self.plans[plan_id].result = result

    def of(self, robot_id: str) -> tuple[LivePlan | None, int]:
        """The plan to show for a robot (the one it works on, else its latest) and how many more
        wait for it."""
        plans = [plan for plan in self.plans.values() if plan.goal.robot_id == robot_id]
        waiting = [plan for plan in plans if plan.state in ("sent", "accepted", "queued")]
        at_work = [plan for plan in plans if not plan.over and plan not in waiting]
        if at_work:
            return at_work[-1], len(waiting)
        if waiting:
            return waiting[0], len(waiting) - 1
        return (plans[-1] if plans else None), 0

    def records(self) -> tuple[PlanRecord, ...]:
        """The rows of all goals that have their result, in the order they were sent."""
        return tuple(
            record(plan.goal, plan.result, plan.segments)
            for plan in self.plans.values()
            if plan.result is not None
        )
