"""Runs of a bench on the simulator. Pure: plain values in and out, in whichever process."""

from __future__ import annotations

from dataclasses import replace

from timely_llm.bench.config import Conditions, GridPoint, TimeScale, engine_of, policy_of, trace_of
from timely_llm.bench.results import Measured
from timely_llm.estimation.presets import EngineModel
from timely_llm.simulation.loop import Setting, simulate


def measure(point: GridPoint, conditions: Conditions) -> Measured:
    """Simulate ``point``."""
    trace = trace_of(point.workload, point.seed, point.load)
    return Measured.of(point, trace, simulate(trace, setting_of(point, conditions)))


def setting_of(point: GridPoint, conditions: Conditions) -> Setting:
    """How the simulator runs ``point``: in the workload's time, in which an engine whose step takes
    1 s, at time scale 2, takes half a second."""
    scale = conditions.time_scale
    policy, predictor = policy_of(point.policy)
    return Setting(
        policy=policy,
        predictor=predictor,
        engine=stretched(engine_of(point.engine), scale),
        max_batch=point.max_batch,
        network=conditions.network,
        refusals=conditions.refusals,
        plan_overhead=conditions.plan_overhead / scale,
        decision_overhead=conditions.decision_overhead / scale,
        cut=conditions.cut,
    )


def scale_of(engine: str, time_scale: TimeScale) -> float:
    """What 1 s of the workload lasts on a simulated engine, in s."""
    model = engine_of(engine)
    return time_scale.of(lambda: model.decode_step or model.latency(1, 0, 0))


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
