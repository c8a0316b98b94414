"""The baselines: vLLM schedules by itself and never suspends.

On real vLLM these run on its own ("native") scheduler and ``choose`` only says who is there; the
simulated engine has no scheduler of its own and does what is chosen here.
"""

from __future__ import annotations

from collections.abc import Sequence

from timely_llm.policies import Decision, EngineState, View, register


@register("vllm", streams=False, native=True)
@register("vllm_stream", native=True)
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """Continuous batching: those that run stay, the others follow in order of arrival."""
    ranked = sorted(views, key=lambda view: (not view.running, view.number))
    return Decision(run=tuple(view.id for view in ranked[: state.max_batch]))


@register("vllm_priority", streams=False, native=True, priority=True)
def choose_by_priority(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """vLLM's ``scheduling_policy`` ``priority``: the most urgent one follows, then by arrival.

    An urgent one that waits displaces nobody: a full batch stays as it is. Where KV blocks run
    out, the least urgent of those that run loses its own.
    """
    ranked = sorted(views, key=lambda view: (not view.running, view.urgency, view.number))
    return Decision(run=tuple(view.id for view in ranked[: state.max_batch]))
