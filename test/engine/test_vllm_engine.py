"""The vLLM engine runs exactly the run set; suspension, eviction and pins change no text."""

import random
import threading

import pytest
import xgrammar
from driving import Texts, alone, filler, prefill_pin, request, run_to_end

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.vllm_engine import VllmEngine
from timely_llm.language.grammar import plan_grammar
from timely_llm.language.loader import load_skill_set
from timely_llm.paths import share
from timely_llm.protocols.engine import (
    DuplicateRequest,
    EngineDead,
    GrammarError,
    Output,
    PromptTooLong,
    StepResult,
)

BLOCKS = 95
LIST = 'root ::= item ("," item){9}\nitem ::= [a-z]{1,9}\n'


@pytest.fixture(scope="module")
def engine(model):
    """96 blocks of 32 tokens, one of them vLLM's own; batches of 4."""
    engine = VllmEngine(
        EngineConfig(
            model,
            max_batch=4,
            engine_args={
                "num_gpu_blocks_override": BLOCKS + 1,
                "max_model_len": 2048,
                "dtype": "float32",
            },
        )
    )
    yield engine
    engine.close()


@pytest.fixture(autouse=True)
def nothing_is_left(engine):
    """Every test frees all that it took."""
    yield
    for name in list(engine._ids):
        engine.abort(name)
    assert engine.step(()).kv_blocks_used == 0
    assert not engine.pending


def test_info(engine, model):
    info = engine.info
    assert (info.backend, info.version, info.model) == ("vllm-cpu", "0.32.0", model)
    assert (info.max_batch, info.block_size, info.kv_blocks) == (4, 32, BLOCKS)
    assert info.max_model_len == 2048


def test_exactly_the_run_set_runs(engine):
    for name in "abcde":
        engine.submit(request(name, name))
    rng = random.Random(3)
    for _ in range(60):
        run = rng.sample("abcdef", rng.randint(0, 4))
        hold = [name for name in "abcde" if name not in run and rng.random() < 0.5]
        step = engine.step(run, hold)
        live = [name for name in run if name in engine._ids or name in step.outputs]
        assert sorted(step.scheduled) == sorted(live)
        assert set(step.outputs) == set(live)
        assert all(output.tokens == 1 for output in step.outputs.values())
        assert (step.duration > 0) == bool(live)
    left = list(engine._ids)
    assert left
    assert sorted(engine.step([], left, left).evicted) == sorted(left)


def test_an_empty_run_set_touches_nothing(engine):
    engine.submit(request("a"))
    assert engine.step([]) == StepResult(kv_blocks_total=BLOCKS)
    assert engine.step([], ["a"], ["a"]) == StepResult(kv_blocks_total=BLOCKS)
    assert engine.step(["unknown"], ["nobody"], ["none"]) == StepResult(kv_blocks_total=BLOCKS)


@pytest.mark.parametrize("grammar", [None, LIST])
def test_suspended_and_resumed_nothing_is_computed_again_and_texts_stay(engine, grammar):
    given = [request(name, f"{name} " * 40, grammar=grammar) for name in "abcd"]
    expected = {one.id: alone(engine, one) for one in given}
    assert len(set(expected.values())) == 4
    for one in given:
        engine.submit(one)
    seen, rng, computed = Texts(), random.Random(1), 0
    for _ in range(1000):
        left = seen.left("abcd")
        if not left:
            break
        run = rng.sample(left, rng.randint(0, len(left)))
        step = seen.take(engine.step(run, [name for name in left if name not in run]))
        computed += step.prompt_tokens
        assert step.recomputed_tokens == 0
        assert step.evicted == ()
    assert seen.texts == expected
    prompts = [engine.submit(one) for one in given]
    assert computed <= sum(prompts)


def test_the_order_of_right_and_the_batch_limit(engine):
    for name in "abcdef":
        engine.submit(request(name, name))
    assert list(engine.step("fedcba").scheduled) == ["f", "e", "d", "c"]
    assert list(engine.step("abcf").scheduled) == ["c", "f", "a", "b"]  # answers first
    assert list(engine.step("abfe").scheduled) == ["a", "b", "f", "e"]


def test_prefill_budget_bounds_prompts_and_delays_no_answer(engine):
    engine.submit(request("a"))
    engine.step(["a"])
    length = engine.submit(request("b", system=filler("b", 200)))
    seen = [engine.step(["b", "a"], prefill_budget=budget) for budget in (0, 20, 0, 33, None)]
    rest = length - 20 - 33
    assert [step.scheduled.get("b", 0) for step in seen] == [0, 20, 0, 33, rest]
    assert [step.prompt_tokens for step in seen] == [0, 20, 0, 33, rest]
    assert [step.scheduled["a"] for step in seen] == [1] * 5
    assert [set(step.outputs) for step in seen] == [{"a"}] * 4 + [{"a", "b"}]


def test_an_urgent_prompt_does_not_wait_for_one_in_part_computed(engine):
    long = engine.submit(request("long", system=filler("long", 1000)))
    engine.step(["long"], prefill_budget=64)
    short = engine.submit(request("short", system="new"))
    first = engine.step(["short", "long"], prefill_budget=short + 64)
    assert first.scheduled == {"short": short, "long": 64}
    second = engine.step(["short", "long"], prefill_budget=64)
    assert second.scheduled == {"short": 1, "long": 64}
    seen = run_to_end(engine, ["short", "long"])
    engine.submit(request("long", system=filler("long", 1000)))
    assert run_to_end(engine, ["long"]).texts == {"long": seen.texts["long"]}
    assert long > 3 * 64


def test_a_goal_pays_only_for_its_own_words_beside_a_pin(engine):
    system = filler("pin", 120)
    pinned = prefill_pin(engine, system=system)
    assert pinned == 120
    for name in "ab":
        length = engine.submit(request(name, f"go {name}", system))
        step = engine.step([name])
        assert step.prompt_tokens == length - 96
        assert step.recomputed_tokens == 0
    # Other prompts press on the cache; the pin stays all the same.
    for index in range(8):
        alone(engine, request(f"x{index}", system=filler(f"x{index}", 800)))
    length = engine.submit(request("c", "go c", system))
    assert engine.step(["c"]).prompt_tokens == length - 96
    assert engine.step(["pin"]).scheduled == {}


def test_blocks_run_out_and_the_least_urgent_give_theirs_up(engine):
    """A pool for two and a half; the third takes blocks of the first held, whose text stays."""
    given = {
        name: request(name, system=filler(name, 1000), max_tokens=300)
        for name in ("low", "mid", "high")
    }
    expected = {name: alone(engine, one) for name, one in given.items()}
    prefill_pin(engine)
    used = engine.step(()).kv_blocks_used
    lengths = {name: engine.submit(one) for name, one in given.items()}
    assert used + sum(-(-length // 32) for length in lengths.values()) > BLOCKS
    seen, evicted, recomputed = Texts(), [], {}
    for name, hold in (("low", ["mid"]), ("mid", ["low"]), ("high", ["low", "mid"])):
        while name not in seen.ends:
            step = seen.take(engine.step([name], hold))
            evicted += step.evicted
            for who, tokens in step.recomputed.items():
                recomputed[who] = recomputed.get(who, 0) + tokens
            if name != "high" and seen.tokens.get(name, 0) == 20:
                break
    assert evicted == ["low"]
    assert recomputed == {}
    left = run_to_end(engine, ["mid"]), run_to_end(engine, ["low"])
    for rest in left:
        for name, text in rest.texts.items():
            seen.texts[name] += text
    assert seen.texts == expected


def test_evicted_again_and_again_the_text_is_the_same(engine):
    for grammar in (None, LIST):
        given = request("a", system=filler("a", 200), grammar=grammar)
        expected = alone(engine, given)
        length = engine.submit(given)
        seen, recomputed = Texts(), 0
        for index in range(200):
            if "a" in seen.ends:
                break
            step = seen.take(engine.step(["a"]))
            recomputed += step.recomputed_tokens
            assert step.recomputed_tokens <= step.prompt_tokens
            if index % 10 == 5 and "a" not in seen.ends:
                assert engine.step((), ["a"], evict=["a"]).evicted == ("a",)
                assert engine.step((), ["a"], evict=["a"]).evicted == ()
                # What was the evicted one's may still lie in the cache: overwrite it.
                for name in (f"b{index}", f"c{index}"):
                    alone(engine, request(name, system=filler(name, 2000), max_tokens=1))
        assert seen.texts["a"] == expected
        assert recomputed >= length


def test_the_last_of_the_run_set_gives_way_and_unnamed_ones_never(engine):
    for name in "abc":
        engine.submit(request(name, system=filler(name, 1400), max_tokens=400))
    for name in "ab":
        engine.step([name])
    blocked = engine.step(["c"])
    assert (blocked.scheduled, blocked.evicted) == ({}, ())
    assert engine.step(["c"], ["b", "a"]).evicted == ("b",)
    engine.abort("a")
    engine.submit(request("b2", system=filler("b", 1400), max_tokens=400))
    seen = Texts()
    for _ in range(1200):
        step = seen.take(engine.step(seen.left(["c", "b2"])))
        assert "c" not in step.evicted
    assert seen.ends == {"c": "length", "b2": "length"}


def test_one_that_finds_no_room_keeps_what_it_has(engine):
    given = request("a", system=filler("a", 1400), max_tokens=100)
    expected = alone(engine, given)
    rest = BLOCKS - -(-engine.submit(given) // 32)
    seen = Texts()
    seen.take(engine.step(["a"]))
    engine.submit(request("b", "", filler("b", rest * 32 - 1), max_tokens=30))
    engine.step(["b"])
    for _ in range(100):
        step = seen.take(engine.step(["a"]))
        if not step.scheduled:
            break
    assert (step.scheduled, step.evicted, step.kv_blocks_used) == ({}, (), BLOCKS)
    engine.abort("b")
    for _ in range(100):
        if "a" in seen.ends:
            break
        assert seen.take(engine.step(["a"])).recomputed_tokens == 0
    assert seen.texts["a"] == expected


def test_what_can_never_run_ends_with_an_error(engine):
    prefill_pin(engine, "first", filler("first", 1600))
    engine.submit(request("a", system=filler("a", 500)))
    prefill_pin(engine, "second", filler("second", 1300))
    for _ in range(5):
        outputs = engine.step(["a"]).outputs
        if outputs:
            break
    assert outputs == {"a": Output("", 0, "error", "no KV blocks are left for it")}
    assert engine.step(["a"]).outputs == {}


@pytest.mark.parametrize("kind", ["tello", "indy7"])
def test_random_weights_keep_to_the_robots_grammar(engine, kind):
    skills = load_skill_set(share("config", "skills", f"{kind}.yaml"))
    names = [f"{kind}{index}" for index in range(8)]
    for index, name in enumerate(names):
        words = f"{index} {name} " * (index + 1)
        engine.submit(request(name, words, grammar=plan_grammar(skills), max_tokens=400))
    seen, rng = Texts(), random.Random(7)
    for _ in range(4000):
        left = seen.left(names)
        if not left:
            break
        run = rng.sample(left, min(len(left), rng.randint(1, 4)))
        seen.take(engine.step(run, [name for name in left if name not in run]))
    assert not left
    vocabulary = xgrammar.TokenizerInfo([bytes([i]) for i in range(256)], stop_token_ids=[0])
    compiled = xgrammar.GrammarCompiler(vocabulary).compile_grammar(plan_grammar(skills))
    for name in names:
        matcher = xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True)
        assert matcher.accept_string(seen.texts[name])
        assert matcher.is_completed() or seen.ends[name] == "length"


def test_it_says_where_the_grammar_overruled_the_model(engine):
    """vLLM's own probabilities are taken after the mask, and show nothing of it."""
    engine.submit(request("free", max_tokens=8))
    engine.submit(request("held", grammar='root ::= "QZXQ"', max_tokens=8))
    overruled, left = [], {"free", "held"}
    logprobs: dict[str, list[float]] = {"free": [], "held": []}
    while left:
        for name, output in engine.step(sorted(left)).outputs.items():
            overruled += [name] * output.overruled
            assert output.tokens or not output.overruled
            logprobs[name] += [output.logprob] if output.tokens else []
            left -= {name} if output.finish else set()
    assert set(overruled) == {"held"}
    # What it would have chosen is as likely as without a grammar: the prompts are the same.
    assert logprobs["held"][0] == pytest.approx(logprobs["free"][0], abs=1e-3)
    assert all(value <= 0 for values in logprobs.values() for value in values if value)


def test_nobody_waits_for_a_grammar_that_takes_long_to_compile(engine, monkeypatch):
    """Two stand-ins for the compiler: one that is held up, one that fails."""
    gate, manager = threading.Event(), engine._scheduler.structured_output_manager
    compile_now = manager._create_grammar

    def compile_late(given):
        assert gate.wait(60)
        return compile_now(given)

    def fail(given):
        raise RuntimeError("no memory")

    engine.submit(request("other"))
    monkeypatch.setattr(manager, "_create_grammar", compile_late)
    engine.submit(request("late", grammar='root ::= "late"'))
    beside = engine.step(["late", "other"])
    idle = engine.step(["late"])
    gate.set()
    assert list(beside.scheduled) == ["other"]
    assert (idle.scheduled, idle.outputs, idle.duration) == ({}, {}, 0.0)
    assert run_to_end(engine, ["late"]).texts == {"late": "late"}
    monkeypatch.setattr(manager, "_create_grammar", fail)
    engine.submit(request("failed", grammar='root ::= "failed"'))
    seen = run_to_end(engine, ["failed", "other"])
    assert seen.ends == {"failed": "error", "other": "length"}


def test_seeded_sampling_is_not_touched_by_suspension(engine):
    engine._parameters.temperature = 1.0
    try:
        given = request("a", seed=5)
        expected = alone(engine, given)
        assert alone(engine, request("a", seed=6)) != expected
        engine.submit(given)
        seen = Texts()
        for index in range(200):
            if "a" in seen.ends:
                break
            seen.take(engine.step(["a"] if index % 3 else [], ["a"]))
        assert seen.texts["a"] == expected
    finally:
        engine._parameters.temperature = 0.0


def test_length_is_said(engine):
    engine.submit(request("a", max_tokens=3))
    seen = run_to_end(engine, ["a"])
    assert (seen.tokens, seen.ends) == ({"a": 3}, {"a": "length"})
    engine.submit(request("a", grammar='root ::= "ab"', max_tokens=9))
    seen = run_to_end(engine, ["a"])
    assert (seen.texts, seen.ends) == ({"a": "ab"}, {"a": "stop"})


def test_abort_in_every_state(engine):
    prefill_pin(engine)
    for name in ("waiting", "running", "held", "part", "evicted"):
        engine.submit(request(name, name, system=f"{name} " * 80))
    engine.step(["running", "held", "evicted"])
    engine.step(["part"], evict=["evicted"], prefill_budget=8)
    for name in ("waiting", "running", "held", "part", "evicted", "pin", "unknown"):
        engine.abort(name)
        engine.abort(name)
    assert engine.step(["running", "held"]) == StepResult(kv_blocks_total=BLOCKS)
    engine.submit(request("running"))
    assert run_to_end(engine, ["running"]).ends == {"running": "length"}


def test_refusals_keep_nothing(engine):
    with pytest.raises(PromptTooLong, match="'a': prompt of .* 3000 exceed max_model_len 2048"):
        engine.submit(request("a", max_tokens=3000))
    with pytest.raises(GrammarError, match="'a': grammar: .*Rule \"nothing\" is not defined"):
        engine.submit(request("a", grammar="root ::= nothing"))
    prefill_pin(engine, system=filler("pin", 1600))
    with pytest.raises(PromptTooLong, match=r"'a': .* need 58 KV blocks of 95 beside \d+ pinned"):
        engine.submit(request("a", max_tokens=1700))
    engine.submit(request("a"))
    with pytest.raises(DuplicateRequest, match="'a'"):
        engine.submit(request("a"))


def test_a_step_that_breaks_ends_the_engine(engine, monkeypatch):
    """A stand-in for a fault inside vLLM: its step raises."""

    def broken():
        raise RuntimeError("out of memory\nsomewhere")

    engine.submit(request("a"))
    with monkeypatch.context() as patch:
        patch.setattr(engine._llm, "step", broken)
        with pytest.raises(EngineDead, match="RuntimeError: out of memory somewhere"):
            engine.step(["a"])
    for call in (lambda: engine.step(["a"]), lambda: engine.submit(request("b"))):
        with pytest.raises(EngineDead, match="a step failed: RuntimeError"):
            call()
    engine._dead = ""
