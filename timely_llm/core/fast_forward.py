"""Steps taken together where nothing can come between them. For simulated engines; pure.

A policy that says until when its choice is valid, an engine that can ``fast_forward`` and
segmenters that know how many tokens complete no segment: then these steps are taken at once, and
give to the last bit what they give one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from timely_llm.core.state import Plans
from timely_llm.policies import Decision
from timely_llm.protocols.engine import Engine, FastForward


def fast_forward(
    engine: Engine, plans: Plans, decision: Decision, now: float, until: float
) -> FastForward:
    """Take the quiet steps of ``decision`` up to the first that ends at ``until`` (s) or later."""
    if decision.valid_until is None or plans.probes or not hasattr(engine, "fast_forward"):
        return FastForward()
    until = min(until, decision.valid_until, plans.due)
    steps = _quiet(plans, decision.run) if now < until else 0
    if steps < 1:
        return FastForward()
    return engine.fast_forward(decision.run, steps, now, until, decision.kv_floor)


def _quiet(plans: Plans, run: Sequence[str]) -> int:
    """Tokens that everyone in ``run`` writes before the next one that may change anything."""
    tokens_to_boundary = math.inf
    for plan_id in run:
        writing = plans.writing.get(plan_id)
        if writing is None:
            return 0
        plan = plans.live[plan_id]
        asked = plan.predict_at - plan.tokens - 1 if plan.predicted >= 0 else math.inf
        tokens_to_boundary = min(tokens_to_boundary, writing.segmenter.tokens_to_boundary, asked)
        if tokens_to_boundary < 1:
            return 0
    return int(tokens_to_boundary)


def write(plans: Plans, forwarded: FastForward, now: float) -> None:
    """Give the plans what was written up to ``now``."""
    count = len(forwarded.durations)
    for plan_id, text in forwarded.texts.items():
        plan = plans.live[plan_id]
        plan.text.append(text)
        plan.tokens += count
        plan.segment_tokens += count
        plan.step_times.extend(forwarded.durations)
        plan.last_token = now
        plans.writing[plan_id].segmenter.skip(count)
        plans.views.touch(plan_id)
