"""The worst moments of a recording, each with its cause in words. Pure.

A moment is a goal that failed, a first segment that came late, or a robot that stood still in the
middle of a plan. Causes are read off the events: who the engine wrote for meanwhile, and how long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from timely_llm.protocols.messages import ErrorCode
from timely_llm.recording.goals import Goal
from timely_llm.recording.spans import common, overlap

MOST = 12  # moments that are shown
_LEAST = 6  # of them, where there are as many
_NOTICED = 0.02  # s; what is shorter is no cause
_IDLE = 0.05  # s; a robot that stands still for less goes unnoticed
_NAMED = 3  # robots that a cause names
_ASKED_FOR = (ErrorCode.NONE, ErrorCode.CANCELED, ErrorCode.PREEMPTED)


@dataclass(frozen=True, slots=True)
class Moment:
    """``at`` (s) something went worse than it should: ``what``, and ``why``. ``loss`` is the
    utility it cost, ``seconds`` the time that its robot stood still."""

    at: float
    robot_id: str
    plan_id: str
    what: str
    why: str
    loss: float
    seconds: float
    failed: bool = False


def worst_moments(goals: Sequence[Goal], most: int = MOST) -> tuple[Moment, ...]:
    """Failures first, then by utility lost, then by the time that a robot stood still. What cost
    nothing fills the list up to ``_LEAST``."""
    found = [moment for goal in goals for moment in _moments(goal, goals)]
    found.sort(key=lambda one: (not one.failed, -round(one.loss, 3), -one.seconds, one.at))
    bad = sum(one.failed or one.loss > 0 for one in found)
    return tuple(found[: min(most, max(bad, _LEAST))])


def _moments(goal: Goal, goals: Sequence[Goal]) -> Iterable[Moment]:
    if goal.result is not None and goal.result.error_code not in _ASKED_FOR:
        waited = (goal.over or goal.begun) - goal.begun
        yield Moment(
            goal.over or goal.begun,
            goal.robot_id,
            goal.plan_id,
            f"The goal ended with {goal.result.error_code.name}",
            goal.result.error_msg or "The planner gave no reason.",
            max(0.0, goal.utility.beta - goal.result.utility),
            waited,
            True,
        )
    response = goal.response_s
    if response is not None:
        loss = goal.utility.beta - goal.utility(response)
        late = response > goal.utility.ert
        due = f"due within {_time(goal.utility.ert)}" if late else "in time"
        yield Moment(
            goal.begun,
            goal.robot_id,
            goal.plan_id,
            f"Its first segment came after {_time(response)}, {due}",
            _why_late(goal, goals),
            max(0.0, loss),
            response,
        )
    for begun, ended, segment in _still(goal):
        yield Moment(
            begun,
            goal.robot_id,
            goal.plan_id,
            f"It stood still for {_time(ended - begun)} before segment {segment}",
            _why_still(goal, goals, begun, ended, segment),
            0.0,
            ended - begun,
        )


def _still(goal: Goal) -> Iterable[tuple[float, float, int]]:
    """From when to when the robot did nothing between two calls, and the segment it waited for."""
    for before, after in zip(goal.calls, goal.calls[1:], strict=False):
        if after.begun - before.ended > _IDLE:
            yield before.ended, after.begun, after.segment


def _why_late(goal: Goal, goals: Sequence[Goal]) -> str:
    first = goal.segments[0]
    parts: list[str] = []
    started = goal.started if goal.started is not None else first.at
    if started - goal.begun > _NOTICED:
        others = _others(goal, goals, goal.begun, started)
        what = f"the engine was writing for {others}" if others else "the planner itself was busy"
        parts.append(f"{_time(started - goal.begun)} until the engine began on it: {what}")
    parts += _written(goal, goals, started, first.at)
    each = f", {_time((first.at - started) / first.tokens)} each" if first.tokens > 1 else ""
    streamed = any(len(other.segments) > 1 for other in goals)
    what = "the first segment has" if streamed else "the plan was sent whole, after"
    parts.append(f"{what} {first.tokens} tokens{each}")
    return _sentence(parts)


def _why_still(goal: Goal, goals: Sequence[Goal], begun: float, ended: float, index: int) -> str:
    segment = next((one for one in goal.segments if one.index == index), None)
    if segment is None or (segment.received is not None and segment.received <= begun + _NOTICED):
        return "It held the segment already: the robot's side took that long."
    parts = _written(goal, goals, begun, min(ended, segment.at))
    if segment.received is not None and segment.received - segment.at > _NOTICED:
        parts.append(f"the segment took {_time(segment.received - segment.at)} to the robot")
    return _sentence(parts or ["the segment was still being written"])


def _written(goal: Goal, goals: Sequence[Goal], begun: float, ended: float) -> list[str]:
    """What the engine did about the goal between two times."""
    parts: list[str] = []
    held = overlap(goal.suspended, begun, ended)
    if held > _NOTICED:
        others = _others(goal, goals, begun, ended)
        for_whom = f" while the engine wrote for {others}" if others else ""
        parts.append(f"it was held back for {_time(held)}{for_whom}")
    own = overlap(goal.writing, begun, ended)
    if own > _NOTICED:
        shared = [common(goal.writing, other.writing) for other in goals if other is not goal]
        mean = sum(overlap(spans, begun, ended) for spans in shared) / own
        words = f", with {mean:.1f} other plans in its steps on average" if mean > 0.2 else ""
        parts.append(f"writing took {_time(own)}{words}")
    return parts


def _others(goal: Goal, goals: Sequence[Goal], begun: float, ended: float) -> str:
    """For whom the engine wrote between two times, whom most first; empty: for nobody."""
    times = [(overlap(other.writing, begun, ended), other) for other in goals if other is not goal]
    busy = sorted((pair for pair in times if pair[0] > _NOTICED), key=lambda pair: -pair[0])
    named = [
        f"{other.robot_id} ({other.urgency.name.lower()}, {_time(time)})"
        for time, other in busy[:_NAMED]
    ]
    more = f" and {len(busy) - _NAMED} more" if len(busy) > _NAMED else ""
    return ", ".join(named) + more


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
