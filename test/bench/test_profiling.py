"""Measuring an engine over a grid, here the simulated one, which takes exactly what it is told."""

from collections import Counter
from dataclasses import replace

import pytest

from timely_llm.bench.latency_fit import StepShape, fit, judge, points
from timely_llm.bench.profiling import BURST, ProfileError, Rig, grid
from timely_llm.engine.simulated import SimulatedEngine
from timely_llm.estimation.step_time import StepLatency

TRUTH = StepLatency((0.003, 0.0034, 0.0036, 0.004), 0.0004, 5e-8, 4e-5, 3e-9)
SHAPES = (
    StepShape(1, 0, 64),
    StepShape(4, 0, 64),
    StepShape(2, 0, 512),
    StepShape(0, 48, 0),
    StepShape(1, 48, 64),
)


def make(kind=SimulatedEngine, script=("x",) * 4000, **options) -> SimulatedEngine:
    sizes = {"max_batch": 4, "kv_blocks": 400, "max_model_len": 1024} | options
    return kind(lambda request: script, TRUTH, **sizes)


def test_the_grid_fits_the_engine():
    engine = make(max_batch=8, kv_blocks=4000, max_model_len=4096)
    shapes = grid(engine, 2048)
    decode = [shape for shape in shapes if shape.kind == "decode"]
    assert decode == [StepShape(b, 0, c) for c in (64, 512, 2048) for b in (1, 2, 4, 8)]
    assert {shape.prefill for shape in shapes if shape.kind == "prefill"} == {32, 128, 512, 1024}
    assert {shape.batch for shape in shapes if shape.kind == "mixed"} == {
        1,
        2,
        4,
    }  # one place is left
    assert len(set(shapes)) == len(shapes)


def test_large_batches_over_long_contexts_are_left_out_where_memory_ends():
    engine = make(max_batch=16, kv_blocks=1000, max_model_len=4096)
    widest = {c: max(x.batch for x in grid(engine, 2048) if x.context == c) for c in (64, 2048)}
    assert widest[64] == 16
    assert 1 <= widest[2048] < 16


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batches": [1, 9]}, r"batch 9: must be 1 to 4 \(the engine's max_batch\)"),
        ({"contexts": [64, 2000]}, "context 2000: must be 1 to 960"),
        ({"contexts": [64, 900]}, "a context of 900 tokens grows to 1343: the model's length is"),
        ({"prefills": [300]}, "prefill 300: must be 1 to 256"),
        ({"prefills": [0]}, "prefill 0: must be 1 to"),
    ],
)
def test_what_does_not_fit_is_named(options, words):
    with pytest.raises(ProfileError, match=words):
        grid(make(), 256, **options)


def test_a_context_without_room_in_the_kv_cache_is_named():
    with pytest.raises(ProfileError, match="a context of 512 tokens: the KV cache has no room"):
        grid(make(kv_blocks=40), 256)


def test_every_cell_gets_its_steps_in_rounds():
    samples = Rig(make()).measure(SHAPES, 10)
    counted = Counter(sample.shape for sample in samples)
    assert set(counted.values()) == {12}  # whole bursts
    assert set(counted) == set(SHAPES)
    first = [sample.shape for sample in samples if sample.visit == 0]
    assert Counter(first) == {shape: BURST for shape in SHAPES}
    assert first != [sample.shape for sample in samples if sample.visit == 1]  # another order


def test_samples_say_what_was_computed_and_how_long_it_took():
    for sample in Rig(make()).measure(SHAPES, 40):
        shape = sample.shape
        assert sample.seconds == TRUTH(sample.batch, sample.prefill, sample.kv + sample.batch) or (
            sample.seconds == TRUTH(sample.batch, sample.prefill, sample.kv)
        )
        assert sample.batch == shape.batch
        assert bool(sample.prefill) == bool(shape.prefill)
        assert abs(sample.prefill - shape.prefill) <= 0.5 * shape.prefill
        if shape.batch:
            assert 0.7 <= sample.kv / (shape.batch * shape.context) <= 1.35 + 140 / shape.context


def test_what_was_measured_fits():
    engine = make()
    samples = Rig(engine).measure(grid(engine, 256), 16)
    assert judge(samples).seen < 0.005
    found = fit(list(points(samples).values()))
    assert found(2, 0, 1000) == pytest.approx(TRUTH(2, 0, 1000), rel=0.01)
    assert found(1, 200, 300) == pytest.approx(TRUTH(1, 200, 300), rel=0.02)


def test_sequences_are_replaced_before_they_grow_too_long_and_nothing_is_left():
    engine = make()
    samples = Rig(engine).measure((StepShape(1, 0, 64), StepShape(1, 0, 512)), 400)
    contexts = [sample.kv for sample in samples if sample.shape.context == 64]
    assert max(contexts) <= 64 * 1.35 + 64 + 2 * BURST
    assert min(contexts[len(contexts) // 2 :]) < 80  # a new one, late
    assert not engine._live


def test_an_end_of_time_ends_after_whole_rounds():
    asked = []

    def going_on(done, rounds):
        asked.append((done, rounds))
        return done < 4

    samples = Rig(make()).measure(SHAPES, 100, going_on)
    assert asked == [(0, 26), (1, 26), (2, 26), (3, 26), (4, 26)]
    assert {Counter(s.shape for s in samples)[shape] for shape in SHAPES} == {3 * BURST}


def test_two_rounds_are_made_however_short_the_time():
    samples = Rig(make()).measure(SHAPES, 100, lambda done, rounds: False)
    assert {sample.visit for sample in samples} == {0, 1}


class Ahead(SimulatedEngine):
    """A stand-in for an engine on a GPU: what a step takes shows in the call after it."""

    before = 0.0

    def step(self, *args):
        step = super().step(*args)
        self.before, shown = step.duration, self.before
        return replace(step, duration=shown)


def test_prompts_on_an_engine_that_computes_ahead_are_timed_by_the_next_step():
    shapes = (StepShape(0, 48, 0), StepShape(1, 48, 64), StepShape(2, 0, 64))
    for sample in Rig(make(Ahead, lag=True)).measure(shapes, 12):
        expected = TRUTH(sample.batch, sample.prefill, sample.kv)
        assert sample.seconds == pytest.approx(expected, rel=0.01)


def test_generations_that_end_are_an_error():
    with pytest.raises(ProfileError, match="ended"):
        Rig(make(script=("x",) * 5)).measure(SHAPES, 10)
    with pytest.raises(ProfileError, match="steps is 3: must be at least 8"):
        Rig(make()).measure(SHAPES, 3)
