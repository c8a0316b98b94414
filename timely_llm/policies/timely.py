"""TimelyLLM's policy: potential utility density, scaled by slack (section 4.3, Eq. 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from timely_llm.policies import Decision, EngineState, View, register
from timely_llm.policies.batch import fill, prefill_time, settled

UTILITY_FLOOR = 0.05
# s after its due time. Past its cutoff a goal has no density left, while its utility goes on
# falling: on an engine that is too small, 10 s lost far more than 1 s did.
PATIENCE = 1.0
SHORTEST_STEP = 1e-6  # s; keeps the quotient finite whatever step times were measured


def positive(utility: float) -> float:
    """A continuous, increasing stand-in for ``max(utility, 0)`` that stays above 0.

    The paper leaves utility <= 0 open. Below ``UTILITY_FLOOR`` it decays exponentially, so that of
    two requests past their cutoff the one that loses less still ranks higher.
    """
    if utility >= UTILITY_FLOOR:
        return utility
    return UTILITY_FLOOR * math.exp(max(-300.0, (utility - UTILITY_FLOOR) / UTILITY_FLOOR))


def priority(view: View, now: float, state: EngineState) -> float:
    """Eq. 4: utility(W) / (G L), with W the waiting at delivery and L the slack, due - delivery.

    The paper leaves L <= 0 open. Here 1/L becomes 1/(max(L, 0) + one decode step): continuous at 0,
    non-increasing in L, and bounded by what a step can tell apart.
    """
    step = max(SHORTEST_STEP, state.latency(1, 0, view.kv_tokens))
    duration = max(1.0, view.tokens_left) * step + prefill_time(view, state)
    delivery = now + duration + view.network
    waiting, slack = delivery - view.origin, view.due - delivery
    worth = positive(view.utility(waiting if waiting > 0 else 0.0))
    return worth / (duration * ((slack if slack > 0 else 0.0) + step))


@register("timely")
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """Highest priority first, as many as batch admission lets in.

    Nobody starves: whoever is more than ``PATIENCE`` s past its due time goes before all others,
    the longest overdue first, past any veto. It waits at most for the segments being written and
    for those overdue before it.
    """
    if decision := settled(views, state):
        return decision
    state = state._replace(latency=cache(state.latency))  # many are of the same size
    before, overdue = now - PATIENCE, 0
    ranked: list[tuple[bool, float, int, View]] = []
    for view in views:
        if view.due < before:
            overdue += 1
            ranked.append((False, view.due, view.number, view))
        else:
            ranked.append((True, -priority(view, now, state), view.number, view))
    ranked.sort()
    return fill([view for *_, view in ranked], now, state, overdue=overdue)
