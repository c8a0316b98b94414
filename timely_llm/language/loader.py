"""Reads a skill set from YAML, strictly: each fault is a ``SkillSetError`` with line and reason."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from timely_llm.language.definitions import UNTIMED, DefinitionError, define
from timely_llm.language.grammar import longest_plan
from timely_llm.language.patterns import Pattern, PatternError
from timely_llm.language.skills import (
    Argument,
    Bounds,
    Duration,
    Skill,
    SkillSet,
    SkillSetError,
    polynomial,
)
from timely_llm.validation.reader import Node, YamlError, read

MAX_TEXT = 65_536  # characters of a skill set
MAX_SKILLS = 64
MAX_ARGUMENTS = 6
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_LIMITS: dict[str, tuple[float, float]] = {
    "max_nesting": (0, 8),
    "max_statements": (1, 100),
    "max_string": (1, 200),
    "max_loop": (1, 1000),
    "max_variables": (1, 9),
    "max_number": (1, 1_000_000),
    "max_plan_chars": (1, 20_000),
    "max_steps": (1, 100_000),
    "max_time": (0, 86_400),
    "max_travel": (0, 1e6),
}
_KEYS = ("name", "long_name", "description", "arguments", "returns", "duration", "role", "source",
         "definition")  # fmt: skip
_WHOLE = [name for name in _LIMITS if name not in ("max_time", "max_travel")]


def load_skill_set(path: str | Path) -> SkillSet:
    """``read_skill_set`` of a file; ``OSError`` if it cannot be read."""
    data = Path(path).read_bytes()
    try:
        return read_skill_set(data.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SkillSetError(str(path), line, "text", "is not UTF-8") from None


def read_skill_set(text: str, source: str = "<skill set>") -> SkillSet:
    """The skill set in YAML ``text``; anything wrong is a ``SkillSetError`` that names ``source``,
    line and reason."""
    if len(text) > MAX_TEXT:
        reason = f"has {len(text)} characters: must have at most {MAX_TEXT}"
        raise SkillSetError(source, 1, "text", reason)
    try:
        return _skill_set(read(text, source), text)
    except YamlError as error:
        field = error.field or "text"
        raise SkillSetError(source, error.line, field, error.reason) from None


def _skill_set(root: Node, text: str) -> SkillSet:
    entries = root.mapping(("kind", "description", "bounds", "skills"), ("kind", "skills"))
    bounds = _bounds(entries["bounds"]) if "bounds" in entries else Bounds()
    seen: dict[str, Node] = {}
    skills = tuple(_skill(node, bounds, seen) for node in entries["skills"].items(1, MAX_SKILLS))
    description = _optional(entries, "description")
    result = SkillSet(_name(entries["kind"]), description, skills, bounds, text)
    try:
        result = define(result)
    except DefinitionError as error:
        node = seen[error.skill]
        node.mapping(_KEYS)["definition"].fail(error.reason)
    if longest_plan(result) > bounds.max_plan_chars:
        entries.get("bounds", root).fail(
            f"the longest plan these bounds allow has {longest_plan(result)} characters, "
            f"max_plan_chars is {bounds.max_plan_chars}: lower max_statements or the string lengths"
        )
    return result


def _line(node: Node, maximum: int = 400) -> str:
    """A text without line breaks and control characters."""
    text = node.text(maximum)
    if not text.isprintable():
        node.fail("holds a line break or a control character")
    return text


def _optional(entries: dict[str, Node], key: str) -> str:
    return _line(entries[key]) if key in entries else ""


def _name(node: Node) -> str:
    text = _line(node)
    if not _NAME.fullmatch(text):
        node.fail(f"is {text!r}: must be lower-case letters, digits and _, at most 32")
    return text


def _number(node: Node, low: float = -1e9, high: float = 1e9) -> float:
    text = _line(node, 40)
    # Not by YAML's own types: they take 1e3 for a text.
    if node.node.style is not None or not _NUMBER.fullmatch(text):
        node.fail(f"is {text!r}: must be a number")
    value = float(text)
    if not low <= value <= high:
        node.fail(f"is {value:g}: must be {low:g} to {high:g}")
    return value


def _whole(node: Node, low: float = -1e9, high: float = 1e9) -> int:
    value = _number(node, low, high)
    if value != int(value):
        node.fail(f"is {value:g}: must be a whole number")
    return int(value)


def _bounds(node: Node) -> Bounds:
    entries = node.mapping((*_LIMITS, "geofence"))
    values: dict[str, Any] = {
        name: (_whole if name in _WHOLE else _number)(entry, *_LIMITS[name])
        for name, entry in entries.items()
        if name != "geofence"
    }
    if "geofence" in entries:
        axes = entries["geofence"].mapping("xyz", "xyz")
        values["geofence"] = tuple(_range(axes[axis]) for axis in "xyz")
    return Bounds(**values)


def _range(node: Node, low: float = -1e6) -> tuple[float, float]:
    first, second = (_number(item, low) for item in node.items(2, 2))
    if first > second:
        node.fail(f"is [{first:g}, {second:g}]: must not fall")
    return first, second


def _skill(node: Node, bounds: Bounds, seen: dict[str, Node]) -> Skill:
    entries = node.mapping(_KEYS, ("name",))
    if "duration" not in entries and "definition" not in entries:
        node.fail("'duration' is missing")
    name = _name(entries["name"])
    long_name = _name(entries["long_name"]) if "long_name" in entries else name
    for key, value in (("name", name), ("long_name", long_name)):
        if seen.setdefault(value, node) is not node:
            entries[key].fail(f"{value!r} is already a skill, in line {seen[value].line}")
    given = entries["arguments"].items(0, MAX_ARGUMENTS) if "arguments" in entries else []
    arguments = tuple(_argument(item, bounds) for item in given)
    names = [argument.name for argument in arguments]
    for i, argument_name in enumerate(names):
        if argument_name in names[:i]:
            given[i].fail(f"argument {argument_name!r} is given twice")
    returns = ("none", "bool", "int", "float", "str")
    skill_returns = entries["returns"].choice(returns) if "returns" in entries else "none"
    role = entries["role"].choice(("replan", "probe")) if "role" in entries else ""
    if role == "probe" and (skill_returns != "str" or [a.type for a in arguments] != ["str"]):
        entries["role"].fail("a probe takes one str and returns str")
    if role == "replan" and (skill_returns != "none" or arguments):
        entries["role"].fail("a replan takes and returns nothing")
    duration = _duration(entries["duration"], arguments) if "duration" in entries else UNTIMED
    description, source = _optional(entries, "description"), _optional(entries, "source")
    definition = ""
    if "definition" in entries:
        if role:
            entries["role"].fail(f"a {role} has no definition")
        definition = _line(entries["definition"], bounds.max_plan_chars)
    return Skill(name, long_name, description, arguments, skill_returns, duration, role, source,
                 definition)  # fmt: skip


def _argument(node: Node, bounds: Bounds) -> Argument:
    keys = ("name", "type", "unit", "minimum", "maximum", "pattern", "description")
    entries = node.mapping(keys, ("name", "type"))
    kind = entries["type"].choice(("int", "float", "str"))
    if kind == "str":
        low: float = _whole(entries["minimum"], 1) if "minimum" in entries else 1
        high = float(bounds.max_string)
        if "maximum" in entries:
            high = _whole(entries["maximum"], 1, bounds.max_string)
    else:
        if "pattern" in entries:
            entries["pattern"].fail("only a str has a pattern")
        for limit in ("minimum", "maximum"):
            if limit not in entries:
                node.fail(f"{limit!r} is missing: a number needs both limits")
        number = _whole if kind == "int" else _number
        low = number(entries["minimum"], -1e6, 1e6)
        high = number(entries["maximum"], -1e6, 1e6)
    if low > high:
        (entries.get("minimum") or node).fail(f"minimum {low:g} is above maximum {high:g}")
    if kind == "float" and not _has_tenth(low, high):
        node.fail(f"no number with one decimal lies between {low:g} and {high:g}")
    pattern = _pattern(entries["pattern"], low, high) if "pattern" in entries else None
    return Argument(_name(entries["name"]), kind, _optional(entries, "unit"), low, high, pattern,
                    _optional(entries, "description"))  # fmt: skip


def _has_tenth(low: float, high: float) -> bool:
    return math.ceil(low * 10 - 1e-9) <= math.floor(high * 10 + 1e-9)


def _pattern(node: Node, low: float, high: float) -> str:
    text = _line(node, 200)
    try:
        pattern = Pattern(text)
    except PatternError as error:
        node.fail(f"{text!r} {error}")
    if pattern.shortest < low or pattern.longest > high:
        node.fail(
            f"{text!r} matches {pattern.shortest} to {pattern.longest} characters: "
            f"must stay within {low:g} to {high:g}"
        )
    return text


def _duration(node: Node, arguments: tuple[Argument, ...]) -> Duration:
    models = ("constant", "polynomial", "uniform", "choice", "argument")
    entries = node.mapping((*models, "of"))
    given = [name for name in models if name in entries]
    if len(given) != 1:
        node.fail(f"must have exactly one of {', '.join(models)}")
    model = given[0]
    if ("of" in entries) != (model == "polynomial"):
        node.fail("a polynomial, and nothing else, is 'of' an argument")
    value = entries[model]
    if model == "constant":
        constant = _number(value, 0, 86_400)
        return Duration(model, (constant,), None, constant, constant)
    if model == "uniform":
        low, high = _range(value, 0.0)
        return Duration(model, (low, high), None, low, high)
    if model == "choice":
        parts = value.mapping(("step", "count"), ("step", "count"))
        step, count = _number(parts["step"], 0, 86_400), _whole(parts["count"], 1, 1000)
        return Duration(model, (step, count), None, step, step * count)
    if model == "argument":
        return _polynomial(value, value, (0.0, 1.0), arguments)
    coefficients = tuple(_number(item) for item in value.items(1, 8))
    return _polynomial(value, entries["of"], coefficients, arguments)


def _polynomial(
    node: Node, of: Node, coefficients: tuple[float, ...], arguments: tuple[Argument, ...]
) -> Duration:
    numeric = [argument.name for argument in arguments if argument.type != "str"]
    if _line(of) not in numeric:
        of.fail(f"{_line(of)!r} is not a numeric argument of this skill")
    index = [argument.name for argument in arguments].index(_line(of))
    low, high = arguments[index].minimum, arguments[index].maximum
    # Extremes over the limits, on a grid: measured polynomials are smooth.
    samples = [polynomial(coefficients, low + (high - low) * i / 512) for i in range(513)]
    if min(samples) < 0 or max(samples) > 86_400:
        node.fail(f"is {min(samples):.3g} to {max(samples):.3g} s within the argument's limits")
    return Duration("polynomial", coefficients, index, min(samples), max(samples))
