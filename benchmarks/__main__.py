"""``python -m benchmarks``: runs them all, or those named, and prints their figures.

Each runs in a new process: none finds another's engine, DDS participants or warm caches.
"""

from __future__ import annotations

import json
import multiprocessing
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.figures import measured

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
    for name in names or ():
        if name not in BENCHMARKS:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(BENCHMARKS)}")
    console, reports = Console(), {}
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh, max_tasks_per_child=1) as processes:
        for name in names or BENCHMARKS:
            reports[name] = processes.submit(measured, name, quick).result()
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
