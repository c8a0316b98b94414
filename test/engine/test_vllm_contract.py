"""The vLLM engine and the simulated one take the same decisions on the same trace, step by step."""

from __future__ import annotations

import random
from collections.abc import Sequence

from driving import filler, request

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.simulated import SimulatedEngine
from timely_llm.engine.vllm_engine import VllmEngine
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.engine import Engine, StepResult

BLOCKS = 47
LENGTH = 900
BATCH = 3


def real(model: str, caching: bool) -> VllmEngine:
    return VllmEngine(
        EngineConfig(
            model,
            max_batch=BATCH,
            sampling={"ignore_eos": True},
            engine_args={
                "num_gpu_blocks_override": BLOCKS + 1,
                "max_model_len": LENGTH,
                "enable_prefix_caching": caching,
            },
        )
    )


def simulated() -> SimulatedEngine:
    """One token a character, as ``filler`` has it; answers never end by themselves."""
    return SimulatedEngine(
        lambda request: ["x"] * 1000,
        StepLatency((1.0,)),
        max_batch=BATCH,
        kv_blocks=BLOCKS,
        block_size=32,
        max_model_len=LENGTH,
        count_tokens=len,
    )


def decisions(step: StepResult) -> dict:
    """All of a step but its texts and its duration."""
    return {
        "outputs": {name: (o.tokens, o.finish) for name, o in sorted(step.outputs.items())},
        "scheduled": step.scheduled,
        "prompt_tokens": step.prompt_tokens,
        "recomputed": step.recomputed,
        "evicted": step.evicted,
        "kv": (step.kv_blocks_used, step.kv_blocks_total),
    }


class Both:
    """Drives two engines alike and compares what they do."""

    def __init__(self, *engines: Engine) -> None:
        self.engines = engines
        self.live: list[str] = []
        self.evicted = 0
        self.recomputed = 0

    def submit(self, given) -> None:
        lengths = {engine.submit(given) for engine in self.engines}
        assert len(lengths) == 1
        if given.user is not None:
            self.live.append(given.id)

    def abort(self, name: str) -> None:
        for engine in self.engines:
            engine.abort(name)
        if name in self.live:
            self.live.remove(name)

    def step(
        self,
        run: Sequence[str],
        hold: Sequence[str] = (),
        evict: Sequence[str] = (),
        budget: int | None = None,
    ) -> None:
        first, second = (engine.step(run, hold, evict, budget) for engine in self.engines)
        assert decisions(first) == decisions(second), (run, hold, evict, budget)
        self.evicted += len(first.evicted)
        self.recomputed += first.recomputed_tokens
        for name, output in first.outputs.items():
            if output.finish:
                self.live.remove(name)

    def close(self) -> None:
        for engine in self.engines:
            engine.close()


def test_pins_shared_prompts_and_suspension(model):
    """Without pressure on the KV blocks: who runs, in which order, over how many tokens."""
    both = Both(real(model, caching=True), simulated())
    rng = random.Random(11)
    for kind in "pq":
        both.submit(request(f"pin-{kind}", None, filler(kind, 70)))
    both.step(["pin-p", "pin-q"], budget=90)
    both.step(["pin-p", "pin-q"])
    for index in range(12):
        system = filler(rng.choice("pq"), 70)
        user = filler(str(index), rng.randint(1, 50))
        both.submit(request(f"r{index}", user, system, max_tokens=rng.randint(1, 20)))
        for _ in range(rng.randint(0, 12)):
            run = rng.sample(both.live, rng.randint(0, len(both.live)))
            hold = [name for name in both.live if name not in run]
            both.step([*run, "pin-p"], hold, (), rng.choice([None, None, 0, 7, 40]))
        if len(both.live) > 5:
            both.abort(rng.choice(both.live))
    while both.live:
        both.step(both.live[:2], both.live[2:])
    assert both.recomputed == both.evicted == 0
    both.close()


def test_eviction_and_recomputation(model):
    """A pool for a few: blocks are given up in the given order, and all of it is computed again.

    Without vLLM's cache of blocks that nobody holds any more, which the simulated engine lacks.
    """
    engine = real(model, caching=False)
    for seed in range(2):
        both, rng = Both(engine, simulated()), random.Random(seed)
        for index in range(16):
            system = filler(f"s{index}", rng.randint(1, 500))
            both.submit(request(f"r{index}", "Z", system, max_tokens=rng.randint(1, 200)))
            for _ in range(rng.randint(1, 40)):
                some = rng.sample(both.live, len(both.live))
                count = rng.randint(0, 5)
                run, rest = some[:count], some[count:]
                evict = [name for name in rest if rng.random() < 0.05]
                both.step(run, rest, evict, rng.choice([None, None, 0, 30, 100]))
        for _ in range(4000):
            if not both.live:
                break
            both.step(both.live[:1], both.live[1:])
        assert not both.live
        assert both.evicted > 50
        assert both.recomputed > 10_000
    engine.close()
