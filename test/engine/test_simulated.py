"""The simulated engine: exact steps, KV accounting, eviction order and prefill chunks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timely_llm.engine.simulated import SimulatedEngine, quarter_of_characters
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.engine import (
    DuplicateRequest,
    EngineRequest,
    Output,
    PromptTooLong,
    StepResult,
)

LATENCY = StepLatency(
    (1.0,), per_sequence=0.25, per_prefill_token=0.125, per_kv_token=0.0, source="test"
)


def make(script=("a", "b", "c"), latency=LATENCY, **options) -> SimulatedEngine:
    """An engine where one character is a token, blocks have 4 tokens and a prompt is exact."""
    options = {"block_size": 4, "kv_blocks": 100, "max_batch": 4, "count_tokens": len} | options
    return SimulatedEngine(lambda request: script, latency, **options)


def request(name: str, system: str = "s" * 8, user: str | None = "uuu", **fields):
    return EngineRequest(name, 0, system, user, **({"max_tokens": 10} | fields))


def drain(engine: SimulatedEngine, run, steps: int = 1000, **options) -> dict[str, str]:
    """Step ``run`` until all have finished; their texts."""
    texts = dict.fromkeys(run, "")
    left = list(run)
    for _ in range(steps):
        if not left and not engine.pending:
            return texts
        for name, output in engine.step(left, **options).outputs.items():
            texts[name] += output.text
            if output.finish:
                left.remove(name)
    raise AssertionError(f"not finished: {left}")


def test_one_request_step_by_step():
    engine = make()
    assert engine.submit(request("a")) == 11
    assert engine.step(["a"]) == StepResult(
        {"a": Output("a", 1)}, 11 * 0.125, {"a": 11}, 11, kv_blocks_used=3, kv_blocks_total=100
    )
    assert engine.step(["a"]) == StepResult(
        {"a": Output("b", 1)}, 1.0, {"a": 1}, 0, kv_blocks_used=3, kv_blocks_total=100
    )
    assert engine.step(["a"]).outputs == {"a": Output("c", 1)}
    assert engine.step(["a"]) == StepResult(
        {"a": Output("", 1, "stop")}, 1.0, {"a": 1}, 0, kv_blocks_used=0, kv_blocks_total=100
    )
    assert engine.step(["a"]) == StepResult(kv_blocks_total=100)


def test_empty_run_set_computes_nothing():
    engine = make()
    engine.submit(request("a"))
    assert engine.step([]) == StepResult(kv_blocks_total=100)
    assert engine.step([], ["a"]).duration == 0.0
    assert not engine.pending


def test_suspension_costs_nothing_and_changes_nothing():
    engine = make()
    engine.submit(request("a"))
    engine.submit(request("b"))
    engine.step(["a"])
    for _ in range(3):
        assert list(engine.step(["b"], ["a"]).scheduled) == ["b"]
    result = engine.step(["a"])
    assert (result.outputs, result.prompt_tokens) == ({"a": Output("b", 1)}, 0)


def test_pin_is_prefilled_once_and_shared():
    engine = make()
    assert engine.submit(request("pin", system="s" * 9, user=None)) == 9
    assert engine.step(["pin"]).outputs == {"pin": Output("", 1)}
    assert engine.step(["pin"]).scheduled == {}
    for name in ("a", "b"):
        engine.submit(request(name, system="s" * 9))
        assert engine.step([name]).prompt_tokens == 12 - 8
    assert engine.step([]).kv_blocks_used == 3 + 1 + 1
    for name in ("pin", "a"):
        engine.abort(name)
    assert engine.step([]).kv_blocks_used == 2 + 1
    engine.abort("b")
    assert engine.step([]).kv_blocks_used == 0
    engine.submit(request("c", system="s" * 9))
    assert engine.step(["c"]).prompt_tokens == 12


def test_prefill_budget_chunks_prompts_and_never_delays_decodes():
    engine = make(prefill_chunk=6)
    engine.submit(request("a", user=""))
    engine.step(["a"])
    engine.step(["a"])
    engine.submit(request("b", system="x" * 10))
    seen = [engine.step(["b", "a"], prefill_budget=budget).scheduled for budget in (0, 4, None, 3)]
    assert seen == [{"a": 1}, {"a": 1, "b": 4}, {"a": 1, "b": 6}, {"b": 3}]


def test_duration_is_that_of_the_step():
    latency = StepLatency((1.0,), 0.5, 0.01, 0.1)
    engine = make(latency=latency)
    for name in ("a", "b"):
        engine.submit(request(name, system=name * 10, user=""))
    assert engine.step(["a", "b"]).duration == latency(0, 20, 0)
    assert engine.step(["a", "b"]).duration == latency(2, 0, 22)
    engine.submit(request("c", system="", user="cc"))
    assert engine.step(["a", "c"]).duration == latency(1, 2, 12)


def test_blocks_run_out_least_urgent_held_first():
    engine = make(script="abcdefgh", kv_blocks=9)
    for name in ("low", "mid", "high"):
        engine.submit(request(name, system=name, user="u" * (11 - len(name))))
        engine.step([name])
    hold = ["low", "mid"]
    seen = [engine.step(["high"], hold) for _ in range(2)]
    assert [(result.evicted, result.kv_blocks_used) for result in seen] == [((), 9), (("low",), 7)]
    engine.abort("high")
    result = engine.step(["low"], ["mid"])
    assert result.outputs == {"low": Output("b", 1)}
    assert (result.prompt_tokens, result.recomputed) == (11, {"low": 11})
    assert result.scheduled == {"low": 12}
    assert engine.step(["low"], ["mid"]).recomputed_tokens == 0


def test_evict_on_demand_and_texts_stay():
    engine = make(script="abcdefgh")
    engine.submit(request("a"))
    alone = drain(engine, ["a"])
    engine.submit(request("a"))
    text = ""
    for _ in range(9):
        text += engine.step(["a"]).outputs["a"].text
        engine.step([], ["a"], evict=["a"])
    assert text == alone["a"] == "abcdefgh"


def test_pins_and_unnamed_requests_are_never_evicted():
    engine = make(script="abcdefgh", kv_blocks=5)
    engine.submit(request("pin", user=None))
    engine.step(["pin"])
    engine.submit(request("a", system="a" * 4, user=""))
    engine.submit(request("b", system="b" * 8, user="b"))
    engine.step(["a"])
    result = engine.step(["b"])
    assert (result.scheduled, result.evicted, result.duration) == ({}, (), 0.0)
    result = engine.step(["b"], ["a"])
    assert (result.scheduled, result.evicted) == ({"b": 9}, ("a",))


def test_run_beyond_the_batch_limit_is_held():
    engine = make(max_batch=2, kv_blocks=9, script="abcdefgh")
    for name in "abc":
        engine.submit(request(name, system=name * 10, user=""))
        engine.step([name])
    run = ["a", "b", "c"]
    seen = [engine.step(run) for _ in range(3)]
    assert [result.scheduled for result in seen] == [{"a": 1, "b": 1}] * 3
    assert [result.evicted for result in seen] == [(), (), ("c",)]


def test_the_last_in_the_run_set_gives_way():
    engine = make(kv_blocks=6, script="abcdefgh")
    for name in "ab":
        engine.submit(request(name, system=name * 11, user=""))
        engine.step([name])
    engine.step(["a", "b"])
    result = engine.step(["a", "b"])
    assert (result.scheduled, result.evicted) == ({"a": 1}, ("b",))
    texts = drain(engine, ["a", "b"])
    assert texts == {"a": "defgh", "b": "cdefgh"}


def test_abort_in_every_state_frees_all():
    engine = make(lag=True)
    for name in ("pin", "run", "held", "waiting"):
        engine.submit(request(name, user=None if name == "pin" else "u"))
    engine.step(["pin", "run", "held"])
    for name in ("pin", "run", "held", "waiting", "unknown"):
        engine.abort(name)
    assert not engine.pending
    assert engine.step(["pin", "run"]) == StepResult(kv_blocks_total=100)


def test_lag_hands_tokens_out_one_step_late_and_loses_none():
    engine = make(lag=True)
    engine.submit(request("a"))
    assert engine.step(["a"]).outputs == {}
    assert engine.pending
    result = engine.step([], ["a"])
    assert (result.outputs, result.duration) == ({"a": Output("a", 1)}, 0.0)
    assert not engine.pending
    assert engine.step([], ["a"]).outputs == {}
    assert drain(engine, ["a"]) == {"a": "bc"}


def test_length_and_stop():
    engine = make()
    engine.submit(request("cut", max_tokens=3))
    engine.submit(request("whole", max_tokens=4))
    ends = {}
    for _ in range(4):
        outputs = engine.step(["cut", "whole"]).outputs
        ends |= {name: output.finish for name, output in outputs.items() if output.finish}
    assert ends == {"cut": "length", "whole": "stop"}
    assert drain(make(end_token=False), []) == {}
    engine = make(end_token=False)
    engine.submit(request("a"))
    assert [engine.step(["a"]).outputs["a"].finish for _ in range(3)] == [None, None, "stop"]


def test_refusals_name_the_request_and_the_limit():
    engine = make(max_model_len=20, kv_blocks=4)
    with pytest.raises(PromptTooLong, match=r"'a': prompt of 11 .* 10 exceed max_model_len 20"):
        engine.submit(request("a"))
    with pytest.raises(PromptTooLong, match=r"'a': prompt of 11 .* 6 need 5 KV blocks of 4"):
        engine.submit(request("a", max_tokens=6))
    engine.submit(request("a", max_tokens=1))
    with pytest.raises(DuplicateRequest, match="'a'"):
        engine.submit(request("a", max_tokens=1))
    with pytest.raises(ValueError, match="max_batch is 0"):
        make(max_batch=0)


def test_quarter_of_characters():
    assert [quarter_of_characters(text) for text in ("", "a", "abcd", "abcde")] == [1, 1, 1, 2]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), lag=st.booleans(), kv_blocks=st.integers(9, 40))
def test_any_schedule_gives_the_same_texts(data, lag, kv_blocks):
    """However run, hold and evict are chosen: right texts, exact sums, no block lost."""
    names = "abcdef"
    engine = SimulatedEngine(
        lambda request: [request.id] * 9,
        LATENCY,
        max_batch=3,
        kv_blocks=kv_blocks,
        block_size=4,
        prefill_chunk=8,
        count_tokens=len,
        lag=lag,
    )
    for index, name in enumerate(names):
        engine.submit(request(name, system="xy"[index % 2] * 9, user="u" * index, max_tokens=20))
    texts = dict.fromkeys(names, "")
    live = set(names)
    some = st.lists(st.sampled_from(names), unique=True)
    for step in range(1000):
        if not live:
            break
        if step % 3:
            run = data.draw(some) if step < 40 else sorted(live)[:2]
            hold = [name for name in data.draw(some) if name not in run] if step < 40 else []
            evict = data.draw(some) if step < 40 else sorted(live)[2:]
        else:
            run, hold, evict = sorted(live), [], []
        result = engine.step(run, hold, evict, data.draw(st.sampled_from([None, 0, 3])))
        assert set(result.scheduled) <= set(run)
        assert len(result.scheduled) <= 3
        assert 0 <= result.kv_blocks_used <= kv_blocks
        assert result.recomputed_tokens <= result.prompt_tokens <= sum(result.scheduled.values())
        for name, output in result.outputs.items():
            texts[name] += output.text
            if output.finish:
                assert output.finish == "stop"
                live.discard(name)
    assert texts == {name: name * 9 for name in names}
    assert engine.step(()).kv_blocks_used == 0
