"""When a robot runs out of work. Starts from the skills' time models, follows the robot's reports,
corrected by how long its skills are known to take (``estimation/skill_time.py``).

Times are the planner's, in s; nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from timely_llm.estimation.learned_times import RobotTimes
from timely_llm.estimation.skill_time import Estimate, total
from timely_llm.protocols.messages import Execution, ExecutionState, SkillCall

_AGREE = 0.05  # s; a robot that differs by more from the skill's time model knows more than it

_NOTHING = Estimate(0.0, 0.0)


class _Work(NamedTuple):
    """A segment: what the skill set expects, in s, and what is expected of this robot."""

    expected: float
    really: Estimate


class _Call(NamedTuple):
    """The call in progress: in which segment it is written, and when it began, s."""

    call: SkillCall
    segment: int
    since: float


@dataclass(slots=True)
class Horizon:
    """When a robot has done all that it holds of one plan.

    Before ``end`` it hardly ever runs out of work, at ``mean_end`` it does on average; ``starved``
    says that it reported to have none. Without ``times`` the skill set and the robot are taken at
    their word, and both ends are the same.
    """

    end: float = 0.0
    starved: bool = True
    times: RobotTimes | None = None
    mean_end: float = 0.0
    _in_flight: dict[int, _Work] = field(default_factory=dict)  # sent, not yet received
    _held: dict[int, _Work] = field(default_factory=dict)
    _call: _Call | None = None

    def sent(self, index: int, calls: Sequence[SkillCall], delivery: float) -> None:
        """Segment ``index`` with ``calls`` will be at the robot at ``delivery``."""
        expected = sum(max(0.0, call.expected_duration) for call in calls)
        really = Estimate(expected, expected)
        if self.times is not None:
            really = total(map(self.times.estimate, calls))
        self._in_flight[index] = _Work(expected, really)
        self.end = max(self.end, delivery) + really.low
        self.mean_end = max(self.mean_end, delivery) + really.mean
        self.starved = False

    def received(self, report: Execution, now: float) -> None:
        """The robot holds the report's segment: its reports count it, from this one on."""
        work = self._in_flight.pop(report.segment, None)
        if work is not None and self.times is not None:
            self._held[report.segment] = work
        self.reported(report, now)

    def reported(self, report: Execution, now: float) -> None:
        """The robot says how long the work that it holds lasts; more may be on its way."""
        if self.times is None:
            left = report.total_remaining + sum(work.expected for work in self._in_flight.values())
            self.end = self.mean_end = now + left
        else:
            rest = [self._rest_of_call(report, now, self.times), self._rest_after_call(report)]
            self._ends_after(now, *rest)
        self.starved = False

    def starve(self, now: float) -> None:
        """The robot says that it has nothing to do. What is on its way may yet reach it."""
        self._call = None
        if self._in_flight:
            self._ends_after(now)
        elif not self.starved:
            self.end = self.mean_end = now
            self.starved = True

    def remaining(self, now: float) -> float:
        """Time in s until the robot runs out of work, on average; -1 where it has."""
        return -1.0 if self.starved else max(0.0, self.mean_end - now)

    def _ends_after(self, now: float, *rest: Estimate) -> None:
        """It has the ``rest`` to do, and all that is on its way."""
        left = total([*rest, *(work.really for work in self._in_flight.values())])
        self.end, self.mean_end = now + left.low, now + left.mean

    def _rest_of_call(self, report: Execution, now: float, times: RobotTimes) -> Estimate:
        """How much longer the call in progress takes."""
        if report.state in (ExecutionState.STARTED, ExecutionState.RUNNING):
            self._call = _Call(report.call, report.segment, now - report.elapsed)
        elif report.state is not ExecutionState.RECEIVED:
            self._call = None
        if self._call is None:
            return _NOTHING
        call, _, since = self._call
        elapsed, said = max(0.0, now - since), max(0.0, report.skill_remaining)
        if abs(said - max(0.0, call.expected_duration - elapsed)) > _AGREE:
            return Estimate(said, said)
        return times.left(call, elapsed)

    def _rest_after_call(self, report: Execution) -> Estimate:
        """What comes after that call: the robot's own sum, corrected as its segments are."""
        said = report.total_remaining - report.skill_remaining
        if said <= 0.0:
            return _NOTHING
        begun = self._call.segment if self._call else report.segment
        if self._call is None and report.state is ExecutionState.RECEIVED:
            begun -= 1
        works = [work for index, work in self._held.items() if index > begun]
        expected = sum(work.expected for work in works)
        if expected <= 0.0:  # further calls of the segment that has begun
            works = list(self._held.values())
            expected = sum(work.expected for work in works)
        if expected <= 0.0:
            return Estimate(said, said)
        really, share = total(work.really for work in works), said / expected
        return Estimate(really.mean * share, really.low * share)
