"""Robots that become slower: seen after a few executions, told once, and not where they are not."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.estimation.drift import Drift


def follow(drift: Drift, ratios) -> list[tuple[int, float]]:
    """(execution, factor) of all news."""
    told = []
    for i, ratio in enumerate(ratios, 1):
        drift.observe(math.log(ratio))
        if drift.news():
            told.append((i, round(drift.factor, 2)))
    return told


def noisy(rng: random.Random, factor: float, spread: float, count: int) -> list[float]:
    return [factor * math.exp(rng.gauss(0.0, spread)) for _ in range(count)]


def test_half_as_slow_again_is_told_once_and_so_is_its_end():
    drift = Drift()
    assert follow(drift, [1.0] * 20) == []
    assert follow(drift, [1.5] * 40) == [(4, 1.5)]
    assert follow(drift, [1.0] * 40) == [(4, 1.0)]
    assert drift.factor == 1.0


def test_faster_is_told_too_and_worse_is_told_again():
    drift = Drift()
    follow(drift, [2.0] * 20)
    assert follow(drift, [1.0] * 20) == [(4, 0.5)]
    follow(drift, [2.0] * 20)
    assert follow(drift, [3.0] * 20 + [6.0] * 20) == [(4, 1.5), (24, 3.0)]


@pytest.mark.parametrize(("spread", "within"), [(0.05, 6), (0.1, 10), (0.2, 25)])
def test_noise_delays_it(spread, within):
    for seed in range(10):
        rng, drift = random.Random(seed), Drift()
        assert follow(drift, noisy(rng, 1.0, spread, 60)) == []
        told = follow(drift, noisy(rng, 1.5, spread, 60))
        assert len(told) == 1
        assert told[0][0] <= within
        assert told[0][1] == pytest.approx(1.5, abs=0.2)


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.3, 0.65])
def test_no_false_alarm_in_ten_thousand_executions(spread):
    rng = random.Random(7)
    assert follow(Drift(), noisy(rng, 1.0, spread, 10_000)) == []


def test_slow_wear_is_seen_as_well():
    told = follow(Drift(), [math.exp(math.log(1.5) * i / 3000) for i in range(4000)])
    assert told and told[0][1] >= 1.29


def test_what_is_wrong_from_the_start_is_no_drift():
    assert follow(Drift(), [3.3] * 100) == []


@given(st.lists(st.sampled_from([1e-3, 0.1, 10.0, 1e3]), max_size=20), st.integers(0, 99))
def test_outliers_that_do_not_repeat_are_no_drift(bad, seed):
    rng, drift = random.Random(seed), Drift()
    follow(drift, noisy(rng, 1.0, 0.1, 30))
    for ratio in bad:
        assert follow(drift, [ratio, *noisy(rng, 1.0, 0.1, 40)]) == []


@given(st.lists(st.floats(-9, 9), max_size=60))
def test_any_history_leaves_it_sound(ratios):
    drift = Drift()
    for ratio in ratios:
        fresh = drift.observe(ratio)
        assert 0 <= fresh <= 32
        drift.news()
        assert 0.0 < drift.factor < math.inf and drift.spread >= 0.0


def test_nearly_as_usual_is_usual_again():
    drift = Drift()
    follow(drift, [1.0] * 20 + [1.5] * 10)
    assert drift.factor == pytest.approx(1.5)
    assert [factor for _, factor in follow(drift, [1.18] * 40)] == [1.0]
