"""What a bag of our topics holds, as plain values. Read by ``recording/bag.py``. Pure.

Times are s since the epoch on the planner's clock; a robot's reports are brought to it.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from timely_llm.protocols.messages import Execution, PlanEvent, PlannerStatus, RobotInfo, Segment
from timely_llm.protocols.utility import PRESETS, TimeUtility

#: s that a robot's clock may differ from the planner's before its stamps are brought to ours.
_SAME_CLOCK = 0.05
MAX_BATCH, MAX_BLOCKS, MAX_NETWORK = 65_536, 10**9, 1000.0

Check = tuple[Callable[[Any], bool], str]


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

    A robot's clock may count from anything. The report that came fastest shows how far it is off;
    clocks that agree are left alone.
    """
    if not reports:
        return ()
    offset = min(received - report.stamp for received, report in reports)
    if abs(offset) < _SAME_CLOCK:
        offset = 0.0
    return tuple(replace(report, stamp=report.stamp + offset) for _, report in reports)


# ---- the planner's settings ---------------------------------------------------------------------


def usable_config(config: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A recorded ``planner_config`` without the settings that cannot be, and a note for each of
    these."""
    found, notes = dict(config), []
    for part, checks in _CHECKS.items():
        given = config.get(part) or {}
        if not isinstance(given, Mapping):
            notes.append(_note(part, given, "a mapping"))
            given = {}
        wrong = {
            key: words
            for key, (fits, words) in checks.items()
            if given.get(key) is not None and not fits(given[key])
        }
        notes += [_note(f"{part}.{key}", given[key], words) for key, words in wrong.items()]
        found[part] = {key: value for key, value in given.items() if key not in wrong}
    return found, tuple(notes)


def _note(name: str, value: Any, words: str) -> str:
    return f"planner_config: {name} is {reprlib.repr(value):.80}: must be {words}; left out"


def _whole(most: int) -> Check:
    return lambda value: type(value) is int and 0 <= value <= most, f"a whole number, 0 to {most}"


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_NETWORK


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_utility(value: Any) -> bool:
    if not isinstance(value, list) or any(type(each) not in (int, float) for each in value):
        return False
    try:
        TimeUtility(*map(float, value))
    except (TypeError, ValueError, OverflowError):
        return False
    return True


_PACE: Check = (_is_text, "a text")
_UTILITY: Check = (_is_utility, "ert, alpha and beta of a utility")
_CHECKS: dict[str, dict[str, Check]] = {
    "engine": {
        "pace": _PACE,
        "max_batch": _whole(MAX_BATCH),
        "kv_blocks": _whole(MAX_BLOCKS),
        "block_size": _whole(MAX_BLOCKS),
    },
    "parameters": {
        "pace": _PACE,
        "max_batch": _whole(MAX_BATCH),
        "network": (_is_time, f"0 to {MAX_NETWORK:g} s"),
        **{f"utility.{urgency.name.lower()}": _UTILITY for urgency in PRESETS},
    },
}
