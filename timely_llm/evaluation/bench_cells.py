"""One run of a bench on the simulator, from its names to its numbers. Pure.

The same calls serve every process that carries runs out: they take and give plain values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache

from timely_llm import engine_presets
from timely_llm.engine_presets import EngineModel
from timely_llm.evaluation import metrics, trace_file, workloads
from timely_llm.evaluation.bench import Cell, Conditions, Measured, rescaled, samples_of
from timely_llm.evaluation.simulate import Run, Setting, noisy, oracle, simulate
from timely_llm.evaluation.trace import Trace
from timely_llm.predictors import Predictor

DECODE_STEP = 0.0218  # s, of the paper's engine at batch 1: what ``--time-scale auto`` refers to
TRACE_SUFFIX = ".jsonl"
PREDICTORS = {"oracle": oracle, "noisy": noisy}
_COEFFICIENTS = (
    *("base", "per_sequence", "per_kv_token"),
    *("per_prefill_token", "per_prefill_square"),
)


@lru_cache(maxsize=64)
def trace_of(workload: str, seed: int, load: float = 1.0) -> Trace:
    """A workload by name, with options as in ``wid2:robots=42``, or from the file of that name,
    which is the same for all seeds; ``ValueError`` or ``OSError`` if it cannot be had."""
    if workload.endswith(TRACE_SUFFIX):
        return workloads.scale(trace_file.read(workload), load)
    name, *options = workload.split(":")
    return workloads.make(name, seed=seed, load=load, **dict(map(_option, options)))


def _option(text: str) -> tuple[str, int | float]:
    name, sign, value = text.partition("=")
    try:
        return name, float(value) if "." in value else int(value)
    except ValueError:
        raise ValueError(f"{text!r}: must be NAME=NUMBER") from None


@cache
def engine_of(name: str) -> EngineModel:
    """A simulated engine by the name of a preset or the path of a profile; ``ValueError``."""
    return engine_presets.get(name)


def scale_of(engine: str) -> float:
    """What ``--time-scale auto`` is on a simulated engine: its decode step over the paper's."""
    return engine_of(engine).latency(1, 0, 0) / DECODE_STEP


def policy_of(name: str) -> tuple[str, Callable[[Trace], Predictor] | None]:
    """A policy's own name, and the predictor that ``name`` gives it: ``isrtf:oracle``."""
    policy, _, predictor = name.partition(":")
    return policy, PREDICTORS[predictor] if predictor else None


def measured(cell: Cell, trace: Trace, run: Run, time_scale: float) -> Measured:
    """``run`` of ``cell`` in numbers, times in s of the engine."""
    row = metrics.row(
        trace, run, engine=cell.engine, policy=cell.policy, load=cell.load, seed=cell.seed
    )
    row["workload"] = cell.workload  # with its options
    return Measured(
        cell,
        rescaled(row, time_scale),
        samples_of(run.outcomes, time_scale),
        metrics.maximum_utility(trace),
    )


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
    latency = engine.latency
    slower = replace(
        latency,
        table=tuple(time / scale for time in latency.table),
        **{name: getattr(latency, name) / scale for name in _COEFFICIENTS},
    )
    return replace(engine, latency=slower, reload_per_token=engine.reload_per_token / scale)


def measure(cell: Cell, conditions: Conditions) -> Measured:
    """Simulate ``cell``."""
    trace = trace_of(cell.workload, cell.seed, cell.load)
    run = simulate(trace, setting_of(cell, conditions))
    return measured(cell, trace, run, conditions.time_scale)
