"""A recording replayed under a policy: the simulator's replay, with what was recorded. Pure.

Goals come when they came, with what they asked for; robots do what they did, as long as they took;
what was ended from outside is ended at the same time. The engine and the network take the times
that were measured in the recording.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from timely_llm.core import events as ev
from timely_llm.core.planner import Planner
from timely_llm.core.request import Request
from timely_llm.estimation import presets as engine_presets
from timely_llm.estimation.plan_length import Predictor
from timely_llm.estimation.step_time import LatencyEstimate
from timely_llm.protocols.messages import (
    ErrorCode,
    Execution,
    ExecutionState,
    PlanResult,
    Segment,
    SegmentCommand,
)
from timely_llm.recording.costs import Costs, engine_of
from timely_llm.recording.recording import Recording
from timely_llm.recording.speed import at_its_time
from timely_llm.recording.trace import Known, RecordedTrace
from timely_llm.simulation.known_plans import KnownPlan
from timely_llm.simulation.loop import Replay
from timely_llm.simulation.outcomes import Outcome
from timely_llm.simulation.robots import SimRobot
from timely_llm.simulation.setting import Run, Setting, kind_of
from timely_llm.simulation.trace import Arrival, Task

REFUSALS = (ErrorCode.OVERLOADED, ErrorCode.ROBOT_BUSY, ErrorCode.OUTRANKED)


def replay(
    recording: Recording,
    recorded: RecordedTrace,
    costs: Costs,
    policy: str,
    max_batch: int | None = None,
    timeline: bool = False,
) -> Run:
    """Replay on the simulator; ``max_batch`` None: as recorded. The outcomes are in the order of
    the trace's arrivals."""
    size = max_batch or batch_of(recording)
    setting = setting_of(recording, recorded, costs, policy, size, timeline)
    return RecordedReplay(recorded, setting, costs, recording.parameters).run()


def batch_of(recording: Recording) -> int:
    """How many plans the recorded engine computed in one step at most."""
    return int(recording.engine.get("max_batch") or recording.parameters.get("max_batch") or 8)


def setting_of(
    recording: Recording,
    recorded: RecordedTrace,
    costs: Costs,
    policy: str,
    max_batch: int,
    timeline: bool = False,
) -> Setting:
    """How the recording is replayed under ``policy``."""
    return Setting(
        policy=policy,
        engine=engine_of(recording, costs, max_batch),
        max_batch=max_batch,
        network=costs.network,
        refusals=recording.parameters.get("overload") == "refuse",
        skills=recorded.skills,
        timeline=timeline,
    )


def what_happened(recorded: RecordedTrace) -> tuple[Outcome, ...]:
    """The outcomes of the goals of the trace as they were recorded."""
    return tuple(
        outcome(arrival, known.goal.result, known.goal.begun - recorded.origin, known.goal.code)
        for known, arrival in zip(recorded.known, recorded.trace.arrivals, strict=True)
    )


def outcome(
    arrival: Arrival, result: PlanResult, started: float, code: ErrorCode | None
) -> Outcome:
    """An outcome from the planner's result: ``response_s`` is until the first segment was sent,
    ``started`` when its clock did, s on the trace's clock."""
    response = result.response_time if result.response_time >= 0 else None
    ended = code is ErrorCode.NONE
    met = response is not None and response <= arrival.task.utility.ert
    return Outcome(
        arrival=arrival.at,
        urgency=arrival.task.urgency,
        response_s=response,
        waiting_s=result.waiting_time,
        execution_s=result.execution_time,
        completed_at=started + result.waiting_time + result.execution_time if ended else None,
        utility=result.utility,
        refused=code in REFUSALS,
        error_code=ErrorCode.NONE if code is None else code,
        tokens=result.generated_tokens,
        met=met,
        slo_met=met,
    )


class RecordedRobot(SimRobot):
    """A robot that does what was recorded of it: it may fail, and be halted."""

    __slots__ = ("fails_at", "error")

    def begin(self, plan_id: str, known: Known) -> None:
        """The plan whose segments come next."""
        self.take(plan_id, known.plan, known.durations)
        self.fails_at = math.inf if known.fails_at is None else known.fails_at
        self.error = known.error

    def halt(self, now: float) -> list[Execution]:
        """Whatever it does is over; nothing if there is nothing."""
        if self.over:
            return []
        elapsed = now - self.began if math.isfinite(self.ends) else 0.0
        return [self._end(ExecutionState.ABORTED, now, elapsed)]

    def _end(self, state: ExecutionState, now: float, elapsed: float) -> Execution:
        self.over, self.wake = True, math.inf
        self.began = self.ends = math.inf
        return replace(self._report(state, now, elapsed=elapsed), error=self.error)

    def _succeed(self, now: float, reports: list[Execution]) -> None:
        if self.next == self.fails_at:
            reports.append(self._end(ExecutionState.FAILED, now, now - self.began))
            return
        super()._succeed(now, reports)

    def _go_on(self, now: float, reports: list[Execution]) -> None:
        if self.over:
            return
        if self.fails_at == self.next == len(self.plan.actions):
            reports.append(self._end(ExecutionState.FAILED, now, 0.0))
            return
        super()._go_on(now, reports)


class AsRecorded:
    """What every replay of a recording has, on whatever engine: mixed into a ``Replay``."""

    recorded: RecordedTrace
    setting: Setting

    def _arrives(self, now: float, number: int, arrival: Arrival) -> None:
        known = self.recorded.known[number]
        if arrival.robot_id not in self.robots:
            self._add_robot(arrival.robot_id, arrival.task)
        self.changed = True
        commands = self.planner.handle(ev.GoalArrived(str(number), known.ask), now)
        self.plans[number] = self.planner.plans.live.get(str(number))
        self._carry_out(commands, now)
        if known.ends_at is not None:
            self._at(max(now, known.ends_at), self._ended_from_outside, number)

    def _ended_from_outside(self, now: float, number: int) -> None:
        if number not in self.results:
            self._carry_out(self.planner.handle(ev.GoalCanceled(str(number)), now), now)

    def _carry_out(self, commands: Sequence[ev.Command], now: float) -> None:
        """A queued goal's plan is there once its robot is free."""
        super()._carry_out(commands, now)
        for number, plan in enumerate(self.plans):
            if plan is None and str(number) in self.planner.plans.live:
                self.plans[number] = self.planner.plans.live[str(number)]

    def _result(self) -> Run:
        outcomes = tuple(
            self._outcome(number, arrival) for number, arrival in enumerate(self.arrivals)
        )
        return Run(outcomes, self.cut_at, self.steps, self.busy, tuple(self.timeline))

    def _outcome(self, number: int, arrival: Arrival) -> Outcome:
        """Of the planner's result, or of what there was at the cut. What was ended from outside
        carries the code that it was recorded with."""
        known, plan = self.recorded.known[number], self.plans[number]
        result, code = self.results.get(number), None
        if result is not None:
            code = result.error_code
            if code is ErrorCode.CANCELED:
                code = known.goal.code
        started = arrival.at if plan is None else plan.arrival
        return outcome(arrival, result or _at_cut(plan, arrival, self.cut_at), started, code)


def _at_cut(plan: Request | None, arrival: Arrival, cut_at: float) -> PlanResult:
    if plan is not None:
        return plan.result(ErrorCode.TIMEOUT, "", cut_at)
    waited = cut_at - arrival.at
    return PlanResult("", waiting_time=waited, utility=arrival.task.utility(waited))


class RecordedReplay(AsRecorded, Replay):
    """A replay on the simulated engine."""

    def __init__(
        self,
        recorded: RecordedTrace,
        setting: Setting,
        costs: Costs,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.recorded, self.costs, self.parameters = recorded, costs, parameters or {}
        goals = [known.goal for known in recorded.known]
        beside = 1.0
        if costs.prefill and self.parameters.get("pace") in engine_presets.PACES:
            # A paced engine computes a prompt in the time that it would sleep for the others.
            beside = costs.prefill_beside / costs.prefill
        self._steps = at_its_time(goals, setting.engine.latency, beside)
        engine = replace(setting.engine, latency=self._steps, submit=costs.submit)
        super().__init__(recorded.trace, replace(setting, engine=engine, together=False))

    def _read_plans(self) -> list[KnownPlan]:
        for arrival in self.arrivals:
            task = arrival.task
            if task.kind not in self.kinds:
                self.kinds[task.kind] = kind_of(task, self.setting.skills or {})
        return [known.plan for known in self.recorded.known]

    def _planner(self, predictor: Predictor | None) -> Planner:
        """As the recorded planner was set: what it took for the network and, before it had learned
        better, for its engine's steps."""
        planner = super()._planner(predictor)
        plans, parameters = planner.plans, self.parameters
        network = float(parameters.get("network", self.setting.network))
        plans.config = replace(plans.config, network=network)
        pace = engine_presets.PACES.get(str(parameters.get("pace")))
        planner.latency = LatencyEstimate(pace or self._steps.typical)
        plans.latency = planner.latency
        return planner

    def _happen(self, until: float) -> None:
        """Also what the clock shows to the engine."""
        self._steps.now = self.recorded.origin + until
        super()._happen(until)

    def _add_robot(self, robot_id: str, task: Task) -> None:
        session = self._register(robot_id, task, task.kind, "")
        self.robots[robot_id] = RecordedRobot(robot_id, session)

    def _delivered(self, now: float, robot_id: str, segment: Segment) -> None:
        robot = self.robots[robot_id]
        reports: list[Execution] = []
        if segment.command in (SegmentCommand.CANCEL, SegmentCommand.STOP):
            if segment.command is SegmentCommand.STOP or segment.plan_id == _plan(robot):
                reports = robot.halt(now)
        else:
            if segment.index == 0:
                reports = robot.halt(now)
                robot.begin(segment.plan_id, self.recorded.known[int(segment.plan_id)])
            if segment.plan_id == _plan(robot) and not robot.over:
                reports = reports + robot.receive(segment, now)
        self._publish(robot, reports, now)

    def _tick(self, now: float, robot: Any, wake: float) -> None:
        if not robot.over:
            super()._tick(now, robot, wake)


def _plan(robot: SimRobot) -> str:
    return getattr(robot, "plan_id", "")
