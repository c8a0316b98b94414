"""Step times by formula and as learned: what is learned, how fast, what cannot mislead it."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.estimation.step_time import LatencyEstimate, StepLatency

MODEL = StepLatency((0.02,), per_sequence=0.001, per_kv_token=1e-6, per_prefill_token=1e-4)
TABLE = StepLatency(
    (0.014, 0.027, 0.038, 0.125, 0.126),
    per_prefill_token=1e-4,
    per_prefill_square=1e-8,
)
QUERIES = [
    *[(batch, 0, 400 * batch) for batch in (1, 2, 3, 4, 6, 8)],
    *[(batch, prompt, 400 * batch) for batch in (0, 1, 4) for prompt in (30, 300, 1000)],
]


def small_machine(batch: int, prompt: int = 0, kv: int = 0) -> float:
    """Step times of another form than any prior's: a kink, and two constants of prefill."""
    time = 0.0
    if batch:
        time += 0.0022 + 0.0003 * batch + 0.0004 * (batch > 4) + 4e-8 * kv
    if prompt:
        time += (0.0008 if batch else 0.0027) + 4e-5 * prompt + 3e-9 * prompt**2
    return time


def steps(seed: int, count: int, factor: float = 1.0, noise: float = 0.06, outliers: float = 0.05):
    """Steps of ``small_machine`` with noise, some of them several times too long."""
    rng = random.Random(seed)
    for _ in range(count):
        batch = rng.choice([0, 1, 1, 2, 3, 4, 6, 8])
        prompt = rng.choice([0, 0, 0, 30, 60, 300, 1000]) if batch else rng.choice([30, 100, 1000])
        kv = batch * rng.randint(50, 1500)
        duration = factor * small_machine(batch, prompt, kv) * rng.gauss(1.0, noise)
        if rng.random() < outliers:
            duration *= rng.uniform(2.0, 8.0)
        yield batch, prompt, kv, duration


def learned(*lots, prior=MODEL) -> LatencyEstimate:
    estimate = LatencyEstimate(prior)
    for lot in lots:
        for step in lot:
            estimate.observe(*step)
    return estimate


def error(estimate: LatencyEstimate, factor: float = 1.0) -> float:
    """Mean relative error over ``QUERIES``."""
    errors = [abs(estimate(*q) / (factor * small_machine(*q)) - 1.0) for q in QUERIES]
    return sum(errors) / len(errors)


@pytest.mark.parametrize("prior", [MODEL, TABLE, small_machine])
def test_it_starts_from_its_prior_whatever_its_form(prior):
    estimate = LatencyEstimate(prior)
    for query in [*QUERIES, (1, 0, 0), (4, 100, 1000), (40, 0, 0)]:
        assert estimate(*query) == pytest.approx(prior(*query), rel=1e-9)
    assert estimate(0) == 0.0


def test_steps_as_predicted_change_nothing():
    estimate = LatencyEstimate(TABLE)
    for query in QUERIES * 10:
        estimate.observe(*query, TABLE(*query))
    assert [estimate(*q) for q in QUERIES] == [LatencyEstimate(TABLE)(*q) for q in QUERIES]


def test_exact_steps_are_learned_in_a_few_from_a_prior_ten_times_too_slow():
    truth = StepLatency((0.002,), 0.0001, 1e-7, 1e-5)
    estimate = LatencyEstimate(MODEL)
    rng = random.Random(0)
    for _ in range(300):
        batch, prompt = rng.randint(1, 8), rng.choice([0, 0, 50, 500])
        kv = batch * rng.randint(10, 2000)
        estimate.observe(batch, prompt, kv, truth(batch, prompt, kv))
    for query in [(1, 0, 500), (5, 0, 4000), (8, 0, 9000), (3, 200, 1000)]:
        assert estimate(*query) == pytest.approx(truth(*query), rel=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_noisy_steps_with_outliers_are_learned_to_three_percent(seed):
    assert error(learned(steps(seed, 2000))) < 0.03


@pytest.mark.parametrize("factor", [0.1, 20.0])
def test_the_prior_s_speed_does_not_matter(factor):
    assert error(learned(steps(7, 2000, factor)), factor) < 0.04


def test_the_first_step_may_take_a_hundred_times_as_long():
    estimate = learned([(1, 0, 100, 2.5)], steps(1, 100))
    assert estimate(1, 0, 100) == pytest.approx(small_machine(1, 0, 100), rel=0.1)


def test_a_third_of_steps_disturbed_moves_the_prediction_little():
    steady = [(2, 0, 500, 0.0029)] * 40
    mixed = [(2, 0, 500, 0.0290 if i % 3 == 0 else 0.0029) for i in range(300)]
    assert learned(steady, mixed)(2, 0, 500) == pytest.approx(0.0029, rel=0.02)


@pytest.mark.parametrize("factor", [0.4, 2.0])
def test_a_machine_that_changes_its_speed_is_followed_within_forty_steps(factor):
    estimate = learned(steps(3, 1000), steps(4, 40, factor, outliers=0.0))
    assert error(estimate, factor) < 0.25
    for step in steps(5, 1000, factor):
        estimate.observe(*step)
    assert error(estimate, factor) < 0.04


def test_a_batch_size_with_times_of_its_own_keeps_them():
    """SLICE's machine: nine in a batch take as long as eight, and three times as long as four."""
    estimate = LatencyEstimate(StepLatency((0.02,), per_sequence=0.01))
    for _ in range(40):
        for batch, time in enumerate(TABLE.decode, 1):
            estimate.observe(batch, 0, 100, time)
    for batch, time in enumerate(TABLE.decode, 1):
        assert estimate(batch, 0, 100) == pytest.approx(time, rel=0.05)


def test_sizes_not_seen_go_with_the_prior_s_proportions():
    estimate = learned([(1, 0, 0, 0.2)] * 30)
    assert estimate(1) == pytest.approx(0.2, rel=1e-3)
    assert 0.2 <= estimate(8) <= 0.2 * MODEL(8) / MODEL(1) * 1.05


def test_what_cannot_be_a_step_is_not_learned():
    estimate = LatencyEstimate(MODEL)
    for duration in (0.0, -1.0, math.nan, math.inf):
        estimate.observe(2, 0, 100, duration)
    estimate.observe(0, 0, 0, 1.0)
    assert estimate(2, 30, 100) == pytest.approx(MODEL(2, 30, 100))


def test_groups_are_bounded_in_number():
    estimate = LatencyEstimate(MODEL)
    for batch in range(1, 700):
        estimate.observe(batch, 0, 0, 0.5)
    assert len(estimate._groups) <= 512
    assert estimate(699) > 0


STEPS = st.tuples(
    st.integers(0, 64),
    st.integers(0, 4096),
    st.integers(0, 200_000),
    st.floats(0, 60) | st.floats(1e-4, 1e-1),
)


@given(st.lists(STEPS, max_size=80), STEPS)
def test_it_is_finite_never_negative_and_never_falls_with_tokens(some, query):
    estimate = LatencyEstimate(MODEL)
    for step in some:
        estimate.observe(*step)
    batch, prompt, kv, _ = query
    value = estimate(batch, prompt, kv)
    assert math.isfinite(value)
    assert value >= 0.0
    assert estimate(batch, prompt + 100, kv) >= value
    assert estimate(batch, prompt, kv + 100) >= value


@given(st.lists(STEPS, max_size=60))
def test_the_same_steps_teach_the_same(some):
    assert [learned(some)(*q) for q in QUERIES] == [learned(some)(*q) for q in QUERIES]
