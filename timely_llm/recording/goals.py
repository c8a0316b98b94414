"""What became of each goal of a recording: when it was written, when its robot worked. Pure.

Everything comes from the recorded topics. Times are s on the planner's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from timely_llm.bench.burst import Span
from timely_llm.protocols.messages import (
    NO_PLAN,
    ErrorCode,
    Execution,
    ExecutionState,
    PlanEvent,
    PlanEventType,
    PlanGoal,
    PlanResult,
    Segment,
    SegmentCommand,
)
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency
from timely_llm.recording.recording import Recording

Type, State = PlanEventType, ExecutionState

_WRITING = (Type.STARTED, Type.RESUMED)
_RESTING = (Type.SUSPENDED, Type.EVICTED, Type.REPLANNED)
_OVER = (Type.ENDED, Type.REFUSED)
_CALL_ENDS = (State.SUCCEEDED, State.FAILED, State.ABORTED)


@dataclass(frozen=True, slots=True)
class SentSegment:
    """A segment: ``at`` the planner sent it; ``received`` by the robot, None where it never said
    so. ``steps`` are the times of the engine steps that wrote it."""

    index: int
    at: float
    text: str
    last: bool
    tokens: int
    steps: tuple[float, ...]
    received: float | None = None


@dataclass(frozen=True, slots=True)
class DoneCall:
    """A call that a robot carried out, from ``begun`` to ``ended``; it took ``elapsed`` s by the
    robot's own count. ``state`` is how it ended; ``expected`` its duration as expected (below 0:
    not known), ``error`` the robot's words."""

    number: int
    segment: int
    name: str
    arguments: tuple[str, ...]
    evaluated: tuple[str, ...]
    expected: float
    begun: float
    ended: float
    elapsed: float
    state: ExecutionState
    error: str = ""

    @property
    def text(self) -> str:
        """The call as it was carried out."""
        return f"{self.name}({','.join(self.evaluated or self.arguments)})"


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal. ``begun`` is when its clock started: when it was accepted, or when its robot was
    free for it. ``over`` and ``result`` are None where the recording ends before. ``writing``,
    ``suspended`` are when the engine wrote it and when it was held back. ``halted`` is when its
    robot was ordered to drop it, if it was; ``returned`` when its plan returned."""

    plan_id: str
    robot_id: str
    goal: PlanGoal
    utility: TimeUtility
    accepted: float
    begun: float
    over: float | None
    result: PlanResult | None
    segments: tuple[SentSegment, ...] = ()
    calls: tuple[DoneCall, ...] = ()
    writing: tuple[Span, ...] = ()
    suspended: tuple[Span, ...] = ()
    halted: float | None = None
    returned: float | None = None
    started: float | None = None  # the engine began on it
    cached_tokens: int = 0
    recomputed_tokens: int = 0

    @property
    def urgency(self) -> Urgency:
        given = self.goal.urgency
        return given if given is not Urgency.UNSPECIFIED else Urgency.NORMAL

    @property
    def response_s(self) -> float | None:
        """Until the first segment was sent, s; None: none was."""
        return self.segments[0].at - self.begun if self.segments else None

    @property
    def own_prompt_tokens(self) -> int:
        """Prompt tokens that were to be computed, as they were not in the prefix cache."""
        return max(0, self.result.prompt_tokens - self.cached_tokens) if self.result else 0

    @property
    def first_token_at(self) -> float:
        """When the first token of its first segment came, s."""
        first = self.segments[0]
        return first.at - sum(first.steps[1:])

    @property
    def text(self) -> str:
        """What is known of the plan."""
        return "".join(segment.text for segment in self.segments)

    @property
    def complete(self) -> bool:
        """Whether the whole plan is known."""
        return any(segment.last for segment in self.segments)

    @property
    def code(self) -> ErrorCode | None:
        """How it ended; None: not before the recording did."""
        return None if self.result is None else self.result.error_code


def goals_of(recording: Recording) -> tuple[Goal, ...]:
    """All goals of a recording, in order of their acceptance. Goals whose acceptance was not
    recorded are left out; ``strangers`` counts them."""
    events: dict[str, list[PlanEvent]] = {}
    for event in recording.events:
        events.setdefault(event.plan_id, []).append(event)
    reports: dict[str, list[Execution]] = {}
    commands: dict[str, list[Segment]] = {}
    for robot in recording.robots.values():
        for report in robot.reports:
            reports.setdefault(report.plan_id, []).append(report)
        for segment in robot.segments:
            commands.setdefault(segment.plan_id, []).append(segment)
    presets = _presets(recording)
    found = [
        _goal(goal, own, reports.get(plan_id, []), commands.get(plan_id, []), presets)
        for plan_id, own in events.items()
        for goal in [event.goal for event in own if event.goal is not None][:1]
    ]
    return tuple(sorted(found, key=lambda goal: goal.accepted))


def strangers(recording: Recording) -> int:
    """Plans whose beginning is not in the recording."""
    known = {event.plan_id for event in recording.events if event.goal is not None}
    return len({event.plan_id for event in recording.events} - known - {NO_PLAN})


def _presets(recording: Recording) -> dict[Urgency, TimeUtility]:
    """Of the planner's parameters, else ours."""
    presets = dict(PRESETS)
    for urgency in PRESETS:
        given = recording.parameters.get(f"utility.{urgency.name.lower()}")
        if isinstance(given, list) and len(given) == 3:
            presets[urgency] = TimeUtility(*map(float, given))
    return presets


def _goal(
    goal: PlanGoal,
    events: Sequence[PlanEvent],
    reports: Sequence[Execution],
    commands: Sequence[Segment],
    presets: dict[Urgency, TimeUtility],
) -> Goal:
    accepted = next(event for event in events if event.goal is not None)
    urgency = goal.urgency if goal.urgency in presets else Urgency.NORMAL
    end = next((event for event in events if event.type in _OVER), None)
    started = next((event for event in events if event.type is Type.STARTED), None)
    returned = next((event for event in events if event.type is Type.RETURNED), None)
    over = end.stamp if end else None
    halts = [c.stamp for c in commands if c.command is SegmentCommand.CANCEL]
    return Goal(
        plan_id=accepted.plan_id,
        robot_id=accepted.robot_id,
        goal=goal,
        utility=goal.utility or presets[urgency],
        accepted=accepted.stamp,
        begun=_begun(events, accepted.stamp, end),
        over=over,
        result=end.result if end else None,
        segments=_segments(events, reports),
        calls=_calls(reports),
        writing=_spans(events, _WRITING, _RESTING, over),
        suspended=_spans(events, _RESTING, _WRITING, over),
        halted=min(halts, default=None),
        returned=returned.stamp if returned else None,
        started=started.stamp if started else None,
        cached_tokens=started.cached_tokens if started else 0,
        recomputed_tokens=end.recomputed_tokens if end else 0,
    )


def _begun(events: Sequence[PlanEvent], accepted: float, end: PlanEvent | None) -> float:
    """When the clock started, from the times that count from there."""
    queued = any(event.type is Type.QUEUED for event in events)
    if not queued or end is None or end.result is None:
        return accepted
    first = next((event for event in events if event.type is Type.SEGMENT), None)
    if first is not None and end.result.response_time >= 0:
        return max(accepted, first.stamp - end.result.response_time)
    return max(accepted, end.stamp - end.result.waiting_time - end.result.execution_time)


def _segments(events: Sequence[PlanEvent], reports: Sequence[Execution]) -> tuple[SentSegment, ...]:
    received: dict[int, float] = {}
    for report in reports:
        if report.state is State.RECEIVED:
            received.setdefault(report.segment, report.stamp)
    return tuple(
        SentSegment(
            event.segment,
            event.stamp,
            event.text,
            event.last,
            event.tokens,
            event.step_times,
            received.get(event.segment),
        )
        for event in events
        if event.type is Type.SEGMENT
    )


def _calls(reports: Iterable[Execution]) -> tuple[DoneCall, ...]:
    """The calls that were begun and are over, in order. One that is reported twice counts once."""
    begun: dict[int, Execution] = {}
    done: dict[int, DoneCall] = {}
    for report in reports:
        number = report.call_number
        if report.state is State.STARTED:
            begun.setdefault(number, report)
        elif report.state in _CALL_ENDS and number in begun and number not in done:
            call, first = report.call if report.call.name else begun[number].call, begun[number]
            done[number] = DoneCall(
                number,
                first.segment,
                call.name,
                first.call.arguments,
                call.evaluated,
                first.call.expected_duration,
                first.stamp,
                report.stamp,
                report.elapsed,
                report.state,
                report.error,
            )
    return tuple(done[number] for number in sorted(done))


def _spans(
    events: Iterable[PlanEvent],
    opening: Sequence[PlanEventType],
    closing: Sequence[PlanEventType],
    over: float | None,
) -> tuple[Span, ...]:
    """From each event of ``opening`` to the next of ``closing``, or to the end of the writing."""
    spans, begun = [], None
    for event in sorted(events, key=lambda event: event.stamp):
        ends = event.type in (*closing, *_OVER) or (event.type is Type.SEGMENT and event.last)
        if event.type in opening and begun is None:
            begun = event.stamp
        elif ends and begun is not None:
            spans.append(Span(begun, event.stamp))
            begun = None
    if begun is not None and over is not None:
        spans.append(Span(begun, max(begun, over)))
    return tuple(spans)
