"""What ``timely-llm eval`` does: has the plans written, tries them out, prints each and the
scores."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from timely_llm.cli.console import plain_console
from timely_llm.engine.config import EngineConfig
from timely_llm.engine.factory import build
from timely_llm.evaluation.instructions import FAMILIES, Instruction, Judged, kinds
from timely_llm.evaluation.outcome import Verdict
from timely_llm.evaluation.score import Result, curve, median_first_segment, shares
from timely_llm.evaluation.trial import Row, task_of, try_out
from timely_llm.evaluation.writing import Writer
from timely_llm.prompts.template import PromptTemplate

_WIDTH = 110  # characters, where no terminal limits them


@dataclass(frozen=True, slots=True)
class Job:
    """The instructions; the ``model`` with the prompts (``template``, ``names``) that it gets, and
    whether a ``grammar`` bounds what it writes; ``min_logprob`` is a planner's."""

    asked: Sequence[Instruction]
    model: str
    template: str
    names: str
    grammar: bool
    min_logprob: float | None
    max_batch: int
    max_tokens: int


def run(job: Job) -> tuple[list[Row], list[dict[str, Any]]]:
    """Write, fly, judge, print; what came of each instruction, in their order, and the tables of
    scores where they are judged. ``EngineError`` and ``TemplateError`` for what cannot be begun."""
    console = plain_console(_WIDTH)
    template = PromptTemplate.resolve(job.template, job.model, job.names)
    sets = kinds()
    tasks = [task_of(each, sets[each.kind], template) for each in job.asked]
    rows: dict[int, Row] = {}
    results: list[Result] = []
    begun = time.monotonic()
    with closing(build(EngineConfig(job.model, job.max_batch))) as engine:
        judged = any(isinstance(each, Judged) for each in job.asked)
        # Judged plans are all tried out: what doubt would have changed is known afterwards.
        least = None if judged else job.min_logprob
        writer = Writer(engine, template, job.max_tokens, time.monotonic, job.grammar, least)
        for number, plan in writer.write(tasks):
            asked = job.asked[number]
            row, result = try_out(asked, sets[asked.kind], plan)
            rows[number] = row
            if result is not None:
                results.append(result)
                row["verdict"] = result.at(job.min_logprob)
            if row.get("verdict") != Verdict.DONE:
                _show(console, row)
    codes = Counter(row["code"] for row in rows.values())
    counts = ", ".join(f"{count} {code}" for code, count in codes.most_common())
    took = time.monotonic() - begun
    console.print(f"{len(rows)} instructions, {job.model}, {took:.0f} s: {counts}")
    found = list(tables(results, job.min_logprob)) if results else []
    for each in found:
        console.print(_drawn(each))
    return [rows[number] for number in range(len(job.asked))], found


def _show(console: Console, row: Row) -> None:
    console.print(f"{row['kind']}: {row['instruction']}")
    console.print(f"  {row['plan']}")
    error = f": {row['error']}" if row["error"] else ""
    verdict = f"{row['verdict']}; " if "verdict" in row else ""
    calls = ", ".join(row["calls"]) or "nothing"
    console.print(f"  {verdict}{row['code']}{error}; did {calls}")


def tables(results: Sequence[Result], least: float | None) -> Iterator[dict[str, Any]]:
    """The scores by half, family and kind, where a plan's mean log probability must be at ``least``
    so much, and the risk-coverage curve of such thresholds."""
    columns = [*Verdict, "tokens", "prompt tokens", "first segment s"]
    doubt = f", in doubt below {least:g}" if least is not None else ""
    halves = sorted({each.half for each in results}, reverse=True)
    lines = [_line(half, [r for r in results if r.half == half], least) for half in halves]
    lines += [_line("all", results, least)] if len(halves) > 1 else []
    title = f"Plans by what happened{doubt}"
    yield {"title": title, "columns": ["half", "of", *columns], "lines": lines}
    keys: tuple[tuple[str, Callable[[Result], str], Sequence[str]], ...] = (
        ("family", lambda result: result.family, FAMILIES),
        ("robot", lambda result: result.kind, sorted({each.kind for each in results})),
    )
    for name, key, values in keys:
        groups = ((value, [r for r in results if key(r) == value]) for value in values)
        lines = [_line(value, group, least) for value, group in groups if group]
        yield {"title": f"By {name}", "columns": [name, "of", *columns], "lines": lines}
    if any(each.logprob is not None for each in results):
        yield {
            "title": "Doubt: plans stopped below a mean log probability",
            "columns": ["threshold", "plans that move", "done", "harmful"],
            "lines": [
                [
                    "none" if point.threshold is None else f"{point.threshold:.4f}",
                    f"{point.coverage:.0%}",
                    f"{point.done:.1%}",
                    f"{point.harmful:.1%}",
                ]
                for point in curve(results)
            ],
        }


def _line(name: str, results: Sequence[Result], least: float | None) -> list[str]:
    found = shares(results, least)
    first = median_first_segment(results)
    return [
        name,
        str(len(results)),
        *(str(found[verdict]) for verdict in Verdict),
        f"{statistics.mean(each.tokens for each in results):.1f}",
        f"{statistics.mean(each.prompt_tokens for each in results):.0f}",
        "-" if first is None else f"{first:.2f}",
    ]


def _drawn(found: dict[str, Any]) -> Table:
    table = Table(title=found["title"], title_justify="left")
    for column in found["columns"]:
        table.add_column(str(column))
    for line in found["lines"]:
        table.add_row(*line)
    return table
