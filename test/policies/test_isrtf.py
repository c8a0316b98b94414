"""ELIS's policy: windows by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import STATES, state, view, views

from timely_llm.policies import View
from timely_llm.policies.isrtf import choose, in_window


def job(number: int, rest: float, written: int = 0, running: bool = False, **fields) -> View:
    known = {"kv_tokens": 60 if written or running else 0, "worst_tokens_left": 1.0}
    return view(number, predicted=rest, written=written, running=running, **(known | fields))


# The policy.


def test_the_shortest_predicted_rest_goes_first_then_the_number():
    some = [job(1, 90.0), job(2, 30.0), job(4, 60.0), job(3, 60.0)]
    assert choose(0.0, some, state(3)).run == ("p2", "p3", "p4")


def test_without_a_prediction_the_segment_s_rest_counts():
    some = [job(1, 30.0), view(2, tokens_left=20.0)]
    assert choose(0.0, some, state(1)).run == ("p2",)


@pytest.mark.parametrize(
    ("written", "stays"), [(0, True), (1, True), (49, True), (50, False), (51, True), (100, False)]
)
def test_a_window_of_50_tokens_is_run_to_its_end(written, stays):
    some = [job(1, 400.0, written, running=True), job(2, 3.0)]
    assert in_window(some[0]) is stays
    assert choose(0.0, some, state(1)).run == (("p1",) if stays else ("p2",))


def test_one_that_lost_its_blocks_in_a_window_ends_it_all_the_same():
    assert in_window(job(1, 400.0, 30, running=True, kv_tokens=0))
    assert not in_window(job(1, 400.0, 0, running=True, kv_tokens=0))


def test_one_that_does_not_run_has_no_window():
    assert not in_window(job(1, 400.0, 30))
    assert choose(0.0, [job(1, 400.0, 30), job(2, 3.0)], state(1)).run == ("p2",)


def test_where_one_ends_the_shortest_fills_its_place_at_once():
    some = [job(1, 400.0, 30, running=True), job(2, 90.0), job(3, 80.0)]
    assert choose(0.0, some, state(2)).run == ("p1", "p3")


def test_the_longest_gives_up_its_blocks_first():
    some = [job(1, 10.0), job(2, 50.0, 100), job(3, 90.0, 50), job(4, 70.0, 50)]
    decision = choose(0.0, some, state(1))
    assert (decision.run, decision.hold) == (("p1",), ("p3", "p4", "p2"))


def test_behind_one_that_lacks_memory_only_those_go_on_that_hold_blocks():
    some = [job(1, 10.0), job(2, 20.0, uncached=500), job(3, 30.0), job(4, 40.0, 50)]
    assert choose(0.0, some, state(4, free=300)).run == ("p1", "p4")
    assert choose(0.0, some, state(4, free=600)).run == ("p1", "p2", "p3", "p4")


@given(some=views(), engine=STATES, now=st.floats(0, 150))
def test_no_window_is_broken(some, engine, now):
    opened = [one.id for one in some if in_window(one)]
    free = engine._replace(kv_tokens_free=30_000)
    run = choose(now, some, free).run
    assert len(opened) > engine.max_batch or set(opened) <= set(run)
