"""The state of a running fleet, followed from the planner's messages and the robots' reports. Pure.

The one model behind the terminal, the web page, the metrics and the demo's table, which only read
it. Whoever receives the messages hands them in, with the time of receipt in s on a clock that never
goes back; the fleet may be joined at any time. What is kept is of bounded size,
whatever comes (``live/kept.py``).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from timely_llm.live.kept import MOST, kept
from timely_llm.protocols.messages import (
    ErrorCode,
    Execution,
    ExecutionState,
    PlanEvent,
    PlanEventType,
    PlanGoal,
    PlannerStatus,
    PlanResult,
    RobotInfo,
)
from timely_llm.protocols.utility import Urgency

KEPT = 50  # plans that are over
LIVE = 2048  # plans that are not over; of more, the oldest are forgotten
SEGMENTS, SEGMENTS_TEXT = 2048, 65_536  # of a plan, and the characters of all of them
RATE_WINDOW = 5.0  # s that tokens per second are counted over
MISSED = "…"  # stands for segments that were sent before we listened, or lost on their way to us
RESPONSE_BOUNDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # s
WAITING_BOUNDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # s

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


def urgency_word(urgency: Urgency) -> str:
    """How an urgency is written for people; unspecified is normal."""
    return (Urgency.NORMAL if urgency is Urgency.UNSPECIFIED else urgency).name.lower()


# ---- one robot, one plan -------------------------------------------------------------------------


@dataclass(slots=True)
class RobotTrack:
    """A registered robot, and what it last reported."""

    info: RobotInfo
    starved_at: float | None = None  # s, when it runs out of work (NaN: not known); None: has none
    error: str = ""  # of its last report, until it works again

    def follow(self, report: Execution, now: float) -> None:
        """A report of this robot."""
        left = report.total_remaining
        self.starved_at = None if left <= 0 else now + left
        self.error = report.error

    def left(self, now: float) -> float | None:
        """s until it runs out of work, NaN: not known; None: it has none."""
        return None if self.starved_at is None else max(self.starved_at - now, 0.0)


@dataclass(slots=True)
class PlanTrack:
    """One plan: what is written of it, what its robot does of that, and how long the robot has
    waited for it. Times in s. It is over once it has a ``result``."""

    plan_id: str
    goal: PlanGoal
    arrived: float
    state: str = "sent"
    segments: list[str] = field(default_factory=list)
    tokens: int = 0
    call: str = ""  # in progress
    segment: int = -1  # that the call was written in
    waited: float = 0.0
    waits_since: float | None = None
    failures: list[str] = field(default_factory=list)  # why it was planned again
    gone: dict[int, str] = field(default_factory=dict)  # "failed" or "dropped" by index of segment
    result: PlanResult | None = None
    ended: float = 0.0  # when the result came

    @property
    def over(self) -> bool:
        return self.result is not None

    @property
    def queued(self) -> bool:
        """Whether nothing is written for the goal yet."""
        return self.state in ("sent", "accepted", "queued")

    def waiting(self, now: float) -> float:
        """s that the robot has waited for this plan, up to ``now``."""
        return self.waited + (0.0 if self.waits_since is None else now - self.waits_since)

    def _wait(self, now: float) -> None:
        if self.waits_since is None:
            self.waits_since = now

    def _work(self, now: float) -> None:
        self.waited, self.waits_since = self.waiting(now), None

    def follow_event(self, event: PlanEvent, now: float) -> None:
        """An event of this plan, which is not over."""
        self.state = _STATES.get(event.type, self.state)
        match event.type:
            case PlanEventType.SEGMENT:
                self._append(event)
            case PlanEventType.REPLANNED:
                self._replan(event)
                self._wait(now)
            case PlanEventType.STARTED | PlanEventType.ACCEPTED:
                self._wait(now)
            case PlanEventType.QUEUED:
                self.waits_since = None  # its clock starts when the robot is free
            case PlanEventType.REFUSED | PlanEventType.ENDED:
                self._work(now)
                self.call = ""

    def _append(self, event: PlanEvent) -> None:
        self.tokens += event.tokens
        self.state = "written" if event.last else self.state
        if event.segment >= SEGMENTS:
            return
        self.segments += [MISSED] * (event.segment - len(self.segments))
        del self.segments[event.segment :]  # of one that comes again, the last counts
        fits = sum(map(len, self.segments)) + len(event.text) <= SEGMENTS_TEXT
        self.segments.append(event.text if fits else MISSED)

    def _replan(self, event: PlanEvent) -> None:
        """The plan failed; the next one begins with the event's segment."""
        words = event.result.error_msg if event.result else ""
        self.failures = [*self.failures, words][-MOST:]
        for index in range(max(0, self.segment), min(event.segment, SEGMENTS)):
            self.gone.setdefault(index, "dropped")
        if 0 <= self.segment < SEGMENTS:
            self.gone[self.segment] = "failed"
        self.call = ""

    def follow_robot(self, report: Execution, now: float) -> None:
        """A report of its robot on this plan, which is not over."""
        if report.state is ExecutionState.RECEIVED:
            return
        self.call = ""
        if report.state in (ExecutionState.SUCCEEDED, ExecutionState.IDLE):
            self._wait(now)
            return
        self._work(now)
        if report.state in (ExecutionState.STARTED, ExecutionState.RUNNING):
            arguments = report.call.evaluated or report.call.arguments
            self.call, self.segment = f"{report.call.name}({','.join(arguments)})", report.segment


# ---- sums ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Histogram:
    """How many values lie at or below each bound, as Prometheus counts them; one that is not known
    (NaN) is in no sum."""

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        if not math.isnan(value):
            self.counts[bisect_left(self.bounds, value)] += 1
            self.total += value

    @property
    def mean(self) -> float:
        """NaN where there is no value."""
        count = sum(self.counts)
        return self.total / count if count else math.nan


@dataclass(slots=True)
class Counters:
    """Sums over all plans since somebody listens, of what is known of them."""

    segments: int = 0
    tokens: int = 0
    results: Counter[tuple[str, str]] = field(default_factory=Counter)  # by urgency, error code
    utility: float = 0.0
    response: Histogram = field(default_factory=lambda: Histogram(RESPONSE_BOUNDS))
    waiting: Histogram = field(default_factory=lambda: Histogram(WAITING_BOUNDS))

    def ended(self, goal: PlanGoal, result: PlanResult) -> None:
        """A plan has its result."""
        self.results[urgency_word(goal.urgency), result.error_code.name] += 1
        self.utility += 0.0 if math.isnan(result.utility) else result.utility
        if result.response_time >= 0:
            self.response.add(result.response_time)
            self.waiting.add(result.waiting_time)


# ---- the fleet -----------------------------------------------------------------------------------


@dataclass(slots=True)
class FleetState:
    """All robots, all plans that are not over, and the last ``KEPT`` that are."""

    status: PlannerStatus | None = None
    heartbeat: float | None = None  # s, when the status came
    robots: dict[str, RobotTrack] = field(default_factory=dict)
    live: dict[str, PlanTrack] = field(default_factory=dict)  # by plan id, in order of arrival
    over: deque[PlanTrack] = field(default_factory=lambda: deque(maxlen=KEPT))  # the latest last
    counters: Counters = field(default_factory=Counters)
    _generated: deque[tuple[float, int]] = field(default_factory=deque)

    def follow_status(self, status: PlannerStatus, now: float) -> None:
        """The planner's heartbeat. With another instance the plans of the old one are over."""
        if self.status is not None and status.instance != self.status.instance:
            words = "the planner was started again"
            for plan in tuple(self.live.values()):
                self._end(plan, PlanResult(plan.plan_id, ErrorCode.PLANNER_INACTIVE, words), now)
        self.status, self.heartbeat = kept(status), now

    def follow_robots(self, robots: tuple[RobotInfo, ...]) -> None:
        """The list of registered robots. A robot in a new session starts afresh."""
        old, self.robots = self.robots, {}
        for info in map(kept, robots):
            track = old.get(info.robot_id)
            if track is None or track.info.session != info.session:
                track = RobotTrack(info)
            track.info = info
            self.robots[info.robot_id] = track

    def sent(self, plan_id: str, goal: PlanGoal, now: float) -> PlanTrack:
        """A goal is on its way to the planner; the plan, to be followed from here."""
        plan = self.live.setdefault(plan_id, PlanTrack(plan_id, goal, now))
        if len(self.live) > LIVE:
            del self.live[next(iter(self.live))]
        return plan

    def follow_event(self, event: PlanEvent, now: float) -> None:
        """A change of a plan. One that is not known yet was accepted before we listened."""
        if any(plan.plan_id == event.plan_id for plan in self.over):
            return
        event = kept(event)
        plan = self.sent(event.plan_id, event.goal or PlanGoal(event.robot_id, MISSED), now)
        plan.follow_event(event, now)
        if event.type is PlanEventType.SEGMENT:
            self._generated.append((now, event.tokens))
            self._forget_tokens(now)
            self.counters.segments += 1
            self.counters.tokens += event.tokens
        elif event.type in (PlanEventType.REFUSED, PlanEventType.ENDED):
            self._end(plan, event.result or PlanResult(event.plan_id), now)

    def follow_execution(self, robot_id: str, report: Execution, now: float) -> None:
        """A report of a robot."""
        robot_id, report = kept(robot_id), kept(report)
        if robot_id in self.robots:
            self.robots[robot_id].follow(report, now)
        plan = self.live.get(report.plan_id)
        if plan is not None and plan.goal.robot_id == robot_id:
            plan.follow_robot(report, now)

    def _end(self, plan: PlanTrack, result: PlanResult, now: float) -> None:
        plan.result, plan.ended = result, now
        self.over.append(self.live.pop(plan.plan_id))
        self.counters.ended(plan.goal, result)

    # What is asked of it.

    def silent(self, now: float) -> float:
        """s since the planner's last heartbeat, 0 before the first."""
        return 0.0 if self.heartbeat is None else max(0.0, now - self.heartbeat)

    def tokens_per_second(self, now: float) -> float:
        """Tokens of the segments of the last ``RATE_WINDOW`` s, per second."""
        self._forget_tokens(now)
        return sum(tokens for _, tokens in self._generated) / RATE_WINDOW

    def _forget_tokens(self, now: float) -> None:
        while self._generated and self._generated[0][0] <= now - RATE_WINDOW:
            self._generated.popleft()

    def current(self, robot_id: str) -> tuple[PlanTrack | None, int]:
        """The plan that a robot is at, else its next one, else its last one; and how many more
        goals wait for the robot."""
        plans = [plan for plan in self.live.values() if plan.goal.robot_id == robot_id]
        queued = [plan for plan in plans if plan.queued]
        if begun := [plan for plan in plans if not plan.queued]:
            return begun[-1], len(queued)
        if queued:
            return queued[0], len(queued) - 1
        return next((p for p in reversed(self.over) if p.goal.robot_id == robot_id), None), 0

    def queue(self) -> Iterator[PlanTrack]:
        """Goals that nothing is written for yet, the oldest first."""
        return (plan for plan in self.live.values() if plan.queued)

    def find(self, plan_id: str) -> PlanTrack | None:
        """A plan by its id; None where it is not known any more."""
        old = (plan for plan in reversed(self.over) if plan.plan_id == plan_id)
        return self.live.get(plan_id) or next(old, None)
