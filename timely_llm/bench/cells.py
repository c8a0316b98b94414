"""One run of a bench on the simulator, from its names to its numbers. Pure.

The same calls serve every process that carries runs out: they take and give plain values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache

from timely_llm.bench import profile_file as profile
from timely_llm.bench.grid import Cell, Conditions, Measured, TimeScale, samples_of
from timely_llm.estimation import presets as engine_presets
from timely_llm.estimation.plan_length import Predictor
from timely_llm.estimation.presets import EngineModel
from timely_llm.simulation import metrics, trace_file
from timely_llm.simulation.loop import Run, Setting, noisy, oracle, simulate
from timely_llm.simulation.trace import Trace
from timely_llm.simulation.workloads import published as workloads

TRACE_SUFFIX = ".jsonl"
PROFILE_SUFFIXES = (".yaml", ".yml")
PREDICTORS = {"oracle": oracle, "noisy": noisy}


@lru_cache(maxsize=64)
def trace_of(workload: str, seed: int, load: float = 1.0) -> Trace:
    """A workload by name, with options as in ``wid2:robots=42``, or from the file of that name,
    which is the same for all seeds; ``ValueError`` or ``OSError`` if it cannot be had."""
    if workload.endswith(TRACE_SUFFIX):
        return workloads.scale(trace_file.read(workload), load)
    name, *options = workload.split(":")
    return workloads.make(name, seed=seed, load=load, **dict(map(_option, options)))


def _option(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"{text!r}: must be NAME=VALUE")
    return name, value


@cache
def engine_of(name: str) -> EngineModel:
    """A simulated engine by the name of a preset or the path of a profile (``.yaml``); a
    ``ValueError`` or an ``OSError`` if it cannot be had."""
    if name.endswith(PROFILE_SUFFIXES):
        return profile.load(name)
    return engine_presets.get(name)


def scale_of(engine: str, time_scale: TimeScale) -> float:
    """What 1 s of the workload lasts on a simulated engine, in s."""
    model = engine_of(engine)
    return time_scale.of(lambda: model.decode_step or model.latency(1, 0, 0))


def policy_of(name: str) -> tuple[str, Callable[[Trace], Predictor] | None]:
    """A policy's own name, and the predictor that ``name`` gives it: ``isrtf:oracle``."""
    policy, _, predictor = name.partition(":")
    return policy, PREDICTORS[predictor] if predictor else None


def measured(cell: Cell, trace: Trace, run: Run) -> Measured:
    """``run`` of ``cell`` in numbers, times in s of the workload."""
    row = metrics.row(
        trace, run, engine=cell.engine, policy=cell.policy, load=cell.load, seed=cell.seed
    )
    row["workload"] = cell.workload  # with its options
    return Measured(cell, row, samples_of(run.outcomes), metrics.maximum_utility(trace))


def setting_of(cell: Cell, conditions: Conditions, timeline: bool = False) -> Setting:
    """How the simulator runs ``cell``: in the workload's time, in which an engine whose step takes
    1 s, at time scale 2, takes half a second."""
    scale = conditions.time_scale
    policy, predictor = policy_of(cell.policy)
    return Setting(
        policy=policy,
        predictor=predictor,
        engine=stretched(engine_of(cell.engine), scale),
        max_batch=cell.max_batch,
        network=conditions.network,
        refusals=conditions.refusals,
        plan_overhead=conditions.plan_overhead / scale,
        decision_overhead=conditions.decision_overhead / scale,
        timeline=timeline,
        cut=conditions.cut,
    )


def stretched(engine: EngineModel, scale: float) -> EngineModel:
    """``engine`` as a workload that is shrunk by ``scale`` meets it: its steps last 1/``scale``."""
    if scale == 1.0:
        return engine
    return replace(
        engine,
        latency=engine.latency.each(lambda time: time / scale),
        reload_per_token=engine.reload_per_token / scale,
        submit=engine.submit / scale,
    )


def measure(cell: Cell, conditions: Conditions) -> Measured:
    """Simulate ``cell``."""
    trace = trace_of(cell.workload, cell.seed, cell.load)
    run = simulate(trace, setting_of(cell, conditions))
    return measured(cell, trace, run)
