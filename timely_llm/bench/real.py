"""Runs of a bench on real vLLM: goals are given with their published instructions, and the model
writes plans of its own. How time goes there stands in ``bench/real_time.py``.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from timely_llm import policies
from timely_llm.bench.config import Conditions, GridPoint, TimeScale, policy_of, trace_of
from timely_llm.bench.profile_file import Loop
from timely_llm.bench.real_engine import RealEngine
from timely_llm.bench.real_time import Check, MeasuredDriver, Stretched
from timely_llm.bench.results import Measured
from timely_llm.estimation.presets import EngineModel
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.engine import EngineError
from timely_llm.protocols.messages import Segment
from timely_llm.simulation.known_plans import read
from timely_llm.simulation.loop import Replay, Run, Setting, TraceGoals, end_of
from timely_llm.simulation.trace import Task, Trace
from timely_llm.simulation.workloads.tasks import DECODE_STEP, skill_sets
from timely_llm.simulation.written_plans import WrittenPlan, WrittenRobots, filled

LOOP_GOALS = 100  # in which the planner's own share is measured
LOOP_BATCH = 8
LOOP_PATIENCE = 120.0  # s
_UNKNOWN = EngineModel(
    "measured", StepLatency((DECODE_STEP,)), kv_tokens=1
)  # its steps are measured


@dataclass(frozen=True, slots=True)
class Share:
    """The planner's own share of a run's time, beyond the engine's, in decode steps at batch 1: of
    each step of its loop, and of each request that is handed to the engine."""

    step: float
    goal: float


class RealBench(AbstractContextManager):
    """Runs of a bench on vLLM with one model, one after the other; use it in a ``with``.

    ``check`` is called between steps and may raise. ``time_scale`` is what 1 s of the workload
    lasts; one that goes by the engine's decode step follows the machine's speed all through a run.
    ``scales`` has the mean of each run, and ``share`` the planner's share of the latest one.
    """

    def __init__(
        self,
        model: str,
        check: Check,
        time_scale: TimeScale | None = None,
        engine_args: Mapping[str, Any] | None = None,
    ) -> None:
        self.engine = RealEngine(model, check, engine_args)
        self.scales: list[float] = []
        self.share = Share(0.0, 0.0)
        self._time_scale, self._check = time_scale or TimeScale(), check

    def __exit__(self, *error: object) -> None:
        self.engine.close()

    def measure(self, point: GridPoint, conditions: Conditions) -> Measured:
        """Run ``point`` in real time, idle time apart."""
        trace = trace_of(point.workload, point.seed, point.load)
        return Measured.of(point, trace, self.run(point, conditions, trace))

    def run(self, point: GridPoint, conditions: Conditions, trace: Trace) -> Run:
        """Run ``trace`` as ``point`` says; times in s of the workload."""
        policy, predictor = policy_of(point.policy)
        setting = Setting(
            policy=policy,
            engine=_UNKNOWN,
            max_batch=point.max_batch,
            network=conditions.network,
            refusals=conditions.refusals,
            cut=conditions.cut,
            predictor=predictor,
        )
        engine = Stretched(self.engine.get(policies.get(policy), point.max_batch))
        steps: list[float] = []  # what a decode step lasts, turn by turn

        def scale() -> float:
            steps.append(self.engine.step_time())
            return self._time_scale.of(lambda: steps[-1])

        kinds = {kind: skill_sets()[kind] for kind in {a.task.kind: None for a in trace.arrivals}}
        make = setting.predictor
        driver = MeasuredDriver(
            kinds,
            setting,
            engine,
            self.engine.prompts,
            self._check,
            make(trace) if make else None,
            scale,
        )
        cut_at = end_of(trace.arrivals, setting)
        replay = Replay(
            driver,
            TraceGoals(trace.arrivals),
            WrittenRobots(trace.arrivals, kinds, point.seed),
            cut_at=cut_at,
            network=setting.network,
        )
        gc.collect()
        try:
            run = replay.run()
        finally:
            driver.clear(cut_at)
        step = fmean(steps)
        self.scales.append(self._time_scale.of(lambda: step))
        own = driver.spent - engine.computing - engine.submitting
        self.share = Share(
            own / step / max(1, run.steps), engine.submitting / step / max(1, engine.submitted)
        )
        return run

    def as_written(self, trace: Trace) -> Trace:
        """``trace`` with the model's own plans, token by token, and with prompts of its lengths:
        what the simulator replays to predict runs on this engine. Calls that the trace's
        answers do not have take a time drawn by ``trace.name``."""
        engine = self.engine.get(policies.get("fcfs"), 8)
        known: dict[Task, Task] = {}
        arrivals = []
        rng = random.Random(f"{trace.name} as written")
        for arrival in trace.arrivals:
            task = arrival.task
            if task not in known:
                written = self.engine.write(engine, task)
                known[task] = replace(
                    task,
                    tokens=filled(written.texts),
                    system_tokens=written.fixed,
                    prompt_tokens=max(1, written.prompt - written.fixed),
                )
            skills, answer = skill_sets()[task.kind], known[task]
            plan = WrittenPlan(skills, arrival, rng)
            cuts = (cut for token in read(answer, skills).cuts for cut in token)
            calls = tuple(call for cut in cuts for call in cut.calls)
            plan.grow(Segment(0, "", 0, text=answer.plan, calls=calls, last=True))
            arrivals.append(replace(arrival, task=answer, durations=tuple(plan.durations)))
        source = f"{trace.source}; answers as {engine.info.model} writes them".lstrip("; ")
        return replace(trace, arrivals=tuple(arrivals), source=source)


class NotMeasured(Exception):
    """The model cannot write the published plans, or not in time; the words say which."""


def measure_loop(
    model: str, arguments: Mapping[str, Any], max_batch: int, latency: StepLatency
) -> Loop:
    """The loop of an engine whose steps alone are ``latency``. What the loop takes is measured in
    decode steps at the same time, which ``latency`` then gives in s."""
    point = GridPoint("vllm", "wid2", 1.0, "edf", min(max_batch, LOOP_BATCH), 0)
    trace = trace_of(point.workload, point.seed)
    few = replace(trace, arrivals=trace.arrivals[:LOOP_GOALS])
    end = time.monotonic() + LOOP_PATIENCE

    def check() -> None:
        if time.monotonic() > end:
            raise NotMeasured(
                f"the model takes over {LOOP_PATIENCE:g} s for {LOOP_GOALS} published tasks"
            )

    with RealBench(model, check, TimeScale(auto=True), arguments) as bench:
        try:
            bench.run(point, Conditions(), few)
        except EngineError as error:
            raise NotMeasured(str(error)) from error
        share, engine = bench.share, bench.engine
    step = latency(1, 0, round(engine.context))
    return Loop(step, engine.mean_over_median, share.step * step, share.goal * step)
