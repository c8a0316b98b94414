"""Tables for people: the fleet as it works, a run's plans, two runs side by side. Needs rich."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from timely_llm.live.fleet_state import FleetState, urgency_word
from timely_llm.live.summary import PlanRecord, RunReport, Spread, Totals
from timely_llm.live.terminal_text import colour_of, fixed, plan_text, seconds
from timely_llm.live.view import plan_view, state_word
from timely_llm.protocols.messages import RobotInfo
from timely_llm.protocols.utility import Urgency
from timely_llm.validation.outgoing import visible

_LIVE_REST = 76  # characters of a live table's row without the plan
_SUMMARY_REST = 94  # characters of a summary's row without the instruction


def title_of(policy: str, pace: str, model: str) -> str:
    """How a run is labelled wherever its figures stand."""
    speed = "at the engine's own speed" if pace in ("", "none") else f"paced to {pace}"
    return f"policy {policy}, {speed}, model {short_path(model)}"


def short_path(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rpartition("/")[2]


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)


def _titled(title: str, table: Table) -> Group:
    return Group(Text(title, style="bold"), table)


def live_table(
    fleet: FleetState, robots: Sequence[str], now: float, title: str, width: int
) -> Group:
    """One row for each of ``robots``; ``now`` in s, ``width`` of the screen in characters."""
    plan_width = max(12, width - _LIVE_REST)
    table = _table()
    table.add_column("robot", width=9, no_wrap=True)
    table.add_column("urgency", width=10, no_wrap=True)
    table.add_column("plan so far", width=plan_width, no_wrap=True)
    table.add_column("segment running", width=18, no_wrap=True)
    table.add_column("waiting", justify="right", width=8, no_wrap=True)
    table.add_column("state", width=16, no_wrap=True)
    for robot_id in robots:
        plan, queued = fleet.current(robot_id)
        if plan is None:
            table.add_row(robot_id, "", "", "", "", "no plan yet")
            continue
        table.add_row(
            robot_id,
            _urgency(plan.goal.urgency),
            plan_text(plan_view(plan, now, len(plan.segments)), plan_width),
            Text(f"{plan.segment}: {plan.call}" if plan.call else ""),
            seconds(plan.waiting(now)),
            state_word(plan) + (f" (+{queued})" if queued else ""),
        )
    return _titled(title, table)


def _urgency(urgency: Urgency) -> Text:
    word = urgency_word(urgency)
    return Text(word, style=colour_of(word))


def summary_table(report: RunReport, width: int) -> Group:
    """One row for each plan of a run, and their totals, in ``width`` characters: figures that the
    comparison repeats are left out where they do not fit."""
    figures = _FIGURES if width >= _SUMMARY_REST + 12 else _FIGURES[:3]
    rest = _SUMMARY_REST - sum(len(name) + 2 for name in _FIGURES[len(figures) :])
    table = _table()
    table.add_column("robot", no_wrap=True, min_width=8)
    table.add_column("urgency", no_wrap=True, min_width=10)
    table.add_column("instruction", no_wrap=True, width=min(56, max(12, width - rest)))
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    table.add_column("result", no_wrap=True, min_width=10)
    for row in report.records:
        table.add_row(
            row.goal.robot_id,
            _urgency(row.urgency),
            Text(row.goal.instruction, overflow="ellipsis"),
            *_figures(row)[: len(figures)],
            "ok" if row.succeeded else row.result.error_code.name,
        )
    total = report.totals
    table.add_section()
    sums = (
        seconds(total.response_s.mean if total.response_s else None),
        seconds(total.waiting_s),
        fixed(total.utility, 2),
        seconds(total.execution_s),
        str(total.generated_tokens),
        str(total.segments),
    )
    table.add_row("all", "", "mean, sums", *sums[: len(figures)], "", style="bold")
    return _titled(title_of(report.policy, report.pace, report.engine.model), table)


#: Of a plan: the first three are what counts.
_FIGURES = ("response", "waiting", "utility", "execution", "tokens", "segments")


def _figures(row: PlanRecord) -> tuple[str, ...]:
    result = row.result
    return (
        seconds(row.response_s),
        seconds(result.waiting_time),
        fixed(result.utility, 2),
        seconds(result.execution_time),
        str(result.generated_tokens),
        str(len(row.segments)),
    )


def comparison_table(reports: Sequence[RunReport]) -> Group:
    """The totals of several runs of one script, a column for each."""
    table = _table()
    table.add_column("all plans")
    for report in reports:
        table.add_column(report.policy, justify="right")
    columns = [report.totals for report in reports]
    for name, values in _comparison_rows(columns):
        table.add_row(name, *values)
    table.add_row(
        "prompt tokens computed again on resume", *(str(report.recomputed) for report in reports)
    )
    return _titled(f"the same instructions, robots' seeds and pace ({reports[0].pace})", table)


def _comparison_rows(columns: Sequence[Totals]) -> list[tuple[str, list[str]]]:
    def spread(values: Sequence[Spread | None], name: str) -> list[str]:
        return [seconds(getattr(value, name) if value else None) for value in values]

    response = [t.response_s for t in columns]
    urgent = [t.urgent_response_s for t in columns]
    return [
        ("plans that succeeded", [f"{t.succeeded} of {t.plans}" for t in columns]),
        ("response, mean", spread(response, "mean")),
        ("response, median", spread(response, "median")),
        ("response, p99", spread(response, "p99")),
        ("response of urgent plans, mean", spread(urgent, "mean")),
        ("response of urgent plans, max", spread(urgent, "max")),
        ("waiting, sum", [seconds(t.waiting_s) for t in columns]),
        ("execution, sum", [seconds(t.execution_s) for t in columns]),
        ("utility, sum", [fixed(t.utility, 2) for t in columns]),
        ("segments", [str(t.segments) for t in columns]),
        ("prompt tokens", [str(t.prompt_tokens) for t in columns]),
        ("generated tokens", [str(t.generated_tokens) for t in columns]),
    ]


def robots_table(robots: Sequence[RobotInfo]) -> Table:
    """The registered robots."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("robot", "kind", "namespace", "state"):
        table.add_column(name, no_wrap=True)
    for robot in robots:
        state = "stopped" if robot.stopped else "alive" if robot.alive else "silent"
        words = (robot.robot_id, robot.kind, robot.robot_namespace, state)
        table.add_row(*(Text(visible(word)) for word in words))
    return table
