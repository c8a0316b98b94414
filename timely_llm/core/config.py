"""Settings of the planner's core, and what a goal leaves to them. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from timely_llm.protocols.messages import OnFailure, PlanGoal
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency
from timely_llm.validation.names import did_you_mean

LATE, REFUSE = "late", "refuse"
OVERLOAD = (LATE, REFUSE)


def check_overload(way: str) -> str:
    """``way`` if it is one of ``OVERLOAD``, else ``ValueError`` with the nearest."""
    if way not in OVERLOAD:
        words = f"must be {' or '.join(OVERLOAD)}{did_you_mean(way, OVERLOAD)}"
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
    max_tokens: int = 2048  # of one plan
    prefill_chunk: int = 64  # prompt tokens of a registration computed beside running plans
    network: float = 0.008  # one way (TimelyLLM, section 7.1)
    ack_timeout: float = 2.0
    heartbeat_timeout: float = 3.0
    first_report_timeout: float = 10.0  # of a session: discovery takes its time
    stop_timeout: float = 5.0
    probe_timeout: float = 5.0
    min_logprob: float | None = None  # of a plan's tokens, on average, before anything moves
    overload: str = "late"  # or "refuse": goals that would be worth nothing by then

    def __post_init__(self) -> None:
        check_overload(self.overload)

    def utility_of(self, goal: PlanGoal) -> TimeUtility:
        """The goal's own utility, else its urgency's preset."""
        return goal.utility or self.presets[urgency_of(goal)]


def urgency_of(goal: PlanGoal) -> Urgency:
    """The goal's urgency; ``UNSPECIFIED`` is ``NORMAL``."""
    return goal.urgency if goal.urgency is not Urgency.UNSPECIFIED else Urgency.NORMAL


def replans_of(goal: PlanGoal) -> int:
    """How often the goal may be planned again; ``REPLAN`` without a number means once."""
    return goal.max_replans or int(goal.on_failure is OnFailure.REPLAN)
