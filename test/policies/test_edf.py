"""Earliest due time first, in segments."""

import math

from hypothesis import given
from hypothesis import strategies as st
from policy_cases import STATES, state, view, views

from timely_llm import policies


def test_edf_goes_by_due_time_then_number():
    some = [view(1, due=5.0), view(2, due=3.0), view(3, due=3.0), view(4, due=-1.0)]
    assert policies.get("edf").choose(0.0, some, state(3)).run == ("p4", "p2", "p3")


@given(now=st.floats(0, 150), some=views(), engine=STATES)
def test_edf_never_leaves_an_earlier_one_for_a_later_one(now, some, engine):
    """Of those that begin a segment now, none is due later than one that was left out."""
    run = policies.get("edf").choose(now, some, engine).run
    begin = [v for v in some if v.id in run and not (v.running and v.mid_segment)]
    out = [v for v in some if v.id not in run]
    latest = max(((v.due, v.number) for v in begin), default=(-math.inf, 0))
    assert all((v.due, v.number) > latest for v in out)
