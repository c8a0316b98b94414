"""What the planner's loop makes of an engine's steps, measured in a run of the published tasks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from timely_llm.bench.config import Conditions, GridPoint, TimeScale, trace_of
from timely_llm.bench.profile_file import Loop
from timely_llm.bench.real import RealBench
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.engine import EngineError

GOALS = 100
BATCH = 8
PATIENCE = 120.0  # s


class NotMeasured(Exception):
    """The model cannot write the published plans, or not in time; the words say which."""


def measure_loop(
    model: str, arguments: Mapping[str, Any], max_batch: int, latency: StepLatency
) -> Loop:
    """The loop of an engine whose steps alone are ``latency``. What the loop takes is measured in
    decode steps at the same time, which ``latency`` then gives in s."""
    point = GridPoint("vllm", "wid2", 1.0, "edf", min(max_batch, BATCH), 0)
    trace = trace_of(point.workload, point.seed)
    few = replace(trace, arrivals=trace.arrivals[:GOALS])
    end = time.monotonic() + PATIENCE

    def check() -> None:
        if time.monotonic() > end:
            raise NotMeasured(f"the model takes over {PATIENCE:g} s for {GOALS} published tasks")

    with RealBench(model, check, TimeScale(auto=True), arguments) as bench:
        try:
            bench.run(point, Conditions(), few)
        except EngineError as error:
            raise NotMeasured(str(error)) from error
        share, engine = bench.share, bench.engine
    step = latency(1, 0, round(engine.context))
    return Loop(step, engine.mean_over_median, share.step * step, share.goal * step)
