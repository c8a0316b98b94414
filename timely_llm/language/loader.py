"""Reads a skill set from YAML, strictly: each fault is a ``FileError`` with line and reason.

The classes here are what the file says; ``skills.py`` has what a skill set is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, PlainValidator

from timely_llm.language.definitions import UNTIMED, DefinitionError, define
from timely_llm.language.parser import REFUSAL, PlanError, parse
from timely_llm.language.patterns import Pattern, PatternError
from timely_llm.language.skills import (
    Argument,
    Bounds,
    Duration,
    Example,
    Skill,
    SkillSet,
    Value,
    polynomial,
    rising,
    value_literal,
    value_text,
)
from timely_llm.validation.reader import (
    Entry,
    Fault,
    Place,
    choice,
    file_text,
    items,
    number,
    parse_yaml,
    text,
    typed,
    whole,
)

MAX_TEXT = 65_536  # characters of a skill set
MAX_SKILLS = 64
MAX_ARGUMENTS = 6
MAX_CHOICES = 64
MOST_CHOICE = 1e6  # magnitude of a number among them
MAX_EXAMPLES = 32
_DAY = 86_400.0  # s


def load_skill_set(path: str | Path) -> SkillSet:
    """``read_skill_set`` of a file; ``OSError`` if it cannot be read."""
    return read_skill_set(file_text(path), str(path))


def read_skill_set(content: str, source: str = "<skill set>") -> SkillSet:
    """The skill set in YAML ``content``; anything wrong is a ``FileError`` that names ``source``,
    line, field and reason."""
    document = parse_yaml(content, source, MAX_TEXT)
    try:
        return _skill_set(document.read(_File), content)
    except Fault as fault:
        document.fail(fault)


# ---- what the file says ------------------------------------------------------------------------


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise Fault("holds a line break or a control character")
    return value


_Line = Annotated[str, text(400), AfterValidator(_one_line)]
_Name = Annotated[
    str,
    text(400, pattern="[a-z][a-z0-9_]{0,31}", words="lower-case letters, digits and _, at most 32"),
]
_Limit = Annotated[float, number(-1e6, 1e6)]
_Seconds = Annotated[float, number(0, _DAY)]
_Any = Annotated[float, number(-1e9, 1e9)]
_Positive = Annotated[float, number(0, 1e9)]


_Choice = Annotated[Value, PlainValidator(typed)]


@dataclass(frozen=True, slots=True)
class _Argument(Entry):
    name: _Name
    type: Annotated[str, choice("int", "float", "str", "bool")]
    unit: _Line = ""
    minimum: _Limit | None = None
    maximum: _Limit | None = None
    pattern: Annotated[str, text(200), AfterValidator(_one_line)] | None = None
    choices: Annotated[tuple[_Choice, ...], items(1, MAX_CHOICES)] = ()
    description: _Line = ""


@dataclass(frozen=True, slots=True)
class _Steps(Entry):
    step: _Seconds
    count: Annotated[int, whole(1, 1000)]


@dataclass(frozen=True, slots=True)
class _Duration(Entry):
    constant: _Seconds | None = None
    polynomial: Annotated[tuple[_Any, ...], items(1, 8)] | None = None
    uniform: Annotated[tuple[_Positive, _Positive], items(2, 2), AfterValidator(rising)] | None = (
        None
    )
    choice: _Steps | None = None
    argument: _Line | None = None
    of: _Line | None = None

    def checked(self, context: object) -> _Duration:
        models = ("constant", "polynomial", "uniform", "choice", "argument")
        if sum(getattr(self, model) is not None for model in models) != 1:
            raise Fault(f"must have exactly one of {', '.join(models)}")
        if (self.of is None) != (self.polynomial is None):
            raise Fault("a polynomial, and nothing else, is 'of' an argument")
        return self


@dataclass(frozen=True, slots=True)
class _Skill(Entry):
    name: _Name
    long_name: _Name = ""
    description: _Line = ""
    arguments: Annotated[tuple[_Argument, ...], items(0, MAX_ARGUMENTS)] = ()
    returns: Annotated[str, choice("none", "bool", "int", "float", "str")] = "none"
    duration: _Duration | None = None
    role: Annotated[str, choice("replan", "probe")] = ""
    source: _Line = ""
    definition: Annotated[str, text(MAX_TEXT), AfterValidator(_one_line)] = ""

    def checked(self, context: object) -> _Skill:
        if self.duration is None and not self.definition:
            raise Fault("'duration' is missing")
        for field in ("name", "long_name"):
            if getattr(self, field) == REFUSAL:
                raise Fault(f"{REFUSAL!r} is a statement of the plan language", field)
        names = [argument.name for argument in self.arguments]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise Fault(f"argument {name!r} is given twice", "arguments", i)
        types = [argument.type for argument in self.arguments]
        if self.role == "probe" and (self.returns != "str" or types != ["str"]):
            raise Fault("a probe takes one str and returns str", "role")
        if self.role == "replan" and (self.returns != "none" or types):
            raise Fault("a replan takes and returns nothing", "role")
        if self.role and self.definition:
            raise Fault(f"a {self.role} has no definition", "role")
        return self


@dataclass(frozen=True, slots=True)
class _Example(Entry):
    instruction: Annotated[str, text(400), AfterValidator(_one_line)]
    plan: Annotated[str, text(MAX_TEXT), AfterValidator(_one_line)]
    scene: _Line = "[]"


@dataclass(frozen=True, slots=True)
class _File(Entry):
    kind: _Name
    skills: Annotated[tuple[_Skill, ...], items(1, MAX_SKILLS)]
    description: _Line = ""
    bounds: Bounds = Bounds()
    examples: Annotated[tuple[_Example, ...], items(0, MAX_EXAMPLES)] = ()


# ---- what it means -----------------------------------------------------------------------------


def _skill_set(file: _File, content: str) -> SkillSet:
    _check_names(file.skills)
    skills = tuple(_skill(entry, file.bounds, ("skills", i)) for i, entry in enumerate(file.skills))
    try:
        result = define(SkillSet(file.kind, file.description, skills, file.bounds, content))
    except DefinitionError as error:
        index = [skill.name for skill in skills].index(error.skill)
        raise Fault(error.reason, "skills", index, "definition") from None
    for i, example in enumerate(file.examples):
        try:
            parse(example.plan, result)
        except PlanError as error:
            raise Fault(str(error), "examples", i, "plan") from None
    examples = tuple(Example(e.instruction, e.plan, e.scene) for e in file.examples)
    return replace(result, examples=examples)


def _check_names(skills: tuple[_Skill, ...]) -> None:
    seen: dict[str, int] = {}
    for i, skill in enumerate(skills):
        for key, name in (("name", skill.name), ("long_name", skill.long_name)):
            if name and (first := seen.setdefault(name, i)) != i:
                reason = f"{name!r} is already a skill, in line {{line}}"
                raise Fault(reason, "skills", i, key, first=("skills", first))


def _skill(entry: _Skill, bounds: Bounds, place: Place) -> Skill:
    arguments = tuple(
        _argument(argument, bounds, (*place, "arguments", i))
        for i, argument in enumerate(entry.arguments)
    )
    if len(entry.definition) > bounds.max_plan_chars:
        count = len(entry.definition)
        reason = f"has {count} characters: must have 1 to {bounds.max_plan_chars}"
        raise Fault(reason, *place, "definition")
    return Skill(
        entry.name,
        entry.long_name or entry.name,
        entry.description,
        arguments,
        entry.returns,
        _duration(entry.duration, arguments, (*place, "duration")) if entry.duration else UNTIMED,
        entry.role,
        entry.source,
        entry.definition,
    )


def _argument(entry: _Argument, bounds: Bounds, place: Place) -> Argument:
    for key in ("minimum", "maximum", "pattern"):
        free = not entry.choices and entry.type != "bool"
        if getattr(entry, key) is not None and not free:
            raise Fault("does not go with choices or type bool", *place, key)
    if entry.pattern is not None and entry.type != "str":
        raise Fault("only a str has a pattern", *place, "pattern")
    if entry.choices:
        return _one_of(entry, bounds, place)
    if entry.type == "bool":
        return Argument(entry.name, "bool", entry.unit, description=entry.description)
    low, high = entry.minimum, entry.maximum
    if entry.type == "str":
        low, high = 1 if low is None else low, bounds.max_string if high is None else high
        for key, value, most in (("minimum", low, 1e6), ("maximum", high, bounds.max_string)):
            if not 1 <= value <= most:
                raise Fault(f"is {value:g}: must be 1 to {most:g}", *place, key)
    for key, limit in (("minimum", low), ("maximum", high)):
        if limit is None:
            raise Fault(f"{key!r} is missing: a number needs both limits", *place)
        if entry.type != "float" and limit != int(limit):
            raise Fault(f"is {limit:g}: must be a whole number", *place, key)
    assert low is not None and high is not None
    if low > high:
        raise Fault(f"minimum {low:g} is above maximum {high:g}", *place, "minimum")
    if entry.pattern is not None:
        _check_pattern(entry.pattern, low, high, (*place, "pattern"))
    return Argument(entry.name, entry.type, entry.unit, low, high, entry.pattern, entry.description)


def _one_of(entry: _Argument, bounds: Bounds, place: Place) -> Argument:
    """An argument with choices; its limits are theirs."""
    if entry.type == "bool":
        raise Fault("a bool has no choices", *place, "choices")
    for i, value in enumerate(entry.choices):
        if reason := _no_choice(value, entry.type, bounds):
            raise Fault(reason, *place, "choices", i)
        if value in entry.choices[:i]:
            raise Fault(f"{value_text(value)!r} is given twice", *place, "choices", i)
    sizes = [len(value) if isinstance(value, str) else float(value) for value in entry.choices]
    low, high = min(sizes), max(sizes)
    values = entry.choices if entry.type != "float" else tuple(map(float, entry.choices))
    return Argument(entry.name, entry.type, entry.unit, low, high, None, entry.description, values)


def _no_choice(value: Value, kind: str, bounds: Bounds) -> str:
    """Why the value cannot be a choice of such an argument; empty: it can."""
    shown = f"is {value_literal(value)}"
    if kind != "str":
        right = type(value) is int or (kind == "float" and type(value) is float)
        if not right:
            return f"{shown}: must be {'a whole number' if kind == 'int' else 'a number'}"
        return "" if abs(float(value)) <= MOST_CHOICE else f"{shown}: must be -1e6 to 1e6"
    if not isinstance(value, str):
        return f"{shown}: must be a text, in quotes"
    if not 1 <= len(value) <= bounds.max_string or not value.isprintable():
        return f"{shown}: must have 1 to {bounds.max_string} printable characters"
    if "'" in value and '"' in value:
        return f"{shown}: cannot be written with both kinds of quotes"
    return ""


def _check_pattern(text: str, low: float, high: float, place: Place) -> None:
    try:
        pattern = Pattern(text)
    except PatternError as error:
        raise Fault(f"{text!r} {error}", *place) from None
    if pattern.shortest < low or pattern.longest > high:
        raise Fault(
            f"{text!r} matches {pattern.shortest} to {pattern.longest} characters: "
            f"must stay within {low:g} to {high:g}",
            *place,
        )


def _duration(entry: _Duration, arguments: tuple[Argument, ...], place: Place) -> Duration:
    if entry.constant is not None:
        return Duration("constant", (entry.constant,), None, entry.constant, entry.constant)
    if entry.uniform is not None:
        return Duration("uniform", entry.uniform, None, *entry.uniform)
    if entry.choice is not None:
        step, count = entry.choice.step, entry.choice.count
        return Duration("choice", (step, count), None, step, step * count)
    if entry.polynomial is not None:
        return _polynomial(entry.of, "of", entry.polynomial, arguments, place)
    return _polynomial(entry.argument, "argument", (0.0, 1.0), arguments, place)


def _polynomial(
    of: str | None,
    key: str,
    coefficients: tuple[float, ...],
    arguments: tuple[Argument, ...],
    place: Place,
) -> Duration:
    numeric = {a.name: i for i, a in enumerate(arguments) if a.type in ("int", "float")}
    if of not in numeric:
        raise Fault(f"{of!r} is not a numeric argument of this skill", *place, key)
    low, high = arguments[numeric[of]].minimum, arguments[numeric[of]].maximum
    # Extremes over the limits, on a grid: measured polynomials are smooth.
    samples = [polynomial(coefficients, low + (high - low) * i / 512) for i in range(513)]
    if min(samples) < 0 or max(samples) > _DAY:
        reason = f"is {min(samples):.3g} to {max(samples):.3g} s within the argument's limits"
        raise Fault(reason, *place, "polynomial" if key == "of" else key)
    return Duration("polynomial", coefficients, numeric[of], min(samples), max(samples))
