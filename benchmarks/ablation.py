"""What each part of ``least_loss`` is worth: taken away, or changed, alone. On the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any

from benchmarks.figures import Figure, Report
from timely_llm.estimation.presets import get
from timely_llm.policies import least_loss
from timely_llm.simulation.loop import Setting, simulate
from timely_llm.simulation.workloads import published as workloads

BATCH = 24
PLACES = (("rtx4090-llama3-8b", (1, 6, 12)), ("rtx4090-llama3-8b-slope2", (12,)))


def _turns_of(size: int):
    return lambda head, pressure, steps, state: min(size, len(steps) - 1)


def _by_due_time(goals: list) -> tuple[list, list]:
    ranked = sorted(goals, key=lambda goal: goal[1])
    head, tail = ranked[: least_loss.HEAD], ranked[least_loss.HEAD :]
    return head, [goal[4] for goal in tail if goal[4].kv_tokens]


VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "turns as large as possible": {"_turn_size": _turns_of(BATCH)},
    "turns of 6": {"_turn_size": _turns_of(6)},
    "one goal at a time": {"_turn_size": _turns_of(1)},
    "prompts beside tokens": {"_prompts": lambda fresh, turn, state: turn},
    "all prompts of a turn in one step": {"_prompts": lambda fresh, turn, state: fresh},
    "ordered by due time": {"_ranked": _by_due_time},
    "continuations weigh as much as their goal": {"CONTINUATION": 1.0},
    "riders for up to 20% of a step": {"RIDE": 0.2},
    "plans for 16 goals, not 32": {"HEAD": 16},
    "overdue from 1 s on, not 5 s": {"PATIENCE": 1.0},
}


@contextmanager
def _changed(values: dict[str, Any]):
    before = {name: getattr(least_loss, name) for name in values}
    vars(least_loss).update(values)
    try:
        yield
    finally:
        vars(least_loss).update(before)


def run(variants: int = len(VARIANTS)) -> Report:
    """Mean utility on WID2; the first ``variants`` of them."""
    figures, data = [], {}
    for name, values in list(VARIANTS.items())[: max(2, variants)]:
        with _changed(values):
            found = [_utility(preset, load) for preset, loads in PLACES for load in loads]
        data[name] = found
        figures.append(Figure(name, _row(found)))
    title = "least_loss on WID2 at loads 1, 6, 12, and 12 at 2 ms a sequence: mean utility"
    return Report(title, figures, data)


def _utility(preset: str, load: float) -> float:
    run = simulate(workloads.make("wid2", load=load), Setting("least_loss", get(preset), BATCH))
    return fmean(outcome.utility for outcome in run.outcomes)


def _row(values: Sequence[float]) -> str:
    return "  ".join(f"{value:8.3f}" for value in values)
