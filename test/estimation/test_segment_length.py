"""Step times by formula, and segment lengths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.estimation.presets import PACES
from timely_llm.estimation.segment_length import SegmentLength
from timely_llm.estimation.step_time import StepLatency

MODEL = StepLatency((0.02,), per_sequence=0.001, per_kv_token=1e-6, per_prefill_token=1e-4)


def test_a_step_is_linear_in_what_it_computes():
    assert MODEL(1) == 0.02
    assert MODEL(4) == pytest.approx(0.023)
    assert MODEL(4, 100) == pytest.approx(0.033)
    assert MODEL(4, 100, 1000) == pytest.approx(0.034)
    assert MODEL(0, 100, 1000) == pytest.approx(0.01)  # prefill alone
    assert MODEL(0) == 0


def test_the_preset_has_the_paper_s_step_times():
    """TimelyLLM, section 2: 21.8 ms a token, 1,300 prompt tokens in 133.31 ms."""
    preset = PACES["rtx4090-llama3-8b"]
    assert preset(1) == 0.0218
    assert preset(0, 1300) == pytest.approx(0.13331)
    assert preset(8) == pytest.approx(0.0218 + 7 * 0.00038)
    assert "TimelyLLM" in preset.source


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
