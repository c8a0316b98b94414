"""Semantic scheduling: urgency level, then remaining time (its section 3.3).

    priority = (f_e, f_t): the urgency level, then the predicted time to the end of the plan, s

*Two heaps*: a min-heap by priority holds those that wait, a max-heap those that hold KV blocks;
its root, the least urgent with the longest rest, is evicted first (Algorithms 1, 3 and 4).

*Stage-aware batching* (Algorithm 2): of the ``b`` best that wait and all that run, the best one
decides. If its prompt is still to be computed, all are merged; if it is decoding, those that wait
with a prompt are pushed back, so that no prompt of a lesser one slows it down. The ``b`` best of
what is left run.

*Keep or recompute.* The paper moves evicted KV to the host. This engine has no such place: what is
kept stays on the device, and keeping it costs what the better one has to wait. So a victim of a
lower level always gives way; one of the same level does if computing its tokens again, at the
prefill speed measured on this engine, takes less time than the wait for whoever ends next.

Corrected:

- Eq. 3 says that caching is more efficient where ``beta n > alpha_1 n^2 + alpha_2 n``. Loading n
  tokens costs the left side, recomputing them the right one: it is more efficient where ``<``.
- Eq. 6 is to minimise Eq. 5 over m*, the decoded tokens to keep, of m' after a prompt of n. With
  x = m' - m* the derivative of Eq. 5 is ``beta - gamma_1 (x + n + 1/2) - gamma_2``: zero at

      m* = m' - (beta - gamma_1 n - (gamma_1 + 2 gamma_2)/2) / gamma_1,    within 0 .. m'

  The paper lost ``m' -`` and gained a factor 1/2: as printed m* is 0 wherever a decode step takes
  longer than loading a token, which is everywhere, and it saves nothing.
- Eq. 5 itself counts the recomputed tokens as if they came right after the prompt. They come
  after the kept ones, for KV is of use only without a gap; and an engine computes known tokens
  again in one prefill. Either way the cost of the n-th token rises with n, and the least of the
  sum is at an end: keep all or nothing, as ``tokens_to_keep`` says.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from timely_llm.policies import Decision, EngineState, View, register
from timely_llm.policies.batch import kv_needed, prefill_time, tokens_to_end

Key = tuple[int, float, int]


def remaining_time(view: View, state: EngineState) -> float:
    """f_t: predicted time in s to the end of the plan, its uncomputed prompt included."""
    return prefill_time(view, state) + tokens_to_end(view) * state.latency(1, 0, view.kv_tokens)


def tokens_to_keep(tokens: int, wait: float, recompute: Callable[[int], float]) -> int:
    """How many of ``tokens`` to keep where that costs ``wait`` s for all of them, in proportion for
    a part, and computing the first n again takes ``recompute(n)`` s: Eq. 3 and Eq. 6, corrected.

    ``recompute`` rises at least linearly, so that the least cost is at an end: all or nothing.
    """
    return tokens if wait < recompute(tokens) else 0


def batch_of(views: Sequence[View], keys: dict[int, Key], limit: int) -> list[View]:
    """Algorithm 2: who runs next, best first, as far as memory is not looked at."""
    waiting = [(keys[v.number], v) for v in views if not v.running]
    heapq.heapify(waiting)
    candidates = [heapq.heappop(waiting)[1] for _ in range(min(limit, len(waiting)))]
    ongoing = [view for view in views if view.running]
    merged = sorted([*candidates, *ongoing], key=lambda v: keys[v.number])
    if not _prefilling(merged[0]):
        merged = [view for view in merged if view.running or not _prefilling(view)]
    return merged[:limit]


def _prefilling(view: View) -> bool:
    return view.uncached > 0 or not view.kv_tokens


def _gives_way(victim: View, better: View, batch: Sequence[View], state: EngineState) -> bool:
    """Whether ``victim`` is to lose its blocks to ``better``, which is ahead of it."""
    if better.urgency < victim.urgency or not batch:
        return True
    step = state.latency(len(batch), 0, sum(view.kv_tokens for view in batch))
    wait = min(map(tokens_to_end, batch)) * step
    held = victim.kv_tokens
    return tokens_to_keep(held, wait, lambda tokens: state.latency(0, tokens, 0)) == 0


@register("semantic", predicts=True)
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """The batch of Algorithm 2, with memory for it by Algorithm 4.

    A request that still lacks memory is waited for: nobody after it begins.
    """
    if not views:
        return Decision()
    keys = {v.number: (v.urgency, remaining_time(v, state), v.number) for v in views}
    cached = [(_worst(keys[v.number]), v) for v in views if v.kv_tokens]
    heapq.heapify(cached)
    batch: list[View] = []
    evicted: set[int] = set()
    free, short = state.kv_tokens_free, False
    for view in batch_of(views, keys, state.max_batch):
        if view.number in evicted or (short and not view.kv_tokens):
            continue
        need = kv_needed(view)
        while need > free and cached and keys[cached[0][1].number] > keys[view.number]:
            if not _gives_way(cached[0][1], view, batch, state):
                break
            victim = heapq.heappop(cached)[1]
            evicted.add(victim.number)
            free += victim.kv_tokens
        if batch and need > free:
            short = True
            continue
        batch.append(view)
        free -= need
    running = {view.number for view in batch}
    return Decision(
        run=tuple(view.id for view in batch),
        hold=tuple(view.id for _, view in sorted(cached) if view.number not in running),
        evict=tuple(v.id for v in sorted(views, key=lambda v: v.number) if v.number in evicted),
    )


def _worst(key: Key) -> Key:
    """Turns the order round: the root of a heap is the worst."""
    return -key[0], -key[1], -key[2]
