"""``python -m benchmarks.soak``: plays a soak, judges it, shows it; status 1 where anything is
wrong."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.soak.conductor import Conductor, Options
from benchmarks.soak.verdict import report
from timely_llm.cli.local_fleet import child_environment, claim_domain, environment
from timely_llm.ros.client import PlannerClient
from timely_llm.system.processes import Interrupt, Interrupted, ProcessGroup

JSON = Path("build", "soak.json")
GOALS_A_MINUTE = 10_000 / 60


def main(
    minutes: Annotated[
        float, typer.Option(min=0.1, help="of goals, ends of phases not counted")
    ] = 60,
    goals: Annotated[
        int | None, typer.Option(help="the least number of goals; default: 10,000 an hour")
    ] = None,
    seed: Annotated[int, typer.Option(help="of kills, lies, goals and robots")] = 1,
    json_file: Annotated[Path, typer.Option("--json", help="the result")] = JSON,
    folder: Annotated[
        Path | None, typer.Option(help="keep what the processes write in this new folder")
    ] = None,
) -> None:
    """Goals on simulated and real engines under kills, lost and late and forged messages."""
    console = Console()
    place = folder or Path(tempfile.mkdtemp(prefix="timely-llm-soak-"))
    place.mkdir(parents=True, exist_ok=folder is None)
    least = round(minutes * GOALS_A_MINUTE) if goals is None else goals
    options = Options(minutes, seed, place)
    begun = time.monotonic()
    out = play(options, console)
    result = report(options, out, least)
    result.show(console)
    for finding in [line for lines in result.data["findings"].values() for line in lines]:
        console.print(finding, markup=False, style="red")
    words = " ".join(sys.argv[1:])
    entry = {
        "title": f"A soak of {minutes:g} minutes",
        "command": f"make soak ARGS='{words}'" if words else "make soak",
        "measured": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.platform()}",
        "tables": result.data.pop("tables"),
        "lasted": round(time.monotonic() - begun),
        **result.data,
    }
    json_file.parent.mkdir(parents=True, exist_ok=True)
    json_file.write_text(json.dumps(entry, indent=1) + "\n", "utf-8")
    missed = any(figure.met is False for figure in result.figures)
    console.print(f"result: {json_file}" + (f"; records: {place}" if missed or folder else ""))
    if not missed and folder is None:
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(1 if missed else 0)


def play(options: Options, console: Console) -> list[str]:
    """Run all phases; the robots that were not back at the end of one."""
    domain, claim = claim_domain()
    console.print(f"ROS domain {domain}, seed {options.seed}, records in {options.folder}")
    try:
        with (
            environment(child_environment(domain, options.folder)),
            Interrupt() as interrupt,
            PlannerClient(name="soak_conductor") as client,
            ProcessGroup(options.folder) as children,
        ):
            interrupt.children = children
            conductor = Conductor(options, children, client, interrupt, console)
            conductor.run()
            return conductor.robots_out
    except Interrupted:
        console.print(f"interrupted; records are in {options.folder}")
        sys.exit(130)
    finally:
        if claim is not None:
            claim.close()


if __name__ == "__main__":
    typer.run(main)
