"""First come, first served, in segments (the variant of TimelyLLM, section 7.3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from timely_llm.policies import Decision, EngineState, View, register
from timely_llm.policies.batch import fill, settled


@register("fcfs")
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """Rank by arrival; a continuation keeps its goal's place."""
    if decision := settled(views, state):
        return decision
    ranked = sorted(views, key=lambda view: (view.arrival, view.number))
    return fill(ranked, now, state, admission=False)
