"""The figure of one burst under several policies, like TimelyLLM's Figure 6. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from timely_llm.bench.burst import Lane
from timely_llm.bench.plot_style import dress


def timeline(bursts: Mapping[str, Sequence[Lane]], title: str, seconds: float = 2.5) -> go.Figure:
    """The burst under each policy, one above the other, its goals one below the other: when each
    is written, when its robot works, and when its first segment was due."""
    figure = make_subplots(
        rows=len(bursts),
        cols=1,
        shared_xaxes=True,
        subplot_titles=list(bursts),
        vertical_spacing=0.09,
    )
    begin = min(lane.arrival for group in bursts.values() for lane in group)
    for row, group in enumerate(bursts.values(), 1):
        names = {lane.number: f"{lane.number} {lane.name}" for lane in group}
        for kind, colour in _SPANS.items():
            _draw_spans(figure, row, kind, colour, group, names, begin)
        _draw_marks(figure, row, group, names, begin)
        order = [names[lane.number] for lane in reversed(group)]
        figure.update_yaxes(categoryorder="array", categoryarray=order, row=row, col=1)
    rows = sum(map(len, bursts.values()))
    dress(figure, title, 1100, 190 + 60 * len(bursts) + 30 * rows)
    figure.update_layout(barmode="overlay", showlegend=True, legend={"itemsizing": "constant"})
    figure.update_xaxes(range=[-0.03 * seconds, seconds], showticklabels=True)
    figure.update_xaxes(title_text="time since the burst (s)", row=len(bursts), col=1)
    return figure


_SPANS = {
    "urgent plan is written": "#D55E00",
    "other plan is written": "#0072B2",
    "robot executes": "#B8D4E8",
}


def _draw_spans(
    figure: go.Figure,
    row: int,
    kind: str,
    colour: str,
    group: Sequence[Lane],
    names: Mapping[int, str],
    begin: float,
) -> None:
    executes = kind == "robot executes"
    drawn = [
        (names[lane.number], span)
        for lane in group
        if executes or lane.urgent is kind.startswith("urgent")
        for span in (lane.executing if executes else lane.writing)
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
    figure: go.Figure, row: int, group: Sequence[Lane], names: Mapping[int, str], begin: float
) -> None:
    marks = {
        "due (arrival + ERT)": ("line-ns-open", 18, [(lane, lane.due) for lane in group]),
        "first segment at the robot": (
            "diamond",
            9,
            [(lane, lane.first) for lane in group if lane.first is not None],
        ),
    }
    for name, (symbol, size, points) in marks.items():
        figure.add_trace(
            go.Scatter(
                x=[time - begin for _, time in points],
                y=[names[lane.number] for lane, _ in points],
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
