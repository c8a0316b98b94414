"""Runs of a bench on real vLLM: goals are given with their published instructions, and the model
writes plans of its own. How time goes there stands in ``real_replay.py``.
"""

from __future__ import annotations

import gc
import random
from dataclasses import replace
from statistics import median
from types import TracebackType
from typing import Any

from timely_llm import policies
from timely_llm.engine.base import Engine, GenerationRequest
from timely_llm.engine_presets import EngineModel
from timely_llm.evaluation.bench import Cell, Conditions, Measured
from timely_llm.evaluation.bench_cells import measured, policy_of, trace_of
from timely_llm.evaluation.known_plans import read
from timely_llm.evaluation.real_replay import Check, RealReplay, Stretched, settle
from timely_llm.evaluation.real_robots import WrittenPlan, filled
from timely_llm.evaluation.simulate import Run, Setting
from timely_llm.evaluation.tasks import DECODE_STEP, published, skill_sets
from timely_llm.evaluation.trace import Task, Trace
from timely_llm.goals import PlannerConfig
from timely_llm.messages import Segment
from timely_llm.prompts import PromptTemplate
from timely_llm.step_latency import StepLatency

WARM_UP = 3  # times that a plan is written before anything is measured
_UNKNOWN = EngineModel("measured", StepLatency(DECODE_STEP), kv_tokens=1)  # its steps are measured


class RealBench:
    """Runs of a bench on vLLM with one model, one after the other; use it in a ``with``.

    ``check`` is called between steps and may raise. An engine is kept until a run needs another
    one: vLLM's own scheduler and ours differ, and the batch size is fixed when it starts.
    """

    def __init__(self, model: str, check: Check) -> None:
        self._model, self._check = model, check
        self._prompts = PromptTemplate.resolve("", model)
        self._engine: Engine | None = None
        self._key: tuple[Any, ...] = ()
        self._steps: list[float] = []

    def __enter__(self) -> RealBench:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._engine is not None:
            self._engine.close()
        self._engine, self._key = None, ()

    def measure(self, cell: Cell, conditions: Conditions) -> Measured:
        """Run ``cell`` in real time, idle time apart."""
        trace = trace_of(cell.workload, cell.seed, cell.load)
        return measured(cell, trace, self.run(cell, conditions, trace))

    def run(self, cell: Cell, conditions: Conditions, trace: Trace, timeline: bool = False) -> Run:
        """Run ``trace`` as ``cell`` says; times in s of the workload."""
        policy, predictor = policy_of(cell.policy)
        setting = Setting(
            policy=policy,
            engine=_UNKNOWN,
            max_batch=cell.max_batch,
            network=conditions.network,
            refusals=conditions.refusals,
            timeline=timeline,
            cut=conditions.cut,
            predictor=predictor,
        )
        engine = self._engine_for(policies.get(policy), cell.max_batch)
        stretched = Stretched(engine, conditions.time_scale)
        replay = RealReplay(trace, setting, stretched, self._prompts, cell.seed, self._check)
        gc.collect()
        try:
            return replay.run()
        finally:
            replay.clear()

    def step_time(self, cell: Cell) -> float:
        """The median time of a decode step at batch 1 on the engine that runs ``cell``, in s, over
        plans of the published tasks. A machine's speed drifts: ask right before the run."""
        engine = self._engine_for(policies.get(policy_of(cell.policy)[0]), cell.max_batch)
        del self._steps[:]
        for task in published():
            self._write(engine, task)
        return median(self._steps)

    def _engine_for(self, policy: policies.Policy, max_batch: int) -> Engine:
        key = (policy.untouched, policy.priority, max_batch)
        if key != self._key:
            from timely_llm.engine.vllm_engine import VllmEngine

            self._close()
            self._engine = VllmEngine(
                self._model,
                scheduler="untouched" if policy.untouched else "segmented",
                untouched_policy="priority" if policy.priority else "fcfs",
                max_batch=max_batch,
            )
            self._key = key
            first = {task.kind: task for task in published()}
            for task in [*first.values()] * WARM_UP:
                self._write(self._engine, task)
        return self._engine

    def as_written(self, trace: Trace) -> Trace:
        """``trace`` with the model's own plans, token by token, and with prompts of its lengths:
        what the simulator has to replay to foretell runs on this engine. Calls that the trace's
        answers do not have take a time drawn by ``trace.name``."""
        engine = self._engine_for(policies.get("fcfs"), 8)
        known: dict[Task, Task] = {}
        arrivals = []
        rng = random.Random(f"{trace.name} as written")
        for arrival in trace.arrivals:
            task = arrival.task
            if task not in known:
                texts, system, prompt = self._write(engine, task)
                known[task] = replace(
                    task,
                    tokens=filled(texts),
                    system_tokens=system,
                    prompt_tokens=max(1, prompt - system),
                )
            skills, answer = skill_sets()[task.kind], known[task]
            plan = WrittenPlan(skills, arrival, rng)
            cuts = (cut for token in read(answer, skills).cuts for cut in token)
            calls = tuple(call for cut in cuts for call in cut.calls)
            plan.grow(Segment(0, "", 0, text=answer.plan, calls=calls, last=True))
            arrivals.append(replace(arrival, task=answer, durations=tuple(plan.durations)))
        source = f"{trace.source}; answers as {engine.info.model} writes them".lstrip("; ")
        return replace(trace, arrivals=tuple(arrivals), source=source)

    def _write(self, engine: Engine, task: Task) -> tuple[list[str], int, int]:
        """Have the plan of one task written, alone: its text by tokens, and the tokens of the fixed
        prompt and of the whole one."""
        skills = skill_sets()[task.kind]
        system, grammar = self._prompts.system(skills), skills.grammar()
        user = self._prompts.user(skills, task.scene, task.instruction)
        fixed = engine.submit(GenerationRequest("fixed", 0, system, None, grammar))
        engine.abort("fixed")
        limit = PlannerConfig().max_tokens
        prompt = engine.submit(GenerationRequest("alone", 0, system, user, grammar, limit))
        texts: list[str] = []
        finish = None
        while finish is None:
            self._check()
            step = engine.step(("alone",))
            if step.scheduled == {"alone": 1} and not step.prompt_tokens:
                self._steps.append(step.duration)
            output = step.outputs.get("alone")
            if output is not None:
                texts += [""] * (output.tokens - 1) + [output.text]
                finish = output.finish
        settle(engine)
        return texts, fixed, prompt
