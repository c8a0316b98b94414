"""The table that ``timely-llm replay`` prints. Needs rich."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from timely_llm.validation.outgoing import visible

_HEADINGS = (
    *("policy", "engine", "batch", "ok", "utility", "", "urgent"),
    *("response", "", "p99", "waiting", "", "p99"),
)


def replay_table(report: dict[str, Any]) -> Group:
    """One row for what happened and one for each replay, with shares of the difference."""
    about = report["recorded"]
    pace = f", paced to {about['pace']}" if about["pace"] else ""
    title = (
        f"{report['bag']}: {report['goals']} goals in {about['duration_s']:.0f} s, recorded under "
        f"{about['policy']}{pace}"
    )
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in _HEADINGS[:2] else "right")
    for row in report["results"]:
        table.add_row(*_cells(row))
    return Group(Text(visible(title), style="bold"), table)


def _cells(row: dict[str, Any]) -> Iterator[str]:
    happened = row["engine"] == "recorded"
    change = row["difference"]

    def share(name: str) -> str:
        value = change[name]["share"]
        return "" if happened or value is None else f"{value:+.1%}"

    yield from (row["policy"], row["engine"], str(row["max_batch"]))
    yield f"{row['succeeded']}/{row['n']}"
    yield from (_number(row["utility_mean"]), share("utility_mean"))
    yield _number(row["utility_urgent_mean"])
    for key in ("response_s", "waiting_s"):
        yield _number(row[key]["mean"], " s")
        yield share(f"{key.removesuffix('_s')}_mean_s")
        yield _number(row[key]["p99"], " s")


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.3f}{unit}"


def notes(report: dict[str, Any]) -> Iterator[str]:
    """What was measured, and what of the bag was not replayed."""
    measured = report["measured"]
    if measured["steps"]:
        yield (
            f"measured in the bag: {measured['submit_s'] * 1e3:.1f} ms to submit a goal, "
            f"{measured['between_steps_s'] * 1e3:.2f} ms between engine steps, "
            f"{measured['to_robot_s'] * 1e3:.1f} ms to a robot, "
            f"{measured['from_robot_s'] * 1e3:.1f} ms back"
        )
    yield from (visible(f"note: {note}") for note in report["notes"])
    for one in report["left_out"]:
        yield f"left out: {one['robot_id']}: {one['instruction'][:60]!r}: {one['why']}"
