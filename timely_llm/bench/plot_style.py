"""How the figures of a bench look, and how they become pages. Pure.

Colours are those of Okabe and Ito, which people with any colour vision can tell apart; lines are
told apart by symbol and dash as well, and carry their names.
"""

from __future__ import annotations

import plotly.graph_objects as go

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "triangle-down")
DASHES = ("solid", "dash", "dot", "dashdot")
BOUND = "upper bound"
_FONT = {"family": "Helvetica, Arial, sans-serif", "size": 14, "color": "#222222"}
_GRID = "#E3E3E3"


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
