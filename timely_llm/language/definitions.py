"""High-level skills: those that a skill set defines in the plan language by its other skills.

Each definition is read, checked and timed once, when the skill set is; what runs it is the robot's
interpreter. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from timely_llm.language import instructions as code
from timely_llm.language.lexer import Lexer, Token
from timely_llm.language.parser import Parser, PlanError
from timely_llm.language.skills import (
    TIMED_SKILL,
    Argument,
    Duration,
    Skill,
    SkillSet,
    value_literal,
    value_text,
)

UNTIMED = Duration("definition", ())
"""Of a skill whose duration follows from its definition, until it is known."""

LONGEST = 86_400.0
"""s; a definition may not take longer."""

_PASSED_ON = re.compile(r"\$([0-9]+)")


class DefinitionError(ValueError):
    """A definition that cannot be used; ``skill`` is whose it is."""

    def __init__(self, skill: str, reason: str) -> None:
        super().__init__(f"{skill}: {reason}")
        self.skill = skill
        self.reason = reason


def define(skills: SkillSet) -> SkillSet:
    """``skills`` with the bodies of all that have a definition, and the durations these imply.

    Raises ``DefinitionError``: a fault in the text, a skill that comes to call itself, an argument
    that is not used or does not fit, a missing return, a duration that cannot be.
    """
    tokens = {skill.name: _tokens(skill) for skill in skills.skills if skill.definition}
    uses = {
        name: [skills[t.text].name for t in found if t.kind == "name" and t.text in skills]
        for name, found in tokens.items()
    }
    for name in _inner_first(uses):
        skill = _defined(skills[name], tokens[name], skills)
        known = tuple(skill if other.name == name else other for other in skills.skills)
        skills = replace(skills, skills=known)
    return skills


def _tokens(skill: Skill) -> list[Token]:
    try:
        return list(Lexer(len(skill.definition)).feed(skill.definition, last=True))
    except PlanError as error:
        raise DefinitionError(skill.name, _words(error)) from None


def _words(error: PlanError) -> str:
    return f"character {error.position}: {error.reason}"


def _inner_first(uses: dict[str, list[str]]) -> list[str]:
    """The defined skills, each after those that it uses."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            ring = " -> ".join((*path[path.index(name) :], name))
            raise DefinitionError(name, f"comes to call itself: {ring}")
        for inner in uses[name]:
            if inner in uses and inner not in order:
                visit(inner, (*path, name))
        order.append(name)

    for name in uses:
        if name not in order:
            visit(name, ())
    return order


def _defined(skill: Skill, tokens: Sequence[Token], skills: SkillSet) -> Skill:
    """``skill`` with its body; what it uses is defined already."""
    parser = Parser(skills, skill)
    try:
        parser.feed(skill.definition)
        parser.finish()
    except PlanError as error:
        raise DefinitionError(skill.name, _words(error)) from None
    used = {token.text for token in tokens if token.kind == "argument"}
    for number, argument in enumerate(skill.arguments, 1):
        if f"${number}" not in used:
            raise DefinitionError(skill.name, f"does not use ${number}, {argument.name}")
    for call in parser.calls:
        _check_passed_on(skill, call, skills)
    if skill.returns != "none" and not _returns(parser.program):
        raise DefinitionError(skill.name, f"must end with a return: {skill.name} returns a value")
    return replace(skill, body=tuple(parser.program), duration=_duration(skill, parser.program))


def _check_passed_on(skill: Skill, call: code.Call, skills: SkillSet) -> None:
    """An argument that is handed on as it is must be fit for every skill that gets it."""
    for text, target in zip(call.arguments, skills[call.name].arguments, strict=True):
        match = _PASSED_ON.fullmatch(text)
        if match is None:
            continue
        given = skill.arguments[int(match[1]) - 1]
        if not _fits(given, target):
            reason = (
                f"character {call.start}: {given.name} is {_kind(given)}, "
                f"but {call.name} takes {_kind(target)}"
            )
            raise DefinitionError(skill.name, reason)


def _fits(given: Argument, target: Argument) -> bool:
    if target.choices:
        return bool(given.choices) and set(given.choices) <= set(target.choices)
    if target.type == "bool" or given.type == "bool":
        return given.type == target.type
    if target.type == "str":
        within = given.type != "str" or given.maximum <= target.maximum
        return within and (target.pattern is None or given.pattern == target.pattern)
    whole = target.type == "float" or given.type == "int"
    return (
        given.type != "str"
        and whole
        and target.minimum <= given.minimum
        and given.maximum <= target.maximum
    )


def _kind(argument: Argument) -> str:
    if argument.choices:
        return f"one of {', '.join(map(value_literal, argument.choices))}"
    if argument.type == "bool":
        return "bool"
    limits = f"{value_text(argument.minimum)} to {value_text(argument.maximum)}"
    if argument.type != "str":
        return f"{argument.type} {limits} {argument.unit}".rstrip()
    return f"str of {limits} characters" + (f", {argument.pattern}" if argument.pattern else "")


def _returns(program: Sequence[code.Instruction]) -> bool:
    """Whether no way leads to the end but by a return."""
    jumps = (code.Skip, code.Enter)
    return isinstance(program[-1], code.Return | code.Refuse) and all(
        instruction.target != len(program)
        for instruction in program
        if isinstance(instruction, jumps)
    )


# ---- how long it takes -------------------------------------------------------------------------

_Span = tuple[float, float]  # s, least and most


def _duration(skill: Skill, program: Sequence[code.Instruction]) -> Duration:
    """As declared, else anything between the shortest and the longest way to an end."""
    fallen, returned = _span(program, 0, len(program))
    least, most = _either(fallen, returned) or (0.0, 0.0)
    given = skill.duration
    if given is UNTIMED:
        if most > LONGEST:
            raise DefinitionError(skill.name, f"lasts up to {most:.4g} s: at most {LONGEST:g} s")
        least, most = round(least, 6), round(most, 6)
        return Duration("uniform", (least, most), None, least, most)
    if given.most < TIMED_SKILL <= most:
        reason = f"lasts up to {most:.4g} s, but its duration says {given.most:g} s"
        raise DefinitionError(skill.name, reason)
    return given


def _either(one: _Span | None, other: _Span | None) -> _Span | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def _span(
    program: Sequence[code.Instruction], first: int, last: int
) -> tuple[_Span | None, _Span | None]:
    """From ``first`` to ``last``, and to a return or replan in between; None: there is no way."""
    reached: dict[int, _Span] = {first: (0.0, 0.0)}
    ended: _Span | None = None
    for place in range(first, last):
        if place not in reached:
            continue
        ends, ways = _ways(program, place)
        here = reached[place]
        for target, way in ways:
            passed = _sum(here, way)
            reached[target] = _either(reached.get(target), passed) or passed
        ended = _either(ended, _sum(here, ends) if ends else None)
    return reached.get(last), ended


def _sum(one: _Span, other: _Span) -> _Span:
    return one[0] + other[0], one[1] + other[1]


def _ways(
    program: Sequence[code.Instruction], place: int
) -> tuple[_Span | None, list[tuple[int, _Span]]]:
    """How long until the plan ends at this instruction, and where else it leads, how long."""
    none = (0.0, 0.0)
    match program[place]:
        case code.Return() | code.Refuse():
            return none, []
        case code.Invoke(skill, call):
            if skill.role == "replan":
                return none, []
            return None, [(place + 1, _call_time(skill, call))]
        case code.Skip(_, int(target)) | code.Enter(int(target)):
            return None, [(place + 1, none), (target, none)]
        case code.Repeat(count):
            return _passes(program, place, count)
    return None, [(place + 1, none)]


def _passes(
    program: Sequence[code.Instruction], place: int, count: int
) -> tuple[_Span | None, list[tuple[int, _Span]]]:
    """Of a loop: an end may come in its first pass or in its last one."""
    start = place + 1
    again = next(
        i
        for i, instruction in enumerate(program)
        if isinstance(instruction, code.Again) and instruction.start == start
    )
    once, ended = _span(program, start, again)
    if ended and once:
        ended = (ended[0], ended[1] + (count - 1) * once[1])
    return ended, [(again + 1, (count * once[0], count * once[1]))] if once else []


def _call_time(skill: Skill, call: code.Call) -> _Span:
    duration, index = skill.duration, skill.duration.argument
    known = index is not None and call.values[index] is not None
    least = skill.expected_duration(call.values)
    return least, least if known else duration.most
