"""What the policies share: predicted times, and who still fits into the batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from timely_llm.policies import Decision, EngineState, View

by_number = attrgetter("number")
LARGEST_BLOCK = 128  # tokens of a KV block; the next token of each may begin one
MOST_TOKENS = 1e9  # of a segment; keeps sums of tokens whole numbers


def prefill_time(view: View, state: EngineState) -> float:
    """Time in s to compute the prompt tokens that are not in the cache, alone."""
    return state.latency(0, view.uncached, 0) if view.uncached else 0.0


def worst_time(view: View, state: EngineState, batch: int) -> float:
    """Time in s to finish the longest segment in a batch of ``batch`` (TimelyLLM, section 4.4)."""
    decode = view.worst_tokens_left * state.latency(batch, 0, view.kv_tokens)
    return decode + prefill_time(view, state)


def kv_needed(view: View) -> int:
    """KV tokens it needs beyond what it holds, to the end of the longest segment."""
    return view.uncached + round(min(view.worst_tokens_left, MOST_TOKENS))


def tokens_to_end(view: View) -> float:
    """Tokens to the end of the plan as predicted; without a prediction to that of the segment."""
    return view.predicted if view.predicted >= 0 else view.tokens_left


def most_urgent(batch: Sequence[View], now: float, state: EngineState) -> View | None:
    """Who has the veto: of those that will be in time as things stand, the one due first.

    One that is late already, or that cannot be saved, has none.
    """
    size, urgent = len(batch), None
    for view in batch:
        if urgent is not None and (view.due, view.number) >= (urgent.due, urgent.number):
            continue
        if now + worst_time(view, state, size) + view.network <= view.due:
            urgent = view
    return urgent


def admits(urgent: View | None, size: int, extra: View, now: float, state: EngineState) -> bool:
    """Batch admission (TimelyLLM, section 4.4): with ``extra`` in the batch of ``size``, and its
    prompt computed as well, the most urgent request must still meet its due time."""
    if urgent is None:
        return True
    prefill = prefill_time(extra, state)
    return now + worst_time(urgent, state, size + 1) + prefill + urgent.network <= urgent.due


def in_segment(view: View) -> bool:
    """It is being written and is inside a segment."""
    return view.running and view.mid_segment


def settled(
    views: Sequence[View], state: EngineState, stays: Callable[[View], bool] = in_segment
) -> Decision | None:
    """The decision where nobody's rank matters: requests that stay, being inside a segment, take
    all places, or everyone stays. None where there is something to choose, or where KV blocks may
    run out."""
    batch = [view for view in views if stays(view)]
    if len(batch) < min(state.max_batch, len(views)) or len(batch) > state.max_batch:
        return None
    need = sum(kv_needed(view) + LARGEST_BLOCK for view in batch)
    if need > state.kv_tokens_free or any(view.uncached for view in batch):
        return None
    batch.sort(key=by_number)
    return Decision(run=tuple(view.id for view in batch), valid_until=math.inf, kv_floor=need)


def fill(
    ranked: Iterable[View],
    now: float,
    state: EngineState,
    *,
    admission: bool = True,
    overdue: int = 0,
) -> Decision:
    """The batch from requests ranked best first. Inside a segment nobody is interrupted; those
    requests go on in order of arrival, before any that starts one.

    With ``admission`` the most urgent request in the batch has a veto, but not against the first
    ``overdue`` of ``ranked``. A request that lacks KV memory is waited for: nobody after it starts
    a segment, so that those who run make room in the end. Everyone else keeps its KV blocks and
    loses them in reverse rank.
    """
    ranked = list(ranked)
    batch = [view for view in ranked if in_segment(view)][: state.max_batch]
    batch.sort(key=by_number)
    chosen = {view.number for view in batch}
    free = state.kv_tokens_free - sum(kv_needed(view) for view in batch)
    urgent = most_urgent(batch, now, state) if admission else None
    # What worse-ranked generations hold can be had for a better one.
    reclaimable = sum(view.kv_tokens for view in ranked if view.number not in chosen)
    for rank, view in enumerate(ranked):
        if len(batch) >= state.max_batch:
            break
        if view.number in chosen:
            continue
        reclaimable -= view.kv_tokens
        need = kv_needed(view)
        if batch and need > free + reclaimable:
            break
        if rank >= overdue and not admits(urgent, len(batch), view, now, state):
            continue
        batch.append(view)
        chosen.add(view.number)
        free -= need
        urgent = most_urgent(batch, now, state) if admission else None
    return _decision(batch, ranked)


def preempting(ranked: Sequence[View], state: EngineState, after: Sequence[View] = ()) -> Decision:
    """The batch from requests ranked best first, whoever was computed so far; those in ``after``
    rank after them and are not computed.

    A request that lacks KV memory is waited for: after it only those go on that hold blocks
    already. Everyone else keeps its KV blocks and loses them in reverse rank.
    """
    batch: list[View] = []
    free, short = state.kv_tokens_free, False
    everyone = [*ranked, *after]
    reclaimable = sum(view.kv_tokens for view in everyone)
    for view in ranked:
        if len(batch) >= state.max_batch:
            break
        reclaimable -= view.kv_tokens
        need = kv_needed(view)
        if batch and (need > free + reclaimable or (short and not view.kv_tokens)):
            short = True
            continue
        batch.append(view)
        free -= need
    return _decision(batch, everyone)


def _decision(batch: Sequence[View], ranked: Sequence[View]) -> Decision:
    """``batch`` runs; of the others in ``ranked``, the last one loses its KV blocks first."""
    chosen = {view.number for view in batch}
    hold = tuple(v.id for v in reversed(ranked) if v.number not in chosen and v.kv_tokens)
    return Decision(run=tuple(view.id for view in batch), hold=hold)
