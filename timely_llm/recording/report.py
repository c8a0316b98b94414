"""A recording as one page that needs nothing else: figures, the worst moments, all goals. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from timely_llm.protocols.messages import ErrorCode
from timely_llm.protocols.utility import URGENT
from timely_llm.recording import report_figures as figures
from timely_llm.recording.costs import costs_of
from timely_llm.recording.goals import Goal, strangers
from timely_llm.recording.moments import worst_moments
from timely_llm.recording.recording import Recording
from timely_llm.simulation.metrics import mean


def page(recording: Recording, goals: Sequence[Goal]) -> str:
    """The page's HTML; the same recording gives the same text. A recording without goals gives a
    page that says so."""
    drawn = {}
    if goals:
        drawn["timeline"] = figures.timeline(recording, goals)
        drawn["goals"] = figures.per_goal(recording, goals)
    return _template().render(
        title=Path(recording.source).name,
        recording=recording,
        about=_about(recording),
        tiles=list(_tiles(recording, goals)),
        figures={name: _html(figure, name) for name, figure in drawn.items()},
        plotly=get_plotlyjs() if drawn else "",
        moments=worst_moments(goals),
        goals=[_row(goal, recording.begun) for goal in goals],
        costs=list(_costs(goals)),
        notes=list(_notes(recording, goals)),
        zero=recording.begun,
    )


@cache
def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("report.html.jinja2")


def _html(figure: go.Figure, name: str) -> str:
    return figure.to_html(
        include_plotlyjs=False,
        full_html=False,
        div_id=f"figure-{name}",
        config={"displaylogo": False, "responsive": True},
    )


def _about(recording: Recording) -> str:
    engine, parameters = recording.engine, recording.parameters
    parts = []
    if parameters.get("policy"):
        parts.append(f"policy {parameters['policy']}")
    if engine.get("backend"):
        parts.append(f"{engine['backend']} {engine.get('version', '')}".strip())
    if engine.get("model"):
        parts.append(f"model {Path(str(engine['model'])).name}")
    if parameters or engine:
        pace = engine.get("pace")
        parts.append(f"paced to {pace}" if pace else "at the engine's own speed")
    if engine.get("max_batch"):
        parts.append(f"at most {engine['max_batch']} plans in a step")
    return ", ".join(parts)


def _tiles(recording: Recording, goals: Sequence[Goal]) -> Iterator[tuple[str, str, str]]:
    """Name, value and a note of each figure that is shown large."""
    ended = [goal for goal in goals if goal.result is not None]
    if not ended:
        return
    fine = sum(goal.code is ErrorCode.NONE for goal in ended)
    urgent = [goal for goal in ended if goal.urgency in URGENT]
    yield "goals that succeeded", f"{fine} of {len(ended)}", _codes(ended)
    yield (
        "utility of a goal, mean",
        _number(mean(goal.result.utility for goal in ended)),
        f"at most {_number(mean(goal.utility.beta for goal in ended))}",
    )
    responses = [goal.response_s for goal in ended if goal.response_s is not None]
    yield (
        "response, mean",
        _seconds(mean(responses)),
        "urgent " + _seconds(mean(g.response_s for g in urgent if g.response_s is not None)),
    )
    waited = [goal.result.waiting_time for goal in ended]
    yield "waiting of a goal, mean", _seconds(mean(waited)), f"sum {_seconds(sum(waited))}"
    share = figures.busy_share(goals)
    tokens = sum(goal.result.generated_tokens for goal in ended)
    yield "engine busy", "-" if share is None else f"{share:.0%}", f"{tokens} tokens written"
    again = sum(goal.recomputed_tokens for goal in ended)
    yield "computed again", str(again), "prompt tokens"


def _codes(ended: Sequence[Goal]) -> str:
    codes: dict[str, int] = {}
    for goal in ended:
        if goal.code is not ErrorCode.NONE:
            codes[goal.code.name] = codes.get(goal.code.name, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in codes.items())


def _row(goal: Goal, zero: float) -> dict[str, Any]:
    result = goal.result
    return {
        "id": goal.plan_id,
        "robot": goal.robot_id,
        "at": f"{goal.accepted - zero:.2f} s",
        "urgency": goal.urgency.name.lower(),
        "urgent": goal.urgency in URGENT,
        "instruction": goal.goal.instruction,
        "segments": [segment.text for segment in goal.segments],
        "queued": _seconds(goal.begun - goal.accepted) if goal.begun > goal.accepted else "",
        "response": _seconds(goal.response_s),
        "late": goal.response_s is not None and goal.response_s > goal.utility.ert,
        "waiting": _seconds(result.waiting_time) if result else "-",
        "execution": _seconds(result.execution_time) if result else "-",
        "utility": _number(result.utility) if result else "-",
        "best": _number(goal.utility.beta),
        "code": _end(goal),
        "fine": goal.code is ErrorCode.NONE,
        "error": result.error_msg if result else "the recording ends before",
        "calls": [
            (call.segment, call.text, _seconds(call.elapsed), call.state.name, call.error)
            for call in goal.calls
        ],
    }


def _end(goal: Goal) -> str:
    if goal.code is None:
        return "not ended"
    return "ok" if goal.code is ErrorCode.NONE else goal.code.name


def _costs(goals: Sequence[Goal]) -> Iterator[tuple[str, str]]:
    costs = costs_of(goals)
    if not costs.measured:
        return
    yield "until the engine can begin on a goal", _seconds(costs.submit)
    for size, time in costs.steps.items():
        yield f"engine step, {size} plan{'s' * (size > 1)}", _seconds(time)
    yield "a prompt token", _seconds(costs.prefill)
    yield "between two engine steps", _seconds(costs.gap)
    yield "a segment to its robot", _seconds(costs.forward)
    yield "a report to the planner", _seconds(costs.back)


def _notes(recording: Recording, goals: Sequence[Goal]) -> Iterator[str]:
    """What is missing, in words."""
    yield from recording.notes
    if count := strangers(recording):
        yield f"{count} plans began before the recording and are left out"
    if count := sum(goal.result is None for goal in goals):
        yield f"{count} goals had not ended when the recording did"
    if not goals:
        yield "no goal was recorded"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    if value < 0.01:
        return f"{value * 1e3:.2f} ms"
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.2f} s"
