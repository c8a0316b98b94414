"""The tables that ``timely-llm bench`` prints. Needs rich."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from timely_llm.bench.results import Measured, Summary, grouped, interval

_COLUMNS = (
    *("policy", "batch", "utility", "max(0,U)", "lead", "bound", "urgent", "normal"),
    *("met u", "met n", "resp", "p99", "wait", "p99", "drop", "refd", "SLO"),
)
LEGEND = (
    "utility: mean of a goal, ± half its 95% interval over the seeds; lead: over the best other "
    "policy, share of the workload's maximum; bound: share of the upper bound (-: not computed); "
    "urgent, normal: their utility; met: within their expected response time; resp, wait: means "
    "and 99th percentiles in s; SLO: goals that met all their targets; batch: at most in one step"
)


def tables(found: Iterable[Summary], scales: Mapping[str, float]) -> Group:
    """One table for each engine, workload and load. ``scales``: s of an engine for 1 s of the
    workload, said where it is not 1."""
    parts: list[Text | Table] = []
    for (engine, workload, load), group in grouped(found, lambda one: one.point.scenario).items():
        title = (
            f"{workload} at load {load:g} on {engine}: {_seeds(group)}, "
            f"{_goals(group[0]):g} goals, at most {group[0].maximum:.3f} a goal"
        )
        scale = scales.get(engine, 1.0)
        if scale != 1.0:
            title += f"; 1 s of the workload lasts {scale:.4g} s"
        best = max(one.utility for one in group)
        table = _table(_COLUMNS)
        for one in group:
            table.add_row(*_figures(one), style="bold" if one.utility == best else "")
        parts += [Text(title, style="bold"), table]
    return Group(*parts)


def urgency_tables(measured: Iterable[Measured]) -> Group:
    """Waiting by urgency, where goals have more than two urgencies: one table for each engine,
    workload and load."""
    parts: list[Text | Table] = []
    for scenario, group in grouped(measured, lambda one: one.point.scenario).items():
        levels = sorted({sample.urgency for one in group for sample in one.samples})
        if len(levels) <= 2:
            continue
        table = _table(("policy", "batch", *(level.name.lower() for level in levels)))
        setups = grouped(group, lambda one: (one.point.policy, one.point.max_batch))
        for (policy, size), own in setups.items():
            samples = [sample for one in own for sample in one.samples]
            means = [fmean(s.waiting for s in samples if s.urgency == level) for level in levels]
            table.add_row(policy, str(size), *(f"{mean:.3f}" for mean in means))
        engine, workload, load = scenario
        title = f"{workload} at load {load:g} on {engine}: mean waiting in s by urgency"
        parts += [Text(title, style="bold"), table]
    return Group(*parts)


def _table(columns: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def _seeds(group: Sequence[Summary]) -> str:
    counts = sorted({len(one.utilities) for one in group})
    words = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    return f"{words} seed{'' if counts == [1] else 's'}"


def _goals(one: Summary) -> float:
    """Of a run; the mean of rows has the sum over all runs."""
    return one.row["n"] / len(one.utilities)


def _figures(one: Summary) -> list[str]:
    row = one.row
    response, waiting = row["response_s"], row["waiting_s"]
    bound = row.get("bound")
    return [
        one.point.policy,
        str(one.point.max_batch),
        _number(one.utility, 3) + _error(interval(one.utilities)[1], 3),
        _number(row["utility_clipped_mean"], 3),
        _lead(one),
        _share(one.utility / bound if bound else None),
        _number(row["utility_urgent_mean"], 2),
        _number(row["utility_normal_mean"], 2),
        _share(row["met_urgent"]),
        _share(row["met_normal"]),
        _number(response["mean"], 3),
        _number(response["p99"], 3),
        _number(waiting["mean"], 3),
        _number(waiting["p99"], 3),
        _number(row["dropped"], 0),
        _number(row["refused"], 0),
        _share(row["slo_attainment"]),
    ]


def _lead(one: Summary) -> str:
    if one.lead is None:
        return "-"
    error = None if one.lead_error is None else 100 * one.lead_error
    return f"{100 * one.lead:+.1f}{_error(error, 1)}%"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"


def _error(value: float | None, digits: int) -> str:
    return "" if value is None else f" ±{value:.{digits}f}"
