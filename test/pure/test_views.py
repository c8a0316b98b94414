"""What policies are shown of a plan: its numbers, state by state."""

import pytest

from timely_llm.generation import Generation, State
from timely_llm.latency import SegmentLength
from timely_llm.messages import PlanGoal
from timely_llm.policies import View
from timely_llm.utility import PRESETS, Urgency
from timely_llm.views import view_of

PINNED = 100


def show(state: State, **fields) -> View:
    """A plan of 130 prompt tokens that arrived at 10."""
    utility = PRESETS[Urgency.NORMAL]
    plan = Generation("a" * 32, 7, PlanGoal("r1", "go"), utility, 10.0, state)
    plan.prompt_tokens, plan.uncached = 130, 30
    for name, value in fields.items():
        setattr(plan, name, value)
    return view_of(plan, SegmentLength(4.0, 9.0), PINNED, 0.008)


def test_waiting():
    view = show(State.WAITING)
    assert (view.id, view.number, view.segment, view.urgency) == ("a" * 32, 7, 0, 3)
    assert (view.arrival, view.origin, view.due, view.network) == (10.0, 10.0, 11.0, 0.008)
    assert (view.uncached, view.kv_tokens) == (30, 0)
    assert (view.tokens_left, view.worst_tokens_left) == (4.0, 9.0)
    assert (view.running, view.mid_segment) == (False, False)


@pytest.mark.parametrize(("written", "left", "worst"), [(1, 3.0, 8.0), (4, 1.0, 5.0), (99, 1, 1)])
def test_at_least_one_token_is_left_of_a_segment(written, left, worst):
    view = show(State.RUNNING, begun=True, uncached=0, tokens=written, segment_tokens=written)
    assert (view.tokens_left, view.worst_tokens_left) == (left, worst)
    assert (view.running, view.mid_segment) == (True, True)
    assert view.kv_tokens == 30 + written


def test_suspended_between_segments():
    fields = {"begun": True, "uncached": 0, "tokens": 5, "segments": ["go(1)"]}
    view = show(State.SUSPENDED, **fields)
    assert (view.segment, view.running, view.mid_segment) == (1, False, False)
    assert view.utility == PRESETS[Urgency.NORMAL].continuation()
    assert (view.origin, view.due) == (0.0, 0.0)  # the horizon's end


def test_evicted():
    view = show(State.EVICTED, begun=True, uncached=35, tokens=5, segments=["go(1)"])
    assert (view.uncached, view.kv_tokens) == (35, 0)


def test_blocks_are_held_even_if_the_fixed_prompt_was_computed_meanwhile():
    """It has computed 20 of its 130 tokens itself; it can be told to give them up."""
    assert show(State.RUNNING, begun=True, uncached=110).kv_tokens == 1
    assert show(State.WAITING, uncached=130).kv_tokens == 0
