"""The project's own policy: who computes next is whoever leaves the least utility lost.

After its expected response time a goal loses ``|alpha|`` of utility each second, without end. The
objective is therefore weighted tardiness, ``sum |alpha_i| max(0, C_i - d_i)``, on a machine that
serves a batch of b in steps of ``l(b)`` s and computes prompts one after the other. One setting
serves every load: where all can be in time the sum is 0 and the shortest schedule wins; where they
cannot, the sum says whom to serve first, and how many at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import nsmallest
from math import exp, inf
from operator import itemgetter

from timely_llm.policies import Decision, EngineState, View, register
from timely_llm.policies.batch import preempting, settled

LOOK_AHEAD = 1.0  # s; continuations due later are left to idle steps
CONTINUATION = 0.25  # weight of a robot that stands still in the middle of its plan
CAUTION = 0.25  # of the way from the expected to the longest segment
KAPPA = 8.0  # mean segments; how soon slack begins to count
HEAD = 32  # goals that are planned for; those after them count by what the head's time costs them
IDLE = 0.1  # what engine time is worth by itself, in mean weights
SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)  # of turns, besides the largest
RIDE = 0.02  # a step may be longer by this share for each sequence that rides along
BACKGROUND = 2.0  # single steps that a step may take while nothing is due
PATIENCE = 5.0  # s after its due time from which on a goal gets a share of the steps
SHARE = 8  # one step in so many belongs to the longest overdue
_LEAST = 1e-6  # s, or utility/s; keeps quotients finite

# The fields that are read of every goal; reading them together is much quicker than one by one.
_NAMES = ("number", "segment", "due", "utility", "tokens_left", "worst_tokens_left", "uncached")
_FIELDS = itemgetter(*map(View._fields.index, (*_NAMES, "network")))

# What it weighs (utility/s), slack (s), time of its segment alone (s), number, view.
_Goal = tuple[float, float, float, int, View]


@register("least_loss")
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """The run set with the least predicted loss, chosen again in every step, also inside segments.

    1. *Order*: by the loss that a second of service averts (apparent tardiness cost; Vepsalainen
       and Morton, 1987), ``|alpha| / q exp(-max(0, slack - q) / (KAPPA mean q))``, with q the time
       that the segment takes alone. For late goals that is weighted shortest processing time, which
       the exchange argument shows to be best; slack counts only while there is some.
    2. *Turns*: the first HEAD of them are to be served m at a time. A turn takes its prompts, and
       then ``l(m)`` for each token of its longest segment. Of all m, the one with the least sum of
       ``|alpha| max(0, delivery - due)`` is taken: larger turns need fewer steps in all, but each
       member waits for all prompts of its turn.
    3. *Step*: the prompts of the first turn one by one, then its tokens. Whoever has its prompt
       computed may ride along where that lengthens the step by at most RIDE.

    Continuations due within LOOK_AHEAD weigh CONTINUATION of what their goal weighs; later ones are
    written ahead while nobody else is there. Nobody starves: of those more than PATIENCE s past
    their due time, the first due is in at least one of SHARE steps.
    """
    goals, later, overdue = _goals(now, views, state)
    if not goals:
        return _background(later, state)
    if len(views) == 1 and (decision := settled(views, state, lambda view: True)) is not None:
        return decision
    head, tail = _ranked(goals)
    steps = _steps(head, state)
    size = _turn_size(head, _pressure(head, goals), steps, state)
    turn = [goal[4] for goal in head[:size]]
    rest = [goal[4] for goal in head[size:]] + tail
    fresh = [view for view in turn if view.uncached]
    run = _prompts(fresh, turn, state) if fresh else _with_riders(turn, rest, steps)
    others = turn + rest + later
    if overdue is not None:  # between its steps, it is the last to lose its KV blocks
        others.insert(0, overdue)
        if state.steps % SHARE == 0:
            run = [overdue, *[view for view in run if view is not overdue]][: state.max_batch]
    chosen = {view.number for view in run}
    after = {view.number: view for view in others if view.number not in chosen}
    return preempting(run, state, list(after.values()))


def _goals(
    now: float, views: Sequence[View], state: EngineState
) -> tuple[list[_Goal], list[View], View | None]:
    """The goals to plan for; continuations that are due later, in order; and the longest overdue
    one, if it is more than PATIENCE s late."""
    latency = state.latency
    alone = max(_LEAST, latency(1, 0, 0))
    expected, longest = (1.0 - CAUTION) * alone, CAUTION * alone
    prompts: dict[int, float] = {0: 0.0}
    goals: list[_Goal] = []
    later: list[View] = []
    overdue: View | None = None
    fields = map(_FIELDS, views)
    for view, (number, segment, due, utility, left, worst, uncached, network) in zip(
        views, fields, strict=True
    ):
        weight = -utility.alpha
        slack = due - network - now
        if segment:
            if slack > LOOK_AHEAD:
                later.append(view)
                continue
            weight *= CONTINUATION
        if slack < -PATIENCE and (overdue is None or (due, number) < (overdue.due, overdue.number)):
            overdue = view
        if uncached not in prompts:
            prompts[uncached] = latency(0, uncached, 0)
        own = prompts[uncached] + left * expected + worst * longest
        goals.append((weight, slack, own if own > _LEAST else _LEAST, number, view))
    later.sort(key=lambda view: (view.due, view.number))
    return goals, later, overdue


def _ranked(goals: list[_Goal]) -> tuple[list[_Goal], list[View]]:
    """The first HEAD of ``goals``, and those of the others that hold KV blocks, in order."""
    scale = -len(goals) / (KAPPA * sum([goal[2] for goal in goals]))
    keys = [
        (-weight / own * (exp((slack - own) * scale) if slack > own else 1.0), slack, number, place)
        for place, (weight, slack, own, number, _) in enumerate(goals)
    ]
    if len(goals) <= HEAD:
        keys.sort()
        return [goals[key[3]] for key in keys], []
    first = nsmallest(HEAD, keys)
    last = first[-1]
    others = sorted([key for key in keys if goals[key[3]][4].kv_tokens and key > last])
    return [goals[key[3]] for key in first], [goals[key[3]][4] for key in others]


def _steps(head: Sequence[_Goal], state: EngineState) -> list[float]:
    """Decode step times in s of batches of 0, 1, ... over contexts of the usual length."""
    context = sum([goal[4].kv_tokens + goal[4].uncached for goal in head]) // len(head)
    latency = state.latency
    most = min(state.max_batch, len(head))
    return [0.0, *[latency(size, 0, size * context) for size in range(1, most + 1)]]


def _pressure(head: Sequence[_Goal], goals: Sequence[_Goal]) -> float:
    """What a second of the head's time costs others, in utility/s: all that come after it wait, and
    so do goals that have not arrived yet."""
    everyone = sum([goal[0] for goal in goals])
    after = everyone - sum([goal[0] for goal in head]) if len(goals) > len(head) else 0.0
    return max(_LEAST, after + IDLE * everyone / len(goals))


def _turn_size(
    head: Sequence[_Goal], pressure: float, steps: Sequence[float], state: EngineState
) -> int:
    """How many to serve at once."""
    most = len(steps) - 1
    if most == 1:
        return 1
    latency = state.latency
    plan: list[tuple[float, float, float]] = []
    prompts: list[float] = []
    for weight, slack, _, _, view in head:
        tokens = view.tokens_left
        tokens += CAUTION * (view.worst_tokens_left - tokens)
        if view.uncached:  # a prompt gives the first token
            prompts.append(latency(0, view.uncached, 0))
            plan.append((weight, tokens - 1.0, slack))
        else:
            prompts.append(0.0)
            plan.append((weight, tokens, slack))
    best, least = most, _loss(plan, prompts, most, steps, pressure, inf)
    for size in SIZES:
        if size >= most:
            break
        loss = _loss(plan, prompts, size, steps, pressure, least)
        if loss < least:
            best, least = size, loss
    return best


def _loss(
    plan: Sequence[tuple[float, float, float]],
    prompts: Sequence[float],
    size: int,
    steps: Sequence[float],
    pressure: float,
    limit: float,
) -> float:
    """Utility lost if all of ``plan`` (weight, decode steps, slack in s) are served in turns of
    ``size``, each second costing ``pressure`` on top. Counting stops above ``limit``."""
    loss = end = 0.0
    for first in range(0, len(plan), size):
        turn = plan[first : first + size]
        start = end = end + sum(prompts[first : first + size])
        step = steps[len(turn)]
        for weight, tokens, slack in turn:
            done = start + tokens * step
            if done > end:
                end = done
            if done > slack:
                loss += weight * (done - slack)
        if loss + pressure * end >= limit:
            break
    return loss + pressure * end


def _prompts(fresh: list[View], turn: list[View], state: EngineState) -> list[View]:
    """Whose prompts to compute now. One alone, so that each step is chosen again, unless the engine
    is quicker with several at once, or with prompts and tokens in one step."""
    latency = state.latency
    tokens = sum([view.uncached for view in fresh])
    together = latency(0, tokens, 0)
    ready = len(turn) - len(fresh)
    if ready and latency(ready, tokens, 0) < (1.0 - RIDE) * (together + latency(ready, 0, 0)):
        return turn
    if len(fresh) > 1:
        apart = sum([latency(0, view.uncached, 0) for view in fresh])
        if together < (1.0 - RIDE) * apart:
            return fresh
    return fresh[:1]


def _with_riders(turn: list[View], rest: Iterable[View], steps: Sequence[float]) -> list[View]:
    """``turn``, and those that can join its step at almost no cost."""
    run = list(turn)
    for view in rest:
        size = len(run)
        if size + 1 >= len(steps) or steps[size + 1] > (1.0 + RIDE) * steps[size]:
            break
        if not view.uncached:
            run.append(view)
    return run


def _background(later: list[View], state: EngineState) -> Decision:
    """Continuations written ahead, in steps that end before a new goal has waited long."""
    longest = BACKGROUND * state.latency(1, 0, 0)
    size = min(len(later), state.max_batch)
    while size > 1 and state.latency(size, 0, 0) > longest:
        size -= 1
    decision = settled(later, state, lambda view: True) if 0 < size == len(later) else None
    if decision is not None:
        return replace(decision, valid_until=later[0].due - later[0].network - LOOK_AHEAD)
    return preempting(later[:size], state, later[size:])
