"""The figures of a bench, with plotly: utility and waiting over loads and batch sizes, response
times, and the timeline of a burst. Pure.

Colours are those of Okabe and Ito, which people with any colour vision can tell apart; lines are
told apart by symbol and dash as well, and carry their names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from timely_llm.bench.burst import GoalTimeline
from timely_llm.bench.results import (
    Measured,
    Sample,
    Summary,
    grouped,
    interval,
    kept_runs,
    summaries,
)

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "triangle-down")
DASHES = ("solid", "dash", "dot", "dashdot")
BOUND = "upper bound"
_FONT = {"family": "Helvetica, Arial, sans-serif", "size": 14, "color": "#222222"}
_GRID = "#E3E3E3"
_LABEL_GAP = 0.045  # of a panel's height between two lines' names
_PANEL = 380  # pixels
_SPANS = {
    "urgent plan is written": "#D55E00",
    "other plan is written": "#0072B2",
    "robot executes": "#B8D4E8",
}

_LinePoint = tuple[float, float | None, float | None]
"""x, y (None: unknown) and the error of y (None: none)."""


def figures(found: Sequence[Summary], measured: Sequence[Measured]) -> dict[str, go.Figure]:
    """All figures that the runs allow, by file name: of several batch sizes the best of each
    policy, and one figure over them."""
    best = summaries(measured, best=True)
    made = {
        "utility": over_loads(
            best, "utility_mean", "mean time utility of a goal", "Utility against load"
        ),
        "waiting": over_loads(best, "waiting_s", "mean waiting time (s)", "Waiting against load"),
        "response": responses(kept_runs(best, measured)),
    }
    if len(found) > len(best):
        made["batches"] = over_batches(found)
    return made


# Lines over loads or batch sizes.


def over_loads(found: Sequence[Summary], key: str, axis: str, title: str) -> go.Figure:
    """A panel for each engine and workload: ``key`` of each policy's row over the load."""
    panels = grouped(found, lambda s: (s.point.engine, s.point.workload))
    figure = _panels([" · ".join(where) for where in panels], title)
    if len({s.point.load for s in found}) == 1:
        return _one_load(figure, panels, key, axis, found[0].point.load)
    for column, group in enumerate(panels.values(), 1):
        lines = {
            name: sorted((s.point.load, _value(s, key), _error(s, key)) for s in own)
            for name, own in grouped(group, _policy).items()
        }
        if key == "utility_mean":
            lines |= _bound_line(group)
        least = _least(group) if key == "utility_mean" else None
        _draw_lines(figure, column, lines, log=True, least=least)
        figure.update_xaxes(title_text="load (1: as published)", row=1, col=column)
    figure.update_yaxes(title_text=axis, row=1, col=1)
    return figure


def over_batches(found: Sequence[Summary]) -> go.Figure:
    """Utility of each policy over its batch size, as in TimelyLLM's Figure 7: a panel a load."""
    panels = grouped(found, lambda s: (s.point.workload, f"load {s.point.load:g}"))
    figure = _panels([" · ".join(where) for where in panels], "Utility against batch size")
    for column, group in enumerate(panels.values(), 1):
        lines: dict[str, list[_LinePoint]] = {
            policy: [
                (s.point.max_batch, s.utility, interval(s.utilities)[1])
                for s in sorted(own, key=lambda s: s.point.max_batch)
            ]
            for policy, own in grouped(group, _policy).items()
        }
        _draw_lines(figure, column, lines, log=False, least=_least(group))
        figure.update_xaxes(title_text="most generations in one step", row=1, col=column)
    figure.update_yaxes(title_text="mean time utility of a goal", row=1, col=1)
    return figure


def _one_load(
    figure: go.Figure,
    panels: dict[tuple, list[Summary]],
    key: str,
    axis: str,
    load: float,
) -> go.Figure:
    """Points instead of lines: each policy on a row of its own, the highest value at the top."""
    for column, group in enumerate(panels.values(), 1):
        for s in sorted(group, key=lambda s: _value(s, key) or 0.0):
            figure.add_trace(
                go.Scatter(
                    x=[_value(s, key)],
                    y=[s.point.policy],
                    mode="markers",
                    marker={"size": 12, **_marker(s.point.policy, group)},
                    error_x={"type": "data", "array": [_error(s, key) or 0.0]},
                    showlegend=False,
                    hovertemplate="%{y}: %{x:.4g}<extra></extra>",
                ),
                row=1,
                col=column,
            )
        figure.update_xaxes(title_text=f"{axis}, load {load:g}", row=1, col=column)
    figure.update_layout(height=140 + 34 * max(map(len, panels.values())))
    return figure


def _draw_lines(
    figure: go.Figure,
    column: int,
    lines: dict[str, list[_LinePoint]],
    log: bool,
    least: float | None = None,
) -> None:
    ends = {}
    for index, (name, points) in enumerate(lines.items()):
        points = [(x, y, error) for x, y, error in points if y is not None]
        if not points:
            continue
        style = style_of(index, name)
        figure.add_trace(
            go.Scatter(
                x=[x for x, _, _ in points],
                y=[y for _, y, _ in points],
                error_y={
                    "type": "data",
                    "array": [error or 0.0 for _, _, error in points],
                    "thickness": 1,
                },
                name=name,
                mode="lines" if name == BOUND else "lines+markers",
                line={"color": style["color"], "dash": style["dash"], "width": 2},
                marker={"symbol": style["symbol"], "size": 8, "color": style["color"]},
                showlegend=False,
                hovertemplate=f"{name}: %{{y:.4g}} at %{{x:g}}<extra></extra>",
            ),
            row=1,
            col=column,
        )
        ends[name] = (points[-1][0], points[-1][1], style["color"])
    low, high = _reach(lines, least)
    figure.update_yaxes(range=[low, high], row=1, col=column)
    _name_lines(figure, column, ends, low, high, log)
    if log:
        ticks = sorted({x for points in lines.values() for x, _, _ in points})
        figure.update_xaxes(
            type="log", tickvals=ticks, ticktext=[f"{x:g}" for x in ticks], row=1, col=column
        )


def _name_lines(
    figure: go.Figure, column: int, ends: dict, low: float, high: float, log: bool
) -> None:
    """Each line's name at its end, moved apart where they would cover each other, and into the
    panel, which reaches from ``low`` to ``high``."""
    gap = _LABEL_GAP * (high - low)
    ranked = sorted(ends.items(), key=lambda end: -end[1][1])
    places: list[float] = []
    for _, (_, y, _) in ranked:
        places.append(min(y, places[-1] - gap) if places else y)
    least = low
    for i in range(len(places) - 1, -1, -1):
        places[i] = max(places[i], least)
        least = places[i] + gap
    for (name, (x, _, colour)), y in zip(ranked, places, strict=True):
        figure.add_annotation(
            x=math.log10(x) if log else x,
            y=y,
            text=name,
            xanchor="left",
            xshift=10,
            showarrow=False,
            font={"color": colour, "size": 13},
            row=1,
            col=column,
        )


def _reach(lines: dict[str, list], least: float | None) -> tuple[float, float]:
    """The lowest and the highest value to be shown, errors included. What lies below ``least`` is
    left out: one policy that is lost must not press all others together."""
    values = [
        y + sign * (error or 0.0)
        for points in lines.values()
        for _, y, error in points
        if y is not None
        for sign in (-1, 1)
    ]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if least is not None:
        low = max(low, min(least, high - 0.1))
    margin = 0.04 * ((high - low) or 1.0)
    return low - margin, high + margin


# Distributions.


def responses(measured: Sequence[Measured]) -> go.Figure:
    """Which share of all goals has had its first segment within a time: urgent goals left, normal
    ones right, a row for each workload and load. Goals without one never count as served."""
    rows = grouped(measured, lambda m: (m.point.workload, m.point.load))
    titles = [
        f"{workload}, load {load:g}: {kind} goals"
        for workload, load in rows
        for kind in ("urgent", "normal")
    ]
    figure = make_subplots(
        rows=len(rows), cols=2, subplot_titles=titles, vertical_spacing=0.28 / max(1, len(rows))
    )
    policies = grouped(measured, _policy)
    for number, group in enumerate(rows.values(), 1):
        for column, urgent in ((1, True), (2, False)):
            for index, label in enumerate(policies):
                own = [
                    sample
                    for m in group
                    if m.point.policy == label
                    for sample in m.samples
                    if sample.urgent is urgent
                ]
                if own:
                    trace = _distribution(own, label, index, number == column == 1)
                    figure.add_trace(trace, row=number, col=column)
            figure.update_xaxes(type="log", title_text="response time (s)", row=number, col=column)
            figure.update_yaxes(range=[0, 1.02], tickformat=".0%", row=number, col=column)
        figure.update_yaxes(title_text="share of goals served", row=number, col=1)
    dress(figure, "Response times", 1000, 110 + _PANEL * len(rows))
    figure.update_layout(showlegend=True, legend={"title": "policy", "groupclick": "togglegroup"})
    return figure


def _distribution(own: Sequence[Sample], label: str, index: int, legend: bool) -> go.Scatter:
    served = sorted(sample.response for sample in own if sample.response is not None)
    style = style_of(index, label)
    return go.Scatter(
        x=served,
        y=[(i + 1) / len(own) for i in range(len(served))],
        mode="lines",
        line={"shape": "hv", "color": style["color"], "dash": style["dash"], "width": 2},
        name=label,
        legendgroup=label,
        showlegend=legend,
        hovertemplate=f"{label}: %{{y:.1%}} within %{{x:.3g}}<extra></extra>",
    )


# One burst.


def timeline(
    bursts: Mapping[str, Sequence[GoalTimeline]], title: str, seconds: float = 2.5
) -> go.Figure:
    """The burst under each policy, one above the other, its goals one below the other: when each
    is written, when its robot works, and when its first segment was due."""
    figure = make_subplots(
        rows=len(bursts),
        cols=1,
        shared_xaxes=True,
        subplot_titles=list(bursts),
        vertical_spacing=0.09,
    )
    begin = min(goal.arrival for group in bursts.values() for goal in group)
    for row, group in enumerate(bursts.values(), 1):
        names = {goal.number: f"{goal.number} {goal.name}" for goal in group}
        for kind, colour in _SPANS.items():
            _draw_spans(figure, row, kind, colour, group, names, begin)
        _draw_marks(figure, row, group, names, begin)
        order = [names[goal.number] for goal in reversed(group)]
        figure.update_yaxes(categoryorder="array", categoryarray=order, row=row, col=1)
    rows = sum(map(len, bursts.values()))
    dress(figure, title, 1100, 190 + 60 * len(bursts) + 30 * rows)
    figure.update_layout(barmode="overlay", showlegend=True, legend={"itemsizing": "constant"})
    figure.update_xaxes(range=[-0.03 * seconds, seconds], showticklabels=True)
    figure.update_xaxes(title_text="time since the burst (s)", row=len(bursts), col=1)
    return figure


def _draw_spans(
    figure: go.Figure,
    row: int,
    kind: str,
    colour: str,
    group: Sequence[GoalTimeline],
    names: Mapping[int, str],
    begin: float,
) -> None:
    executes = kind == "robot executes"
    drawn = [
        (names[goal.number], span)
        for goal in group
        if executes or goal.urgent is kind.startswith("urgent")
        for span in (goal.executing if executes else goal.writing)
    ]
    figure.add_trace(
        go.Bar(
            y=[name for name, _ in drawn],
            base=[span.start - begin for _, span in drawn],
            x=[span.end - span.start for _, span in drawn],
            customdata=[[span.text, span.start - begin, span.end - begin] for _, span in drawn],
            hovertemplate="%{customdata[0]} %{customdata[1]:.3f} to %{customdata[2]:.3f} s"
            "<extra></extra>",
            orientation="h",
            marker={"color": colour, "line": {"width": 1, "color": "white"}},
            width=0.72 if executes else 0.4,
            name=kind,
            legendgroup=kind,
            showlegend=row == 1,
        ),
        row=row,
        col=1,
    )


def _draw_marks(
    figure: go.Figure,
    row: int,
    group: Sequence[GoalTimeline],
    names: Mapping[int, str],
    begin: float,
) -> None:
    marks = {
        "due (arrival + ERT)": ("line-ns-open", 18, [(goal, goal.due) for goal in group]),
        "first segment at the robot": (
            "diamond",
            9,
            [(goal, goal.first) for goal in group if goal.first is not None],
        ),
    }
    for name, (symbol, size, points) in marks.items():
        figure.add_trace(
            go.Scatter(
                x=[time - begin for _, time in points],
                y=[names[goal.number] for goal, _ in points],
                mode="markers",
                marker={
                    "symbol": symbol,
                    "size": size,
                    "color": "black",
                    "line": {"width": 2, "color": "black"},
                },
                name=name,
                legendgroup=name,
                showlegend=row == 1,
                hovertemplate=f"{name}: %{{x:.3f}} s<extra></extra>",
            ),
            row=row,
            col=1,
        )


# What all of them share.


def page(figure: go.Figure, name: str) -> str:
    """``figure`` as HTML with everything in it; the same figure gives the same text."""
    return figure.to_html(include_plotlyjs=True, full_html=True, div_id=name)


def dress(figure: go.Figure, title: str, width: int, height: int) -> None:
    figure.update_layout(
        title={"text": title, "x": 0.02},
        template="none",
        font=_FONT,
        width=width,
        height=height,
        margin={"l": 80, "r": 150, "t": 80, "b": 70},
        hoverlabel={"bgcolor": "white"},
    )
    figure.update_xaxes(gridcolor=_GRID, zeroline=False, automargin=True)
    figure.update_yaxes(gridcolor=_GRID, zeroline=False, automargin=True)


def style_of(index: int, name: str) -> dict[str, str]:
    if name == BOUND:
        return {"color": "#666666", "dash": "dash", "symbol": "line-ew"}
    return {
        "color": COLOURS[index % len(COLOURS)],
        "dash": DASHES[index // len(COLOURS) % len(DASHES)],
        "symbol": SYMBOLS[index % len(SYMBOLS)],
    }


def _panels(titles: Sequence[str], title: str) -> go.Figure:
    figure = make_subplots(rows=1, cols=len(titles), subplot_titles=titles)
    dress(figure, title, 170 + 520 * len(titles), 140 + _PANEL)
    return figure


def _marker(policy: str, group: Sequence[Summary]) -> dict[str, str]:
    order = list(dict.fromkeys(s.point.policy for s in group))
    style = style_of(order.index(policy), policy)
    return {"color": style["color"], "symbol": style["symbol"]}


def _policy(one: Summary | Measured) -> str:
    return one.point.policy


def _value(summary: Summary, key: str) -> float | None:
    value = summary.row[key]
    return value["mean"] if isinstance(value, dict) else value


def _least(group: Sequence[Summary]) -> float:
    """The utility below which a line leaves the figure: as bad as the best is good."""
    return -max(s.maximum for s in group)


def _error(summary: Summary, key: str) -> float | None:
    return interval(summary.utilities)[1] if key == "utility_mean" else None


def _bound_line(group: Sequence[Summary]) -> dict[str, list]:
    points = {s.point.load: s.row["bound"] for s in group if s.row.get("bound") is not None}
    return {BOUND: [(x, y, None) for x, y in sorted(points.items())]} if points else {}
