"""Scheduling one step ahead, as on a GPU: tokens in flight are neither lost nor computed again.

A stand-in: on a CPU vLLM never schedules ahead, so its batch queue is switched on by hand. What
runs in it is vLLM's own code, and ours, just as on a GPU.
"""

import random
from collections import deque

import pytest
from driving import Texts, filler, prefill_pin, request

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.vllm_engine import VllmEngine

LIST = 'root ::= item ("," item){9}\nitem ::= [a-z]{1,9}\n'


@pytest.fixture(scope="module")
def engine(model):
    engine = VllmEngine(
        EngineConfig(
            model,
            max_batch=4,
            engine_args={
                "num_gpu_blocks_override": 41,
                "max_model_len": 1024,
                "dtype": "float32",
            },
        )
    )
    core = engine._llm.engine_core.engine_core
    assert core.batch_queue is None, "vLLM schedules ahead on a CPU now: use it"
    core.batch_queue, core.batch_queue_size = deque(maxlen=2), 2
    core.step_fn = core.step_with_batch_queue
    yield engine
    engine.close()


def finish(engine, seen: Texts, names) -> None:
    for _ in range(3000):
        left = seen.left(names)
        if not left and not engine.pending:
            return
        seen.take(engine.step(left))
    raise AssertionError(f"not finished: {left}")


def alone(engine, given) -> str:
    engine.submit(given)
    seen = Texts()
    finish(engine, seen, [given.id])
    return seen.texts[given.id]


@pytest.fixture(autouse=True)
def nothing_is_left(engine):
    yield
    for name in list(engine._ids):
        engine.abort(name)
    while engine.pending:
        engine.step(())
    assert engine.step(()).kv_blocks_used == 0


def test_a_token_comes_out_one_step_late(engine):
    engine.submit(request("a", max_tokens=3))
    first = engine.step(["a"])
    assert (first.outputs, len(first.scheduled)) == ({}, 1)
    assert engine.pending
    late = engine.step((), ["a"])
    assert (late.outputs["a"].tokens, late.scheduled, late.recomputed_tokens) == (1, {}, 0)
    assert not engine.pending
    assert engine.step((), ["a"]).outputs == {}
    seen = Texts()
    finish(engine, seen, ["a"])
    assert (seen.tokens, seen.ends) == ({"a": 2}, {"a": "length"})


@pytest.mark.parametrize("grammar", [None, LIST])
def test_suspended_at_any_moment_texts_stay(engine, grammar):
    names = "abcd"
    given = [request(name, f"{name} " * 20, grammar=grammar) for name in names]
    expected = {one.id: alone(engine, one) for one in given}
    assert len(set(expected.values())) == 4
    for one in given:
        engine.submit(one)
    seen, rng = Texts(), random.Random(2)
    for _ in range(2000):
        left = seen.left(names)
        if not left:
            break
        run = rng.sample(left, rng.randint(0, len(left)))
        step = seen.take(engine.step(run, [name for name in left if name not in run]))
        assert set(step.scheduled) <= set(run)
        assert step.recomputed_tokens == 0
    assert seen.texts == expected
    assert set(seen.ends) == set(names)


@pytest.mark.parametrize("grammar", [None, LIST])
def test_evicted_with_a_token_in_flight_texts_stay(engine, grammar):
    names = "abc"
    given = [request(name, system=filler(name, 300), grammar=grammar) for name in names]
    expected = {one.id: alone(engine, one) for one in given}
    for one in given:
        engine.submit(one)
    seen, rng, recomputed, evicted = Texts(), random.Random(4), 0, 0
    for _ in range(2000):
        left = seen.left(names)
        if not left:
            break
        run = rng.sample(left, rng.randint(0, len(left)))
        rest = [name for name in left if name not in run]
        step = seen.take(engine.step(run, rest, [name for name in rest if rng.random() < 0.3]))
        recomputed += step.recomputed_tokens
        evicted += len(step.evicted)
    assert seen.texts == expected
    assert evicted > 5
    assert recomputed > 0


def test_blocks_run_out_while_ahead(engine):
    """40 blocks for three that come to need 15 each."""
    names = "abc"
    given = [request(name, system=filler(name, 360), max_tokens=100) for name in names]
    expected = {one.id: alone(engine, one) for one in given}
    for one in given:
        engine.submit(one)
    seen, evicted = Texts(), []
    for index in range(3000):
        left = seen.left(names)
        if not left:
            break
        run = left[index // 7 % len(left) :][:2]
        step = seen.take(engine.step(run, [name for name in left if name not in run]))
        evicted += step.evicted
    assert seen.texts == expected
    assert evicted


def test_prompts_in_chunks_and_out_of_turn(engine):
    """Prompts in part computed, overtaken by others, with chunks in flight and evictions."""
    names = "abcd"
    given = [request(name, system=filler(name, 150), max_tokens=20) for name in names]
    expected = {one.id: alone(engine, one) for one in given}
    for one in given:
        engine.submit(one)
    seen, rng = Texts(), random.Random(9)
    for _ in range(3000):
        left = seen.left(names)
        if not left:
            break
        run = rng.sample(left, rng.randint(0, len(left)))
        rest = [name for name in left if name not in run]
        evict = [name for name in rest if rng.random() < 0.1]
        step = seen.take(engine.step(run, rest, evict, rng.choice([5, 20, 50])))
        assert step.prompt_tokens <= 50
    assert seen.texts == expected


def test_a_pin_is_computed_once(engine):
    prefill_pin(engine, system=filler("pin", 100))
    for _ in range(3):
        assert engine.step(["pin"]).scheduled == {}


def test_abort_with_a_token_in_flight(engine):
    engine.submit(request("a"))
    engine.submit(request("b"))
    engine.step(["a", "b"])
    engine.abort("a")
    assert set(engine.step(["a", "b"]).outputs) == {"b"}
    engine.abort("b")
    assert engine.step(()).outputs == {}
    assert not engine.pending
