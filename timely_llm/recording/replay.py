"""A recording replayed under a policy: a replay of what was recorded. Pure.

Goals come when they came, with what they asked for; robots do what they did, as long as they took;
what was ended from outside is ended at the same time. The engine and the network take the times
that were measured in the recording.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from timely_llm.core.request import Request
from timely_llm.estimation import presets as engine_presets
from timely_llm.protocols.messages import (
    ErrorCode,
    Execution,
    PlanGoal,
    PlanResult,
    Segment,
    SegmentCommand,
)
from timely_llm.recording.costs import Costs, engine_of
from timely_llm.recording.recorded_trace import RecordedTrace
from timely_llm.recording.recording import Recording
from timely_llm.recording.speed import at_its_time
from timely_llm.simulation.loop import Replay, SimulatedDriver, end_of, kinds_of
from timely_llm.simulation.outcomes import REFUSALS, Outcome
from timely_llm.simulation.robots import SimRobot
from timely_llm.simulation.setting import Run, Setting
from timely_llm.simulation.trace import Arrival


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
    arrivals = recorded.trace.arrivals
    return Replay(
        _driver(recorded, setting, costs, recording.parameters),
        RecordedGoals(recorded, arrivals),
        RecordedRobots(recorded),
        cut_at=end_of(arrivals, setting),
        network=setting.network,
    ).run()


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
    found = []
    for known, arrival in zip(recorded.known, recorded.trace.arrivals, strict=True):
        goal = known.goal
        assert goal.result is not None  # a goal that did not end is not replayed
        started = goal.begun - recorded.origin
        found.append(outcome(arrival, goal.result, started, goal.code))
    return tuple(found)


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


class RecordedGoals:
    """The goals of a recording: they come, ask, and are ended from outside as they were."""

    def __init__(self, recorded: RecordedTrace, arrivals: Sequence[Arrival]) -> None:
        self.arrivals, self._recorded = arrivals, recorded

    def goal(self, number: int) -> PlanGoal:
        return self._recorded.known[number].ask

    def ends_at(self, number: int) -> float | None:
        return self._recorded.known[number].ends_at

    def outcome(
        self,
        number: int,
        request: Request | None,
        result: PlanResult | None,
        first_at: float | None,
        cut_at: float,
    ) -> Outcome:
        """Of the planner's result, or of what there was at the cut. What was ended from outside
        carries the code that it was recorded with."""
        arrival, code = self.arrivals[number], None
        if result is not None:
            code = result.error_code
            if code is ErrorCode.CANCELED:
                code = self._recorded.known[number].goal.code
        started = arrival.at if request is None else request.arrival
        return outcome(arrival, result or _at_cut(request, arrival, cut_at), started, code)


def _at_cut(request: Request | None, arrival: Arrival, cut_at: float) -> PlanResult:
    if request is not None:
        return request.result(ErrorCode.TIMEOUT, "", cut_at)
    waited = cut_at - arrival.at
    return PlanResult("", waiting_time=waited, utility=arrival.task.utility(waited))


class RecordedRobots:
    """Robots that do what was recorded of them: they may fail, and be halted."""

    def __init__(self, recorded: RecordedTrace) -> None:
        self._recorded = recorded

    def deliver(self, robot: SimRobot, segment: Segment, now: float) -> Sequence[Execution]:
        if segment.command is SegmentCommand.STOP:
            return robot.halt(now)
        if segment.command is SegmentCommand.CANCEL:
            return robot.halt(now) if segment.plan_id == robot.plan_id else []
        reports: list[Execution] = []
        if segment.index == 0:
            reports = robot.halt(now)
            known = self._recorded.known[int(segment.plan_id)]
            fails_at = math.inf if known.fails_at is None else known.fails_at
            robot.take(segment.plan_id, known.plan, known.durations, fails_at, known.error)
        if segment.plan_id == robot.plan_id and not robot.over:
            reports = reports + robot.receive(segment, now)
        return reports


def _driver(
    recorded: RecordedTrace, setting: Setting, costs: Costs, parameters: Mapping[str, Any]
) -> SimulatedDriver:
    """The planner as the recorded one was set: what it took for the network and, before it had
    learned better, for its engine's steps. These are as long as they were at the time."""
    pace = engine_presets.PACES.get(str(parameters.get("pace")))
    beside = 1.0
    if costs.prefill and pace is not None:
        # A paced engine computes a prompt in the time that it would sleep for the others.
        beside = costs.prefill_beside / costs.prefill
    goals = [known.goal for known in recorded.known]
    steps = at_its_time(goals, setting.engine.latency, beside)

    def show_time(now: float) -> None:
        steps.now = recorded.origin + now

    engine = replace(setting.engine, submit=costs.submit)
    return SimulatedDriver(
        recorded.trace.arrivals,
        kinds_of(recorded.trace.arrivals, setting),
        [known.plan for known in recorded.known],
        replace(setting, engine=engine, together=False),
        network=float(parameters.get("network", setting.network)),
        prior=pace or steps.typical,
        latency=steps,
        on_turn=show_time,
    )
