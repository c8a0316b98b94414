"""What the engine computes beside the plans that a policy chose: fixed prompts and questions. Pure.

A policy knows of plans alone; what else is to be computed is put before or behind its choice.
"""

from __future__ import annotations

from dataclasses import replace

from timely_llm.core.state import Plans
from timely_llm.policies import Decision


def with_others(plans: Plans, decision: Decision, native: bool) -> Decision:
    """The policy's choice with all that is computed beside it; ``native``: the engine schedules
    prompts by itself."""
    return _with_probes(plans, _with_prefixes(plans, decision, native))


def _with_prefixes(plans: Plans, decision: Decision, native: bool) -> Decision:
    """Fixed prompts that are still to be computed go last, in chunks, and not beside the prompts of
    others: no goal waits for a registration longer than one chunk."""
    missing = plans.prefixes.missing
    if not missing:
        return decision
    cold = tuple(p for p in decision.run if plans.writing[p].robot.prefix in missing)
    warm = tuple(p for p in decision.run if p not in cold)
    budget = decision.prefill_budget
    if not native:
        words = sum(plans.live[plan_id].uncached for plan_id in warm)
        budget = words or plans.config.prefill_chunk
    return replace(decision, run=warm + cold + missing, prefill_budget=budget)


def _with_probes(plans: Plans, decision: Decision) -> Decision:
    """Robots' questions go first: each of those robots stands still until it is answered."""
    asked = plans.probes
    if not asked:
        return decision
    budget = decision.prefill_budget
    if budget is not None:
        budget += sum(probe.uncached for probe in asked.values())
    return replace(decision, run=(*asked, *decision.run), prefill_budget=budget)
