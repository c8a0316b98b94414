"""What is known of a running fleet, followed from the planner's messages and the robots' reports.

Values and state only, of bounded size: whoever receives the messages hands them in, with the time
of receipt in s on a clock that never goes back. It may join a fleet at any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from timely_llm.live.plans import LivePlan
from timely_llm.live.tally import Tally
from timely_llm.protocols.messages import (
    ErrorCode,
    Execution,
    PlanEvent,
    PlanEventType,
    PlanGoal,
    PlannerStatus,
    PlanResult,
    RobotInfo,
)

KEPT = 50  # results that are shown
RATE_WINDOW = 5.0  # s that tokens per second are counted over
MISSED = "…"  # stands for segments that were sent before we listened, or lost on their way to us


@dataclass(slots=True)
class RobotTrack:
    """A registered robot, and what it last reported."""

    info: RobotInfo
    heard: float | None = None  # s, the last report
    dry_at: float | None = None  # s, when it runs out of work; None: it has none
    error: str = ""  # of its last report that had one, until it works again

    def follow(self, report: Execution, now: float) -> None:
        self.heard = now
        left = report.total_remaining
        self.dry_at = now + left if left > 0 else None
        self.error = report.error


@dataclass(slots=True)
class Entry:
    """A plan on the board: since when, s, and the tokens generated for it. ``failures`` are the
    words on its replans so far; ``gone`` what became of segments of plans that failed."""

    plan: LivePlan
    arrived: float
    tokens: int = 0
    ended: float | None = None
    failures: list[str] = field(default_factory=list)
    gone: dict[int, str] = field(default_factory=dict)  # "failed" or "dropped" by index

    def replanned(self, event: PlanEvent) -> None:
        """The plan failed; the next one begins with the event's segment."""
        self.failures.append(event.result.error_msg if event.result else "")
        first = max(0, self.plan.segment)
        fresh = [index for index in range(first, event.segment) if index not in self.gone]
        self.gone |= dict.fromkeys(fresh, "dropped")
        if self.plan.segment >= 0:
            self.gone[self.plan.segment] = "failed"
        self.plan.call = ""


@dataclass(slots=True)
class FleetBoard:
    """All robots, all plans that are not over, and the last ``KEPT`` that are."""

    status: PlannerStatus | None = None
    heartbeat: float | None = None  # s, when the status came
    robots: dict[str, RobotTrack] = field(default_factory=dict)
    live: dict[str, Entry] = field(default_factory=dict)  # by plan id, in order of arrival
    over: deque[Entry] = field(default_factory=lambda: deque(maxlen=KEPT))  # the latest last
    tally: Tally = field(default_factory=Tally)
    _generated: deque[tuple[float, int]] = field(default_factory=deque)

    def follow_status(self, status: PlannerStatus, now: float) -> None:
        """The planner's heartbeat. With another instance the plans of the old one are over."""
        if self.status is not None and status.instance != self.status.instance:
            words = "the planner was started again"
            for plan_id in tuple(self.live):
                self._end(PlanResult(plan_id, ErrorCode.PLANNER_INACTIVE, words), now)
        self.status, self.heartbeat = status, now

    def follow_robots(self, robots: tuple[RobotInfo, ...]) -> None:
        """The list of registered robots."""
        old = self.robots
        self.robots = {}
        for info in robots:
            track = old.get(info.robot_id)
            if track is None or track.info.session != info.session:
                track = RobotTrack(info)
            track.info = info
            self.robots[info.robot_id] = track

    def follow_event(self, event: PlanEvent, now: float) -> None:
        """A change of a plan. One that is not known yet was accepted before we listened."""
        if any(entry.plan.plan_id == event.plan_id for entry in self.over):
            return
        entry = self.live.get(event.plan_id)
        if entry is None:
            goal = event.goal or PlanGoal(event.robot_id, MISSED)
            entry = self.live[event.plan_id] = Entry(LivePlan(event.plan_id, goal), now)
        if event.type is PlanEventType.SEGMENT:
            self._segment(entry, event, now)
        elif event.type is PlanEventType.REPLANNED:
            entry.replanned(event)
        entry.plan.follow_event(event, now)
        if entry.plan.over:
            self._end(event.result or PlanResult(event.plan_id), now)

    def follow_execution(self, robot_id: str, report: Execution, now: float) -> None:
        """A report of a robot."""
        track = self.robots.get(robot_id)
        if track is not None:
            track.follow(report, now)
        entry = self.live.get(report.plan_id)
        if entry is not None and entry.plan.goal.robot_id == robot_id:
            entry.plan.follow_robot(report, now)

    def _segment(self, entry: Entry, event: PlanEvent, now: float) -> None:
        segments = entry.plan.segments
        missed = event.segment - len(segments)
        segments += [MISSED] * missed
        del segments[event.segment :]  # of a segment that comes again, the last one counts
        entry.tokens += event.tokens
        self._generated.append((now, event.tokens))
        self.tally.segment(event.tokens)

    def _end(self, result: PlanResult, now: float) -> None:
        entry = self.live.pop(result.plan_id)
        entry.plan.over, entry.plan.result, entry.ended = True, result, now
        self.over.append(entry)
        self.tally.ended(entry.plan.goal, result)

    # What is asked of it.

    def silent(self, now: float) -> float | None:
        """s since the planner's last heartbeat; None: there was none."""
        return None if self.heartbeat is None else max(0.0, now - self.heartbeat)

    def tokens_per_second(self, now: float) -> float:
        """Tokens of the segments of the last ``RATE_WINDOW`` s, per second."""
        while self._generated and self._generated[0][0] <= now - RATE_WINDOW:
            self._generated.popleft()
        return sum(tokens for _, tokens in self._generated) / RATE_WINDOW

    def of(self, robot_id: str) -> Entry | None:
        """The plan that a robot is at, else its latest that is not over, else its last one."""
        entries = [entry for entry in self.live.values() if entry.plan.goal.robot_id == robot_id]
        begun = [entry for entry in entries if not waits(entry)]
        if begun or entries:
            return (begun or entries)[-1 if begun else 0]
        ended = [entry for entry in self.over if entry.plan.goal.robot_id == robot_id]
        return ended[-1] if ended else None

    def queue(self) -> Iterator[Entry]:
        """Goals that nothing is written for yet, the oldest first."""
        return (entry for entry in self.live.values() if waits(entry))

    def find(self, plan_id: str) -> Entry | None:
        """A plan by its id."""
        old = (entry for entry in reversed(self.over) if entry.plan.plan_id == plan_id)
        return self.live.get(plan_id) or next(old, None)


def waits(entry: Entry) -> bool:
    """Whether nothing is written for the goal yet."""
    return entry.plan.state in ("sent", "accepted", "queued")
