"""What became of a set of plans, in numbers: rows, totals, and the shape of the JSON report. Pure.

Times are s, as the planner reports them in a goal's result (``action/Plan``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from timely_llm.protocols.messages import ErrorCode, PlanGoal, PlanResult
from timely_llm.protocols.utility import URGENT, Urgency


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """One goal and what became of it. ``segments`` are the texts in the order sent; joined they are
    a prefix of ``plan``. ``response_s`` is None where no segment was sent."""

    plan_id: str
    robot_id: str
    urgency: Urgency
    instruction: str
    plan: str
    segments: tuple[str, ...]
    response_s: float | None
    waiting_s: float
    execution_s: float
    utility: float
    error_code: ErrorCode
    error_msg: str = ""
    prompt_tokens: int = 0
    generated_tokens: int = 0

    @property
    def succeeded(self) -> bool:
        return self.error_code is ErrorCode.NONE


def record(goal: PlanGoal, result: PlanResult, segments: Sequence[str]) -> PlanRecord:
    """The row of a goal from its result and the segments that the planner reported."""
    urgency = goal.urgency if goal.urgency is not Urgency.UNSPECIFIED else Urgency.NORMAL
    return PlanRecord(
        plan_id=result.plan_id,
        robot_id=goal.robot_id,
        urgency=urgency,
        instruction=goal.instruction,
        plan=result.plan,
        segments=tuple(segments),
        response_s=result.response_time if result.response_time >= 0 else None,
        waiting_s=result.waiting_time,
        execution_s=result.execution_time,
        utility=result.utility,
        error_code=result.error_code,
        error_msg=result.error_msg,
        prompt_tokens=result.prompt_tokens,
        generated_tokens=result.generated_tokens,
    )


def quantile(values: Sequence[float], q: float) -> float:
    """The ``q``-quantile, 0 <= q <= 1, by linear interpolation between the two nearest values."""
    if not values:
        raise ValueError("no values")
    if not 0 <= q <= 1:
        raise ValueError(f"q is {q}: must be 0 to 1")
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, median, 99th percentile and maximum of a set of times, s."""

    mean: float
    median: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """None where there are no values."""
        if not values:
            return None
        mean = math.fsum(values) / len(values)
        return cls(mean, quantile(values, 0.5), quantile(values, 0.99), max(values))


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all plans, and how their response times spread; ``urgent_response`` over those of
    CRITICAL and URGENT plans alone."""

    plans: int
    succeeded: int
    response: Spread | None
    urgent_response: Spread | None
    waiting_s: float
    execution_s: float
    utility: float
    segments: int
    prompt_tokens: int
    generated_tokens: int


def totals(records: Sequence[PlanRecord]) -> Totals:
    responses = [r.response_s for r in records if r.response_s is not None]
    urgent = [r.response_s for r in records if r.response_s is not None and r.urgency in URGENT]
    return Totals(
        plans=len(records),
        succeeded=sum(r.succeeded for r in records),
        response=Spread.of(responses),
        urgent_response=Spread.of(urgent),
        waiting_s=math.fsum(r.waiting_s for r in records),
        execution_s=math.fsum(r.execution_s for r in records),
        utility=math.fsum(r.utility for r in records),
        segments=sum(len(r.segments) for r in records),
        prompt_tokens=sum(r.prompt_tokens for r in records),
        generated_tokens=sum(r.generated_tokens for r in records),
    )


@dataclass(frozen=True, slots=True)
class EngineName:
    """What wrote the plans, as the planner's status says it."""

    backend: str = ""
    version: str = ""
    model: str = ""

    @classmethod
    def of(cls, engine: str, model: str) -> EngineName:
        """From the fields of ``PlannerStatus``: ``engine`` is "backend version"."""
        backend, _, version = engine.partition(" ")
        return cls(backend, version, model)


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run of a script under one policy. ``recomputed`` counts the prompt tokens that were
    computed again when suspended plans were resumed, by the planner from what the engine did."""

    policy: str
    pace: str
    engine: EngineName
    records: tuple[PlanRecord, ...]
    recomputed: int

    @property
    def totals(self) -> Totals:
        return totals(self.records)

    def as_json(self) -> dict[str, Any]:
        """The report of one run, as plain JSON values; times in s rounded to 1 us."""
        engine = self.engine
        return {
            "policy": self.policy,
            "pace": self.pace,
            "engine": {
                "backend": engine.backend, "version": engine.version, "model": engine.model
            },
            "plans": [_plan_json(r) for r in self.records],
            "totals": _totals_json(self.totals),
            "prompt_tokens_recomputed_on_resume": self.recomputed,
        }  # fmt: skip


def report_json(run: RunReport, baseline: RunReport | None) -> dict[str, Any]:
    """The whole report; ``baseline`` (None: there was none) has the shape of the run itself."""
    report = run.as_json()
    recomputed = report.pop("prompt_tokens_recomputed_on_resume")
    report["baseline"] = baseline.as_json() if baseline else None
    report["prompt_tokens_recomputed_on_resume"] = recomputed
    return report


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _plan_json(r: PlanRecord) -> dict[str, Any]:
    return {
        "plan_id": r.plan_id,
        "robot_id": r.robot_id,
        "urgency": r.urgency.name,
        "instruction": r.instruction,
        "plan": r.plan,
        "segments": list(r.segments),
        "response_s": _rounded(r.response_s),
        "waiting_s": _rounded(r.waiting_s),
        "execution_s": _rounded(r.execution_s),
        "utility": _rounded(r.utility),
        "error_code": int(r.error_code),
    }


def _spread_json(spread: Spread | None) -> dict[str, float] | None:
    if spread is None:
        return None
    return {name: round(getattr(spread, name), 6) for name in ("mean", "median", "p99", "max")}


def _totals_json(t: Totals) -> dict[str, Any]:
    return {
        "plans": t.plans,
        "succeeded": t.succeeded,
        "segments": t.segments,
        "response_s": _spread_json(t.response),
        "urgent_response_s": _spread_json(t.urgent_response),
        "waiting_s": _rounded(t.waiting_s),
        "execution_s": _rounded(t.execution_s),
        "utility": _rounded(t.utility),
        "prompt_tokens": t.prompt_tokens,
        "generated_tokens": t.generated_tokens,
    }
