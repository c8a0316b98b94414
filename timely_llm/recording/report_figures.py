"""The figures of a recording's page: the robots' timeline, the engine's load, the goals. Pure.

Colours are those of ``plot_style``; text and grid take the page's, which follow light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from timely_llm.bench.burst import Span
from timely_llm.protocols.messages import ExecutionState
from timely_llm.protocols.utility import URGENT
from timely_llm.recording.goals import Goal
from timely_llm.recording.recording import Recording
from timely_llm.recording.spans import Concurrency

WRITING, HELD, WAITING = "#0072B2", "#9AA7B4", "#E69F00"
EXECUTING = ("#009E73", "#5CBFA0")  # segments in turn
FAILED, URGENT_COLOUR, OTHER_COLOUR = "#D55E00", "#D55E00", "#0072B2"
_ROW = 46  # pixels of a robot's row
_LEAST = 0.001  # s; what is shorter cannot be drawn
_PLAN_AT, _ROBOT_AT = 0.24, -0.18  # of a row: the engine's line and the robot's
_PLAN_HIGH, _ROBOT_HIGH = 0.26, 0.46


def timeline(recording: Recording, goals: Sequence[Goal]) -> go.Figure:
    """Every robot: above, what the engine did for it; below, what it did. The engine's load under
    it, on the same time axis. Times in s since the recording began."""
    robots = sorted({*recording.robots, *(goal.robot_id for goal in goals)})
    rows = {robot: len(robots) - i for i, robot in enumerate(robots)}
    height = _ROW * len(robots)
    figure = make_subplots(
        rows=3,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=34 / (height + 300),
        row_heights=[height, 110, 110],
        subplot_titles=("", "plans in the engine", "KV cache in use"),
    )
    zero = recording.begun
    for name, colour, spans in _robot_spans(goals):
        _bars(figure, name, colour, spans, rows, zero)
    _marks(figure, goals, rows, zero)
    _load(figure, goals, zero)
    _memory(figure, recording, zero)
    figure.update_yaxes(
        tickvals=list(rows.values()),
        ticktext=list(rows),
        range=[0.4, len(robots) + 0.6],
        row=1,
        col=1,
    )
    figure.update_yaxes(rangemode="tozero", row=2, col=1)
    figure.update_yaxes(rangemode="tozero", tickformat=".1%", row=3, col=1)
    figure.update_xaxes(title_text="s since the recording began", row=3, col=1)
    figure.update_xaxes(range=_reach(goals, zero))
    figure.update_annotations(x=0, xanchor="left", font_size=13)
    return _dressed(figure, height + 400)


def _reach(goals: Sequence[Goal], zero: float) -> list[float]:
    """From just before the first goal to after the last one's end."""
    if not goals:
        return [0.0, 1.0]
    first = min(goal.accepted for goal in goals) - zero
    last = max(goal.over if goal.over is not None else goal.begun for goal in goals) - zero
    room = 0.02 * max(last - first, 1.0)
    return [first - room, last + room]


_Drawn = tuple[str, Span, str, float, float]  # robot, when, words, where in the row, how high


def _robot_spans(goals: Sequence[Goal]) -> Iterable[tuple[str, str, list[_Drawn]]]:
    """What is drawn, by kind: its name, its colour, the spans."""
    held, writing, waiting = [], [], []
    executing: tuple[list[_Drawn], list[_Drawn]] = ([], [])
    for goal in goals:
        robot, words = goal.robot_id, goal.goal.instruction
        held += [(robot, s, words, _PLAN_AT, _PLAN_HIGH) for s in goal.suspended]
        writing += [(robot, s, words, _PLAN_AT, _PLAN_HIGH) for s in goal.writing]
        waiting += [(robot, s, words, _ROBOT_AT, _ROBOT_HIGH) for s in waits(goal)]
        for call in goal.calls:
            span = Span(call.begun, max(call.ended, call.begun + _LEAST))
            text = f"segment {call.segment}: {call.text}, {call.elapsed:.2f} s"
            place = executing[call.segment % 2]
            place.append((robot, span, text, _ROBOT_AT, _ROBOT_HIGH))
    yield "suspended", HELD, held
    yield "generating", WRITING, writing
    yield "waiting", WAITING, waiting
    yield "executing (segments in turn)", EXECUTING[0], executing[0]
    yield "executing ", EXECUTING[1], executing[1]


def waits(goal: Goal) -> list[Span]:
    """When the goal's clock ran and its robot did nothing for it."""
    over = goal.over if goal.over is not None else goal.begun
    spans, since = [], goal.begun
    for call in goal.calls:
        if call.begun - since > _LEAST:
            spans.append(Span(since, call.begun))
        since = max(since, call.ended)
    if over - since > _LEAST:
        spans.append(Span(since, over))
    return spans


def _bars(
    figure: go.Figure,
    name: str,
    colour: str,
    drawn: Sequence[_Drawn],
    rows: dict[str, int],
    zero: float,
) -> None:
    second = name.endswith(" ")
    figure.add_trace(
        go.Bar(
            orientation="h",
            name=name,
            legendgroup=name.split()[0] if name else None,
            showlegend=not second,
            y=[rows[robot] + at for robot, _, _, at, _ in drawn],
            base=[span.start - zero for _, span, *_ in drawn],
            x=[span.end - span.start for _, span, *_ in drawn],
            width=[high for *_, high in drawn],
            customdata=[[_cut(text), span.end - span.start] for _, span, text, *_ in drawn],
            hovertemplate=f"{name.split()[0]}: %{{customdata[0]}}<br>%{{base:.3f}} s, for "
            "%{customdata[1]:.3f} s<extra></extra>",
            marker={"color": colour, "line": {"width": 0.6, "color": "rgba(20,30,40,0.55)"}},
        ),
        row=1,
        col=1,
    )


def _cut(text: str, most: int = 90) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _marks(figure: go.Figure, goals: Sequence[Goal], rows: dict[str, int], zero: float) -> None:
    failed = [
        (goal, goal.over, f"{goal.result.error_code.name}: {goal.result.error_msg}")
        for goal in goals
        if goal.over is not None and goal.result is not None and goal.result.error_code
    ]
    failed += [
        (goal, call.ended, f"{call.text}: {call.error}")
        for goal in goals
        for call in goal.calls
        if call.state is ExecutionState.FAILED
    ]
    marks = (
        (
            "first segment due",
            "line-ns-open",
            "#CC79A7",
            [(g, g.begun + g.utility.ert, f"due within {g.utility.ert:g} s") for g in goals],
            _PLAN_AT,
        ),
        (
            "ended early",
            "x",
            FAILED,
            failed,
            _ROBOT_AT,
        ),
    )
    for name, symbol, colour, points, at in marks:
        if not points:
            continue
        figure.add_trace(
            go.Scatter(
                x=[time - zero for _, time, _ in points],
                y=[rows[goal.robot_id] + at for goal, _, _ in points],
                mode="markers",
                name=name,
                marker={
                    "symbol": symbol,
                    "color": colour,
                    "size": 11,
                    "line": {"width": 2, "color": colour},
                },
                customdata=[[_cut(goal.goal.instruction), words] for goal, _, words in points],
                hovertemplate="%{customdata[1]}<br>%{customdata[0]}<extra></extra>",
            ),
            row=1,
            col=1,
        )


def _load(figure: go.Figure, goals: Sequence[Goal], zero: float) -> None:
    """How many plans the engine wrote and held back at a time."""
    kinds = (
        ("generating", WRITING, [s for goal in goals for s in goal.writing]),
        ("suspended", HELD, [s for goal in goals for s in goal.suspended]),
    )
    for name, colour, spans in kinds:
        changes = Concurrency(spans).changes()
        figure.add_trace(
            go.Scatter(
                x=[time - zero for time, _ in changes],
                y=[count for _, count in changes],
                mode="lines",
                line={"shape": "hv", "width": 1.5, "color": colour},
                fill="tozeroy" if name == "generating" else None,
                name=name,
                legendgroup=name,
                showlegend=False,
                hovertemplate=f"%{{y}} {name}<extra></extra>",
            ),
            row=2,
            col=1,
        )


def busy_share(goals: Sequence[Goal]) -> float | None:
    """The share of the time from the first goal to the last one's end in which the engine wrote."""
    ends = [goal.over for goal in goals if goal.over is not None]
    if not ends:
        return None
    changes = Concurrency([span for goal in goals for span in goal.writing]).changes()
    busy = sum(after - before for (before, count), (after, _) in pairwise(changes) if count)
    whole = max(ends) - min(goal.accepted for goal in goals)
    return busy / whole if whole > 0 else None


def _memory(figure: go.Figure, recording: Recording, zero: float) -> None:
    known = [status for status in recording.statuses if status.kv_blocks_total]
    figure.add_trace(
        go.Scatter(
            x=[status.stamp - zero for status in known],
            y=[status.kv_blocks_used / status.kv_blocks_total for status in known],
            mode="lines",
            line={"width": 1.5, "color": "#8C6D00", "shape": "hv"},
            showlegend=False,
            hovertemplate="%{y:.1%} of the KV blocks<extra></extra>",
        ),
        row=3,
        col=1,
    )


def per_goal(recording: Recording, goals: Sequence[Goal]) -> go.Figure:
    """Utility, response and waiting of each goal over the time at which its clock started."""
    known = [(goal, goal.result) for goal in goals if goal.result is not None]
    panels = (
        ("utility", [(goal, result.utility) for goal, result in known], ".2f"),
        (
            "response (s)",
            [(goal, goal.response_s) for goal, _ in known if goal.response_s is not None],
            ".3f",
        ),
        ("waiting (s)", [(goal, result.waiting_time) for goal, result in known], ".3f"),
    )
    figure = make_subplots(
        rows=1, cols=3, subplot_titles=[name for name, _, _ in panels], horizontal_spacing=0.07
    )
    for column, (_, points, form) in enumerate(panels, 1):
        for urgent in (True, False):
            own = [(g, value) for g, value in points if (g.urgency in URGENT) is urgent]
            figure.add_trace(
                go.Scatter(
                    x=[goal.begun - recording.begun for goal, _ in own],
                    y=[value for _, value in own],
                    mode="markers",
                    name="urgent and critical" if urgent else "other goals",
                    legendgroup=str(urgent),
                    showlegend=column == 1,
                    marker={
                        "color": URGENT_COLOUR if urgent else OTHER_COLOUR,
                        "symbol": "diamond" if urgent else "circle",
                        "size": 9,
                        "opacity": 0.85,
                    },
                    customdata=[[goal.robot_id, _cut(goal.goal.instruction)] for goal, _ in own],
                    hovertemplate=f"%{{y:{form}}} %{{customdata[0]}}<br>%{{customdata[1]}}"
                    "<extra></extra>",
                ),
                row=1,
                col=column,
            )
        figure.update_xaxes(title_text="s since the recording began", row=1, col=column)
    figure.update_annotations(font_size=14)
    figure.update_yaxes(rangemode="tozero", row=1, col=2)
    figure.update_yaxes(rangemode="tozero", row=1, col=3)
    return _dressed(figure, 360, legend=1.14)


def _dressed(figure: go.Figure, height: int, legend: float = 1.0) -> go.Figure:
    figure.update_layout(
        template="none",
        height=height,
        barmode="overlay",
        bargap=0,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, Segoe UI, Roboto, sans-serif", "size": 13},
        margin={"l": 80, "r": 16, "t": 70, "b": 46},
        legend={"orientation": "h", "x": 0, "y": legend, "yanchor": "bottom"},
        hovermode="closest",
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#8a96a3", "activecolor": WRITING},
    )
    figure.update_xaxes(zeroline=False, automargin=True)
    figure.update_yaxes(zeroline=False, automargin=True)
    return figure
