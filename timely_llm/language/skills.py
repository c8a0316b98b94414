"""What a robot can do: skills, their arguments with limits, their execution times, plan bounds.

Values and checks only. ``loader.py`` reads them from YAML, ``grammar.py`` derives the grammar,
``segmenter.py`` the detector. Times are seconds.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator

from timely_llm.validation.reader import Entry, Fault, described_by, items, number, whole

TIMED_SKILL = 0.05
"""s; a skill that may take this long or longer ends a segment (TimelyLLM, section 4.1)."""

Value = bool | int | float | str


class SkillCallError(ValueError):
    """A call outside the skill set or its limits; the text names skill, argument and limit."""


def value_text(value: Value | None) -> str:
    """A value as a robot reports it: ``True``, ``100``, ``0.1``, ``cat``; empty for None. A float's
    text is exact: the float comes back."""
    if value is None:
        return ""
    if type(value) is not float:
        return str(value)
    short = f"{value:.10g}"
    return short if float(short) == value else repr(value)


def value_literal(value: Value) -> str:
    """A value as a plan writes it: a text stands in quotes."""
    if not isinstance(value, str):
        return value_text(value)
    return f'"{value}"' if "'" in value else f"'{value}'"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument. Numbers have limits in ``unit``; for strings the limits are lengths. Where
    there are ``choices``, no other value is taken."""

    name: str
    type: str  # "int", "float", "str" or "bool"
    unit: str = ""
    minimum: float = 0
    maximum: float = 0
    pattern: str | None = None
    description: str = ""
    choices: tuple[Value, ...] = ()

    def check(self, value: Value, skill: str) -> Value:
        """The value as the skill takes it, or a ``SkillCallError`` that names the limit."""
        taken = self._check_type(value, skill)
        if self.choices and taken not in self.choices:
            words = ", ".join(map(value_literal, self.choices))
            given = f"{value_literal(taken)} {self.unit}".rstrip()
            raise SkillCallError(f"{skill}: {self.name} is {given}: must be one of {words}")
        return taken

    def _check_type(self, value: Value, skill: str) -> Value:
        if self.type == "str":
            return self._check_text(value_text(value), skill)
        if self.type == "bool":
            if isinstance(value, bool):
                return value
            raise SkillCallError(f"{skill}: {self.name} is {value!r}: must be True or False")
        where = f"{skill}: {self.name}"
        if isinstance(value, (bool, str)):
            raise SkillCallError(f"{where} is {value!r}: must be a number")
        unit = f" {self.unit}" if self.unit else ""
        if not self.minimum <= value <= self.maximum:  # refuses NaN too
            limits = f"{value_text(self.minimum)} to {value_text(self.maximum)}{unit}"
            raise SkillCallError(f"{where} is {value_text(value)}{unit}: must be {limits}")
        if self.type == "float":
            return float(value)
        if value != int(value):
            raise SkillCallError(f"{where} is {value_text(value)}{unit}: must be a whole number")
        return int(value)

    def _check_text(self, text: str, skill: str) -> str:
        where = f"{skill}: {self.name}"
        if self.choices:
            return text
        if not self.minimum <= len(text) <= self.maximum:
            limits = f"{self.minimum:g} to {self.maximum:g} characters"
            raise SkillCallError(f"{where} has {len(text)} characters: must have {limits}")
        if not text.isprintable():
            raise SkillCallError(f"{where} holds a control character")
        if self.pattern is not None and not re.fullmatch(self.pattern, text):
            raise SkillCallError(f"{where} is {text!r}: must match {self.pattern}")
        return text

    def parse(self, text: str) -> Value:
        """The value of an evaluated argument as ``value_text`` wrote it."""
        match self.type:
            case "str":
                return text
            case "bool":
                return text == "True"
            case "int":
                return int(text)
        return float(text)


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a skill takes, in s. ``least`` and ``most`` hold over all legal arguments.

    ``coefficients`` by ``model``: constant (c,), polynomial (c0, c1, ...) of the argument with
    index ``argument``, uniform (low, high), choice (step, count): step * k for k in 1..count.
    """

    model: str
    coefficients: tuple[float, ...]
    argument: int | None = None
    least: float = 0.0
    most: float = 0.0

    def expected(self, values: Sequence[Value | None]) -> float:
        """A lower estimate, as TimelyLLM uses: the next segment must be there in time."""
        if self.argument is None:
            return self.least
        value = values[self.argument] if self.argument < len(values) else None
        if value is None or isinstance(value, str | bool):
            return self.least
        return polynomial(self.coefficients, value)

    def sample(self, values: Sequence[Value | None], rng: random.Random) -> float:
        """A duration as it was measured, drawn from ``rng``."""
        if self.model == "uniform":
            return rng.uniform(*self.coefficients)
        if self.model == "choice":
            return self.coefficients[0] * rng.randint(1, int(self.coefficients[1]))
        return self.expected(values)


def polynomial(coefficients: Sequence[float], value: float) -> float:
    """c0 + c1 v + c2 v^2 + ... by Horner's rule."""
    result = 0.0
    for coefficient in reversed(coefficients):
        result = result * value + coefficient
    return result


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. ``returns`` is none, bool, int, float or str; ``role`` is "", replan or probe.

    A high-level skill has a ``definition`` in the plan language; ``body`` are its instructions
    (``language/instructions.py``), which the robot carries out in its place.
    """

    name: str
    long_name: str
    description: str
    arguments: tuple[Argument, ...]
    returns: str
    duration: Duration
    role: str = ""
    source: str = ""
    definition: str = ""
    body: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    @property
    def timed(self) -> bool:
        """Whether a call may take 50 ms or more; such a call ends a segment."""
        return self.duration.most >= TIMED_SKILL

    @property
    def signature(self) -> str:
        """For the prompt: ``mf(distance: int 20..500 cm)``."""
        return f"{self.name}({', '.join(map(_argument_text, self.arguments))})"

    def expected_duration(self, values: Sequence[Value | None] = ()) -> float:
        """Lower estimate in s; None stands for an argument that is not known yet."""
        return self.duration.expected(values)

    def sample_duration(self, values: Sequence[Value | None], rng: random.Random) -> float:
        """One duration in s from the measured distribution."""
        return self.duration.sample(values, rng)

    def check(self, values: Sequence[Value | None]) -> tuple[Value | None, ...]:
        """The arguments as the skill takes them; None (not known yet) passes.

        A wrong number of arguments, a wrong type or a broken limit is a ``SkillCallError``.
        """
        if len(values) != len(self.arguments):
            names = ", ".join(argument.name for argument in self.arguments)
            wanted = f"{len(self.arguments)} ({names})" if names else "none"
            raise SkillCallError(f"{self.name}: {len(values)} arguments given, takes {wanted}")
        return tuple(
            None if value is None else argument.check(value, self.name)
            for argument, value in zip(self.arguments, values, strict=True)
        )

    def parse_values(self, evaluated: Sequence[str]) -> tuple[Value, ...]:
        """The values whose texts ``SkillCall.evaluated`` are."""
        pairs = zip(self.arguments, evaluated, strict=True)
        return tuple(argument.parse(text) for argument, text in pairs)


def _argument_text(argument: Argument) -> str:
    if argument.choices:
        choices = "|".join(map(value_literal, argument.choices))
        return f"{argument.name}: {choices} {argument.unit}".rstrip()
    if argument.type == "bool":
        return f"{argument.name}: True|False"
    if argument.type == "str":
        limits = f"like {argument.pattern}" if argument.pattern else ""
        return f"{argument.name}: str, {limits or f'up to {argument.maximum:g} characters'}"
    limits = f"{value_text(argument.minimum)}..{value_text(argument.maximum)}"
    return f"{argument.name}: {argument.type} {limits} {argument.unit}".rstrip()


def rising(pair: tuple[float, float]) -> tuple[float, float]:
    """A pair of numbers that does not fall."""
    if pair[0] > pair[1]:
        raise Fault(f"is [{pair[0]:g}, {pair[1]:g}]: must not fall")
    return pair


_Coordinate = Annotated[float, number(-1e6, 1e9)]
_Range = Annotated[tuple[_Coordinate, _Coordinate], items(2, 2), AfterValidator(rising)]


@dataclass(frozen=True, slots=True)
class _Geofence(Entry):
    x: _Range
    y: _Range
    z: _Range

    def checked(self, context: object) -> tuple[tuple[float, float], ...]:
        return self.x, self.y, self.z


@dataclass(frozen=True, slots=True)
class Bounds(Entry):
    """Limits of a plan as written (grammar and checker) and as run (the robot)."""

    max_nesting: Annotated[int, whole(0, 8)] = 3  # blocks inside blocks
    # Each further term of a condition counts as a statement.
    max_statements: Annotated[int, whole(1, 100)] = 24
    max_string: Annotated[int, whole(1, 200)] = 60  # characters of any string
    max_loop: Annotated[int, whole(1, 1000)] = 20  # passes of one loop, as written
    max_variables: Annotated[int, whole(1, 9)] = 9  # _1 .. _9
    # Magnitude of numbers in conditions and assignments.
    max_number: Annotated[int, whole(1, 1_000_000)] = 9999
    max_plan_chars: Annotated[int, whole(1, 20_000)] = 2000
    max_steps: Annotated[int, whole(1, 100_000)] = 500  # calls, assignments and passes of one run
    max_time: Annotated[float, number(0, 86_400)] = 600.0  # s, of one run
    max_travel: Annotated[float, number(0, 1e6)] = math.inf  # m, of one run
    # m, (low, high) of x, y, z
    geofence: Annotated[tuple[tuple[float, float], ...] | None, described_by(_Geofence)] = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How a reader takes plain text. ``segments`` is the rule: sentence, paragraph, or whole for an
    answer in one piece. It reads ``words_per_minute`` (TimelyLLM, section 7.4.2); 0: in no time."""

    segments: str = "sentence"
    words_per_minute: float = 300.0

    def duration(self, text: str) -> float:
        """In s, from the number of words."""
        return len(text.split()) * 60 / self.words_per_minute if self.words_per_minute else 0.0


@dataclass(frozen=True, slots=True)
class Example:
    """An instruction and the plan for it, as prompts show them."""

    instruction: str
    plan: str
    scene: str = "[]"


@dataclass(frozen=True)
class SkillSet:
    """The skills of a robot kind, as one YAML text describes them.

    ``text`` is that YAML, as it travels in ``RegisterRobot``. A kind with ``reading`` reads plain
    text in place of plans, and has no skills. Skills are found by both names.
    """

    kind: str
    description: str
    skills: tuple[Skill, ...]
    bounds: Bounds = Bounds()
    text: str = field(default="", repr=False)
    reading: Reading | None = None
    examples: tuple[Example, ...] = ()
    _index: Mapping[str, Skill] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        index = {skill.long_name: skill for skill in self.skills}
        index.update((skill.name, skill) for skill in self.skills)
        object.__setattr__(self, "_index", index)

    def __getitem__(self, name: str) -> Skill:
        return self._index[name]

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def get(self, name: str) -> Skill | None:
        return self._index.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(skill.name for skill in self.skills)

    @property
    def callable_names(self) -> tuple[str, ...]:
        """Names and long names."""
        return tuple(self._index)

    def listing(self) -> str:
        """The skills as a prompt lists them, one a line."""
        return "\n".join(
            f"{skill.signature}{'' if skill.returns == 'none' else ' -> ' + skill.returns}: "
            f"{skill.long_name}, {skill.description}"
            for skill in self.skills
        )
