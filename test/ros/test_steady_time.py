"""Clocks that are set, back and forth: time goes on counting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.ros.steady_time import TOLERANCE, SteadyTime


def times(*readings) -> list[float]:
    clock = SteadyTime()
    return [round(clock.at(*reading), 6) for reading in readings]


def test_a_clock_that_is_not_set_is_taken_at_its_word():
    assert times((100.0, 5.0), (100.2, 5.2), (103.0, 8.01)) == [100.0, 100.2, 103.0]


@pytest.mark.parametrize("jump", [-3600.0, -1.0, 1.0, 3600.0])
def test_where_the_clock_is_set_time_goes_on(jump):
    read = times((100.0, 5.0), (101.0 + jump, 6.0), (102.0 + jump, 7.0), (103.0, 8.0))
    assert read == [100.0, 101.0, 102.0, 103.0]


def test_a_clock_that_is_slewed_is_followed_but_never_back():
    assert times((100.0, 5.0), (100.3, 5.1), (100.2, 5.2), (100.6, 5.3)) == [
        100.0, 100.3, 100.3, 100.6,
    ]  # fmt: skip


def test_simulated_time_that_is_set_back_goes_on_from_where_it_was():
    assert times((0.0,), (1000.0,), (5.0,), (6.5,)) == [0.0, 1000.0, 1000.0, 1001.5]


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(-1e4, 1e4)), max_size=20))
def test_whatever_is_set_no_time_is_lost_or_won(steps):
    """Each look: s that have passed, and by how much the clock was set in between."""
    clock, steady, read = SteadyTime(), 0.0, 50.0
    clock.at(read, steady)
    slewed = 0.0
    for passed, jump in steps:
        steady, read = steady + passed, read + passed + jump
        slewed += abs(jump) if abs(jump) <= TOLERANCE + 1e-6 else 0.0
        before, now = clock.at(read, steady), clock.at(read, steady)
        assert before == now
        assert abs(now - 50.0 - steady) <= slewed + 1e-6
