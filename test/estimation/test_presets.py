"""Engines by name: the papers' numbers, and step times of every form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.estimation import presets as engine_presets
from timely_llm.estimation.presets import PRESETS, EngineModel, UnknownPreset, get
from timely_llm.estimation.step_time import StepLatency


def test_the_presets():
    assert {
        *("rtx4090-llama3-8b", "rtx4060ti-chatglm2-6b"),
        *("a100-qwen1.5-4b", "a100-qwen1.5-7b", "a5000-qwen1.5-7b"),
    } <= set(PRESETS)
    assert all(get(name).name == name and get(name).source for name in PRESETS)
    with pytest.raises(UnknownPreset, match="did you mean 'rtx4090-llama3-8b'"):
        get("rtx4090-llama3-8")


def test_timely_llm_s_engine_at_three_batch_slopes():
    for name, slope in (("", 0.00038), ("-slope0", 0.0), ("-slope2", 0.002)):
        latency = get(f"rtx4090-llama3-8b{name}").latency
        assert latency(1) == 0.0218
        assert latency(8) == pytest.approx(0.0218 + 7 * slope)
        assert latency(0, 100) == pytest.approx(100 * engine_presets.OWN_WORDS[slope])


def test_slice_s_table():
    latency = get("rtx4060ti-chatglm2-6b").latency
    table = (14, 27, 38, 50, 60, 72, 83, 125, 126, 123, 124, 125, 126, 123, 124)
    assert [round(latency(batch) * 1e3) for batch in range(1, 16)] == list(table)
    assert latency(40) == latency(15)


@pytest.mark.parametrize(
    ("name", "decode", "prefill"),
    [
        ("a100-qwen1.5-4b", 5.913e-9 * 1000 + 1.196e-2, 1.466e-9 * 1e6 + 1.052e-4 * 1000),
        ("a100-qwen1.5-7b", 1.349e-8 * 1000 + 1.330e-2, 5.135e-7 * 1e6 + 1.481e-4 * 1000),
        ("a5000-qwen1.5-7b", 2.117e-6 * 1000 + 2.727e-2, 1.859e-9 * 1e6 + 2.175e-4 * 1000),
    ],
)
def test_semantic_scheduling_s_engines(name, decode, prefill):
    """Appendix B at 1,000 tokens: gamma_1 n + gamma_2 a step, alpha_1 n^2 + alpha_2 n a prompt."""
    latency = get(name).latency
    assert latency(1, 0, 1000) == pytest.approx(decode)
    assert latency(0, 1000) == pytest.approx(prefill)


def test_a_cache_is_what_the_weights_leave():
    assert (
        get("rtx4090-llama3-8b").kv_tokens == (int(0.9 * 24 * 2**30 - 16.06e9) // 131072) // 16 * 16
    )


@given(
    st.integers(0, 40), st.integers(0, 4000), st.integers(0, 10**5), st.sampled_from(list(PRESETS))
)
def test_more_to_compute_never_takes_less(batch, prefill, kv_tokens, name):
    latency = get(name).latency
    time = latency(batch, prefill, kv_tokens)
    assert 0 <= time <= latency(batch, prefill + 1, kv_tokens)
    assert time <= latency(batch, prefill, kv_tokens + 1)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"decode": (-0.1,)}, r"decode\[0\] is -0.1 s"),
        ({"decode": (0.1,), "per_sequence": float("nan")}, "per_sequence is nan"),
        ({"decode": (0.1, float("inf"))}, r"decode\[1\] is inf"),
    ],
)
def test_times_are_finite_and_not_negative(fields, words):
    with pytest.raises(ValueError, match=words):
        StepLatency(**fields)


def test_an_engine_without_a_cache_is_refused():
    with pytest.raises(ValueError, match="x: kv_tokens is 0"):
        EngineModel("x", StepLatency((0.1,)), kv_tokens=0)
