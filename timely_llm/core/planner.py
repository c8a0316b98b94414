"""The hub: events in, commands out, and the loop that writes plans. No clock, no thread, no ROS.

``Planner.run_once`` is the loop: schedule, step, detect, dispatch. The node and the simulator drive
the same object; they differ in the engine, the clock, and who carries out the commands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from timely_llm.core import events as ev
from timely_llm.core import fast_forward, intake, probes, reports
from timely_llm.core.beside import with_others
from timely_llm.core.counts import Counts, counts_of
from timely_llm.core.goals import PlannerConfig
from timely_llm.core.handlers import HANDLERS
from timely_llm.core.request import Move, Request, State
from timely_llm.core.robots import Fleet, Robot
from timely_llm.core.state import Plans
from timely_llm.core.views import predictor_view_of, view_of
from timely_llm.estimation.plan_length import WINDOW, PastLengths, Predictor
from timely_llm.estimation.step_time import LatencyEstimate, StepLatency
from timely_llm.language.parser import PlanError
from timely_llm.language.segmenter import CheckedSegment, MakeSegmenter
from timely_llm.policies import Decision, EngineState, Policy, View
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import (
    Engine,
    EngineDead,
    EngineError,
    FastForward,
    Output,
    StepResult,
)
from timely_llm.protocols.messages import ErrorCode, PlanEventType

RETRY = 0.005  # s, until the next turn where the engine could compute nothing


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
    before. ``failure`` is why the engine can no longer be used, if so. ``segmenter`` makes the
    segmenters of plans, and ``observed`` says whether anybody reads events and
    feedback: see ``Plans``. ``predictor`` is asked where the policy wants predictions.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        prompts: PromptTemplate,
        fleet: Fleet,
        config: PlannerConfig | None = None,
        latency: StepLatency | None = None,
        segmenter: MakeSegmenter | None = None,
        observed: bool = True,
        predictor: Predictor | None = None,
    ) -> None:
        self.policy, self.engine = policy, engine
        self.plans = Plans(config or PlannerConfig(), engine, prompts, fleet, segmenter, observed)
        self.predictor = (predictor or PastLengths()) if policy.predicts else None
        self.latency = LatencyEstimate(latency or StepLatency((0.02,), per_prefill_token=1e-4))
        self.plans.latency = self.latency
        self.last_step = StepResult()
        self.steps = 0
        self.busy = 0.0  # s, of all steps
        self._ran: tuple[str, ...] = ()  # the last run set
        self.recomputed_tokens = 0
        self.failure: EngineDead | None = None

    def handle(self, event: ev.Event, now: float) -> list[ev.Command]:
        """Take in ``event``; returns what is to be done about it."""
        HANDLERS[type(event)](self.plans, event, now)
        return self.plans.drain()

    def run_once(self, now: float, until: float = -math.inf) -> Turn:
        """One turn of the loop: schedule, step, detect, dispatch.

        Up to ``until``, when the next event is known to come (s), a simulated engine takes steps
        together that the policy's choice outlasts.
        """
        plans, begun = self.plans, now
        reports.expire(plans, now)
        decision = self._schedule(now)
        if not decision.run and not self.engine.pending:
            return Turn(plans.drain(), False, wake_at=self._wake_at(decision.wake_at), ended=now)
        if now < until:
            forwarded = fast_forward.fast_forward(self.engine, plans, decision, now, until)
            if forwarded.durations:
                now = self._leapt(forwarded, now)
                if now >= min(until, decision.valid_until, plans.due) or not forwarded.can_continue:
                    return Turn(plans.drain(), True, now - begun, ended=now)
        try:
            step = self.engine.step(
                decision.run, decision.hold, decision.evict, decision.prefill_budget
            )
        except EngineError as error:
            self._engine_failed(error, now)
            again = now + RETRY if plans.writing else None
            return Turn(plans.drain(), False, wake_at=self._wake_at(again), ended=now)
        now += step.duration
        self._account(step, now)
        for plan_id, output in step.outputs.items():
            if plan_id in plans.writing:
                self._written(plan_id, output, step, now)
            elif plan_id in plans.prefixes:
                plans.prefixes.settle(plan_id, output.finish != "error")
                plans.views.touch_all()
            elif plan_id in plans.probes:
                probes.written(plans, plan_id, output)
        if not step.scheduled and not step.outputs:  # nobody could be computed: no busy loop
            return Turn(plans.drain(), False, wake_at=self._wake_at(now + RETRY), ended=now)
        return Turn(plans.drain(), True, now - begun, ended=now)

    def counts(self) -> Counts:
        """A snapshot for people."""
        return counts_of(self.plans, self.last_step, self.recomputed_tokens)

    def _wake_at(self, at: float | None) -> float | None:
        """``at``, or when silence must be looked at if that is sooner."""
        wake = min(self.plans.due, math.inf if at is None else at)
        return None if math.isinf(wake) else wake

    # Schedule.

    def _schedule(self, now: float) -> Decision:
        """The policy's choice, with the states that follow from it, and what else is computed."""
        plans = self.plans
        views = plans.views.all(self._view)
        decision = self.policy.choose(now, views, self._engine_state()) if views else Decision()
        for plan in self._changing(decision.run):
            if plan.state is State.RUNNING:
                plan.move(Move.SUSPEND)
                self._report(plan, PlanEventType.SUSPENDED, now)
            else:
                self._runs(plan, now)
            plans.views.touch(plan.plan_id)
        self._ran = decision.run
        return with_others(plans, decision, self.policy.native)

    def _changing(self, run: Sequence[str]) -> list[Request]:
        """Who begins to run now and who no longer does, in order of arrival."""
        live, chosen = self.plans.live, set(run)
        begin = [live[name] for name in run if live[name].state is not State.RUNNING]
        rest = [live[name] for name in self._ran if name in live and name not in chosen]
        end = [plan for plan in rest if plan.state is State.RUNNING]
        return sorted(begin + end, key=lambda plan: plan.number) if begin or end else []

    def _view(self, plan_id: str) -> View:
        plans = self.plans
        plan, robot = plans.live[plan_id], plans.writing[plan_id].robot
        if self.predictor is not None and plan.tokens >= plan.predict_at:
            rest = self.predictor.remaining(predictor_view_of(plan, robot.skills.kind))
            plan.predicted, plan.predict_at = plan.tokens + rest, plan.tokens + WINDOW
        return view_of(
            plan, robot.lengths, plans.prefixes.cached(robot.prefix), plans.config.network
        )

    def _engine_state(self) -> EngineState:
        info, step = self.engine.info, self.last_step
        total = info.kv_blocks * info.block_size
        used = step.kv_blocks_used * info.block_size
        return EngineState(info.max_batch, self.latency, total - used, total, self.steps)

    def _runs(self, plan: Request, now: float) -> None:
        plan.move(Move.RUN)
        kind = PlanEventType.RESUMED if plan.begun else PlanEventType.STARTED
        plan.begun = True
        self._report(plan, kind, now)

    def _report(self, plan: Request, kind: PlanEventType, now: float) -> None:
        if not self.plans.observed:
            return
        cached = 0
        if kind is PlanEventType.STARTED:
            cached = plan.prompt_tokens - plan.uncached
        self.plans.emit(plan, kind, now, horizon=plan.horizon.remaining(now), cached_tokens=cached)
        self.plans.feedback(plan, now)

    # Step.

    def _account(self, step: StepResult, now: float) -> None:
        """Learn the engine's speed, and who has what in the KV cache."""
        plans = self.plans
        self.last_step = step
        self.steps += 1
        self.busy += step.duration
        self.recomputed_tokens += step.recomputed_tokens
        decoding = context = 0
        plans.views.touch_all(step.scheduled)
        plans.views.touch_all(step.evicted)
        for plan_id, count in step.scheduled.items():
            plan = plans.live.get(plan_id)
            if plan is None:  # of a robot's question, or of a fixed prompt
                decoding += count == 1
            elif plan.uncached:
                plan.uncached = max(0, plan.uncached - count)
            else:
                decoding += 1
                context += plan.prompt_tokens + plan.tokens
        if step.scheduled:
            decoding = min(decoding, sum(step.scheduled.values()) - step.prompt_tokens)
            self.latency.observe(decoding, step.prompt_tokens, context, step.duration)
        for plan_id, count in step.recomputed.items():
            if plan_id in plans.live:
                plans.live[plan_id].recomputed_tokens += count
        for plan_id in step.evicted:
            plan = plans.live.get(plan_id)
            if plan is not None and plan.state in (State.RUNNING, State.SUSPENDED):
                plan.move(Move.EVICT)
                robot = plans.writing[plan_id].robot
                cached = plans.prefixes.cached(robot.prefix)
                plan.uncached = plan.prompt_tokens + plan.tokens - cached
                self._report(plan, PlanEventType.EVICTED, now)

    def _leapt(self, forwarded: FastForward, now: float) -> float:
        """Account for steps that were taken together; when they were over, in s."""
        lives = [self.plans.live[plan_id] for plan_id in forwarded.texts]
        context = sum(plan.prompt_tokens + plan.tokens for plan in lives)
        for duration in forwarded.durations:
            now += duration
            self.busy += duration
            self.latency.observe(len(lives), 0, context, duration)
            context += len(lives)
        self.steps += len(forwarded.durations)
        fast_forward.write(self.plans, forwarded, now)
        self.last_step = replace(self.last_step, kv_blocks_used=forwarded.kv_blocks_used)
        return now

    # Detect.

    def _written(self, plan_id: str, output: Output, step: StepResult, now: float) -> None:
        """New text of one plan: cut it, check it, send what is complete."""
        plan, writing = self.plans.live[plan_id], self.plans.writing[plan_id]
        if plan.state is State.WAITING:  # an engine with an order of its own took it first
            self._runs(plan, now)
        plan.text.append(output.text)
        if output.tokens and not plan.tokens:
            plan.first_token = now
        plan.tokens += output.tokens
        plan.segment_tokens += output.tokens
        plan.step_times.append(step.duration)
        plan.last_token = now
        self.plans.views.touch(plan_id)
        # A token may come out of an engine that has evicted its plan since.
        plan.uncached = plan.uncached + output.tokens if plan.state is State.EVICTED else 0
        if output.finish in ("length", "error"):
            self.plans.stop(plan, *self._cut_off(output), now)
            return
        try:
            for cut in writing.segmenter.feed(output.text, output.finish == "stop"):
                self._dispatch(plan, writing.robot, cut, now)
        except PlanError as error:
            self.plans.stop(plan, ErrorCode.INVALID_PLAN, str(error), now)
            return
        if output.finish == "stop":
            self.plans.written(plan)
            if self.predictor is not None:
                self.predictor.ended(predictor_view_of(plan, writing.robot.skills.kind))

    def _cut_off(self, output: Output) -> tuple[ErrorCode, str]:
        if output.finish == "error":
            return ErrorCode.ENGINE_FAILED, output.error
        limit = self.plans.config.max_tokens
        return ErrorCode.PLAN_TRUNCATED, f"the plan reached the limit of {limit} tokens"

    # Dispatch.

    def _dispatch(self, plan: Request, robot: Robot, cut: CheckedSegment, now: float) -> None:
        """Send one segment, or keep it until the plan is whole."""
        text, calls = cut.text, cut.calls
        if not self.policy.streams:
            plan.withheld.append(text)
            plan.withheld_calls.extend(calls)
            if not cut.last:
                return
            text, calls = "".join(plan.withheld), plan.withheld_calls
        old = plan.replaced
        if old is not None:
            plan.replaced = None
            intake.preempted(self.plans, old, now)
        self.plans.send(plan, robot, text, calls, cut.last, now)

    def _engine_failed(self, error: EngineError, now: float) -> None:
        """Nothing more can be written: every plan that is not yet written ends. A goal that starts
        for it on a robot now free is tried in the next turn."""
        if isinstance(error, EngineDead):
            self.failure = error
        probes.end_all(self.plans, ErrorCode.ENGINE_FAILED, str(error))
        for plan in [self.plans.live[plan_id] for plan_id in self.plans.writing]:
            self.plans.stop(plan, ErrorCode.ENGINE_FAILED, str(error), now)
