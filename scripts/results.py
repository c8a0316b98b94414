"""Results are data: runs the commands of ``docs/results/*.json`` and makes the pages from the data.

Each file there is one command, what it measured, when and where. ``rows`` are those of
``timely-llm bench`` (``docs/evaluation.md`` has the keys) and are measured again here; ``tables``
were read off what another command printed, and stay. A file is written, whole or not at all, as
soon as its command has ended. Then ``docs/results.md``, its charts and the marked tables of other
pages are made again from the templates beside the data.

    python scripts/results.py [WORD...]    only commands whose name, title or text has all WORDs
    python scripts/results.py --pages      runs nothing
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from timely_llm.bench.config import GridPoint, trace_of
from timely_llm.bench.results import Measured, Summary, interval, summaries
from timely_llm.simulation.metrics import maximum_utility

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "results"
_MARKED = re.compile(r"(<!-- results: (\w+) -->\n).*?(?=<!-- end of results -->)", re.DOTALL)

_LEFT_OUT = ("n", "seed", "bound")

Row = dict[str, Any]


def entries() -> dict[str, Row]:
    """The files of ``docs/results`` by their names."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(DATA.glob("*.json"))}


def rows_of(report: Row) -> list[Row]:
    """A row for all runs of a ``timely-llm bench`` report that differ in the seed alone."""
    names = ("engine", "workload", "load", "policy", "max_batch", "seed")
    measured = []
    for row in report["results"]:
        point = GridPoint(*(row[name] for name in names))
        maximum = maximum_utility(trace_of(point.workload, point.seed))
        measured.append(Measured(point, row, (), maximum))
    scales = report["settings"]["time_scale"]
    return [_row(one, scales.get(one.point.engine, 1.0)) for one in summaries(measured)]


def _row(one: Summary, scale: float) -> Row:
    """With 6 digits; values that are None, and a time scale of 1, are left out."""
    count, bound = len(one.seeds), one.row.get("bound")
    row = one.row | {
        "policy": one.point.policy,
        "max_batch": one.point.max_batch,
        "seeds": count,
        "goals": one.row["n"] / count,
        "maximum": one.maximum,
        "utility_error": interval(one.utilities)[1],
        "lead": one.lead,
        "lead_error": one.lead_error,
        "of_bound": one.utility / bound if bound else None,
        "time_scale": None if scale == 1.0 else scale,
    }
    kept = {name: v for name, v in row.items() if v is not None and name not in _LEFT_OUT}
    return {name: round(v, 6) if isinstance(v, float) else v for name, v in kept.items()}


def measured_again(entry: Row) -> Row:
    """``entry`` with what its command measures now; ``CalledProcessError`` where that fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        words = (*shlex.split(entry["command"])[1:], "--json", str(path))
        subprocess.run([sys.executable, "-m", "timely_llm.cli", *words], check=True)
        rows = rows_of(json.loads(path.read_text("utf-8")))
    again = entry | {"measured": datetime.now(UTC).date().isoformat(), "rows": rows}
    if "versions" in entry:  # of what the machine matters for
        again["machine"] = f"{os.cpu_count()} cores, {platform.platform()}"
        again["versions"] = {name: version(name) for name in entry["versions"]}
    return again


def as_text(entry: Row) -> str:
    """An entry with ``rows`` as JSON, a row a line."""
    head = json.dumps({k: v for k, v in entry.items() if k != "rows"}, ensure_ascii=False, indent=1)
    rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in entry["rows"])
    return f'{head[:-2]},\n "rows": [\n  {rows}\n ]\n}}\n'


def pages() -> dict[Path, str]:
    """Every file that is made from the data, or has marked tables that are, and its text."""
    found = entries()

    def rows(name: str, **where: Any) -> list[Row]:
        return [row for row in found[name]["rows"] if where.items() <= row.items()]

    environment = Environment(
        loader=FileSystemLoader(DATA),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    first = {"row": lambda name, **where: rows(name, **where)[0]}
    environment.globals |= {"entries": found, "rows": rows, **first}
    made = {DATA.parent / "results.md": environment.get_template("page.md.jinja2").render()}
    for path in DATA.glob("*.svg.jinja2"):
        made[path.with_suffix("")] = environment.get_template(path.name).render()
    tables = environment.get_template("tables.jinja2").module
    for path in (ROOT / "README.md", *DATA.parent.glob("*.md")):
        text = path.read_text("utf-8")
        if path not in made and _MARKED.search(text):
            made[path] = _MARKED.sub(lambda mark: mark[1] + getattr(tables, mark[2])(), text)
    return made


def main(words: list[str]) -> int:
    for name, entry in entries().items():
        searched = f"{name} {entry['title']} {entry['command']}"
        if "rows" in entry and "--pages" not in words and all(word in searched for word in words):
            print(entry["command"], flush=True)
            try:
                again = measured_again(entry)
            except subprocess.CalledProcessError as error:
                return error.returncode
            new = DATA / f"{name}.json.new"
            new.write_text(as_text(again), "utf-8")
            new.replace(DATA / f"{name}.json")
    for path, text in pages().items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
