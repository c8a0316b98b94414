"""What ``timely-llm eval`` does: has the plans written, flies them, prints each and a summary."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from timely_llm.cli.console import plain_console
from timely_llm.engine.config import EngineConfig
from timely_llm.engine.factory import build
from timely_llm.evaluation.flight import fly, robot
from timely_llm.evaluation.instructions import Instruction, kinds
from timely_llm.evaluation.writing import Task, Written, write
from timely_llm.language.naming import in_words, renamed
from timely_llm.language.parser import PlanError
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.template import PromptTemplate

_WIDTH = 110  # characters, where no terminal limits them
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """The instructions; the ``model`` with the prompts (``template``, ``names``) that it gets."""

    asked: Sequence[Instruction]
    model: str
    template: str
    names: str
    max_batch: int
    max_tokens: int


def run(job: Job) -> list[Row]:
    """Write, fly, print; what came of each instruction, in their order. ``EngineError`` and
    ``TemplateError`` for what cannot be begun."""
    console = plain_console(_WIDTH)
    template = PromptTemplate.resolve(job.template, job.model, job.names)
    sets = kinds()
    tasks = [
        Task(
            sets[each.kind], each.scene or robot(sets[each.kind], "")[0].observe(), each.instruction
        )
        for each in job.asked
    ]
    rows: dict[int, Row] = {}
    begun = time.monotonic()
    with closing(build(EngineConfig(job.model, job.max_batch))) as engine:
        for number, plan in write(engine, template, tasks, job.max_tokens):
            rows[number] = _flown(job.asked[number], tasks[number].skills, plan)
            _show(console, rows[number])
    codes = Counter(row["code"] for row in rows.values())
    counts = ", ".join(f"{count} {code}" for code, count in codes.most_common())
    took = time.monotonic() - begun
    console.print(f"{len(rows)} instructions, {job.model}, {took:.0f} s: {counts}")
    return [rows[number] for number in range(len(job.asked))]


def _flown(asked: Instruction, skills: SkillSet, plan: Written) -> Row:
    """What a robot makes of the segments that it would have got."""
    adapter, sees = robot(skills, asked.scene)
    flight = fly(plan.segments, plan.whole, skills, adapter)
    code, error = plan.code, plan.error
    if flight.code is not None:  # it ended before the fault came
        code, error = flight.code, flight.error
    try:
        worded = renamed(plan.text, in_words(skills))
    except PlanError:  # no text of the language
        worded = plan.text
    return {
        "kind": asked.kind,
        "scene": asked.scene,
        "instruction": asked.instruction,
        "world": "scene" if sees else "own",
        "text": plan.text,
        "plan": worded,
        "code": code.name,
        "error": error,
        "calls": list(flight.calls),
        "value": flight.value,
        "end": dict(zip(("x", "y", "z", "yaw"), flight.end.values, strict=True)),
        "tokens": plan.tokens,
    }


def _show(console: Console, row: Row) -> None:
    console.print(f"{row['kind']}: {row['instruction']}")
    console.print(f"  {row['plan']}")
    error = f": {row['error']}" if row["error"] else ""
    console.print(f"  {row['code']}{error}; did {', '.join(row['calls']) or 'nothing'}")
