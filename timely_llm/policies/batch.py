"""What the policies share: predicted delivery, and who still fits into the batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from timely_llm.policies import Decision, EngineState, View

by_number = attrgetter("number")
LARGEST_BLOCK = 128  # tokens of a KV block; the next token of each may begin one
MOST_TOKENS = 1e9  # of a segment; keeps sums of tokens whole numbers


def worst_time(view: View, state: EngineState, batch: int) -> float:
    """Time in s to finish the longest segment in a batch of ``batch`` (TimelyLLM, section 4.4)."""
    prefill = state.latency(0, view.uncached, 0) if view.uncached else 0.0
    return view.worst_tokens_left * state.latency(batch, 0, view.kv_tokens) + prefill


def kv_needed(view: View) -> int:
    """KV tokens it takes beyond what it holds, to the end of the longest segment."""
    return view.uncached + round(min(view.worst_tokens_left, MOST_TOKENS))


def tokens_to_end(view: View) -> float:
    """Tokens to the end of the plan as predicted; without a prediction to that of the segment."""
    return view.predicted if view.predicted >= 0 else view.tokens_left


def most_urgent(batch: Sequence[View], now: float, state: EngineState) -> View | None:
    """Who has the veto: the first due of those that will be in time as things stand.

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
    prompt computed beside it, the most urgent generation must still meet its due time."""
    if urgent is None:
        return True
    beside = state.latency(0, extra.uncached, 0) if extra.uncached else 0.0
    return now + worst_time(urgent, state, size + 1) + beside + urgent.network <= urgent.due


def in_segment(view: View) -> bool:
    """It is being written and inside a segment."""
    return view.running and view.mid_segment


def settled(
    views: Sequence[View], state: EngineState, stays: Callable[[View], bool] = in_segment
) -> Decision | None:
    """The choice where nobody's rank matters: all places are taken by generations that stay, being
    inside a segment, or everyone is. None where there is something to choose, or where KV blocks
    may run out."""
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
    """The batch from generations ranked best first. Inside a segment nobody is interrupted; those
    go on in order of arrival, before whoever begins.

    Nobody has a veto against the first ``overdue`` of ``ranked``. Whoever lacks KV memory is waited
    for: nobody behind it begins a segment, so that those who run make room in the end. Everyone
    else keeps its KV blocks and gives them up in reverse rank.
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
    hold = tuple(v.id for v in reversed(ranked) if v.number not in chosen and v.kv_tokens)
    return Decision(run=tuple(view.id for view in batch), hold=hold)


def preempting(ranked: Sequence[View], state: EngineState, behind: Sequence[View] = ()) -> Decision:
    """The batch from generations ranked best first, whoever was computed so far; those ``behind``
    rank after them and are not computed.

    Whoever lacks KV memory is waited for: behind it only those go on that hold blocks already.
    Everyone else keeps its KV blocks and gives them up in reverse rank.
    """
    batch: list[View] = []
    chosen: set[int] = set()
    free, short = state.kv_tokens_free, False
    everyone = [*ranked, *behind]
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
        chosen.add(view.number)
        free -= need
    hold = tuple(v.id for v in reversed(everyone) if v.number not in chosen and v.kv_tokens)
    return Decision(run=tuple(view.id for view in batch), hold=hold)
