"""Step times: the linear model, what is learned from steps, and segment lengths."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.latency import PRESETS, LatencyEstimate, SegmentLength, StepLatency

MODEL = StepLatency(base=0.02, per_sequence=0.001, per_kv_token=1e-6, per_prefill_token=1e-4)


def test_a_step_is_linear_in_what_it_computes():
    assert MODEL(1) == 0.02
    assert MODEL(4) == pytest.approx(0.023)
    assert MODEL(4, 100) == pytest.approx(0.033)
    assert MODEL(4, 100, 1000) == pytest.approx(0.034)
    assert MODEL(0, 100, 1000) == pytest.approx(0.01)  # prefill alone
    assert MODEL(0) == 0


def test_the_preset_has_the_paper_s_step_times():
    """TimelyLLM, section 2: 21.8 ms a token, 1,300 prompt tokens in 133.31 ms."""
    preset = PRESETS["rtx4090-llama3-8b"]
    assert preset(1) == 0.0218
    assert preset(0, 1300) == pytest.approx(0.13331)
    assert preset(8) == pytest.approx(0.0218 + 7 * 0.00038)
    assert "TimelyLLM" in preset.source


def test_an_estimate_starts_from_its_prior():
    estimate = LatencyEstimate(MODEL)
    for arguments in [(1, 0, 0), (4, 0, 100), (4, 100, 1000), (0, 100, 0)]:
        assert estimate(*arguments) == pytest.approx(MODEL(*arguments))


def test_the_first_step_of_a_batch_size_counts_whole_then_a_moving_mean():
    estimate = LatencyEstimate(MODEL)
    estimate.observe(2, 0, 0, 0.040)
    assert estimate(2) == 0.040
    estimate.observe(2, 0, 0, 0.060)
    assert estimate(2) == pytest.approx(0.040 + LatencyEstimate.RATE * 0.020)


def test_other_batch_sizes_are_extended_from_the_nearest_smaller_one():
    estimate = LatencyEstimate(MODEL)
    estimate.observe(2, 0, 0, 0.040)
    estimate.observe(5, 0, 0, 0.050)
    assert estimate(4) == pytest.approx(0.042)
    assert estimate(7) == pytest.approx(0.052)
    assert estimate(1) == 0.040  # none is smaller: the next larger one is an upper bound


def test_what_is_extended_follows_what_is_learned():
    estimate = LatencyEstimate(MODEL)
    estimate.observe(2, 0, 0, 0.040)
    assert estimate(3) == pytest.approx(0.041)
    estimate.observe(2, 0, 0, 0.080)
    assert estimate(3) == pytest.approx(0.043)


def test_prompt_tokens_are_charged_with_what_is_beyond_the_decode_part():
    estimate = LatencyEstimate(MODEL)
    estimate.observe(1, 0, 0, 0.020)
    for _ in range(300):
        estimate.observe(1, 100, 0, 0.120)
    assert estimate(0, 100) == pytest.approx(0.100, rel=1e-3)
    assert estimate(1) == 0.020  # a mixed step says nothing about decoding alone


def test_a_mixed_step_faster_than_decoding_alone_makes_prefill_free_not_negative():
    estimate = LatencyEstimate(MODEL)
    for _ in range(500):
        estimate.observe(4, 50, 0, 0.0)
    assert 0 <= estimate(0, 50) < 1e-6


def test_learned_step_times_converge():
    estimate = LatencyEstimate(MODEL)
    for _ in range(400):
        estimate.observe(3, 0, 0, 0.5)
    for _ in range(400):
        estimate.observe(3, 0, 0, 0.1)
    assert estimate(3) == pytest.approx(0.1, rel=1e-6)


STEPS = st.tuples(
    st.integers(0, 64), st.integers(0, 4096), st.integers(0, 200_000), st.floats(0, 60)
)


@given(st.lists(STEPS, max_size=50), STEPS)
def test_an_estimate_is_finite_and_never_negative(steps, query):
    estimate = LatencyEstimate(MODEL)
    for step in steps:
        estimate.observe(*step)
    value = estimate(*query[:3])
    assert math.isfinite(value)
    assert value >= 0


def test_segment_lengths_start_from_the_paper_s_and_learn():
    lengths = SegmentLength()
    assert (lengths.mean, lengths.worst) == (4.1, 10.0)
    lengths.observe(20)
    assert lengths.mean == pytest.approx(4.1 + SegmentLength.RATE * 15.9)
    assert lengths.worst == 20
    lengths.observe(5)
    assert lengths.worst == pytest.approx(20 * SegmentLength.FORGET)


@given(st.lists(st.integers(1, 500), max_size=100))
def test_the_worst_length_is_never_below_the_mean_nor_the_latest(tokens):
    lengths = SegmentLength()
    for count in tokens:
        lengths.observe(count)
        assert lengths.worst >= lengths.mean > 0
        assert lengths.worst >= count
