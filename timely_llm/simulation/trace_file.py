"""Traces as JSON Lines: writing, reading, and what is refused: ``docs/evaluation.md``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from timely_llm.language.parser import PlanError, parse
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.utility import TimeUtility, Urgency
from timely_llm.simulation.trace import Arrival, Task, Trace
from timely_llm.simulation.workloads.tasks import skill_sets
from timely_llm.simulation.workloads.text_tasks import TEXT_KINDS, reading_durations
from timely_llm.validation.json_values import (
    REQUIRED,
    Fault,
    array,
    choice,
    keys,
    number,
    parse_object,
    shown,
    string,
    whole,
)

VERSION = 1

_URGENCIES = {urgency.name.lower(): urgency for urgency in Urgency}
# Keys of each type of line, with what a missing key stands for.
_KEYS: dict[str, dict[str, Any]] = {
    "trace": {"version": REQUIRED, "name": REQUIRED, "source": ""},
    "task": {
        "id": REQUIRED,
        "name": REQUIRED,
        "kind": REQUIRED,
        "instruction": REQUIRED,
        "tokens": REQUIRED,
        "utility": REQUIRED,
        "urgency": REQUIRED,
        "scene": "",
        "system_tokens": 0,
        "prompt_tokens": 1,
        "ttft_s": 0.0,
        "tpot_s": 0.0,
    },
    "arrival": {"at_s": REQUIRED, "robot": REQUIRED, "task": REQUIRED, "durations_s": []},
}
_UTILITY = {"ert_s": REQUIRED, "alpha": REQUIRED, "beta": REQUIRED}


class TraceError(ValueError):
    """A trace that cannot be replayed. ``line`` counts from 1; ``key`` is empty for a line."""

    def __init__(self, source: str, line: int, key: str, reason: str) -> None:
        super().__init__(f"{source}:{line}: {key + ': ' if key else ''}{reason}")
        self.source = source
        self.line = line
        self.key = key
        self.reason = reason


def write(trace: Trace, path: str | Path, skills: Mapping[str, SkillSet] | None = None) -> None:
    """Write ``trace`` so that ``read`` gives an equal one; a ``TraceError`` where it would not."""
    text = to_text(trace)
    if from_text(text, str(path), skills) != trace:
        raise TraceError(str(path), 1, "", "some text or value is not one that JSON can hold")
    Path(path).write_text(text, encoding="utf-8")


def read(path: str | Path, skills: Mapping[str, SkillSet] | None = None) -> Trace:
    """The trace of a file, checked; ``OSError`` if it cannot be read, else ``TraceError``.

    ``skills`` by kind are those of the package unless given; plans must parse against them.
    """
    data = Path(path).read_bytes()
    try:
        return from_text(data.decode("utf-8"), str(path), skills)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TraceError(str(path), line, "", "is not UTF-8") from None


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
    }


def from_text(
    text: str, source: str = "<trace>", skills: Mapping[str, SkillSet] | None = None
) -> Trace:
    """The trace that JSON Lines describe; anything wrong is a ``TraceError`` with line and key."""
    reader = _Reader(skill_sets() if skills is None else skills)
    lines = text.split("\n")
    for i, line in enumerate(lines, 1):
        if line.strip():
            try:
                reader.line(line)
            except Fault as fault:
                raise TraceError(source, i, fault.key, fault.reason) from None
    if reader.header is None:
        raise TraceError(source, 1, "", "is empty: the first line has the type 'trace'")
    if not reader.arrivals:
        raise TraceError(source, len(lines), "", "no line has the type 'arrival'")
    return Trace(reader.header["name"], tuple(reader.arrivals), reader.header["source"])


@dataclass(slots=True)
class _Reader:
    """What the lines so far have said."""

    skills: Mapping[str, SkillSet]
    header: dict[str, Any] | None = None
    tasks: dict[int, tuple[Task, int]] = field(default_factory=dict)  # and how many durations
    robots: dict[str, str] = field(default_factory=dict)  # their kinds
    arrivals: list[Arrival] = field(default_factory=list)

    def line(self, text: str) -> None:
        entry = parse_object(text)
        if "type" not in entry:
            raise Fault("type", "is missing")
        kind = choice("type", entry.pop("type"), _KEYS)
        if (kind == "trace") != (self.header is None):
            wanted = "the first line, and no other, has the type 'trace'"
            raise Fault("type", f"is {kind!r}: {wanted}")
        entry = keys(entry, _KEYS[kind])
        if kind == "trace":
            self._trace(entry)
        elif kind == "task":
            self._task(entry)
        else:
            self._arrival(entry)

    def _trace(self, entry: dict[str, Any]) -> None:
        version = whole("version", entry["version"], 1)
        if version != VERSION:
            raise Fault("version", f"is {version}: this reader knows {VERSION}")
        string("name", entry["name"], empty=False)
        string("source", entry["source"])
        self.header = entry

    def _task(self, entry: dict[str, Any]) -> None:
        task_id = whole("id", entry["id"], 0)
        if task_id in self.tasks:
            raise Fault("id", f"is {task_id}: another task has it")
        task = _task(entry, [*self.skills, *TEXT_KINDS])
        self.tasks[task_id] = task, self._durations(task)

    def _durations(self, task: Task) -> int:
        """How many durations an arrival of ``task`` has; its plan is checked."""
        if task.kind in TEXT_KINDS:
            return len(reading_durations(task))
        try:
            return len(parse(task.plan, self.skills[task.kind]))
        except PlanError as error:
            reason = f"do not parse against the skills of {task.kind}: {error}"
            raise Fault("tokens", reason) from None

    def _arrival(self, entry: dict[str, Any]) -> None:
        at = number("at_s", entry["at_s"], 0)
        if self.arrivals and at < self.arrivals[-1].at:
            raise Fault("at_s", f"is {at}: the arrival before it is at {self.arrivals[-1].at}")
        task_id = whole("task", entry["task"], 0)
        if task_id not in self.tasks:
            raise Fault("task", f"is {task_id}: no task line before this one has that id")
        task, count = self.tasks[task_id]
        robot = string("robot", entry["robot"], empty=False)
        if self.robots.setdefault(robot, task.kind) != task.kind:
            reason = f"{robot!r} is of kind {self.robots[robot]!r}: the task is for {task.kind!r}"
            raise Fault("robot", reason)
        given = array("durations_s", entry["durations_s"])
        if len(given) != count:
            what = "segments" if task.kind in TEXT_KINDS else "calls"
            reason = f"has {len(given)}: task {task_id} has {count} {what} that take time"
            raise Fault("durations_s", reason)
        times = tuple(number(f"durations_s[{i}]", time, 0) for i, time in enumerate(given))
        self.arrivals.append(Arrival(at, robot, task, times))


def _task(entry: dict[str, Any], kinds: Iterable[str]) -> Task:
    tokens = array("tokens", entry["tokens"])
    if not tokens:
        raise Fault("tokens", "is empty: an answer has at least one token")
    return Task(
        name=string("name", entry["name"], empty=False),
        kind=choice("kind", entry["kind"], kinds),
        instruction=string("instruction", entry["instruction"]),
        tokens=tuple(string(f"tokens[{i}]", each, empty=False) for i, each in enumerate(tokens)),
        utility=_utility(entry["utility"]),
        urgency=_URGENCIES[choice("urgency", entry["urgency"], _URGENCIES)],
        scene=string("scene", entry["scene"]),
        system_tokens=whole("system_tokens", entry["system_tokens"], 0),
        prompt_tokens=whole("prompt_tokens", entry["prompt_tokens"], 1),
        ttft=number("ttft_s", entry["ttft_s"], 0),
        tpot=number("tpot_s", entry["tpot_s"], 0),
    )


def _utility(value: Any) -> TimeUtility:
    if not isinstance(value, dict):
        raise Fault("utility", f"is {shown(value)}: must be an object")
    entry = keys(value, _UTILITY, "utility.")
    numbers = [number(f"utility.{key}", entry[key]) for key in _UTILITY]
    try:
        return TimeUtility(*numbers)
    except ValueError as error:
        name, _, reason = str(error).partition(" ")
        raise Fault("utility.ert_s" if name == "utility.ert" else name, reason) from None
