"""The driver of a replay on an engine that computes: its clock is measured time.

The clock advances while the planner works and jumps over idle time. It counts seconds of the
workload: where those last less on the engine (a time scale below 1), all measured times are divided
by the scale, which is the same as to shrink every time of the workload. The scale may follow the
machine's speed.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from timely_llm import policies
from timely_llm.core import events as ev
from timely_llm.core.planner import Planner, Turn
from timely_llm.core.robots import Fleet
from timely_llm.estimation.plan_length import Predictor
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.fixed import FixedPrompt
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import Engine, EngineInfo, EngineRequest, StepResult
from timely_llm.protocols.messages import Segment
from timely_llm.simulation.loop import endless_patience, prefix_of, register
from timely_llm.simulation.setting import Setting
from timely_llm.simulation.trace import Task

Check = Callable[[], None]


class Stretched:
    """An engine whose steps are reported as 1/``scale`` times as long as they took. ``computing``
    and ``submitting`` count the s that steps and the ``submitted`` requests took in fact."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self.scale = engine, 1.0
        self.computing, self.submitting, self.submitted = 0.0, 0.0, 0
        self.abort, self.close = engine.abort, engine.close

    @property
    def info(self) -> EngineInfo:
        return self._engine.info

    @property
    def pending(self) -> bool:
        return self._engine.pending

    def submit(self, request: EngineRequest) -> int:
        begun = time.perf_counter()
        tokens = self._engine.submit(request)
        self.submitting += time.perf_counter() - begun
        self.submitted += 1
        return tokens

    def step(
        self,
        run: Sequence[str],
        hold: Sequence[str] = (),
        evict: Sequence[str] = (),
        prefill_budget: int | None = None,
    ) -> StepResult:
        step = self._engine.step(run, hold, evict, prefill_budget)
        self.computing += step.duration
        return replace(step, duration=step.duration / self.scale)


class MeasuredDriver:
    """The planner on an engine that computes. Its clock counts what planner and engine take;
    ``scale`` says what 1 s of the workload lasts at the moment, in s. ``check`` is called before
    each turn and may raise."""

    def __init__(
        self,
        kinds: Mapping[str, SkillSet],
        setting: Setting,
        engine: Stretched,
        prompts: PromptTemplate,
        check: Check,
        predictor: Predictor | None = None,
        scale: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self.spent = 0.0  # s, that the planner and its engine worked in all
        self._engine, self._kinds, self._check, self._scale = engine, kinds, check, scale
        self._unpaid = 0.0  # s of that which the replay's clock does not count yet
        self._prompts: dict[str, FixedPrompt] = {}  # of each kind
        self.planner = Planner(
            policies.get(setting.policy),
            engine,
            prompts,
            Fleet(kinds, itertools.count(1).__next__),
            endless_patience(setting),
            predictor=predictor,
            observed=setting.timeline,
        )
        state = self.planner.state
        for kind, skills in kinds.items():
            fixed = self._prompts[kind] = prompts.fixed(skills)
            most = state.config.max_tokens
            state.prefixes.add(fixed.request(prefix_of(kind), state.number(), None, most))
        while state.prefixes.missing:
            self.planner.run_once(0.0)
        self.planner.steps, self.planner.busy = 0, 0.0
        engine.computing, engine.submitting, engine.submitted = 0.0, 0.0, 0

    def register(self, robot_id: str, task: Task) -> int:
        return register(self.planner, robot_id, self._kinds[task.kind], self._prompts[task.kind])

    def handle(self, event: ev.Event, now: float) -> list[ev.Command]:
        begun = time.perf_counter()
        commands = self.planner.handle(event, now)
        self._unpaid += time.perf_counter() - begun
        return commands

    def sent(self, segment: Segment) -> None:
        """What a segment costs is measured."""

    def turn(self, now: float, until: float) -> Turn:
        self._check()
        scale = self._engine.scale = self._scale()
        now += self._pay() / scale
        begun = time.perf_counter()
        turn = self.planner.run_once(now)
        self._unpaid += time.perf_counter() - begun
        if self.planner.failure is not None:
            raise self.planner.failure
        return replace(turn, ended=now + self._pay() / scale)

    def _pay(self) -> float:
        unpaid, self._unpaid = self._unpaid, 0.0
        self.spent += unpaid
        return unpaid

    def clear(self, now: float) -> None:
        """Leave nothing in the engine."""
        self.planner.handle(ev.Deactivate(), now)
        for kind in self._prompts:
            self.planner.state.prefixes.drop(prefix_of(kind))
        settle(self._engine)


def settle(engine: Engine) -> None:
    """Let out what is on its way, which nobody waits for any more."""
    while engine.pending:
        engine.step(())
