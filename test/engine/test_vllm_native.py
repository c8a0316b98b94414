"""The baselines' engine: vLLM decides by itself, we count; and prompts by a chat template."""

import threading

import pytest
from driving import SYSTEM, Texts, filler, prefill_pin, request

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.vllm_engine import VllmEngine


@pytest.fixture(scope="module")
def engine(chat_model):
    """First come, first served; 40 blocks, batches of 2."""
    engine = VllmEngine(
        EngineConfig(
            chat_model,
            native=True,
            max_batch=2,
            engine_args={
                "num_gpu_blocks_override": 41,
                "max_model_len": 1024,
                "dtype": "float32",
            },
        )
    )
    yield engine
    engine.close()


def finish(engine, names) -> Texts:
    seen = Texts()
    for _ in range(2000):
        left = seen.left(names)
        if not left:
            return seen
        seen.take(engine.step(left))
    raise AssertionError(f"not finished: {left}")


def test_vllm_runs_whatever_it_likes(engine):
    """The run set says that something may run, not what."""
    for name in "abc":
        engine.submit(request(name, name, max_tokens=4))
    first = [list(engine.step(["c"], ["a"], ["b"], 0).scheduled) for _ in range(4)]
    assert first == [["a", "b"]] * 4
    assert list(engine.step(["c"]).scheduled) == ["c"]
    assert engine.step(()).scheduled == {}
    assert finish(engine, ["c"]).ends == {"c": "length"}


def test_a_grammar_that_takes_long_to_compile_ends_nobody(engine, monkeypatch):
    """A stand-in for the compiler is held up."""
    gate, manager = threading.Event(), engine._scheduler.structured_output_manager
    compile_now = manager._create_grammar

    def compile_late(given):
        assert gate.wait(60)
        return compile_now(given)

    monkeypatch.setattr(manager, "_create_grammar", compile_late)
    engine.submit(request("late", grammar='root ::= "late"'))
    assert [engine.step(["late"]).outputs for _ in range(5)] == [{}] * 5
    gate.set()
    assert finish(engine, ["late"]).texts == {"late": "late"}


def test_a_pin_is_computed_and_then_only_cached(engine):
    system = filler("pin", 100)
    prefill_pin(engine, system=system)
    assert engine.step(()).kv_blocks_used == 0
    engine.submit(request("a", system=system))
    cached = engine.step(["a"]).prompt_tokens
    engine.abort("a")
    assert cached < 100
    engine.submit(request("b", system=filler("b", 900)))
    engine.submit(request("c", system=filler("c", 900)))
    finish(engine, ["b", "c"])
    engine.submit(request("a", system=system))
    assert engine.step(["a"]).prompt_tokens > 100
    engine.abort("a")


def test_what_vllm_preempts_is_counted(engine):
    for name in "ab":
        engine.submit(request(name, system=filler(name, 560), max_tokens=200))
    seen, evicted, recomputed = Texts(), [], 0
    for _ in range(1000):
        if not seen.left("ab"):
            break
        step = seen.take(engine.step(["a", "b"]))
        evicted += step.evicted
        recomputed += step.recomputed_tokens
    assert evicted == ["b"]
    assert 0 < recomputed < 800


def test_the_chat_template_frames_the_prompt(engine):
    tokenizer = engine._llm.get_tokenizer()
    engine.submit(request("a", "own words"))
    prompt = next(iter(engine._scheduler.requests.values())).prompt_token_ids
    engine.abort("a")
    assert tokenizer.decode(prompt) == (
        f"<|system|>\n{SYSTEM}<|end|>\n<|user|>\nown words<|end|>\n<|assistant|>\n"
    )
    prefix = engine._encoder.tokens(SYSTEM, None)
    assert tokenizer.decode(prefix) == f"<|system|>\n{SYSTEM}<|end|>\n<|user|>\n"
    assert prompt[: len(prefix)] == prefix


def test_priority_goes_before_arrival(chat_model, engine):
    """Last, for this module's engine makes way for another one."""
    engine.close()
    engine = VllmEngine(
        EngineConfig(
            chat_model,
            native=True,
            priority=True,
            max_batch=1,
            engine_args={"num_gpu_blocks_override": 41, "max_model_len": 1024},
        )
    )
    for name, priority in (("low", 3), ("high", 1), ("mid", 2)):
        engine.submit(request(name, name, max_tokens=2, priority=priority))
    order = []
    for _ in range(20):
        step = engine.step(["low", "high", "mid"])
        order += [name for name, output in step.outputs.items() if output.finish]
    assert order == ["high", "mid", "low"]
    engine.close()
