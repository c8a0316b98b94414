"""A recording as one page that needs nothing else: figures, the worst moments, all goals. Pure."""

from __future__ import annotations

from collections import Counter
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
    results = [goal.result for goal in goals if goal.result is not None]
    if not results:
        return
    codes = Counter(result.error_code for result in results)
    fine = codes.pop(ErrorCode.NONE, 0)
    others = ", ".join(f"{count} {code.name}" for code, count in codes.items())
    yield "goals that succeeded", f"{fine} of {len(ended)}", others
    yield (
        "utility of a goal, mean",
        _number(mean(result.utility for result in results)),
        f"at most {_number(mean(goal.utility.beta for goal in ended))}",
    )
    responses = [(g.response_s, g.urgency) for g in ended if g.response_s is not None]
    yield (
        "response, mean",
        _seconds(mean(time for time, _ in responses)),
        "urgent " + _seconds(mean(time for time, urgency in responses if urgency in URGENT)),
    )
    waited = [result.waiting_time for result in results]
    yield "waiting of a goal, mean", _seconds(mean(waited)), f"sum {_seconds(sum(waited))}"
    share = figures.busy_share(goals)
    tokens = sum(result.generated_tokens for result in results)
    yield "engine busy", "-" if share is None else f"{share:.0%}", f"{tokens} tokens written"
    again = sum(goal.recomputed_tokens for goal in ended)
    yield "computed again", str(again), "prompt tokens"


def _row(goal: Goal, zero: float) -> dict[str, Any]:
    result, fine = goal.result, goal.code is ErrorCode.NONE
    return {
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
        "code": "not ended" if goal.code is None else "ok" if fine else goal.code.name,
        "fine": fine,
        "error": result.error_msg if result else "the recording ends before",
        "calls": [
            (call.segment, call.text, _seconds(call.elapsed), call.state.name, call.error)
            for call in goal.calls
        ],
    }


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
