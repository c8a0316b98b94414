"""The simulator's replay around an engine that computes: its clock is measured time.

The clock advances while the planner works and jumps over idle time. It counts seconds of the
workload: where those last less on the engine (a time scale below 1), all measured times are divided
by the scale, which is the same as to shrink every time of the workload. The scale may follow the
machine's speed.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from timely_llm import policies
from timely_llm.core import events as ev
from timely_llm.core.goals import Limits, PlannerConfig
from timely_llm.core.planner import Planner, Turn
from timely_llm.core.robots import Fleet
from timely_llm.estimation.plan_length import Predictor
from timely_llm.language.grammar import plan_grammar
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import Engine, EngineInfo, EngineRequest, StepResult
from timely_llm.protocols.messages import Segment, SegmentCommand
from timely_llm.simulation.following_robots import FollowingRobot, WrittenPlan
from timely_llm.simulation.loop import Replay, Run, Setting, prefix_of
from timely_llm.simulation.trace import Task, Trace

Check = Callable[[], None]
_NEVER = math.inf  # no report is lost, so silence means nothing


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


class _Timed:
    """A planner that counts how long it works, in s: ``total``, and ``spent`` of it since asked."""

    def __init__(self, planner: Planner) -> None:
        self._planner, self.spent, self.total = planner, 0.0, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._planner, name)

    def handle(self, event: ev.Event, now: float) -> list[ev.Command]:
        begun = time.perf_counter()
        commands = self._planner.handle(event, now)
        self.spent += time.perf_counter() - begun
        return commands

    def run_once(self, now: float) -> Turn:
        begun = time.perf_counter()
        turn = self._planner.run_once(now)
        self.spent += time.perf_counter() - begun
        return turn

    def take(self) -> float:
        """What was spent since the last call, in s."""
        spent, self.spent = self.spent, 0.0
        self.total += spent
        return spent


class RealReplay(Replay):
    """One replay on a real engine. ``seed`` draws how long calls take that the trace does not
    know; ``scale`` says what 1 s of the workload lasts at the moment, in s."""

    def __init__(
        self,
        trace: Trace,
        setting: Setting,
        engine: Stretched,
        prompts: PromptTemplate,
        seed: int,
        check: Check,
        scale: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self._engine, self._prompts, self._check, self._seed = engine, prompts, check, seed
        self._scale = scale
        self._systems: dict[str, tuple[str, str]] = {}  # fixed prompt and grammar of each kind
        super().__init__(trace, setting)

    def _planner(self, predictor: Predictor | None) -> _Timed:
        config = PlannerConfig(
            limits=Limits(*[10**9] * 4),
            network=self.setting.network,
            ack_timeout=_NEVER,
            heartbeat_timeout=_NEVER,
            first_report_timeout=_NEVER,
            overload="refuse" if self.setting.refusals else "late",
        )
        sessions = itertools.count(1)
        planner = Planner(
            policies.get(self.setting.policy),
            self._engine,
            self._prompts,
            Fleet(self.kinds, lambda: next(sessions)),
            config,
            observed=self.setting.timeline,
            predictor=predictor,
        )
        prefixes = planner.plans.prefixes
        for kind, skills in self.kinds.items():
            system, grammar = self._prompts.system(skills), plan_grammar(skills)
            self._systems[kind] = system, grammar
            number = planner.plans.number()
            prefixes.add(EngineRequest(prefix_of(kind), number, system, None, grammar))
        while prefixes.missing:
            planner.run_once(0.0)
        planner.steps, planner.busy = 0, 0.0
        engine = self._engine
        engine.computing, engine.submitting, engine.submitted = 0.0, 0.0, 0
        return _Timed(planner)

    def run(self) -> Run:
        planner, now = self.planner, 0.0
        while now < self.cut_at:
            self._check()
            scale = self._engine.scale = self._scale()
            self._happen(now)
            now += planner.take() / scale
            turn = planner.run_once(now)
            now += planner.take() / scale
            if planner.failure is not None:
                raise planner.failure
            self._carry_out(turn.commands, now)
            if not turn.busy:
                coming = self._heap[0][0] if self._heap else math.inf
                now = max(now, min(turn.wake_at or math.inf, coming))
        self._happen(self.cut_at)
        self.steps, self.busy = planner.steps, planner.busy
        return self._result()

    def clear(self) -> None:
        """Leave nothing in the engine."""
        self.planner.handle(ev.Deactivate(), self.cut_at)
        for kind in self._systems:
            self.planner.plans.prefixes.drop(prefix_of(kind))
        settle(self._engine)

    def _cut(self, segment: Segment) -> None:
        """What a segment costs is measured."""

    def _add_robot(self, robot_id: str, task: Task) -> None:
        system, grammar = self._systems[task.kind]
        session = self._register(robot_id, task, system, grammar)
        self.robots[robot_id] = FollowingRobot(robot_id, session)

    def _delivered(self, now: float, robot_id: str, segment: Segment) -> None:
        robot, number = self.robots[robot_id], int(segment.plan_id)
        if segment.command is not SegmentCommand.RUN:
            self._publish(robot, robot.halt(now), now)
            return
        if segment.index == 0:
            arrival = self.arrivals[number]
            rng = random.Random(f"{self._seed} {number}")
            plan = WrittenPlan(self.kinds[arrival.task.kind], arrival, rng)
            robot.take(segment.plan_id, plan, plan.durations)
            self.first_at[number] = now
        self._publish(robot, robot.receive(segment, now), now)


def settle(engine: Engine) -> None:
    """Let out what is on its way, which nobody waits for any more."""
    while engine.pending:
        engine.step(())
