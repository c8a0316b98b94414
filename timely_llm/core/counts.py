"""How many robots and plans there are, by what they do: for people, not for decisions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from timely_llm.core.request import State
from timely_llm.core.state import Plans
from timely_llm.protocols.engine import StepResult


@dataclass(frozen=True, slots=True)
class Counts:
    """How many robots and plans there are, by what they do, and how full the KV cache is."""

    robots: int = 0
    waiting: int = 0  # their first segment is not begun
    running: int = 0
    suspended: int = 0
    executing: int = 0  # written to the end, or being stopped
    kv_blocks_used: int = 0
    kv_blocks_total: int = 0
    recomputed_tokens: int = 0


_COUNTED = {
    State.QUEUED: "waiting",
    State.WAITING: "waiting",
    State.RUNNING: "running",
    State.SUSPENDED: "suspended",
    State.EVICTED: "suspended",
    State.WRITTEN: "executing",
    State.STOPPING: "executing",
}


def counts_of(plans: Plans, last_step: StepResult, recomputed_tokens: int) -> Counts:
    """The counts of this moment; ``last_step`` knows how full the KV cache is."""
    numbers = Counter(_COUNTED[plan.state] for plan in plans.live.values())
    return Counts(
        robots=len(plans.fleet.robots),
        kv_blocks_used=last_step.kv_blocks_used,
        kv_blocks_total=plans.engine.info.kv_blocks,
        recomputed_tokens=recomputed_tokens,
        **numbers,
    )
