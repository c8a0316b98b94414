"""The baselines: an engine that schedules itself, first come, first served, never suspending.

On real vLLM these run on its untouched scheduler and ``choose`` only says who is there; the
simulated engine has no scheduler of its own and does what is chosen here.
"""

from __future__ import annotations

from collections.abc import Sequence

from timely_llm.policies import Decision, EngineState, View, register


@register("vllm", streams=False, untouched=True)
@register("vllm_stream", untouched=True)
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """Continuous batching: those that run stay, the others follow in order of arrival."""
    ranked = sorted(views, key=lambda view: (not view.running, view.number))
    return Decision(run=tuple(view.id for view in ranked[: state.max_batch]))
