"""Durations of one skill, learned: small cases by hand, and what holds for any data."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.estimation.skill_time import OWN_WINDOW, RobotSkill, SkillTimes, prior_ratios, total
from timely_llm.estimation.skill_time import Estimate as E
from timely_llm.language.skills import Duration

FIXED = Duration("constant", (2.0,), None, 2.0, 2.0)
SPREAD = Duration("uniform", (1.0, 3.0), None, 1.0, 3.0)
SCAN = Duration("choice", (1.5, 8), None, 1.5, 12.0)
MODELS = st.sampled_from([FIXED, SPREAD, SCAN])
TIMES = st.floats(0.05, 100.0)
PAIRS = st.lists(st.tuples(TIMES, TIMES), max_size=OWN_WINDOW)


def robot_of(duration=FIXED, pairs=(), quantile=0.1, name="r"):
    own = RobotSkill(name, SkillTimes(duration, quantile))
    for expected, measured in pairs:
        own.observe(expected, measured)
    return own


# By hand.


def test_nothing_measured_is_the_skill_set_s_word():
    own = robot_of(FIXED)
    assert own.left(2.0) == E(2.0, 2.0)
    assert own.left(2.0, 0.5) == E(1.5, 1.5)
    assert own.left(2.0, 2.5) == E(0.0, 0.0)  # none takes as long


def test_a_spread_of_the_skill_set_s_own_is_its_quantiles():
    assert [round(math.exp(log), 3) for log in prior_ratios(SPREAD, 4)] == [1.25, 1.75, 2.25, 2.75]
    assert [round(math.exp(log), 3) for log in prior_ratios(SCAN)] == [1, 2, 3, 4, 5, 6, 7, 8]
    scan = robot_of(SCAN)
    assert scan.left(1.5).low == pytest.approx(1.5)
    assert scan.left(1.5).mean == pytest.approx(1.5 * 4.5, rel=0.01)
    # A turn of 1.5 s did not find it: the next one ends at 3 s.
    assert scan.left(1.5, 1.6).low == pytest.approx(1.4)


def test_one_execution_may_be_an_accident_and_two_are_none():
    assert robot_of(FIXED, [(2.0, 6.0)]).left(2.0).low == 2.0
    twice = robot_of(FIXED, [(2.0, 6.0)] * 2)
    assert twice.left(2.0).low == pytest.approx(6.0)
    assert twice.left(4.0).low == pytest.approx(12.0)


def test_a_lower_quantile_and_a_mean_of_what_was_measured():
    pairs = [(1.0, 1.0 + i / 10) for i in range(-5, 6)]  # 0.5 to 1.5 around 1
    own = robot_of(Duration("constant", (1.0,), None, 1.0, 1.0), pairs, 0.2)
    # Weights: 11 executions and 1.5 for the prior, 12.5: a fifth of them is 2.5, the third.
    assert own.left(1.0).low == pytest.approx(0.7)
    assert own.left(1.0).mean == pytest.approx(1.0, abs=0.01)
    # 0.85 s gone: 1.5 + 7 are left, 8.5: a fifth of them is 1.7, the second.
    assert own.left(1.0, 0.85).low == pytest.approx(1.0 - 0.85)
    assert robot_of(FIXED, pairs, 0.5).left(1.0).low == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("constant", "slope"), [(1.0, 1.0), (0.0, 2.0), (-0.5, 1.0), (3.0, 0.5), (-1.0, 1.5)]
)
def test_a_wrong_constant_is_told_from_a_wrong_speed(constant, slope):
    model = Duration("polynomial", (1.8, 0.0072), 0, 2.0, 5.4)
    expected = [2.0 + (i % 6) * 0.6 for i in range(18)]  # 2 to 5 s
    own = robot_of(model, [(x, constant + slope * x) for x in expected], 0.5)
    for x in (2.3, 4.1, 5.4):  # also such as were never used
        assert own.left(x).low == pytest.approx(constant + slope * x, rel=0.02)
    assert own.left(1.0).low > 0.0


def test_a_line_is_not_made_of_noise():
    rng = random.Random(3)
    pairs = [(rng.uniform(1, 4), 0.0) for _ in range(16)]
    own = robot_of(FIXED, [(x, 2 * x * rng.uniform(0.9, 1.1)) for x, _ in pairs])
    assert own._kind.line(40.0) == pytest.approx(80.0, rel=0.08)


def test_a_robot_is_drawn_towards_its_kind():
    kind = SkillTimes(FIXED)
    fast, slow, new = (RobotSkill(name, kind) for name in ("fast", "slow", "new"))
    rng = random.Random(1)
    for _ in range(16):
        fast.observe(2.0, 2.0 * rng.uniform(0.95, 1.05))
        fast.observe(2.0, 2.0 * rng.uniform(0.95, 1.05))
        slow.observe(2.0, 3.0 * rng.uniform(0.95, 1.05))
    assert fast.left(2.0).mean == pytest.approx(2.0, rel=0.05)
    assert 2.0 < new.left(2.0).mean < slow.left(2.0).mean
    assert slow.left(2.0).mean == pytest.approx(3.0, rel=0.1)
    few = RobotSkill("few", kind)
    few.observe(2.0, 3.0)
    few.observe(2.0, 3.0)
    assert fast.level < few.level < slow.level


def test_times_that_vary_independently_are_hardly_all_short():
    assert total([]) == E(0.0, 0.0)
    assert total([E(5.0, 2.0)]) == E(5.0, 2.0)
    assert total([E(5.0, 2.0), E(6.0, 2.0)]) == E(11.0, 6.0)  # 3, 4: 5
    assert total([E(1.0, 1.0), E(5.0, 2.0)]) == E(6.0, 3.0)


# For any data.


@given(MODELS, PAIRS, TIMES, st.floats(0.0, 200.0), st.floats(0.01, 0.5))
def test_estimates_are_finite_and_ordered(duration, pairs, expected, elapsed, quantile):
    own = robot_of(duration, pairs, quantile)
    whole, left = own.left(expected), own.left(expected, elapsed)
    assert 0.0 < whole.low <= whole.mean < math.inf
    assert 0.0 <= left.low <= left.mean < math.inf


@given(MODELS, PAIRS, TIMES, TIMES)
def test_what_is_expected_to_take_longer_does(duration, pairs, one, other):
    own = robot_of(duration, pairs)
    short, long = own.left(min(one, other)), own.left(max(one, other))
    assert short.low <= long.low * (1 + 1e-9) and short.mean <= long.mean * (1 + 1e-9)


@given(MODELS, PAIRS, TIMES, st.floats(0, 50), st.floats(0, 50))
def test_an_end_is_never_expected_sooner_as_time_goes_by(duration, pairs, expected, one, other):
    own, (early, late) = robot_of(duration, pairs), sorted((one, other))
    if own.left(expected, late).low > 0.0:
        assert early + own.left(expected, early).low <= late + own.left(expected, late).low + 1e-9


@given(st.sampled_from([0.1, 0.3, 3.0, 10.0]), st.integers(0, 40))
def test_consistent_data_draw_the_estimate_to_themselves(factor, count):
    own, before = robot_of(FIXED), 2.0
    for _ in range(count):
        own.observe(2.0, 2.0 * factor)
        now = own.left(2.0)
        assert abs(now.low - 2 * factor) <= abs(before - 2 * factor) + 1e-9
        before = now.low
    if count >= 15:
        assert own.left(2.0).low == pytest.approx(2.0 * factor)
        assert own.left(2.0).mean == pytest.approx(2.0 * factor)


@given(MODELS, PAIRS, st.randoms(use_true_random=False), TIMES)
def test_the_order_of_executions_does_not_count(duration, pairs, rng, expected):
    shuffled = list(pairs)
    rng.shuffle(shuffled)
    one, other = (SkillTimes(duration) for _ in range(2))
    a, b = RobotSkill("r", one), RobotSkill("r", other)
    for (x, t), (y, u) in zip(pairs, shuffled, strict=True):
        a.observe(x, t)
        b.observe(y, u)
    if len(a.samples) == len(b.samples) == len(pairs):  # none was taken for a drift
        assert a.left(expected) == pytest.approx(b.left(expected))


@given(
    st.lists(st.floats(0.8, 1.25), min_size=10, max_size=12),
    st.lists(st.sampled_from([1e-3, 0.01, 40.0, 1e5]), max_size=3),
    st.integers(0, 100),
)
def test_outliers_move_an_estimate_no_further_than_the_good_ones_reach(good, bad, seed):
    measured = [2.0 * ratio for ratio in good] + bad
    random.Random(seed).shuffle(measured)
    left = robot_of(FIXED, [(2.0, time) for time in measured], 0.4).left(2.0)
    low, high = 2.0 * min(1.0, *good), 2.0 * max(1.0, *good)
    assert low / 1.3 <= left.low <= high * 1.3
    assert low / 2 <= left.mean <= high * 2
