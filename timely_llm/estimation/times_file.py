"""What was learned about durations as text: JSON that people can read. Pure; who reads and writes
the file is ``ros/times_keeper.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from timely_llm.estimation.drift import Drift
from timely_llm.estimation.learned_times import Key, Learned, Own
from timely_llm.estimation.skill_time import OWN_WINDOW, SHORTEST, WINDOW, Sample
from timely_llm.language.skills import TIMED_SKILL
from timely_llm.validation.names import hint

VERSION = 1
_LONGEST = 1e6  # s
_LARGEST = 50.0  # log ratio
_MOST = 1 << 53  # executions


class TimesFileError(ValueError):
    """A text that does not hold learned times; it names the file, the line or the field, and what
    is wrong there."""


class _Place:
    """A value of the file with where it stands."""

    def __init__(self, value: Any, source: str, field: str = "") -> None:
        self.value, self.source, self.field = value, source, field

    def fail(self, reason: str) -> NoReturn:
        raise TimesFileError(f"{self.source}: {self.field + ': ' if self.field else ''}{reason}")

    def entries(self, keys: Sequence[str] | None = None) -> dict[str, _Place]:
        """The entries by key; exactly ``keys``, where given."""
        if not isinstance(self.value, dict):
            self.fail("must be an object")
        for key in self.value if keys is not None else ():
            if key not in keys:
                self.fail(f"unknown key {key!r}{hint(key, keys)}")
        for key in keys or ():
            if key not in self.value:
                self.fail(f"{key!r} is missing")
        return {
            key: _Place(value, self.source, f"{self.field}.{key}".lstrip("."))
            for key, value in self.value.items()
        }

    def items(self, most: int, exactly: int | None = None) -> list[_Place]:
        if not isinstance(self.value, list):
            self.fail("must be a list")
        count = len(self.value)
        if exactly is not None and count != exactly:
            self.fail(f"has {count} values: must have {exactly}")
        if count > most:
            self.fail(f"has {count} entries: at most {most}")
        return [_Place(v, self.source, f"{self.field}[{i}]") for i, v in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail(f"is {self.value!r}: must be a text")
        return self.value

    def number(self, low: float, high: float) -> float:
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            self.fail(f"is {json.dumps(value)[:40]}: must be a number")
        if not low <= value <= high:
            self.fail(f"is {value:g}: must be {low:g} to {high:g}")
        return float(value)


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


def read(text: str, source: str) -> Learned:
    """What ``text_of`` wrote; ``source`` names it in errors. Anything else is a
    ``TimesFileError``."""
    try:
        root = _Place(json.loads(text), source)
    except json.JSONDecodeError as error:
        reason = f"{source}:{error.lineno}: is not JSON: {error.msg}"
        raise TimesFileError(reason) from None
    except (ValueError, RecursionError) as error:
        raise TimesFileError(f"{source}: cannot be read: {error}") from None
    if not isinstance(root.value, dict) or "version" not in root.value:
        root.fail("is not a file of learned times: it has no 'version'")
    if root.value["version"] != VERSION or isinstance(root.value["version"], bool):
        version = json.dumps(root.value["version"])[:40]
        root.fail(f"version is {version}: this planner reads {VERSION}")
    parts = root.entries(("version", "kinds", "robots"))
    kinds = {}
    for kind, skills in parts["kinds"].entries().items():
        for skill, models in skills.entries().items():
            for place in models.items(WINDOW):
                entry = place.entries(("model", "executions"))
                key = (kind, skill, entry["model"].text())
                kinds[key] = tuple(_sample(row, 3) for row in entry["executions"].items(WINDOW))
    robots = {robot: _robot(robot, place) for robot, place in parts["robots"].entries().items()}
    return Learned(kinds, robots)


def _robot(robot: str, place: _Place) -> Mapping[Key, Own]:
    skills = {}
    for item in place.items(1 << 16):
        entry = item.entries(("kind", "skill", "model", "executions", "usual"))
        kind, skill, model = (entry[name].text() for name in ("kind", "skill", "model"))
        rows = entry["executions"].items(OWN_WINDOW)
        samples = tuple(_sample(row, 2)._replace(robot=robot) for row in rows)
        skills[kind, skill, model] = Own(samples, _drift(entry["usual"]))
    return skills


def _row(sample: Sample) -> list[Any]:
    return [_short(sample.expected), _short(sample.measured), sample.robot]


def _sample(place: _Place, count: int) -> Sample:
    values = place.items(count, count)
    expected = values[0].number(TIMED_SKILL, _LONGEST)
    measured = values[1].number(SHORTEST, _LONGEST)
    return Sample(expected, measured, values[2].text() if count > 2 else "")


def _usual_row(drift: Drift) -> dict[str, Any]:
    names = ("level", "spread", "usual", "factor")
    values = {name: getattr(drift, name) for name in names}
    rounded = {name: None if v is None else _short(v) for name, v in values.items()}
    return {"executions": drift.count} | rounded


def _drift(place: _Place) -> Drift:
    entry = place.entries(("executions", "level", "spread", "usual", "factor"))
    drift = Drift()
    drift.resume(
        int(entry["executions"].number(0, _MOST)),
        entry["level"].number(-_LARGEST, _LARGEST),
        entry["spread"].number(0.0, _LARGEST),
        None if entry["usual"].value is None else entry["usual"].number(-_LARGEST, _LARGEST),
        entry["factor"].number(math.exp(-_LARGEST), math.exp(_LARGEST)),
    )
    return drift


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
