"""What happened beside what another policy would have done: rows, differences, the report. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from timely_llm.protocols.messages import ErrorCode
from timely_llm.recording.costs import Costs
from timely_llm.recording.goals import Goal
from timely_llm.recording.recording import Recording
from timely_llm.recording.replay import batch_of
from timely_llm.recording.trace import RecordedTrace
from timely_llm.simulation import metrics
from timely_llm.simulation.outcomes import Outcome
from timely_llm.simulation.setting import Run

RECORDED = "recorded"
#: Compared figures: key of a row, and of what in it.
FIGURES = (("utility_mean", ""), ("response_s", "mean"), ("waiting_s", "mean"))
_DROPPED = ("load", "seed", "bound", "workload", "slo_attainment")


@dataclass(frozen=True, slots=True)
class Replayed:
    """One replay: under ``policy``, with at most ``max_batch`` plans in a step."""

    policy: str
    engine: str
    max_batch: int
    outcomes: tuple[Outcome, ...]
    steps: int = 0
    busy_s: float = 0.0


def row_of(recorded: RecordedTrace, replayed: Replayed) -> dict[str, Any]:
    """The figures of one run over the goals of the trace. ``response_s`` is until the first segment
    was sent."""
    run = Run(replayed.outcomes, 0.0, replayed.steps, replayed.busy_s)
    row = metrics.row(
        recorded.trace, run, engine=replayed.engine, policy=replayed.policy, load=1.0, seed=0
    )
    row = {key: value for key, value in row.items() if key not in _DROPPED}
    succeeded = sum(
        one.error_code is ErrorCode.NONE and one.completed_at is not None
        for one in replayed.outcomes
    )
    return row | {"max_batch": replayed.max_batch, "succeeded": succeeded}


def figure(row: dict[str, Any], key: str, part: str) -> float | None:
    """One of ``FIGURES`` of a row."""
    return row[key][part] if part else row[key]


def differences(row: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """``row`` less ``base``, of each of ``FIGURES``, and as a share of the base (None: of 0)."""
    found: dict[str, Any] = {}
    for key, part in FIGURES:
        name = f"{key.removesuffix('_s')}_mean_s" if part else key
        new, old = figure(row, key, part), figure(base, key, part)
        if new is None or old is None:
            found[name] = {"difference": None, "share": None}
        else:
            share = (new - old) / abs(old) if old else None
            found[name] = {"difference": new - old, "share": share}
    return found


def as_recorded(recording: Recording, happened: Sequence[Outcome]) -> Replayed:
    """What happened, in the shape of a replay."""
    policy = str(recording.parameters.get("policy") or "unknown")
    return Replayed(policy, RECORDED, batch_of(recording), tuple(happened))


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
                "engine": run.engine,
                "policy": run.policy,
                "response_s": run.outcomes[number].response_s,
                "waiting_s": run.outcomes[number].waiting_s,
                "utility": run.outcomes[number].utility,
                "error_code": int(run.outcomes[number].error_code),
            }
            for run in runs
        ],
    }
