"""Reads a skill set from YAML, strictly: each fault is a ``SkillSetError`` with line and reason."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import yaml

from timely_llm.patterns import Pattern, PatternError
from timely_llm.skills import Argument, Bounds, Duration, Skill, SkillSet, SkillSetError, polynomial

MAX_TEXT = 65_536  # characters of a skill set
MAX_SKILLS = 64
MAX_ARGUMENTS = 6
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
_WHOLE = [name for name in _LIMITS if name not in ("max_time", "max_travel")]


class _Node:
    """A YAML node with its place; reading it as something else is an error that names the line."""

    def __init__(self, node: yaml.Node, source: str, field: str) -> None:
        self.node, self.source, self.field = node, source, field
        self.line = node.start_mark.line + 1

    def fail(self, reason: str) -> NoReturn:
        raise SkillSetError(self.source, self.line, self.field, reason)

    def mapping(self, keys: Iterable[str], required: Iterable[str] = ()) -> dict[str, _Node]:
        if not isinstance(self.node, yaml.MappingNode):
            self.fail("must be a mapping")
        known, entries = list(keys), {}
        for key_node, value_node in self.node.value:
            key = _Node(key_node, self.source, self.field)
            name = key.text(200)
            if name not in known:
                near = difflib.get_close_matches(name, known, 1, 0)
                key.fail(f"unknown key {name!r}" + (f": did you mean {near[0]!r}?" if near else ""))
            if name in entries:
                key.fail(f"key {name!r} is given twice")
            value = _Node(value_node, self.source, f"{self.field}.{name}".lstrip("."))
            value.line = key.line
            entries[name] = value
        for name in required:
            if name not in entries:
                self.fail(f"{name!r} is missing")
        return entries

    def items(self, minimum: int, maximum: int) -> list[_Node]:
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail("must be a list")
        if not minimum <= len(self.node.value) <= maximum:
            self.fail(f"has {len(self.node.value)} entries: must have {minimum} to {maximum}")
        return [
            _Node(node, self.source, f"{self.field}[{i}]") for i, node in enumerate(self.node.value)
        ]

    def text(self, maximum: int = 400) -> str:
        if not isinstance(self.node, yaml.ScalarNode):
            self.fail("must be a text")
        text = self.node.value.strip()
        if not 0 < len(text) <= maximum:
            self.fail(f"has {len(text)} characters: must have 1 to {maximum}")
        if not text.isprintable():
            self.fail("holds a line break or a control character")
        return text

    def name(self) -> str:
        text = self.text()
        if not _NAME.fullmatch(text):
            self.fail(f"is {text!r}: must be lower-case letters, digits and _, at most 32")
        return text

    def choice(self, choices: Iterable[str]) -> str:
        text, known = self.text(), list(choices)
        if text not in known:
            near = difflib.get_close_matches(text, known, 1, 0)
            self.fail(f"is {text!r}: must be one of {', '.join(known)}; nearest: {near[0]!r}")
        return text

    def number(self, low: float = -1e9, high: float = 1e9, whole: bool = False) -> float:
        try:
            value = float(self.text(40)) if self.node.style is None else math.nan
        except (ValueError, AttributeError):
            value = math.nan
        if not math.isfinite(value):
            self.fail("must be a finite number")
        if not low <= value <= high:
            self.fail(f"is {value:g}: must be {low:g} to {high:g}")
        if whole and value != int(value):
            self.fail(f"is {value:g}: must be a whole number")
        return int(value) if whole else value


def read_skill_set(text: str, source: str) -> SkillSet:
    """The skill set in ``text``; ``source`` names it in errors."""
    from timely_llm.grammar import longest_plan

    root = _compose(text, source)
    entries = root.mapping(("kind", "description", "bounds", "skills"), ("kind", "skills"))
    bounds = _bounds(entries["bounds"]) if "bounds" in entries else Bounds()
    seen: dict[str, _Node] = {}
    skills = tuple(_skill(node, bounds, seen) for node in entries["skills"].items(1, MAX_SKILLS))
    description = entries["description"].text() if "description" in entries else ""
    result = SkillSet(entries["kind"].name(), description, skills, bounds, text)
    if longest_plan(result) > bounds.max_plan_chars:
        entries.get("bounds", root).fail(
            f"the longest plan these bounds allow has {longest_plan(result)} characters, "
            f"max_plan_chars is {bounds.max_plan_chars}: lower max_statements or the string lengths"
        )
    return result


def _compose(text: str, source: str) -> _Node:
    def fail(line: int, reason: str) -> NoReturn:
        raise SkillSetError(source, line, "text", reason)

    if len(text) > MAX_TEXT:
        fail(1, f"has {len(text)} characters: at most {MAX_TEXT}")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        fail(mark.line + 1 if mark else 1, f"is not YAML: {error.problem or error.context}")
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        fail(line, f"is not YAML: character {error.character:#x} is not allowed")
    except RecursionError:
        fail(1, "is nested too deeply")
    if node is None:
        fail(1, "is empty")
    return _Node(node, source, "")


def _bounds(node: _Node) -> Bounds:
    entries = node.mapping((*_LIMITS, "geofence"))
    values: dict[str, Any] = {
        name: entry.number(*_LIMITS[name], whole=name in _WHOLE)
        for name, entry in entries.items()
        if name != "geofence"
    }
    if "geofence" in entries:
        axes = entries["geofence"].mapping("xyz", "xyz")
        values["geofence"] = tuple(_range(axes[axis]) for axis in "xyz")
    return Bounds(**values)


def _range(node: _Node, low: float = -1e6) -> tuple[float, float]:
    first, second = (item.number(low) for item in node.items(2, 2))
    if first > second:
        node.fail(f"is [{first:g}, {second:g}]: must not fall")
    return first, second


def _skill(node: _Node, bounds: Bounds, seen: dict[str, _Node]) -> Skill:
    keys = ("name", "long_name", "description", "arguments", "returns", "duration", "role",
            "source", "definition")  # fmt: skip
    entries = node.mapping(keys, ("name", "duration"))
    if "definition" in entries:
        entries["definition"].fail("skills defined by other skills are not supported")
    name = entries["name"].name()
    long_name = entries["long_name"].name() if "long_name" in entries else name
    for key in {"name": name, "long_name": long_name}:
        value = entries[key].name() if key in entries else name
        if seen.setdefault(value, node) is not node:
            entries[key].fail(f"{value!r} is already a skill, in line {seen[value].line}")
    given = entries["arguments"].items(0, MAX_ARGUMENTS) if "arguments" in entries else []
    arguments = tuple(_argument(item, bounds) for item in given)
    names = [argument.name for argument in arguments]
    for i, argument_name in enumerate(names):
        if argument_name in names[:i]:
            given[i].fail(f"argument {argument_name!r} is given twice")
    optional: Callable[[str], str] = lambda key: entries[key].text() if key in entries else ""  # noqa: E731
    returns = ("none", "bool", "int", "float", "str")
    skill_returns = entries["returns"].choice(returns) if "returns" in entries else "none"
    role = entries["role"].choice(("replan", "probe")) if "role" in entries else ""
    if role == "probe" and (skill_returns != "str" or [a.type for a in arguments] != ["str"]):
        entries["role"].fail("a probe takes one str and returns str")
    if role == "replan" and (skill_returns != "none" or arguments):
        entries["role"].fail("a replan takes and returns nothing")
    duration = _duration(entries["duration"], arguments)
    return Skill(name, long_name, optional("description"), arguments, skill_returns, duration,
                 role, optional("source"))  # fmt: skip


def _argument(node: _Node, bounds: Bounds) -> Argument:
    keys = ("name", "type", "unit", "minimum", "maximum", "pattern", "description")
    entries = node.mapping(keys, ("name", "type"))
    kind = entries["type"].choice(("int", "float", "str"))
    optional: Callable[[str], str] = lambda key: entries[key].text() if key in entries else ""  # noqa: E731
    if kind == "str":
        low: float = entries["minimum"].number(1, whole=True) if "minimum" in entries else 1
        high = float(bounds.max_string)
        if "maximum" in entries:
            high = entries["maximum"].number(1, bounds.max_string, whole=True)
    else:
        if "pattern" in entries:
            entries["pattern"].fail("only a str has a pattern")
        for limit in ("minimum", "maximum"):
            if limit not in entries:
                node.fail(f"{limit!r} is missing: a number needs both limits")
        low = entries["minimum"].number(-1e6, 1e6, whole=kind == "int")
        high = entries["maximum"].number(-1e6, 1e6, whole=kind == "int")
    if low > high:
        (entries.get("minimum") or node).fail(f"minimum {low:g} is above maximum {high:g}")
    if kind == "float" and not _has_tenth(low, high):
        node.fail(f"no number with one decimal lies between {low:g} and {high:g}")
    pattern = _pattern(entries["pattern"], low, high) if "pattern" in entries else None
    return Argument(entries["name"].name(), kind, optional("unit"), low, high, pattern,
                    optional("description"))  # fmt: skip


def _has_tenth(low: float, high: float) -> bool:
    return math.ceil(low * 10 - 1e-9) <= math.floor(high * 10 + 1e-9)


def _pattern(node: _Node, low: float, high: float) -> str:
    text = node.text(200)
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


def _duration(node: _Node, arguments: tuple[Argument, ...]) -> Duration:
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
        constant = value.number(0, 86_400)
        return Duration(model, (constant,), None, constant, constant)
    if model == "uniform":
        low, high = _range(value, 0.0)
        return Duration(model, (low, high), None, low, high)
    if model == "choice":
        parts = value.mapping(("step", "count"), ("step", "count"))
        step, count = parts["step"].number(0, 86_400), parts["count"].number(1, 1000, whole=True)
        return Duration(model, (step, count), None, step, step * count)
    if model == "argument":
        return _polynomial(value, value, (0.0, 1.0), arguments)
    coefficients = tuple(item.number() for item in value.items(1, 8))
    return _polynomial(value, entries["of"], coefficients, arguments)


def _polynomial(
    node: _Node, of: _Node, coefficients: tuple[float, ...], arguments: tuple[Argument, ...]
) -> Duration:
    numeric = [argument.name for argument in arguments if argument.type != "str"]
    if of.text() not in numeric:
        of.fail(f"{of.text()!r} is not a numeric argument of this skill")
    index = [argument.name for argument in arguments].index(of.text())
    low, high = arguments[index].minimum, arguments[index].maximum
    # Extremes over the limits, on a grid: measured polynomials are smooth.
    samples = [polynomial(coefficients, low + (high - low) * i / 512) for i in range(513)]
    if min(samples) < 0 or max(samples) > 86_400:
        node.fail(f"is {min(samples):.3g} to {max(samples):.3g} s within the argument's limits")
    return Duration("polynomial", coefficients, index, min(samples), max(samples))
