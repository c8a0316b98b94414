"""The rule of TimelyLLM's published code, which is not its paper's Eq. 4.

    priority = (alpha max(0, D) + beta) exp(min(0, D)),    D = now + G + network - due

D is how late (> 0) or early (< 0) the segment will be at the robot, with G the predicted time to
write it. The first factor is its utility then; the second discounts, by e for each second, what is
not yet due. Unlike Eq. 4 it does not ask how long the segment takes, but when it comes.

Corrected: the published code drops a request whose utility is 0 or less. Here it goes after all
others, the longest overdue first, and is served: no goal is dropped silently.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from timely_llm.policies import Decision, EngineState, View, register
from timely_llm.policies.batch import fill, prefill_time, settled

_LATEST = 1e12  # s; keeps the product finite whatever step times were measured


def lateness(view: View, now: float, state: EngineState) -> float:
    """D: seconds from the due time to the segment's delivery."""
    step = state.latency(1, 0, view.kv_tokens)
    written = now + max(1.0, view.tokens_left) * step + prefill_time(view, state)
    return max(-_LATEST, min(_LATEST, written + view.network - view.due))


def priority(view: View, now: float, state: EngineState) -> float:
    """The published rule; 0 or less where the published code drops the request."""
    late = lateness(view, now, state)
    worth = view.utility.alpha * max(0.0, late) + view.utility.beta
    return worth * math.exp(min(0.0, late))


@register("timely_artifact")
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """Highest priority first, as many as batch admission lets in."""
    if decision := settled(views, state):
        return decision

    def rank(view: View) -> tuple[bool, float, int]:
        value = priority(view, now, state)
        return value <= 0, view.due if value <= 0 else -value, view.number

    return fill(sorted(views, key=rank), now, state)
