"""Steps taken together where nothing can come between them. For simulated engines; pure.

A policy that says until when its choice ``stands``, an engine that can ``leap`` and cutters that
know how many ``quiet`` tokens come: then these steps are taken at once, and give to the last bit
what they give one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from timely_llm.engine.base import Engine, Leap
from timely_llm.plans import Plans
from timely_llm.policies import Decision


def leap(engine: Engine, plans: Plans, decision: Decision, now: float, until: float) -> Leap:
    """Take the quiet steps of ``decision`` up to the first that ends at ``until`` (s) or later."""
    if decision.stands is None or plans.probes or not hasattr(engine, "leap"):
        return Leap()
    until = min(until, decision.stands, plans.due)
    steps = _quiet(plans, decision.run) if now < until else 0
    if steps < 1:
        return Leap()
    return engine.leap(decision.run, steps, now, until, decision.kv_floor)


def _quiet(plans: Plans, run: Sequence[str]) -> int:
    """Tokens that everyone in ``run`` writes before the next one that may change anything."""
    quiet = math.inf
    for plan_id in run:
        writing = plans.writing.get(plan_id)
        if writing is None:
            return 0
        plan = plans.live[plan_id]
        asked = plan.predict_at - plan.tokens - 1 if plan.predicted >= 0 else math.inf
        quiet = min(quiet, writing.cutter.quiet, asked)
        if quiet < 1:
            return 0
    return int(quiet)


def write(plans: Plans, leapt: Leap, now: float) -> None:
    """Give the plans what was written up to ``now``."""
    count = len(leapt.durations)
    for plan_id, text in leapt.texts.items():
        plan = plans.live[plan_id]
        plan.text.append(text)
        plan.tokens += count
        plan.segment_tokens += count
        plan.step_times.extend(leapt.durations)
        plan.last_token = now
        plans.writing[plan_id].cutter.skip(count)
        plans.views.touch(plan_id)
