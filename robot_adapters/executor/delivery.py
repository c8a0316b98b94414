"""Which segments a robot takes. Pure: no plan runs here and nothing is sent.

Reliable is not delivered, and a motion must never be done twice: indices of a plan count up
without gaps, a plan that is over stays over, and segments of another session are strangers.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from timely_llm.protocols.messages import NO_PLAN, ExecutionState, Segment, SegmentCommand

#: Ends after which a REPLACE may go on with the same plan id (the goal is planned again).
REPLANNED = (ExecutionState.FAILED, ExecutionState.REPLAN_REQUESTED)
#: Plans that are remembered as over; far more than can be in flight.
MEMORY = 256


@dataclass(frozen=True, slots=True)
class Take:
    """The segment is the next one; ``begins``: of a plan (or of a replan) that begins with it."""

    begins: bool = False


@dataclass(frozen=True, slots=True)
class Reject:
    """The segment is refused and the planner must know why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Ignore:
    """Nothing to say: the plan's end was reported already, or the robot is not registered yet."""


Verdict = Take | Reject | Ignore


class Delivery:
    """Counts the segments of one session."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}  # of the current plan
        self._complete = False  # its last segment has come
        self._over: OrderedDict[str, tuple[ExecutionState, int]] = OrderedDict()

    def over(self, plan_id: str, state: ExecutionState) -> None:
        """The plan has ended as ``state``: what still comes of it is ignored."""
        self._over[plan_id] = (state, self._next.pop(plan_id, 0))
        self._over.move_to_end(plan_id)
        while len(self._over) > MEMORY:
            self._over.popitem(last=False)

    def judge(
        self,
        segment: Segment,
        session: int | None,
        current: str | None,
        refusal: str,
        waits: bool = False,
    ) -> Verdict:
        """What to do with a segment. ``current`` is the plan in progress, which ``waits`` for text
        or does not; ``refusal`` why no plan may begin or go on (empty: it may)."""
        if session is None:
            return Ignore()
        if segment.session != session:
            return Reject(f"session {segment.session}: this robot has session {session}")
        if segment.plan_id == NO_PLAN:
            return Reject("plan_id is zero")
        if segment.command is SegmentCommand.CANCEL:
            return self._cancel(segment, current)
        if segment.plan_id == current:
            return Ignore() if refusal else self._next_of(segment, waits)
        if segment.plan_id in self._over:
            return self._late(segment, refusal)
        return self._first(segment, current, refusal)

    def _cancel(self, segment: Segment, current: str | None) -> Verdict:
        if segment.plan_id in self._over:  # whatever replaces it comes too late
            _, expected = self._over[segment.plan_id]
            self._over[segment.plan_id] = (ExecutionState.ABORTED, expected)
        elif segment.plan_id != current:
            self.over(segment.plan_id, ExecutionState.ABORTED)
        return Take()

    def _next_of(self, segment: Segment, waits: bool) -> Verdict:
        """A further segment of the plan in progress, or the first of one that takes its place."""
        expected = self._next[segment.plan_id]
        if segment.index < expected:
            return Reject(f"repeat: segment {segment.index} was received already")
        if self._complete:
            return Reject(f"segment {segment.index} behind the last one, {expected - 1}")
        if segment.index > expected:
            return Reject(f"gap: segment {segment.index}, but {expected} was expected")
        replaces = segment.command is SegmentCommand.REPLACE
        if replaces and not waits:
            return Reject("a plan in progress cannot be planned again")
        self._count(segment)
        return Take(begins=replaces)

    def _late(self, segment: Segment, refusal: str) -> Verdict:
        """A segment of a plan that is over. In-flight ones are counted, so that the REPLACE that
        plans the goal again differs from a repetition."""
        state, expected = self._over[segment.plan_id]
        if segment.index >= expected:
            self._over[segment.plan_id] = (state, segment.index + 1)
        if segment.command is not SegmentCommand.REPLACE or state not in REPLANNED:
            return Ignore()
        if segment.index < expected:
            return Reject(f"repeat: segment {segment.index} of a replan, {expected} was expected")
        return self._begin(segment, refusal)

    def _first(self, segment: Segment, current: str | None, refusal: str) -> Verdict:
        """The first segment of a plan that this robot does not know."""
        if segment.index != 0:
            return Reject(f"gap: segment {segment.index} of an unknown plan, but 0 was expected")
        if current is not None and segment.command is not SegmentCommand.REPLACE and not refusal:
            self.over(segment.plan_id, ExecutionState.REJECTED)
            return Reject(f"busy with plan {current}")
        return self._begin(segment, refusal)

    def _begin(self, segment: Segment, refusal: str) -> Verdict:
        if refusal:
            self.over(segment.plan_id, ExecutionState.REJECTED)
            return Reject(refusal)
        self._over.pop(segment.plan_id, None)
        self._count(segment)
        return Take(begins=True)

    def _count(self, segment: Segment) -> None:
        self._next[segment.plan_id] = segment.index + 1
        self._complete = segment.last
