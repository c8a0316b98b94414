"""vLLM for a bench: the engine that a policy needs, plans written alone, and its decode step.

What a decode step takes is kept in units of reference work (``machine_speed.py``), so that it is
known for every moment of a run without being measured in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from timely_llm.bench.machine_speed import SpeedGauge
from timely_llm.bench.real_time import Check, settle
from timely_llm.core.config import PlannerConfig
from timely_llm.engine.config import EngineConfig
from timely_llm.engine.factory import build
from timely_llm.policies import Policy
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import Engine
from timely_llm.simulation.trace import Task
from timely_llm.simulation.workloads.tasks import published, skill_sets

WARM_UP = 3  # times that a plan is written before anything is measured
ROUNDS = 10  # of the published tasks, in which the decode step is measured


@dataclass(frozen=True, slots=True)
class Written:
    """A plan that was generated alone: its text by tokens, the tokens of the fixed prompt and of
    the whole one, the times of its decode steps in s, and those of the reference work meanwhile."""

    texts: tuple[str, ...]
    fixed: int
    prompt: int
    steps: tuple[float, ...]
    units: tuple[float, ...]


class RealEngine:
    """One model on vLLM, to be closed at the end. An engine is kept until another one is asked for:
    vLLM's own scheduler and ours differ, and the batch size is fixed when it starts.

    ``check`` is called between steps and may raise. The decode step is measured once, on the first
    engine, and holds for all: policies are to meet the same workload. ``context`` are the tokens,
    in the mean, over which it was measured, and ``mean_over_median`` is how much longer than the
    median step of a plan its mean step is.
    """

    def __init__(self, model: str, check: Check, arguments: Mapping[str, Any] | None = None):
        self.prompts = PromptTemplate.resolve("", model)
        self.context, self.mean_over_median = 0.0, 1.0
        self._model, self._check, self._arguments = model, check, arguments
        self._speed = SpeedGauge()
        self._engine: Engine | None = None
        self._key: tuple[Any, ...] = ()
        self._step = 0.0  # a decode step, in units of reference work

    def close(self) -> None:
        """End the engine, if there is one."""
        if self._engine is not None:
            self._engine.close()
        self._engine, self._key = None, ()

    def get(self, policy: Policy, max_batch: int) -> Engine:
        """The engine for a policy, warm."""
        key = (policy.native, policy.priority, max_batch)
        if self._engine is not None and key == self._key:
            return self._engine
        self.close()
        engine = self._engine = build(
            EngineConfig(
                self._model,
                max_batch,
                native=policy.native,
                priority=policy.priority,
                engine_args=self._arguments or {},
            )
        )
        self._key = key
        first = {task.kind: task for task in published()}
        for task in [*first.values()] * WARM_UP:
            self.write(engine, task)
        if not self._step:
            self._measure(engine)
        return engine

    def step_time(self) -> float:
        """The time of a decode step at batch 1 in s, as fast as the machine is now."""
        return self._step * self._speed.seconds()

    def _measure(self, engine: Engine) -> None:
        """The decode step, plan by plan, in units of the reference work at the same time."""
        found, contexts, spreads = [], [], []
        for task in published() * ROUNDS:
            written = self.write(engine, task)
            middle = median(written.steps)
            found.append(middle / fmean(written.units))
            spreads.append(fmean(written.steps) / middle)
            contexts.append(written.prompt + len(written.texts) / 2)
        self._step = median(found)
        self.context, self.mean_over_median = fmean(contexts), fmean(spreads)

    def write(self, engine: Engine, task: Task) -> Written:
        """The plan of one task, generated alone."""
        skills = skill_sets()[task.kind]
        user = self.prompts.user(skills, task.scene, task.instruction)
        shared, limit = self.prompts.fixed(skills), PlannerConfig().max_tokens
        fixed = engine.submit(shared.request("fixed", 0, None, limit))
        engine.abort("fixed")
        prompt = engine.submit(shared.request("alone", 0, user, limit))
        texts: list[str] = []
        steps: list[float] = []
        units: list[float] = []
        finish = None
        while finish is None:
            self._check()
            step = engine.step(("alone",))
            if step.scheduled == {"alone": 1} and not step.prompt_tokens:
                steps.append(step.duration)
            output = step.outputs.get("alone")
            if output is not None:
                texts += [""] * (output.tokens - 1) + [output.text]
                finish = output.finish
            units.append(self._speed.seconds())
        settle(engine)
        return Written(tuple(texts), fixed, prompt, tuple(steps), tuple(units))
