"""ELIS: iterative shortest remaining time first (its section 4.1, Algorithm 1).

    priority of a job = Predictor.init(job) at first, Predictor.iter(job) after each window;
    the jobs with the least of it run the next window, of K = 50 tokens.

The predictor gives the tokens to the end of the plan; the planner asks it before the first token
and again every 50 (``View.predicted``). ELIS decides when a window is over or a job in it ends:
here, who is inside a window stays, and who stands at the end of one competes with all that wait.
Which windows are open follows from the tokens written so far. Where memory runs out, the longest
remaining loses its blocks first (its section 4.1, "configurable priorities").

ELIS knows no urgency, no due times and no robots: nor does this. Nobody who is predicted to be long
is protected against a flood of short ones, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence

from timely_llm.estimation.plan_length import WINDOW
from timely_llm.policies import Decision, EngineState, View, register
from timely_llm.policies.batch import preempting, settled, tokens_to_end


def in_window(view: View) -> bool:
    """It is being written and inside a window of 50 tokens, its prompt being part of the first."""
    begun = view.written > 0 or view.kv_tokens > 0
    return view.running and begun and (view.written == 0 or view.written % WINDOW != 0)


@register("isrtf", predicts=True)
def choose(now: float, views: Sequence[View], state: EngineState) -> Decision:
    """Open windows first, in order of arrival, then the shortest predicted rest."""
    if decision := settled(views, state, in_window):
        return decision

    def rank(view: View) -> tuple[bool, float, int]:
        inside = in_window(view)
        return not inside, 0.0 if inside else tokens_to_end(view), view.number

    return preempting(sorted(views, key=rank), state)
