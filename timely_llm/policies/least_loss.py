"""The project's own policy: who computes next is whoever leaves the least utility lost.

Behind its expected response time a goal loses ``|alpha|`` of utility for each second, without end.
What is at stake is therefore weighted tardiness, ``sum |alpha_i| max(0, C_i - d_i)``, on a machine
that serves a batch of b in steps of ``l(b)`` s and computes prompts one after the other. Nothing
else is weighed here, and one setting serves every load: where all can be in time the sum is 0 and
the shortest schedule wins; where they cannot, it says whom to serve first, and how many at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from operator import itemgetter

from timely_llm.policies import Decision, EngineState, View, register
from timely_llm.policies.batch import preempting

LOOK_AHEAD = 1.0  # s; continuations due later are left to idle steps
CONTINUATION = 0.25  # weight of a robot that stands still in the middle of its plan
CAUTION = 0.25  # of the way from the expected to the longest segment
KAPPA = 8.0  # segments that are looked ahead over: how soon slack begins to count
HEAD = 32  # goals that are planned for; those behind them are worth what the head's time costs them
IDLE = 0.1  # what engine time is worth by itself, in mean weights
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32)
RIDE = 0.02  # a step may be longer by this share for each sequence that rides along
BACKGROUND = 2.0  # single steps that a step may take while nothing is due
PATIENCE = 5.0  # s behind its due time, from which on a goal has its share of the steps
SHARE = 8  # one step in so many belongs to the longest overdue
_LEAST = 1e-6  # s or weight; keeps quotients finite

# (-rank index, due, number, weight, prompt s, decode steps, slack s, view)
_Item = tuple[float, float, int, float, float, float, float, View]
_BY_DUE = itemgetter(1, 2)


@register("least_loss")
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """The run set with the least predicted loss, chosen anew in every step, also inside segments.

    1. *Order*: by the loss that a second of service averts (apparent tardiness cost; Vepsalainen
       and Morton, 1987), ``|alpha| / q exp(-max(0, slack - q) / (KAPPA mean q))``, with q the
       segment's own time. For late goals that is weighted shortest processing time, which the
       exchange argument shows to be best; slack counts only while there is some.
    2. *Batch*: the first HEAD of them are served in turns of m. A turn takes its prompts and then
       ``l(m)`` for each token of its longest segment. Of all m, the one with the least sum of
       ``|alpha| max(0, delivery - due)`` is taken: a larger batch needs fewer steps in all but
       makes each of its members wait for all prompts of the turn.
    3. *Step*: prompts of the turn one by one, then its tokens. Who has its prompt computed may ride
       along where that lengthens the step by at most RIDE.

    Continuations due within LOOK_AHEAD weigh CONTINUATION of what their goal weighs; later ones are
    written ahead while nobody else is there. Nobody starves: of those more than PATIENCE s behind
    their due time, the first due is in every SHARE-th step at least.
    """
    items, later = _items(now, views, state)
    if not items:
        size = _background_size(len(later), state)
        return preempting(later[:size], state, later[size:])
    head, tail = items[:HEAD], items[HEAD:]
    steps = _steps(head, state)
    size = _turn(head, tail, steps)
    turn, rest = head[:size], head[size:]
    fresh = [item[7] for item in turn if item[7].uncached]
    if fresh:
        run = _prompts(fresh, [item[7] for item in turn], state)
    else:
        run = [item[7] for item in turn]
        riders = (item[7] for item in (*rest, *tail) if not item[7].uncached)
        _ride(run, riders, steps, state)
    if state.steps % SHARE == 0:
        _serve_overdue(run, now, views, state)
    chosen = {view.number for view in run}
    behind = [item[7] for item in (*head, *tail) if item[2] not in chosen]
    behind += [view for view in later if view.number not in chosen]
    return preempting(run, state, behind)


def _items(now: float, views: Sequence[View], state: EngineState) -> tuple[list[_Item], list[View]]:
    """What is to be planned for, best first, and continuations that are due later, in order."""
    latency = state.latency
    alone = max(_LEAST, latency(1, 0, 0))
    found: list[tuple[float, float, float, float, float, View]] = []
    later: list[View] = []
    prompts: dict[int, float] = {0: 0.0}
    total = 0.0
    for view in views:
        due = view.due
        weight = -view.utility.alpha
        slack = due - view.network - now
        if view.segment:
            if slack > LOOK_AHEAD:
                later.append(view)
                continue
            weight *= CONTINUATION
        uncached = view.uncached
        prompt = prompts.get(uncached)
        if prompt is None:
            prompt = prompts[uncached] = latency(0, uncached, 0)
        tokens = view.tokens_left
        tokens += CAUTION * (view.worst_tokens_left - tokens)
        own = prompt + tokens * alone
        total += own
        found.append((own, weight, prompt, tokens - 1.0 if uncached else tokens, slack, view))
    if len(later) > 1:
        later.sort(key=lambda view: (view.due, view.number))
    scale = -len(found) / (KAPPA * total) if found else 0.0
    items = [
        (
            -weight / own * (exp((slack - own) * scale) if slack > own else 1.0),
            view.due,
            view.number,
            weight,
            prompt,
            tokens,
            slack,
            view,
        )
        for own, weight, prompt, tokens, slack, view in found
    ]
    items.sort()
    return items, later


def _steps(head: Sequence[_Item], state: EngineState) -> list[float]:
    """Decode step times in s of batches of 0, 1, ... over contexts of the usual length."""
    context = sum(item[7].kv_tokens + item[7].uncached for item in head) // len(head)
    latency = state.latency
    most = min(state.max_batch, len(head))
    return [0.0, *(latency(size, 0, size * context) for size in range(1, most + 1))]


def _turn(head: Sequence[_Item], tail: Sequence[_Item], steps: Sequence[float]) -> int:
    """How many to serve at once."""
    most = min(len(head), len(steps) - 1)
    if most == 1:
        return 1
    pressure = sum(item[3] for item in tail)
    pressure += IDLE * (pressure + sum(item[3] for item in head)) / (len(head) + len(tail))
    pressure = max(pressure, _LEAST)
    goals = [(item[3], item[5], item[6]) for item in head]
    prompts = [item[4] for item in head]
    best, least = most, _loss(goals, prompts, most, steps, pressure, float("inf"))
    for size in SIZES:
        if size >= most:
            break
        loss = _loss(goals, prompts, size, steps, pressure, least)
        if loss < least:
            best, least = size, loss
    return best


def _loss(
    goals: Sequence[tuple[float, float, float]],
    prompts: Sequence[float],
    size: int,
    steps: Sequence[float],
    pressure: float,
    limit: float,
) -> float:
    """Utility lost if ``goals`` (weight, decode steps, slack in s) are served in turns of ``size``,
    each second of it costing ``pressure`` besides; anything above ``limit`` stands for more."""
    loss = end = 0.0
    count = len(goals)
    for first in range(0, count, size):
        turn = goals[first : first + size]
        start = end + sum(prompts[first : first + size])
        end = start
        step = steps[len(turn)]
        for weight, tokens, slack in turn:
            done = start + tokens * step
            if done > end:
                end = done
            if done > slack:
                loss += weight * (done - slack)
        if loss + pressure * end > limit:
            break
    return loss + pressure * end


def _prompts(fresh: list[View], turn: list[View], state: EngineState) -> list[View]:
    """Whose prompts to compute now. Alone, and one after the other so that each step is chosen
    anew, unless the engine is quicker with several, or with prompts beside tokens."""
    latency = state.latency
    tokens = sum(view.uncached for view in fresh)
    together = latency(0, tokens, 0)
    ready = len(turn) - len(fresh)
    if ready and latency(ready, tokens, 0) < (1.0 - RIDE) * (together + latency(ready, 0, 0)):
        return turn
    if len(fresh) > 1:
        apart = sum(latency(0, view.uncached, 0) for view in fresh)
        if together < (1.0 - RIDE) * apart:
            return fresh
    return fresh[:1]


def _ride(run: list[View], riders, steps: Sequence[float], state: EngineState) -> None:
    """Add to ``run`` whom the step has room for at next to no cost."""
    for view in riders:
        size = len(run)
        if size + 1 >= len(steps) or steps[size + 1] > (1.0 + RIDE) * steps[size]:
            return
        run.append(view)


def _serve_overdue(run: list[View], now: float, views: Sequence[View], state: EngineState) -> None:
    """Put the longest overdue into ``run``, in place of the last one if there is no room."""
    limit = now - PATIENCE
    overdue = [(view.due, view.number, view) for view in views if view.due < limit]
    if not overdue:
        return
    first = min(overdue)[2]
    if first in run:
        run.remove(first)
    run.insert(0, first)
    del run[state.max_batch :]


def _background_size(count: int, state: EngineState) -> int:
    """How many continuations to write ahead: a new goal need not wait long for the step's end."""
    longest = BACKGROUND * state.latency(1, 0, 0)
    size = min(count, state.max_batch)
    while size > 1 and state.latency(size, 0, 0) > longest:
        size -= 1
    return size
