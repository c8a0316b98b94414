"""What became of a set of goals, in numbers: totals and the JSON report of a run. Pure.

Times are s, as the planner reports them in a goal's result (``action/Plan``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from timely_llm.protocols.messages import ErrorCode, PlanGoal, PlanResult
from timely_llm.protocols.utility import URGENT, Urgency
from timely_llm.simulation.metrics import percentile


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """One goal and its result. ``segments`` are the texts in the order sent; joined they are a
    prefix of ``result.plan``."""

    goal: PlanGoal
    result: PlanResult
    segments: tuple[str, ...] = ()

    @property
    def urgency(self) -> Urgency:
        """Of the goal; unspecified is normal."""
        return self.goal.urgency or Urgency.NORMAL

    @property
    def response_s(self) -> float | None:
        """Until the first segment was sent; None where none was."""
        return self.result.response_time if self.result.response_time >= 0 else None

    @property
    def succeeded(self) -> bool:
        return self.result.error_code is ErrorCode.NONE

    def as_json(self) -> dict[str, Any]:
        """The plan in the report."""
        goal, result = self.goal, self.result
        return {
            "plan_id": result.plan_id,
            "robot_id": goal.robot_id,
            "urgency": self.urgency.name,
            "instruction": goal.instruction,
            "plan": result.plan,
            "segments": list(self.segments),
            "response_s": self.response_s,
            "waiting_s": result.waiting_time,
            "execution_s": result.execution_time,
            "utility": result.utility,
            "error_code": int(result.error_code),
        }


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
        ordered = sorted(values)
        median, p99 = percentile(ordered, 0.5), percentile(ordered, 0.99)
        if median is None or p99 is None:
            return None
        return cls(sum(ordered) / len(ordered), median, p99, ordered[-1])


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all plans, and how their response times spread; ``urgent_response_s`` over those
    of CRITICAL and URGENT plans alone. The fields are those of the report, in its order."""

    plans: int
    succeeded: int
    segments: int
    response_s: Spread | None
    urgent_response_s: Spread | None
    waiting_s: float
    execution_s: float
    utility: float
    prompt_tokens: int
    generated_tokens: int


def totals(records: Sequence[PlanRecord]) -> Totals:
    """The sums over a run."""
    responses = [(r.urgency, r.response_s) for r in records if r.response_s is not None]
    results = [record.result for record in records]
    return Totals(
        plans=len(records),
        succeeded=sum(r.succeeded for r in records),
        segments=sum(len(r.segments) for r in records),
        response_s=Spread.of([time for _, time in responses]),
        urgent_response_s=Spread.of([time for urgency, time in responses if urgency in URGENT]),
        waiting_s=sum(r.waiting_time for r in results),
        execution_s=sum(r.execution_time for r in results),
        utility=sum(r.utility for r in results),
        prompt_tokens=sum(r.prompt_tokens for r in results),
        generated_tokens=sum(r.generated_tokens for r in results),
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
        report = {
            "policy": self.policy,
            "pace": self.pace,
            "engine": asdict(self.engine),
            "plans": [record.as_json() for record in self.records],
            "totals": asdict(self.totals),
            "prompt_tokens_recomputed_on_resume": self.recomputed,
        }
        return _rounded(report)


def report_json(run: RunReport, baseline: RunReport | None) -> dict[str, Any]:
    """The whole report; ``baseline`` (None: there was none) has the shape of the run itself."""
    report = run.as_json()
    recomputed = report.pop("prompt_tokens_recomputed_on_resume")
    report["baseline"] = baseline.as_json() if baseline else None
    report["prompt_tokens_recomputed_on_resume"] = recomputed
    return report


def _rounded(value: Any) -> Any:
    """JSON values with numbers of at most six places."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return round(value, 6) if isinstance(value, float) else value
