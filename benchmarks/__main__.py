"""``python -m benchmarks``: runs them all, or those named, and prints their figures."""

from __future__ import annotations

import importlib
import json
import platform
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

JSON = Path("build", "benchmarks.json")
BENCHMARKS = (
    "first_segment",
    "segmenting",
    "overhead",
    "random_plans",
    "simulator_speed",
    "prefill_fit",
    "learned_times",
    "ablation",
)


def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"of {', '.join(BENCHMARKS)}")] = None,
    json_file: Annotated[Path, typer.Option("--json", help="all numbers")] = JSON,
    quick: Annotated[
        bool, typer.Option(help="a tenth of the samples, to see that it runs")
    ] = False,
) -> None:
    """Figures with their targets; the exit status is 1 where one is missed."""
    console, reports = Console(), {}
    for name in names or BENCHMARKS:
        if name not in BENCHMARKS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(BENCHMARKS)}")
        module = importlib.import_module(f"benchmarks.{name}")
        samples = module.run.__defaults__[0]
        reports[name] = module.run(samples // 10 if quick else samples)
        reports[name].show(console)
    machine = {"machine": platform.processor(), "system": platform.platform()}
    figures = {name: report.as_json() for name, report in reports.items()}
    json_file.parent.mkdir(parents=True, exist_ok=True)
    json_file.write_text(json.dumps(machine | figures, indent=1))
    console.print(f"all numbers: {json_file}")
    missed = [f for report in reports.values() for f in report.figures if f.met is False]
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    typer.run(main)
