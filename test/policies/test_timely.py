"""TimelyLLM's Eq. 4, and the rule of its published code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import state, view

from timely_llm import policies
from timely_llm.policies.batch import worst_time
from timely_llm.policies.timely import positive, priority
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency

# Eq. 4.


def test_priority_of_a_first_segment_by_hand():
    """4 tokens in 0.08 s: at the robot at 0.09, 0.91 s before it is due, utility still 1."""
    assert priority(view(1), 0.0, state()) == pytest.approx(1.0 / (0.08 * (0.91 + 0.02)))


def test_priority_of_a_late_first_segment_by_hand():
    """At the robot at 1.29: utility 1 - 2 * 0.29, no slack left but the one step."""
    assert priority(view(1), 1.2, state()) == pytest.approx(0.42 / (0.08 * 0.02))


def test_priority_of_a_continuation_counts_waiting_from_the_horizon():
    """The robot runs dry at 3; at the robot at 3.09: 0.09 s of waiting, ERT 0."""
    utility = PRESETS[Urgency.NORMAL].continuation()
    one = view(1, segment=2, origin=3.0, due=3.0, utility=utility)
    assert priority(one, 3.0, state()) == pytest.approx((1 - 2 * 0.09) / (0.08 * 0.02))
    assert priority(one, 2.0, state()) == pytest.approx(1.0 / (0.08 * (0.91 + 0.02)))


def test_uncached_prompt_counts_as_generation_time():
    assert priority(view(1, uncached=100), 0.0, state()) == pytest.approx(1 / (0.09 * 0.92))
    assert worst_time(view(1, uncached=100), state(), 3) == pytest.approx(10 * 0.024 + 0.01)


NOW = st.floats(0, 20)
TOKENS = st.floats(1, 50)


@given(NOW, TOKENS, st.floats(-20, 20), st.floats(0, 20), st.floats(0.05, 10))
def test_priority_never_rises_with_slack(now, tokens, due, later, beta):
    flat = TimeUtility(0.0, 0.0, beta)  # the same utility, whenever it comes
    near = view(1, due=due, tokens_left=tokens, utility=flat)
    far = near._replace(due=due + later)
    assert priority(far, now, state()) <= priority(near, now, state())


@given(NOW, TOKENS, st.floats(-20, 20), st.floats(0.001, 10), st.floats(0, 10))
def test_priority_never_falls_with_utility(now, tokens, due, beta, more):
    less = view(1, due=due, tokens_left=tokens, utility=TimeUtility(0.0, -1.0, beta))
    worth = less._replace(utility=TimeUtility(0.0, -1.0, beta + more))
    assert priority(worth, now, state()) >= priority(less, now, state()) > 0


@given(NOW, TOKENS, st.floats(1, 5))
def test_priority_falls_with_the_length_of_the_segment(now, tokens, factor):
    flat = TimeUtility(0.0, 0.0, 1.0)
    short = view(1, due=-1.0, tokens_left=tokens, utility=flat)
    assert priority(short._replace(tokens_left=tokens * factor), now, state()) <= priority(
        short, now, state()
    )


def test_priority_is_continuous_where_slack_ends():
    flat = TimeUtility(0.0, 0.0, 1.0)
    at = 0.09  # delivery of a view at 0
    values = [priority(view(1, due=at + d, utility=flat), 0.0, state()) for d in (-1e-9, 0, 1e-9)]
    assert values[0] == values[1] == pytest.approx(values[2], rel=1e-6)


@given(st.floats(-1e6, 100), st.floats(0, 100))
def test_utility_below_zero_still_ranks(utility, more):
    assert 0 < positive(utility) <= positive(utility + more)


def test_the_urgent_goal_goes_first_but_not_for_ever():
    urgent = view(1, utility=PRESETS[Urgency.URGENT], due=0.2)
    normal = view(2)
    choose = policies.get("timely").choose
    assert choose(0.0, [urgent, normal], state(1)).run == ("p1",)
    # Far past its cutoff, it no longer is worth more than the other in time.
    assert choose(0.9, [urgent, normal], state(1)).run == ("p2",)


def test_among_two_continuations_the_robot_that_runs_dry_first_is_served_first():
    utility = PRESETS[Urgency.NORMAL].continuation()
    far = view(1, segment=1, origin=9.0, due=9.0, utility=utility)
    near = view(2, segment=1, origin=2.0, due=2.0, utility=utility)
    assert policies.get("timely").choose(0.0, [far, near], state(1)).run == ("p2",)
