"""What happened against what another policy would have done: rows, differences, report. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from timely_llm.protocols.messages import ErrorCode
from timely_llm.recording.costs import Costs
from timely_llm.recording.goals import Goal
from timely_llm.recording.recorded_trace import RecordedTrace
from timely_llm.recording.recording import Recording
from timely_llm.recording.replay import batch_of
from timely_llm.simulation import metrics
from timely_llm.simulation.outcomes import Outcome
from timely_llm.simulation.setting import Run

_COMPARED: dict[str, Callable[[dict[str, Any]], float | None]] = {
    "utility_mean": lambda row: row["utility_mean"],
    "response_mean_s": lambda row: row["response_s"]["mean"],
    "waiting_mean_s": lambda row: row["waiting_s"]["mean"],
}
_DROPPED = ("load", "seed", "bound", "workload", "slo_attainment")


@dataclass(frozen=True, slots=True)
class Replayed:
    """One replay: under ``policy``, with at most ``max_batch`` plans in a step."""

    policy: str
    engine: str
    max_batch: int
    run: Run


def row_of(recorded: RecordedTrace, replayed: Replayed) -> dict[str, Any]:
    """The figures of one run over the goals of the trace. ``response_s`` is until the first segment
    was sent."""
    run, engine, policy = replayed.run, replayed.engine, replayed.policy
    row = metrics.row(recorded.trace, run, engine=engine, policy=policy, load=1.0, seed=0)
    row = {key: value for key, value in row.items() if key not in _DROPPED}
    succeeded = sum(
        one.error_code is ErrorCode.NONE and one.completed_at is not None for one in run.outcomes
    )
    return row | {"max_batch": replayed.max_batch, "succeeded": succeeded}


def differences(row: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """``row`` less ``base`` in what is compared, and that as a share of the base (None: of 0)."""
    found: dict[str, Any] = {}
    for name, figure in _COMPARED.items():
        new, old = figure(row), figure(base)
        difference = None if new is None or old is None else new - old
        share = difference / abs(old) if difference is not None and old else None
        found[name] = {"difference": difference, "share": share}
    return found


def as_recorded(recording: Recording, happened: Sequence[Outcome]) -> Replayed:
    """What happened, in the shape of a replay."""
    policy = str(recording.parameters.get("policy") or "unknown")
    return Replayed(policy, "recorded", batch_of(recording), Run(tuple(happened), 0.0, 0, 0.0))


def report_json(
    recording: Recording,
    recorded: RecordedTrace,
    costs: Costs,
    runs: Sequence[Replayed],
) -> dict[str, Any]:
    """The report of ``timely-llm replay``; ``runs`` begin with what happened. Times in s."""
    rows = [row_of(recorded, run) for run in runs]
    for row in rows:
        row["difference"] = differences(row, rows[0])
    return {
        "bag": recording.source,
        "recorded": {
            "policy": runs[0].policy,
            "pace": str(recording.engine.get("pace") or ""),
            "engine": " ".join(
                str(recording.engine.get(key) or "") for key in ("backend", "version")
            ).strip(),
            "model": str(recording.engine.get("model") or ""),
            "max_batch": runs[0].max_batch,
            "duration_s": recording.ended - recording.begun,
        },
        "goals": len(recorded.known),
        "left_out": [_left_out(goal, why) for goal, why in recorded.left_out],
        "notes": list(recording.notes),
        "measured": {
            "submit_s": costs.submit,
            "between_steps_s": costs.gap,
            "to_robot_s": costs.forward,
            "from_robot_s": costs.back,
            "prefill_s_per_token": costs.prefill,
            "decode_step_s": {str(size): time for size, time in costs.steps.items()},
            "steps": costs.measured,
        },
        "results": rows,
        "per_goal": [_goal_json(recorded, number, runs) for number in range(len(recorded.known))],
    }


def _left_out(goal: Goal, why: str) -> dict[str, str]:
    return {
        "plan_id": goal.plan_id,
        "robot_id": goal.robot_id,
        "instruction": goal.goal.instruction,
        "why": why,
    }


def _goal_json(recorded: RecordedTrace, number: int, runs: Sequence[Replayed]) -> dict[str, Any]:
    goal, arrival = recorded.known[number].goal, recorded.trace.arrivals[number]
    return {
        "plan_id": goal.plan_id,
        "robot_id": goal.robot_id,
        "at_s": arrival.at,
        "urgency": goal.urgency.name,
        "instruction": goal.goal.instruction,
        "runs": [
            {
                "engine": one.engine,
                "policy": one.policy,
                "response_s": outcome.response_s,
                "waiting_s": outcome.waiting_s,
                "utility": outcome.utility,
                "error_code": int(outcome.error_code),
            }
            for one in runs
            for outcome in [one.run.outcomes[number]]
        ],
    }
