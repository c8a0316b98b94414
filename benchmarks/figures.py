"""What a benchmark returns, how it is shown, and how it is run by name."""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure. ``met`` is None where there is no target."""

    name: str
    value: str
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one benchmark; ``data`` holds the numbers behind them."""

    title: str
    figures: list[Figure]
    data: dict[str, Any] = field(default_factory=dict)

    def show(self, console: Console) -> None:
        table = Table(title=self.title, title_justify="left")
        for column in ("figure", "value", "target", ""):
            table.add_column(column)
        for figure in self.figures:
            verdict = {None: "", True: "met", False: "MISSED"}[figure.met]
            table.add_row(figure.name, figure.value, figure.target, verdict)
        console.print(table)

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "figures": [asdict(figure) for figure in self.figures],
            "data": self.data,
        }


def measured(name: str, quick: bool) -> Report:
    """Run the benchmark ``name`` in this process; ``quick``: with a tenth of its samples."""
    module = importlib.import_module(f"benchmarks.{name}")
    samples = module.run.__defaults__[0]
    return module.run(samples // 10 if quick else samples)
