"""Traces as JSON Lines: writing, reading, and what is refused: ``docs/evaluation.md``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from timely_llm.language.parser import PlanError, parse
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.utility import TimeUtility, Urgency
from timely_llm.simulation.trace import Arrival, Task, Trace
from timely_llm.simulation.workloads.tasks import skill_sets
from timely_llm.simulation.workloads.text_tasks import TEXT_KINDS, reading_durations
from timely_llm.validation.names import hint
from timely_llm.validation.reader import (
    Document,
    Entry,
    Fault,
    FileError,
    file_text,
    items,
    known,
    named,
    number,
    parse_json,
    text,
    whole,
)

VERSION = 1
_LONGEST = 1_000_000  # characters of a text

_Text = Annotated[str, text(_LONGEST, 0)]
_Name = Annotated[str, text(_LONGEST)]
_Seconds = Annotated[float, number(0)]
_Count = Annotated[int, whole(0)]


# ---- the lines ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Header(Entry):
    version: Annotated[int, whole(1)]
    name: _Name
    source: _Text = ""

    def checked(self, context: object) -> _Header:
        if self.version != VERSION:
            raise Fault(f"is {self.version}: this reader knows {VERSION}", "version")
        return self


@dataclass(frozen=True, slots=True)
class _Utility(Entry):
    ert_s: Annotated[float, number()]
    alpha: Annotated[float, number()]
    beta: Annotated[float, number()]


@dataclass(frozen=True, slots=True)
class _Task(Entry):
    id: _Count
    name: _Name
    kind: Annotated[str, known(lambda kinds: kinds)]
    instruction: _Text
    tokens: Annotated[tuple[_Name, ...], items(1, _LONGEST)]
    utility: _Utility
    urgency: Annotated[Urgency, named({urgency.name.lower(): urgency for urgency in Urgency})]
    scene: _Text = ""
    system_tokens: _Count = 0
    prompt_tokens: Annotated[int, whole(1)] = 1
    ttft_s: _Seconds = 0.0
    tpot_s: _Seconds = 0.0
    time_budget_s: _Seconds = 0.0

    @property
    def task(self) -> Task:
        try:
            utility = TimeUtility(self.utility.ert_s, self.utility.alpha, self.utility.beta)
        except ValueError as error:
            raise Fault(str(error), "utility") from None
        return Task(
            name=self.name,
            kind=self.kind,
            instruction=self.instruction,
            tokens=self.tokens,
            utility=utility,
            urgency=self.urgency,
            scene=self.scene,
            system_tokens=self.system_tokens,
            prompt_tokens=self.prompt_tokens,
            ttft=self.ttft_s,
            tpot=self.tpot_s,
            time_budget=self.time_budget_s,
        )


@dataclass(frozen=True, slots=True)
class _Arrival(Entry):
    at_s: _Seconds
    robot: _Name
    task: _Count
    durations_s: Annotated[tuple[_Seconds, ...], items(0, _LONGEST)] = ()


_LINES: dict[str, type[_Header | _Task | _Arrival]] = {
    "trace": _Header,
    "task": _Task,
    "arrival": _Arrival,
}


# ---- writing and reading -----------------------------------------------------------------------


def write(trace: Trace, path: str | Path, skills: Mapping[str, SkillSet] | None = None) -> None:
    """Write ``trace`` so that ``read`` gives an equal one; a ``FileError`` where it would not."""
    content = to_text(trace)
    if from_text(content, str(path), skills) != trace:
        raise FileError(str(path), 1, "", "some text or value is not one that JSON can hold")
    Path(path).write_text(content, encoding="utf-8")


def read(path: str | Path, skills: Mapping[str, SkillSet] | None = None) -> Trace:
    """The trace of a file, checked; ``OSError`` if it cannot be read, else ``FileError``.

    ``skills`` by kind are those of the package unless given; plans must parse against them.
    """
    return from_text(file_text(path), str(path), skills)


def to_text(trace: Trace) -> str:
    """A trace as JSON Lines: the trace, its different tasks, its arrivals."""
    return "".join(f"{json.dumps(entry)}\n" for entry in _entries(trace))


def _entries(trace: Trace) -> Iterator[dict[str, Any]]:
    yield {"type": "trace", "version": VERSION, "name": trace.name, "source": trace.source}
    ids: dict[Task, int] = {}
    for arrival in trace.arrivals:
        ids.setdefault(arrival.task, len(ids))
    for task, task_id in ids.items():
        yield _task_entry(task, task_id)
    for arrival in trace.arrivals:
        yield {
            "type": "arrival",
            "at_s": arrival.at,
            "robot": arrival.robot_id,
            "task": ids[arrival.task],
            "durations_s": list(arrival.durations),
        }


def _task_entry(task: Task, task_id: int) -> dict[str, Any]:
    utility = task.utility
    return {
        "type": "task",
        "id": task_id,
        "name": task.name,
        "kind": task.kind,
        "instruction": task.instruction,
        "tokens": list(task.tokens),
        "utility": {"ert_s": utility.ert, "alpha": utility.alpha, "beta": utility.beta},
        "urgency": task.urgency.name.lower(),
        "scene": task.scene,
        "system_tokens": task.system_tokens,
        "prompt_tokens": task.prompt_tokens,
        "ttft_s": task.ttft,
        "tpot_s": task.tpot,
        "time_budget_s": task.time_budget,
    }


def from_text(
    content: str, source: str = "<trace>", skills: Mapping[str, SkillSet] | None = None
) -> Trace:
    """The trace that JSON Lines describe; anything wrong is a ``FileError`` with line and key."""
    reader = _Reader(skill_sets() if skills is None else skills)
    lines = content.split("\n")
    for i, line in enumerate(lines, 1):
        if line.strip():
            reader.line(parse_json(line, source, i))
    if reader.header is None:
        raise FileError(source, 1, "", "is empty: the first line has the type 'trace'")
    if not reader.arrivals:
        raise FileError(source, len(lines), "", "no line has the type 'arrival'")
    return Trace(reader.header.name, tuple(reader.arrivals), reader.header.source)


@dataclass(slots=True)
class _Reader:
    """What the lines so far have said."""

    skills: Mapping[str, SkillSet]
    header: _Header | None = None
    tasks: dict[int, tuple[Task, int]] = field(default_factory=dict)  # and how many durations
    robots: dict[str, str] = field(default_factory=dict)  # their kinds
    arrivals: list[Arrival] = field(default_factory=list)

    def line(self, document: Document) -> None:
        kind = str(document.read(dict[str, Any]).get("type", ""))
        try:
            if kind not in _LINES:
                raise Fault(f"{kind!r} is unknown{hint(kind, _LINES)}", "type")
            if (kind == "trace") != (self.header is None):
                wanted = "the first line, and no other, has the type 'trace'"
                raise Fault(f"is {kind!r}: {wanted}", "type")
            del document.value["type"]
            match document.read(_LINES[kind], [*self.skills, *TEXT_KINDS]):
                case _Header() as header:
                    self.header = header
                case _Task() as task:
                    self._task(task)
                case _Arrival() as arrival:
                    self._arrival(arrival)
        except Fault as fault:
            document.fail(fault)

    def _task(self, line: _Task) -> None:
        if line.id in self.tasks:
            raise Fault(f"is {line.id}: another task has it", "id")
        self.tasks[line.id] = line.task, self._durations(line.task)

    def _durations(self, task: Task) -> int:
        """How many durations an arrival of ``task`` has; its plan is checked."""
        if task.kind in TEXT_KINDS:
            return len(reading_durations(task))
        try:
            return len(parse(task.plan, self.skills[task.kind]))
        except PlanError as error:
            reason = f"do not parse against the skills of {task.kind}: {error}"
            raise Fault(reason, "tokens") from None

    def _arrival(self, line: _Arrival) -> None:
        last = self.arrivals[-1].at if self.arrivals else 0.0
        if line.at_s < last:
            raise Fault(f"is {line.at_s}: the arrival before it is at {last}", "at_s")
        if line.task not in self.tasks:
            raise Fault(f"is {line.task}: no task line before this one has that id", "task")
        task, count = self.tasks[line.task]
        kind = self.robots.setdefault(line.robot, task.kind)
        if kind != task.kind:
            reason = f"{line.robot!r} is of kind {kind!r}: the task is for {task.kind!r}"
            raise Fault(reason, "robot")
        if len(line.durations_s) != count:
            what = "segments" if task.kind in TEXT_KINDS else "calls"
            given = len(line.durations_s)
            reason = f"has {given}: task {line.task} has {count} {what} that take time"
            raise Fault(reason, "durations_s")
        self.arrivals.append(Arrival(line.at_s, line.robot, task, line.durations_s))
