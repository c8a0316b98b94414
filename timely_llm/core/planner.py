"""The planner: events in, commands out, and the loop that writes plans. No clock, thread or ROS.

``Planner.run_once`` is the loop: schedule, step, dispatch. The node and the simulator drive the
same object; they differ in the engine, the clock, and who carries out the commands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from timely_llm.core import events as ev
from timely_llm.core.config import PlannerConfig
from timely_llm.core.goals import Goals
from timely_llm.core.probes import Probes
from timely_llm.core.registration import Registration
from timely_llm.core.reports import Reports
from timely_llm.core.request import Request, State
from timely_llm.core.robots import Fleet
from timely_llm.core.state import Counts, PlannerState
from timely_llm.core.views import predictor_view_of, view_of
from timely_llm.estimation.plan_length import WINDOW, PastLengths, Predictor
from timely_llm.estimation.step_time import Latency, LatencyEstimate, StepLatency
from timely_llm.language.segmenter import CheckedSegment, MakeSegmenter
from timely_llm.policies import Decision, EngineState, Policy, View
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import Engine, EngineDead, EngineError, Output, StepResult
from timely_llm.protocols.messages import ErrorCode

RETRY = 0.005  # s, until the next turn where the engine could compute nothing

_Handler = Callable[[Any, float], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the loop: what is to be done, whether the engine was busy and for how long (s),
    and, where it was not, when to turn again at the latest (None: at the next event). ``ended`` is
    when it was over, in s."""

    commands: list[ev.Command]
    busy: bool
    duration: float = 0.0
    wake_at: float | None = None
    ended: float = 0.0


class Planner:
    """Plans for a fleet on one engine, under one policy.

    ``handle`` takes an event, ``run_once`` turns the loop once; both return commands. ``now`` is
    the planner's clock in s; an event's is when it was received, be it in the middle of the step
    before. ``failure`` is why the engine can no longer be used, if so. ``latency`` is what engine
    steps are taken for until their times are learned; ``predictor`` is asked where the policy wants
    predictions; ``segmenter`` and ``observed`` are those of ``PlannerState``.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        prompts: PromptTemplate,
        fleet: Fleet,
        config: PlannerConfig | None = None,
        latency: Latency | None = None,
        *,
        predictor: Predictor | None = None,
        segmenter: MakeSegmenter | None = None,
        observed: bool = True,
    ) -> None:
        self.policy = policy
        self.predictor = (predictor or PastLengths()) if policy.predicts else None
        self.latency = LatencyEstimate(latency or StepLatency((0.02,), per_prefill_token=1e-4))
        self.state = PlannerState(
            config or PlannerConfig(), engine, prompts, fleet, self.latency, segmenter, observed
        )
        self.probes = Probes(self.state)
        self._reports = Reports(self.state)
        self._handlers = self._make_handlers()
        self.last_step = StepResult()
        self.steps = 0
        self.busy = 0.0  # s, of all steps
        self.recomputed_tokens = 0
        self.failure: EngineDead | None = None
        self._ran: tuple[str, ...] = ()  # the last run set
        self._wake_at: float | None = None  # the next turn, where nothing was computed in this one

    def _make_handlers(self) -> dict[type, _Handler]:
        """Which function takes in which event."""
        goals = Goals(self.state, self.probes)
        registration = Registration(self.state)
        return {
            ev.GoalArrived: goals.arrived,
            ev.GoalInvalid: goals.invalid,
            ev.GoalCanceled: goals.canceled,
            ev.Activate: goals.activate,
            ev.Deactivate: goals.deactivate,
            ev.ExecutionArrived: self._reports.arrived,
            ev.ReportInvalid: self._reports.invalid,
            ev.StopRobots: self._reports.stop_robots,
            ev.KeepTimes: self._reports.keep_times,
            ev.AskProbe: self.probes.ask,
            ev.RegisterRobot: registration.register,
            ev.UnregisterRobot: registration.unregister,
        }

    @property
    def engine(self) -> Engine:
        return self.state.engine

    def handle(self, event: ev.Event, now: float) -> list[ev.Command]:
        """Take in ``event``; returns what is to be done about it."""
        self._handlers[type(event)](event, now)
        return self.state.drain()

    def run_once(self, now: float) -> Turn:
        """One turn of the loop."""
        decision = self.schedule(now)
        step = self.step(decision, now)
        return self.dispatch(step, now)

    def counts(self) -> Counts:
        """A snapshot for people."""
        return self.state.counts(self.last_step, self.recomputed_tokens)

    # Schedule.

    def schedule(self, now: float) -> Decision:
        """The policy's choice, with the states that follow from it, and what else is computed."""
        state = self.state
        self._expire(now)
        views = state.views.all(self._view)
        decision = self.policy.choose(now, views, self._engine_state()) if views else Decision()
        for request in self._changing(decision.run):
            if request.state is State.RUNNING:
                state.suspend(request, now)
            else:
                state.run(request, now)
            state.views.touch(request.plan_id)
        self._ran, self._wake_at = decision.run, decision.wake_at
        return self.probes.before(self._with_prefixes(decision))

    def _expire(self, now: float) -> None:
        if now >= self.state.due:
            self.state.due = math.inf
            self._reports.expire(now)
            self.probes.expire(now)

    def _changing(self, run: Sequence[str]) -> list[Request]:
        """Who begins to run now and who no longer does, in order of arrival."""
        live, chosen = self.state.requests, set(run)
        begin = [live[name] for name in run if live[name].state is not State.RUNNING]
        rest = [live[name] for name in self._ran if name in live and name not in chosen]
        end = [request for request in rest if request.state is State.RUNNING]
        return sorted(begin + end, key=lambda r: r.number) if begin or end else []

    def _view(self, plan_id: str) -> View:
        state = self.state
        request, robot = state.requests[plan_id], state.generating[plan_id].robot
        if self.predictor is not None and request.tokens >= request.predict_at:
            view = predictor_view_of(request, robot.skills.kind)
            request.predict(self.predictor.remaining(view), WINDOW)
        cached = state.prefixes.cached(robot.prefix)
        return view_of(request, robot.lengths, cached, state.config.network)

    def _engine_state(self) -> EngineState:
        info, step = self.engine.info, self.last_step
        total = info.kv_blocks * info.block_size
        used = step.kv_blocks_used * info.block_size
        return EngineState(info.max_batch, self.latency, total - used, total, self.steps)

    def _with_prefixes(self, decision: Decision) -> Decision:
        """The choice with fixed prompts that are still to be computed: last, in chunks, and not
        beside the prompts of others, so that no goal waits for a registration longer than a chunk.
        """
        state, missing = self.state, self.state.prefixes.missing
        if not missing:
            return decision
        cold = tuple(p for p in decision.run if state.generating[p].robot.prefix in missing)
        warm = tuple(p for p in decision.run if p not in cold)
        budget = decision.prefill_budget
        if not self.policy.native:
            words = sum(state.requests[plan_id].uncached for plan_id in warm)
            budget = words or state.config.prefill_chunk
        return replace(decision, run=warm + cold + missing, prefill_budget=budget)

    # Step.

    def step(self, decision: Decision, now: float) -> StepResult | None:
        """Compute what was chosen; None where there is nothing to compute, or the engine failed."""
        if not decision.run and not self.engine.pending:
            return None
        try:
            return self.engine.step(
                decision.run, decision.hold, decision.evict, decision.prefill_budget
            )
        except EngineError as error:
            self._engine_failed(error, now)
            self._wake_at = now + RETRY if self.state.generating else None
            return None

    def _engine_failed(self, error: EngineError, now: float) -> None:
        """Nothing more can be written: every plan that is not yet written ends. A goal that starts
        for it on a robot now free is tried in the next turn."""
        if isinstance(error, EngineDead):
            self.failure = error
        self.probes.end_all(ErrorCode.ENGINE_FAILED, str(error))
        for request in [self.state.requests[plan_id] for plan_id in self.state.generating]:
            self.state.stop(request, ErrorCode.ENGINE_FAILED, str(error), now)

    # Dispatch.

    def dispatch(self, step: StepResult | None, now: float) -> Turn:
        """Learn from the step that began at ``now``, and send what is complete."""
        if step is None:
            return self._rests(self._wake_at, now)
        ended, state = now + step.duration, self.state
        self._account(step, ended)
        for name, output in step.outputs.items():
            if name in state.generating:
                self._wrote(name, output, step.duration, ended)
            elif name in state.prefixes:
                state.prefixes.settle(name, output.finish != "error")
                state.views.touch_all()
            elif name in self.probes:
                self.probes.wrote(name, output)
        if not step.scheduled and not step.outputs:  # nobody could be computed: no busy loop
            return self._rests(ended + RETRY, ended)
        return Turn(state.drain(), True, ended - now, ended=ended)

    def _rests(self, wake_at: float | None, now: float) -> Turn:
        """Nothing was computed; turn again at ``wake_at``, or when silence must be looked at."""
        wake = min(self.state.due, math.inf if wake_at is None else wake_at)
        return Turn(self.state.drain(), False, wake_at=wake if wake < math.inf else None, ended=now)

    def _account(self, step: StepResult, now: float) -> None:
        """Learn the engine's speed, and who has what in the KV cache."""
        state = self.state
        self.last_step = step
        self.steps += 1
        self.busy += step.duration
        self.recomputed_tokens += step.recomputed_tokens
        state.views.touch_all(step.scheduled)
        state.views.touch_all(step.evicted)
        decoding = context = 0
        for plan_id, count in step.scheduled.items():
            request = state.requests.get(plan_id)
            if request is None:  # of a robot's question, or of a fixed prompt
                decoding += count == 1
            elif request.uncached:
                request.computed(count)
            else:
                decoding += 1
                context += request.prompt_tokens + request.tokens
        if step.scheduled:
            decoding = min(decoding, sum(step.scheduled.values()) - step.prompt_tokens)
            self.latency.observe(decoding, step.prompt_tokens, context, step.duration)
        for plan_id, count in step.recomputed.items():
            if plan_id in state.requests:
                state.requests[plan_id].recomputed(count)
        for plan_id in step.evicted:
            state.evicted(plan_id, now)

    def _wrote(self, plan_id: str, output: Output, duration: float, now: float) -> None:
        """New text of one plan: cut it, check it, send what is complete."""
        state = self.state
        request, generating = state.requests[plan_id], state.generating[plan_id]
        if request.state is State.WAITING:  # an engine with an order of its own took it first
            state.run(request, now)
        state.wrote(request, output.text, output.tokens, (duration,), now)
        taken = generating.reader.take(output)
        for segment in taken.segments:
            self._send(request, segment, now)
        if taken.code is ErrorCode.INVALID_PLAN:
            self._reports.refused(request, taken.error, now)
        elif taken.code is not ErrorCode.NONE:
            state.stop(request, taken.code, taken.error, now)
        elif taken.ended:
            state.written(request)
            if self.predictor is not None:
                self.predictor.ended(predictor_view_of(request, generating.robot.skills.kind))

    def _send(self, request: Request, segment: CheckedSegment, now: float) -> None:
        """Send one segment, or keep it until the plan is whole."""
        text, calls = segment.text, segment.calls
        if not self.policy.streams:
            text, calls = request.withhold(text, calls)
            if not segment.last:
                return
        self.state.send(request, text, calls, segment.last, now)
