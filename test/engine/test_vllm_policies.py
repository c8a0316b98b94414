"""Every kind of policy on a whole load: vLLM does, step by step, what the simulated engine does.

The planner is the real one, on virtual time; its choices go to both engines. Where vLLM's own
scheduler decides, it decides what the policy says that it does.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from driving import filler

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.simulated import SimulatedEngine
from timely_llm.engine.vllm_engine import VllmEngine
from timely_llm.estimation.presets import EngineModel
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.engine import EngineRequest, StepResult
from timely_llm.protocols.utility import PRESETS, Urgency
from timely_llm.simulation import loop as replay
from timely_llm.simulation.loop import Setting, oracle, simulate
from timely_llm.simulation.trace import Arrival, Task, Trace

BATCH, LENGTH, BLOCK = 3, 512, 32
LATENCY = StepLatency((0.02,), per_sequence=0.002, per_prefill_token=1e-4, source="test")


def trace(system_tokens: int) -> Trace:
    """25 answers that are asked for faster than they are written, of all urgencies."""
    rng, at, arrivals = random.Random(5), 0.0, []
    for n in range(25):
        at += rng.expovariate(1 / 0.25)
        urgency = rng.choice(sorted(PRESETS))
        task = Task(
            name=f"{n}",
            kind="text",
            instruction=f"r{n}",
            tokens=("x",) * rng.randint(2, 130),
            utility=PRESETS[urgency],
            urgency=Urgency(urgency),
            system_tokens=system_tokens,
            prompt_tokens=rng.randint(1, 300),
            ttft=rng.choice([0.0, 1.0]),
            tpot=rng.choice([0.0, 0.05, 0.1, 0.25]),
        )
        arrivals.append(Arrival(at, f"robot{n}", task))
    return Trace("contract", tuple(arrivals))


def decisions(step: StepResult) -> dict:
    """All of a step but its texts and its duration. Where ours stops, vLLM meets its limit."""
    outputs = {name: (o.tokens, bool(o.finish)) for name, o in step.outputs.items()}
    return {
        "outputs": dict(sorted(outputs.items())),
        "scheduled": step.scheduled,
        "prompt_tokens": step.prompt_tokens,
        "recomputed": step.recomputed,
        "evicted": step.evicted,
        "kv": (step.kv_blocks_used, step.kv_blocks_total),
    }


class Twin(SimulatedEngine):
    """The simulated engine, with vLLM beside it that must do the same."""

    real: VllmEngine
    label: str  # of the fixed prompt, which vLLM may have in its cache from the run before
    steps = suspended = evicted = 0

    def submit(self, request: EngineRequest) -> int:
        tokens = super().submit(request)
        live = self._live[request.id]
        own = None if request.user is None else filler(request.id, live.prompt - self._shared)
        shared = filler(Twin.label, self._shared)
        limit = request.max_tokens if own is None else len(live.script)
        given = replace(request, system=shared, user=own, grammar=None, max_tokens=limit)
        assert Twin.real.submit(given) == tokens
        return tokens

    @property
    def _shared(self) -> int:
        return self._count("text")

    def abort(self, request_id: str) -> None:
        super().abort(request_id)
        Twin.real.abort(request_id)

    def step(self, run=(), hold=(), evict=(), prefill_budget=None) -> StepResult:
        ours = super().step(run, hold, evict, prefill_budget)
        theirs = Twin.real.step(run, hold, evict, prefill_budget)
        assert decisions(ours) == decisions(theirs), (run, hold, evict, prefill_budget)
        Twin.steps += 1
        Twin.suspended += bool(set(hold) - set(run))
        Twin.evicted += len(ours.evicted)
        return ours


def vllm(model: str, blocks: int, **options) -> VllmEngine:
    caching = options.pop("caching")
    return VllmEngine(
        EngineConfig(
            model,
            max_batch=BATCH,
            sampling={"ignore_eos": True},
            engine_args={
                "num_gpu_blocks_override": blocks + 1,
                "max_model_len": LENGTH,
                "enable_prefix_caching": caching,
            },
            **options,
        )
    )


def compare(monkeypatch, engine: VllmEngine, policy: str, blocks: int, system_tokens: int) -> None:
    """Replay the trace on both; every answer comes to its end."""
    monkeypatch.setattr(replay, "SimulatedEngine", Twin)
    monkeypatch.setattr(Twin, "real", engine, raising=False)
    monkeypatch.setattr(Twin, "label", policy, raising=False)
    for name in ("steps", "suspended", "evicted"):
        monkeypatch.setattr(Twin, name, 0)
    model = EngineModel("test", LATENCY, blocks * BLOCK, BLOCK, 2048, "test")
    setting = Setting(policy, model, max_batch=BATCH, predictor=oracle, together=False)
    run = simulate(trace(system_tokens), setting)
    engine.abort("pin-text")
    assert all(outcome.completed_at is not None for outcome in run.outcomes)
    assert Twin.steps >= 300, Twin.steps


@pytest.fixture(scope="module")
def can_continue(model):
    engine = vllm(model, 400, caching=True)
    yield engine
    engine.close()


@pytest.mark.parametrize("policy", ["least_loss", "timely", "semantic", "slice", "isrtf"])
def test_with_memory_for_all(can_continue, monkeypatch, policy):
    compare(monkeypatch, can_continue, policy, 400, system_tokens=70)
    assert Twin.evicted == 0


@pytest.fixture(scope="module")
def narrow(model):
    engine = vllm(model, 18, caching=False)
    yield engine
    engine.close()


@pytest.mark.parametrize("policy", ["least_loss", "semantic", "slice", "isrtf"])
def test_with_memory_for_a_few(narrow, monkeypatch, policy):
    """Suspended ones lose their blocks, or are told to give them up, and are computed again."""
    compare(monkeypatch, narrow, policy, 18, system_tokens=0)
    assert Twin.suspended > 30 and Twin.evicted > 0


@pytest.mark.parametrize("policy", ["vllm_stream", "vllm_priority"])
def test_vllm_s_own_scheduler_does_what_the_baseline_says(model, monkeypatch, policy):
    order = "priority" if policy == "vllm_priority" else "fcfs"
    engine = vllm(model, 400, caching=False, native=True, priority=order == "priority")
    compare(monkeypatch, engine, policy, 400, system_tokens=0)
    engine.close()
