"""What a bag of our topics holds, as plain values. Read by ``recording/bag.py``. Pure.

Times are s since the epoch on the planner's clock; a robot's reports are brought to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from timely_llm.protocols.messages import Execution, PlanEvent, PlannerStatus, RobotInfo, Segment

#: s that a robot's clock may differ from the planner's before its stamps are brought to ours.
_SAME_CLOCK = 0.05


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic of a bag: its type and how many messages there are."""

    name: str
    kind: str
    messages: int


@dataclass(frozen=True, slots=True)
class Robot:
    """One robot: what it said of itself last, its reports and the segments sent to it, in the
    order of their receipt."""

    info: RobotInfo
    reports: tuple[Execution, ...] = ()
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded run of a planner. ``config`` is the planner's ``planner_config``, empty where
    the bag has none; ``notes`` say in words what is missing or could not be read. ``begun`` and
    ``ended`` are the times of the first and the last message."""

    source: str
    topics: tuple[Topic, ...]
    events: tuple[PlanEvent, ...]
    robots: Mapping[str, Robot]
    config: Mapping[str, Any] = field(default_factory=dict)
    statuses: tuple[PlannerStatus, ...] = ()
    notes: tuple[str, ...] = ()
    begun: float = 0.0
    ended: float = 0.0

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The planner's parameters by name."""
        return self.config.get("parameters") or {}

    @property
    def engine(self) -> Mapping[str, Any]:
        """What the planner's engine says of itself."""
        return self.config.get("engine") or {}


def on_our_clock(reports: list[tuple[float, Execution]]) -> tuple[Execution, ...]:
    """Reports of one robot, each with when it was received (s), stamped on the receiver's clock.

    A robot's clock may count from anything. The report that came fastest tells how far it is off;
    clocks that agree are left alone.
    """
    if not reports:
        return ()
    offset = min(received - report.stamp for received, report in reports)
    if abs(offset) < _SAME_CLOCK:
        offset = 0.0
    return tuple(replace(report, stamp=report.stamp + offset) for _, report in reports)
