"""What a goal must be to be accepted, and what its plan must be to be sent. Pure checks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from timely_llm.core.robots import Refused
from timely_llm.protocols.messages import ErrorCode, OnFailure, PlanGoal
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency
from timely_llm.validation.names import did_you_mean

LATE, REFUSE = "late", "refuse"
WAYS = (LATE, REFUSE)


def check_way(way: str) -> str:
    """``way`` if it is one of ``WAYS``, else ``ValueError`` with the nearest."""
    if way not in WAYS:
        words = f"must be {' or '.join(WAYS)}{did_you_mean(way, WAYS)}"
        raise ValueError(f"overload is {way!r}: {words}")
    return way


@dataclass(frozen=True, slots=True)
class Limits:
    """What a goal may ask for. Lengths in characters; 0 as a timeout is never."""

    instruction: int = 1000
    scene: int = 4000
    queue: int = 16  # goals that may wait for one robot
    replans: int = 5


@dataclass(frozen=True, slots=True)
class PlannerConfig:
    """Settings of the planner's core; times in s. The node's parameters carry the same names."""

    limits: Limits = field(default_factory=Limits)
    presets: dict[Urgency, TimeUtility] = field(default_factory=lambda: dict(PRESETS))
    max_tokens: int = 2048  # of one plan; the bundled skill sets' longest has 1602 characters
    prefill_chunk: int = 64  # prompt tokens of a registration computed beside running plans
    network: float = 0.008  # one way (TimelyLLM, section 7.1)
    ack_timeout: float = 2.0
    heartbeat_timeout: float = 3.0
    first_report_timeout: float = 10.0  # of a session: discovery takes its time
    stop_timeout: float = 5.0
    probe_timeout: float = 5.0
    overload: str = "late"  # or "refuse": goals that would be worth nothing by then

    def __post_init__(self) -> None:
        check_way(self.overload)

    def utility_of(self, goal: PlanGoal) -> TimeUtility:
        """The goal's own utility, else its urgency's preset."""
        return goal.utility or self.presets[urgency_of(goal)]


def urgency_of(goal: PlanGoal) -> Urgency:
    """The goal's urgency; ``UNSPECIFIED`` is ``NORMAL``."""
    return goal.urgency if goal.urgency is not Urgency.UNSPECIFIED else Urgency.NORMAL


def replans_of(goal: PlanGoal) -> int:
    """How often the goal may be planned again; ``REPLAN`` without a number means once."""
    return goal.max_replans or int(goal.on_failure is OnFailure.REPLAN)


def check_goal(goal: PlanGoal, limits: Limits) -> None:
    """``Refused`` with ``INVALID_GOAL``, naming the field and the limit, unless the goal is sound.

    The utility was checked when it was made.
    """

    def refuse(reason: str) -> None:
        raise Refused(ErrorCode.INVALID_GOAL, reason)

    if not goal.instruction.strip():
        refuse("instruction is empty")
    for name in ("instruction", "scene"):
        length, limit = len(getattr(goal, name)), getattr(limits, name)
        if length > limit:
            refuse(f"{name} has {length} characters: at most {limit}")
    for name in ("ttft", "tpot", "time_budget"):
        value = getattr(goal, name)
        if not math.isfinite(value) or value < 0:
            refuse(f"{name} is {value} s: must be finite and at least 0 (0: none)")
    if goal.max_replans > limits.replans:
        refuse(f"max_replans is {goal.max_replans}: at most {limits.replans}")
