"""The rule of TimelyLLM's published code."""

import math

import pytest
from policy_cases import state, view

from timely_llm import policies
from timely_llm.policies.timely import priority as eq_4
from timely_llm.policies.timely_artifact import lateness, priority
from timely_llm.protocols.utility import TimeUtility


def test_artifact_of_one_in_time_by_hand():
    """4 tokens in 0.08 s: at the robot at 0.09, 0.91 s early."""
    assert lateness(view(1), 0.0, state()) == pytest.approx(-0.91)
    assert priority(view(1), 0.0, state()) == pytest.approx(math.exp(-0.91))


def test_artifact_of_a_late_one_by_hand():
    """At the robot at 1.29: 0.29 s late at -2/s."""
    assert priority(view(1), 1.2, state()) == pytest.approx(1 - 2 * 0.29)
    prompt = view(1, uncached=100)  # 0.01 s more
    assert priority(prompt, 1.2, state()) == pytest.approx(1 - 2 * 0.30)


def test_the_artifact_does_not_ask_how_long_a_segment_takes_but_eq_4_does():
    """Both are due with their delivery; one takes five times as long."""
    flat = TimeUtility(0.0, 0.0, 1.0)
    short = view(2, due=0.09, utility=flat)
    long = view(1, due=0.41, utility=flat, tokens_left=20.0)
    assert priority(short, 0.0, state()) == pytest.approx(priority(long, 0.0, state()))
    assert eq_4(short, 0.0, state()) == pytest.approx(5 * eq_4(long, 0.0, state()))


def test_whom_the_artifact_drops_goes_last_the_longest_overdue_first():
    choose = policies.get("timely_artifact").choose
    dropped = [view(1, due=-2.0), view(2, due=-3.0), view(3, due=0.0)]
    assert all(priority(one, 0.3, state()) <= 0 for one in dropped[:2])
    assert priority(dropped[2], 0.3, state()) == pytest.approx(1 - 2 * 0.39)
    assert choose(0.3, dropped, state(2)).run == ("p3", "p2")
    assert choose(0.3, dropped, state(4)).run == ("p3", "p2", "p1")
