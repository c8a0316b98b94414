"""Robots of a simulation: what ``robot_adapters`` does with a plan that is known beforehand.

A robot gets segments, does the calls one after another, each as long as the trace says, and reports
as the real executor does. Values in, reports out: no clock, no heap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from timely_llm.protocols.messages import Execution, ExecutionState, Segment, SkillCall
from timely_llm.simulation.known_plans import Action

HEARTBEAT = 0.2  # s between two reports of a call that takes longer than expected

NO_CALL = SkillCall("")
State = ExecutionState


class RobotPlan(Protocol):
    """What a robot is to do, as far as it is known. The plan is over after its ``actions`` once the
    robot has the segment ``ends``; ``ahead`` is the expected work in s before each action."""

    @property
    def actions(self) -> Sequence[Action]: ...

    @property
    def ends(self) -> float: ...

    @property
    def ahead(self) -> Sequence[float]: ...

    def grow(self, segment: Segment) -> None:
        """Another segment has come."""


class SimRobot:
    """One robot with one plan at a time, which may fail before one of its actions, or be halted.

    ``wake`` is when it has something to report next, in s; infinite: not before a segment comes.
    Only while ``steady`` it reports, as real robots do, also while a call takes no longer than
    expected: a planner that goes by the skill set learns nothing from that.
    """

    __slots__ = (
        *("robot_id", "session", "sequence", "plan", "plan_id", "durations", "next", "segments"),
        *("began", "ends", "wake", "over", "steady", "fails_at", "error"),
    )

    plan: RobotPlan
    durations: Sequence[float]

    def __init__(self, robot_id: str, session: int, steady: bool = False) -> None:
        self.steady = steady
        self.robot_id, self.session, self.sequence = robot_id, session, 0
        self.over, self.wake, self.plan_id = True, math.inf, ""

    def take(
        self,
        plan_id: str,
        plan: RobotPlan,
        durations: Sequence[float],
        fails_at: float = math.inf,
        error: str = "",
    ) -> None:
        """The plan whose segments come next; ``durations`` of its calls, in order of the text. The
        action ``fails_at`` fails with ``error``."""
        self.plan, self.plan_id, self.durations = plan, plan_id, durations
        self.fails_at, self.error = fails_at, error
        self.next = 0  # action
        self.segments = 0.0  # held; infinite with the last one
        self.began = self.ends = math.inf
        self.wake, self.over = math.inf, False

    def halt(self, now: float) -> list[Execution]:
        """Whatever it does is over; nothing if there is nothing."""
        if self.over:
            return []
        elapsed = now - self.began if math.isfinite(self.ends) else 0.0
        return [self._end(State.ABORTED, now, elapsed)]

    def _end(self, state: ExecutionState, now: float, elapsed: float) -> Execution:
        self.over, self.wake = True, math.inf
        self.began = self.ends = math.inf
        return self._report(state, now, elapsed=elapsed, error=self.error)

    def receive(self, segment: Segment, now: float) -> list[Execution]:
        """A segment has come: what it makes possible begins at once."""
        self.plan.grow(segment)
        self.segments = math.inf if segment.last else segment.index + 1
        reports = [self._report(State.RECEIVED, now, segment.index, *self._remaining(now))]
        if math.isinf(self.ends):
            self._go_on(now, reports)
        else:
            self._set_wake(now)
        return reports

    def tick(self, now: float) -> list[Execution]:
        """Due at ``wake``."""
        if now < self.ends:
            self.wake = min(self.ends, now + HEARTBEAT)
            return [self._progress(State.RUNNING, now)]
        reports: list[Execution] = []
        self._succeed(now, reports)
        self._go_on(now, reports)
        return reports

    def _go_on(self, now: float, reports: list[Execution]) -> None:
        """Do what can be done now: instant calls, the beginning of one that takes time, the end."""
        plan = self.plan
        if self.over:
            return
        if self.fails_at == self.next == len(plan.actions):
            reports.append(self._end(State.FAILED, now, 0.0))
            return
        while self.next < len(plan.actions) and plan.actions[self.next].needs < self.segments:
            self.began = now
            self.ends = now + self.durations[plan.actions[self.next].index]
            reports.append(self._progress(State.STARTED, now))
            if self.ends > now:
                self._set_wake(now)
                return
            self._succeed(now, reports)
            if self.over:
                return
        self.wake = math.inf
        if self.next == len(plan.actions) and plan.ends < self.segments:
            self.over = True
            reports.append(self._report(State.PLAN_RETURNED, now))
        else:
            reports.append(self._report(State.IDLE, now))

    def _succeed(self, now: float, reports: list[Execution]) -> None:
        action, elapsed = self.plan.actions[self.next], now - self.began
        if self.next == self.fails_at:
            reports.append(self._end(State.FAILED, now, elapsed))
            return
        self.next += 1
        self.began = self.ends = math.inf
        left, number = self._remaining(now), self.next - 1
        reports.append(
            self._report(State.SUCCEEDED, now, action.segment, *left, elapsed, action.call, number)
        )

    def _progress(self, state: ExecutionState, now: float) -> Execution:
        """A report about the call that is done now."""
        action = self.plan.actions[self.next]
        left, elapsed = self._remaining(now), now - self.began
        return self._report(state, now, action.segment, *left, elapsed, action.call, self.next)

    def _set_wake(self, now: float) -> None:
        """Before a call is over only its delay is news, and only while more is to be written."""
        expected = self.began
        if not self.steady:
            expected += self.plan.actions[self.next].call.expected_duration
        late = math.isfinite(self.segments) and expected + HEARTBEAT < self.ends
        self.wake = max(now, expected + HEARTBEAT) if late else self.ends

    def _remaining(self, now: float) -> tuple[float, float]:
        """Expected time in s that the current call takes on, and all that it holds."""
        plan, first = self.plan, self.next
        current = 0.0
        if math.isfinite(self.ends):
            expected = plan.actions[first].call.expected_duration
            current = max(0.0, expected - (now - self.began))
            first += 1
        held = first
        while held < len(plan.actions) and plan.actions[held].needs < self.segments:
            held += 1
        return current, current + self.plan.ahead[held] - self.plan.ahead[first]

    def _report(
        self,
        state: ExecutionState,
        now: float,
        segment: int = 0,
        skill_remaining: float = 0.0,
        total_remaining: float = 0.0,
        elapsed: float = 0.0,
        call: SkillCall = NO_CALL,
        call_number: int = 0,
        error: str = "",
    ) -> Execution:
        self.sequence += 1
        return Execution(
            self.session,
            self.sequence,
            self.plan_id,
            state,
            segment,
            call,
            call_number,
            elapsed,
            skill_remaining,
            total_remaining,
            error=error,
            stamp=now,
        )
