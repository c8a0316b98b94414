"""What was learned about durations as text: JSON that people can read. Pure; who reads and writes
the file is ``ros/times_keeper.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from timely_llm.estimation.drift import Drift
from timely_llm.estimation.learned_times import Key, Learned, Own
from timely_llm.estimation.skill_time import OWN_WINDOW, SHORTEST, WINDOW, Sample
from timely_llm.language.skills import TIMED_SKILL
from timely_llm.validation.reader import Entry, Fault, items, number, parse_json, text, whole

VERSION = 1
_LONGEST = 1e6  # s
_LARGEST = 50.0  # log ratio
_MOST = 1 << 53  # executions

_Text = Annotated[str, text(least=0)]
_Expected = Annotated[float, number(TIMED_SKILL, _LONGEST)]
_Measured = Annotated[float, number(SHORTEST, _LONGEST)]
_LogRatio = Annotated[float, number(-_LARGEST, _LARGEST)]


@dataclass(frozen=True, slots=True)
class _Model(Entry):
    """What all robots of a kind took for a skill, as one time model expects it."""

    model: _Text
    executions: Annotated[
        tuple[Annotated[tuple[_Expected, _Measured, _Text], items(3, 3)], ...], items(0, WINDOW)
    ]


@dataclass(frozen=True, slots=True)
class _Usual(Entry):
    """The state of a ``Drift``."""

    executions: Annotated[int, whole(0, _MOST)]
    level: _LogRatio
    spread: Annotated[float, number(0.0, _LARGEST)]
    usual: _LogRatio | None
    factor: Annotated[float, number(math.exp(-_LARGEST), math.exp(_LARGEST))]


@dataclass(frozen=True, slots=True)
class _Own(Entry):
    """What one robot took for a skill."""

    kind: _Text
    skill: _Text
    model: _Text
    executions: Annotated[
        tuple[Annotated[tuple[_Expected, _Measured], items(2, 2)], ...], items(0, OWN_WINDOW)
    ]
    usual: _Usual


@dataclass(frozen=True, slots=True)
class _File(Entry):
    version: int
    kinds: Mapping[str, Mapping[str, Annotated[tuple[_Model, ...], items(0, WINDOW)]]]
    robots: Mapping[str, Annotated[tuple[_Own, ...], items(0, 1 << 16)]]


def text_of(learned: Learned) -> str:
    """``learned`` as the file's text; numbers in six digits, an execution's in a line."""
    kinds: dict[str, dict[str, Any]] = {}
    for (kind, skill, model), samples in sorted(learned.kinds.items()):
        entry = {"model": model, "executions": [_row(s) for s in samples]}
        kinds.setdefault(kind, {}).setdefault(skill, []).append(entry)
    robots: dict[str, list[dict[str, Any]]] = {}
    for robot, skills in sorted(learned.robots.items()):
        for (kind, skill, model), own in sorted(skills.items()):
            entry = {"kind": kind, "skill": skill, "model": model}
            entry |= {"executions": [_row(s)[:2] for s in own.samples]}
            robots.setdefault(robot, []).append(entry | {"usual": _usual_row(own.drift)})
    return _indented({"version": VERSION, "kinds": kinds, "robots": robots}) + "\n"


def read(content: str, source: str) -> Learned:
    """What ``text_of`` wrote; ``source`` names it in errors. Anything else is a ``FileError``."""
    document = parse_json(content, source)
    if not isinstance(document.value, dict) or "version" not in document.value:
        document.fail(Fault("is not a file of learned times: it has no 'version'"))
    version = document.value["version"]
    if version != VERSION or isinstance(version, bool):
        shown = json.dumps(version)[:40]
        document.fail(Fault(f"version is {shown}: this planner reads {VERSION}"))
    file = document.read(_File)
    kinds = {
        (kind, skill, entry.model): tuple(Sample(*row) for row in entry.executions)
        for kind, skills in file.kinds.items()
        for skill, models in skills.items()
        for entry in models
    }
    return Learned(kinds, {robot: _robot(robot, owns) for robot, owns in file.robots.items()})


def _robot(robot: str, owns: tuple[_Own, ...]) -> Mapping[Key, Own]:
    skills = {}
    for own in owns:
        was = own.usual
        drift = Drift.resumed(was.executions, was.level, was.spread, was.usual, was.factor)
        samples = tuple(Sample(*row, robot) for row in own.executions)
        skills[own.kind, own.skill, own.model] = Own(samples, drift)
    return skills


def _row(sample: Sample) -> list[Any]:
    return [_short(sample.expected), _short(sample.measured), sample.robot]


def _usual_row(drift: Drift) -> dict[str, Any]:
    names = ("level", "spread", "usual", "factor")
    values = {name: getattr(drift, name) for name in names}
    rounded = {name: None if v is None else _short(v) for name, v in values.items()}
    return {"executions": drift.count} | rounded


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _indented(value: Any, depth: int = 0) -> str:
    """JSON with a line for each entry of an object and each list of objects; lists of executions
    in a line."""
    pad = "  " * (depth + 1)
    if isinstance(value, dict) and value:
        lines = [f"{pad}{json.dumps(k)}: {_indented(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + "  " * depth + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        lines = [pad + _indented(item, depth + 1) for item in value]
        return "[\n" + ",\n".join(lines) + "\n" + "  " * depth + "]"
    return json.dumps(value)
