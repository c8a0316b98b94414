"""The paced engine on a virtual clock: steps last what the pace says, and nothing else changes."""

import pytest

from timely_llm.engine.paced import PacedEngine
from timely_llm.engine.simulated import SimulatedEngine
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.engine import EngineRequest, StepResult

PACE = StepLatency((1.0,), per_sequence=0.25, per_kv_token=0.125, per_prefill_token=0.5)
FREE = StepLatency((0.0,))


class Clock:
    """Virtual time: only ``sleep`` and ``pass_time`` move it; every sleep is in ``log``."""

    def __init__(self) -> None:
        self.now = 100.0
        self.log: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.log.append(seconds)
        self.now += seconds

    def pass_time(self, seconds: float) -> None:
        self.now += seconds


class Slow:
    """A simulated engine whose steps take ``each`` s of the virtual clock, by reports as well."""

    def __init__(self, engine: SimulatedEngine, clock: Clock, each: float) -> None:
        self.engine, self.clock, self.each = engine, clock, each
        self.info = engine.info

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def step(self, *args):
        self.clock.pass_time(self.each)
        return self.engine.step(*args)


def make(each: float = 0.0, lag: bool = False) -> tuple[PacedEngine, Clock]:
    clock = Clock()
    engine = SimulatedEngine(
        lambda request: ("a", "b"), FREE, block_size=4, kv_blocks=100, count_tokens=len, lag=lag
    )
    return PacedEngine(Slow(engine, clock, each), PACE, clock, clock.sleep, "test"), clock


def request(name: str, system: str = "s" * 5, user: str | None = "uu") -> EngineRequest:
    return EngineRequest(name, 0, system, user, max_tokens=10)


def test_prompts_then_batch_and_context():
    engine, clock = make()
    assert engine.submit(request("a")) == 7
    assert engine.submit(request("b")) == 7
    durations = [engine.step(["a", "b"]).duration for _ in range(3)]
    # b shares a block of a's prefix; then two sequences, over 8 and then 9 tokens of context each.
    assert durations == [10 * 0.5, 1.25 + 16 * 0.125, 1.25 + 18 * 0.125]
    assert clock.log == durations


def test_outputs_pass_through_and_the_pace_is_named():
    engine, _ = make()
    assert engine.info.pace == "test"
    assert engine.info.backend == "simulated"
    engine.submit(request("a"))
    first = engine.step(["a"])
    assert (first.outputs["a"].text, first.scheduled, first.prompt_tokens) == ("a", {"a": 7}, 7)


def test_only_the_rest_of_a_step_is_slept_away():
    engine, clock = make(each=0.75)
    engine.submit(request("a"))
    assert engine.step(["a"]).duration == 3.5
    assert clock.log == [2.75]


def test_a_step_that_took_longer_is_reported_as_it_was():
    engine, clock = make(each=7.0)
    engine.submit(request("a"))
    assert engine.step(["a"]).duration == 7.0
    assert clock.log == []


def test_a_step_that_computes_nothing_is_never_prolonged():
    engine, clock = make(lag=True)
    engine.submit(request("a"))
    engine.step(["a"])
    log = list(clock.log)
    assert engine.pending
    late = engine.step(())
    assert late.outputs["a"].text == "a"
    assert late.duration == 0.0
    assert not engine.pending
    assert engine.step((), hold=["a"]) == StepResult(kv_blocks_used=2, kv_blocks_total=100)
    assert clock.log == log
    engine, _ = make(each=0.75)
    assert engine.step(()).duration == 0.0


def test_abort_reaches_the_engine():
    engine, clock = make()
    engine.submit(request("a"))
    engine.step(["a"])
    engine.abort("a")
    assert engine.step(["a"]) == StepResult(kv_blocks_total=100)
    assert engine.submit(request("a")) == 7


@pytest.mark.parametrize("finish_first", [True, False])
def test_a_finished_request_leaves_no_context_behind(finish_first):
    engine, clock = make()
    engine.submit(request("a"))
    if finish_first:
        while engine.step(["a"]).outputs["a"].finish is None:
            pass
    else:
        engine.step(["a"])
        engine.abort("a")
    engine.submit(request("a"))
    assert engine.step(["a"]).duration == 7 * 0.5
    assert engine.step(["a"]).duration == 1.0 + 8 * 0.125
