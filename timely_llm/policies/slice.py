"""SLICE: rates by target, tasks by utility rate, decode-mask columns (its section IV).

*Utility rate* (Eq. 6): ``r = U T_TPOT``, the utility of a task per token of its rate
``v = ceil(1/T_TPOT)``, in tokens/s. U is beta of the goal's time utility. A goal without a target
counts as the paper's real-time tasks, machine control and navigation planning: 20 tokens/s.

*Selection* (Algorithm 2): tasks by falling r, while a period in which each gets its v tokens takes
less than 1 s. With the selected ones sorted by falling v (Eq. 7, indices from 0 to b):

    T_period = v_b l(b+1) + sum_{j=0}^{b-1} (v_j - v_{j+1}) l(j+1)

*Columns* (Algorithm 3): task k runs in the first v_k of v_0 columns; a step computes one column.

Corrected, or settled where the paper is silent:

- Eq. 2 as printed wants the time to the first token to be *at least* its target; it means at most.
  A task that has missed its TTFT cannot meet its SLO any more (X = 0 in Eq. 1): it is selected
  after all that can. A real-time task, a goal with a time budget, is held to that alone (section
  VI-A): it counts until the budget is over, however late its first token came.
- The published code under-counts its period against Eq. 7. Here it is Eq. 7 to the letter.
- Where not even the first task fits in a period, the paper selects none, and all stand still. Here
  that one runs.
- A period says nothing of prompts. A selected task's prompt is computed at once, whatever the
  column, the nearest TTFT, or end of a time budget, first.
- The paper goes back to column 0 at each arrival and end. Under many of those everyone runs in
  nearly every step, which is what the mask is to prevent. Here the column is the number of the
  engine's step modulo v_0: nothing to remember, and each full turn visits each column once.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence

from timely_llm.policies import Decision, EngineState, View, register
from timely_llm.policies.batch import preempting

PERIOD = 1.0  # s, in which each selected task gets its v tokens
DEFAULT_TPOT = 0.05  # s, of the paper's real-time tasks (section VI-A)
MAX_RATE = 1000  # tokens/s; keeps a column a whole number


def tpot(view: View) -> float:
    """The target for each token after the first, s."""
    return view.tpot if view.tpot > 0 else DEFAULT_TPOT


def rate(view: View) -> int:
    """v: tokens of each period. 1/0.1 is 10, whatever its last bit says."""
    return max(1, math.ceil(min(MAX_RATE, 1.0 / tpot(view)) - 1e-9))


def utility_rate(view: View) -> float:
    """Eq. 6: utility per token of the rate that the task needs."""
    return view.utility.beta * tpot(view)


def missed(view: View, now: float) -> bool:
    """Its time budget is over; of one that has none, its first token came, or can only come, later
    than its TTFT target."""
    if view.time_budget > 0:
        return now - view.arrival > view.time_budget
    first = view.first_token if view.first_token >= 0 else now
    return view.ttft > 0 and first - view.arrival > view.ttft


def period(rates: Sequence[int], times: Sequence[float]) -> float:
    """Eq. 7, s: ``rates`` of the tasks in falling order, ``times[j]`` the step time of the first
    j + 1 of them."""
    following = [*rates[1:], 0]
    return sum((v - w) * time for v, w, time in zip(rates, following, times, strict=True))


def rank(views: Sequence[View], now: float) -> list[View]:
    """Those that can meet their targets first, the highest utility rate first."""
    return sorted(views, key=lambda v: (missed(v, now), -utility_rate(v), v.number))


def select(ranked: Sequence[View], state: EngineState) -> list[View]:
    """Algorithm 2: the first of ``ranked`` that fit in a period; at least one, at most a batch."""
    rows: list[tuple[int, int, int]] = []  # falling rate, number, context
    for view in ranked[: state.max_batch]:
        insort(rows, (-rate(view), view.number, view.kv_tokens))
        if len(rows) > 1 and _period_of(rows, state) >= PERIOD:
            return list(ranked[: len(rows) - 1])
    return list(ranked[: len(rows)])


def _period_of(rows: Sequence[tuple[int, int, int]], state: EngineState) -> float:
    """Eq. 7 with l(n) over the context that the first n rows hold."""
    latency, times, context = state.latency, [], 0
    for size, (_, _, tokens) in enumerate(rows, 1):
        context += tokens
        times.append(latency(size, 0, context))
    return period([-row[0] for row in rows], times)


@register("slice")
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """The step's column of the mask, with the prompts that are still to be computed."""
    if not views:
        return Decision()
    ranked = rank(views, now)
    selected = select(ranked, state)
    prompts = [v for v in selected if v.uncached or not v.kv_tokens]
    prompts.sort(key=lambda v: (v.arrival + (v.ttft or v.time_budget or math.inf), v.number))
    waiting = {v.number for v in prompts}
    column = state.steps % max(map(rate, selected))
    run = [v for v in selected if column < rate(v) and v.number not in waiting] + prompts
    computed = {v.number for v in run}
    return preempting(run, state, [v for v in ranked if v.number not in computed])
