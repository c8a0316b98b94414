"""Earliest due time first, in segments (the variant of TimelyLLM, section 7.3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from timely_llm.policies import Decision, EngineState, View, register
from timely_llm.policies.batch import fill, settled


@register("edf")
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """Rank by due time: arrival + ERT of a first segment, the robot's horizon of the others."""
    if decision := settled(views, state):
        return decision
    ranked = sorted(views, key=lambda view: (view.due, view.number))
    return fill(ranked, now, state, admission=False)
