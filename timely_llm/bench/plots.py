"""The figures of a bench, with plotly: utility and waiting over loads and batch sizes, response
times. Pure; the timeline of a burst is in ``bench/burst_plot.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from timely_llm.bench.grid import Measured, Sample, Summary, interval, kept_cells, summaries
from timely_llm.bench.plot_style import BOUND, dress, style_of

_LABEL_GAP = 0.045  # of a panel's height between two lines' names
_PANEL = 380  # pixels


def figures(
    found: Sequence[Summary], measured: Sequence[Measured], times: str = "s"
) -> dict[str, go.Figure]:
    """All figures that the runs allow, by file name: of several batch sizes the best of each
    policy, and one figure over them. ``times`` is the unit of all times."""
    best = summaries(measured, best=True)
    made = {
        "utility": over_loads(
            best, "utility_mean", "mean time utility of a goal", "Utility against load"
        ),
        "waiting": over_loads(
            best, "waiting_s", f"mean waiting time ({times})", "Waiting against load"
        ),
        "response": responses(kept_cells(best, measured), times),
    }
    if len(found) > len(best):
        made["batches"] = over_batches(found)
    return made


# Lines over loads or batch sizes.


def over_loads(found: Sequence[Summary], key: str, axis: str, title: str) -> go.Figure:
    """A panel for each engine and workload: ``key`` of each policy's row over the load."""
    panels = _grouped(found, lambda s: (s.cell.engine, s.cell.workload))
    figure = _panels([" · ".join(where) for where in panels], title)
    if len({s.cell.load for s in found}) == 1:
        return _one_load(figure, panels, key, axis, found[0].cell.load)
    for column, group in enumerate(panels.values(), 1):
        lines = {
            name: sorted((s.cell.load, _value(s, key), _error(s, key)) for s in own)
            for name, own in _grouped(group, _policy).items()
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
    panels = _grouped(found, lambda s: (s.cell.workload, f"load {s.cell.load:g}"))
    figure = _panels([" · ".join(where) for where in panels], "Utility against batch size")
    for column, group in enumerate(panels.values(), 1):
        lines = {
            policy: [
                (s.cell.max_batch, s.utility, interval(s.utilities)[1])
                for s in sorted(own, key=lambda s: s.cell.max_batch)
            ]
            for policy, own in _grouped(group, _policy).items()
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
                    y=[s.cell.policy],
                    mode="markers",
                    marker={"size": 12, **_marker(s.cell.policy, group)},
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
    lines: dict[str, list[tuple[float, float | None, float | None]]],
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


def responses(measured: Sequence[Measured], times: str) -> go.Figure:
    """Which share of all goals has had its first segment within a time: urgent goals left, normal
    ones right, a row for each workload and load. Goals without one never count as served."""
    rows = _grouped(measured, lambda m: (m.cell.workload, m.cell.load))
    titles = [
        f"{workload}, load {load:g}: {kind} goals"
        for workload, load in rows
        for kind in ("urgent", "normal")
    ]
    figure = make_subplots(
        rows=len(rows), cols=2, subplot_titles=titles, vertical_spacing=0.28 / max(1, len(rows))
    )
    policies = _grouped(measured, _policy)
    for number, group in enumerate(rows.values(), 1):
        for column, urgent in ((1, True), (2, False)):
            for index, label in enumerate(policies):
                own = [
                    sample
                    for m in group
                    if m.cell.policy == label
                    for sample in m.samples
                    if sample.urgent is urgent
                ]
                if own:
                    trace = _distribution(own, label, index, number == column == 1)
                    figure.add_trace(trace, row=number, col=column)
            figure.update_xaxes(
                type="log", title_text=f"response time ({times})", row=number, col=column
            )
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


# What all of them share.


def _panels(titles: Sequence[str], title: str) -> go.Figure:
    figure = make_subplots(rows=1, cols=len(titles), subplot_titles=titles)
    dress(figure, title, 170 + 520 * len(titles), 140 + _PANEL)
    return figure


def _marker(policy: str, group: Sequence[Summary]) -> dict[str, str]:
    order = list(dict.fromkeys(s.cell.policy for s in group))
    style = style_of(order.index(policy), policy)
    return {"color": style["color"], "symbol": style["symbol"]}


def _policy(one: Summary | Measured) -> str:
    return one.cell.policy


def _grouped(items: Iterable[Any], key) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _value(summary: Summary, key: str) -> float | None:
    value = summary.row[key]
    return value["mean"] if isinstance(value, dict) else value


def _least(group: Sequence[Summary]) -> float:
    """The utility below which a line leaves the figure: as bad as the best is good."""
    return -max(s.maximum for s in group)


def _error(summary: Summary, key: str) -> float | None:
    return interval(summary.utilities)[1] if key == "utility_mean" else None


def _bound_line(group: Sequence[Summary]) -> dict[str, list]:
    points = {s.cell.load: s.row["bound"] for s in group if s.row.get("bound") is not None}
    return {BOUND: [(x, y, None) for x, y in sorted(points.items())]} if points else {}
