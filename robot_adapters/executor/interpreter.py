"""Runs a plan on the robot's side while its text streams in: calls go out, values come back.

``language/parser.py`` turns the text into instructions; here they run up to the next skill call, or
until text is missing. Arguments are checked as evaluated, right before each call. A call of a skill
that has a definition runs that definition in its place. ``docs/language.md`` is the reference of
the language. Pure: no ROS, no clock, no adapter.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from timely_llm.language import instructions as code
from timely_llm.language.parser import Parser, PlanError
from timely_llm.language.skills import SkillCallError, SkillSet, Value, value_text
from timely_llm.protocols.messages import SkillCall

LARGEST = 1e9  # the largest magnitude of a number
LONGEST = 1000  # characters of an answer


# ---- steps: what a running plan asks of the robot ----------------------------------------------


@dataclass(frozen=True, slots=True)
class StartCall:
    """The robot is to carry out ``call``, then ``complete``.

    ``segment`` is the one in which the call was written; ``number`` counts the calls carried out
    from 0. ``opened``: the call stands in the definition of the call that was opened last, and has
    its segment.
    """

    call: SkillCall
    segment: int
    number: int
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """``call`` has a definition, whose calls come next; ``Closed`` ends it.

    Definitions inside a definition are not reported.
    """

    call: SkillCall
    segment: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The call that was opened has ended, with its value."""

    value: Value | None = None


@dataclass(frozen=True, slots=True)
class NeedText:
    """Nothing more can run until ``feed``: the robot is starved."""


@dataclass(frozen=True, slots=True)
class Paused:
    """More can run at once; whatever else waits has its turn first."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The plan is over: by ``->``, with its value, or by the end of its last segment."""

    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Replan:
    """The plan is over and asks for a new one."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The plan is over: it refuses to do what was asked."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fault:
    """The plan is over: a failed check, a broken bound, a wrong type or text, a truncated plan.

    ``position`` is the offset in the plan's characters; ``error`` names it too.
    """

    error: str
    position: int


Step = StartCall | Opened | Closed | NeedText | Paused | Returned | Replan | Refused | Fault


class _Stop(Exception):
    """Ends the plan with ``step``."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step


@dataclass(slots=True)
class Frame:
    """A program in progress: the plan, or the definition of a skill.

    ``variables`` are its own, with the arguments of a definition; ``loops`` are the passes left of
    each loop, the current pass included.
    """

    program: Sequence[code.Instruction]
    next: int = 0
    loops: list[int] = field(default_factory=list)
    variables: dict[str, Value] = field(default_factory=dict)


class Interpreter:
    """One run of one plan. A text with a fault stops the plan at once, before any further call."""

    def __init__(self, skills: SkillSet) -> None:
        self._bounds = skills.bounds
        self._parser = Parser(skills)
        self._plan = Frame(self._parser.program)
        self._definitions: list[tuple[code.Invoke, Frame]] = []  # in progress, outermost first
        self._segments: list[int] = []  # of each call of the text
        self._whole = False  # the last segment has come
        self._stack: list[Value] = []
        self._steps = 0
        self._calls = 0  # carried out
        self._current: code.Invoke | None = None  # the call in progress
        self._over: Step | None = None

    def feed(self, text: str, segment: int, last: bool = False) -> None:
        """Add the text of one segment. Never raises: ``advance`` returns what is wrong with it."""
        try:
            self._parser.feed(text)
            if last:
                self._parser.finish()
                self._whole = True
        except PlanError as error:
            self._over = self._over or Fault(str(error), error.position)
        known = len(self._segments)
        self._segments += [segment] * (len(self._parser.calls) - known)

    def advance(self, most: int = sys.maxsize) -> Step:
        """Run until the robot or more text is needed, or for ``most`` instructions. Not allowed
        while a call is in progress.

        After the end of the plan it returns the same step again.
        """
        assert self._current is None, "complete() the call in progress first"
        for _ in range(most):
            if self._over is not None:
                return self._over
            frame = self._definitions[-1][1] if self._definitions else self._plan
            try:
                if frame.next < len(frame.program):
                    step = self._execute(frame, frame.program[frame.next])
                elif self._definitions or self._whole:
                    step = self._leave(None)
                else:
                    return NeedText()
            except _Stop as stop:
                self._over = stop.step
            else:
                if step is not None:
                    return step
        return self._over or Paused()

    def complete(self, value: Value | None = None) -> None:
        """The call in progress has ended with this value."""
        invoke, self._current = self._current, None
        assert invoke is not None, "no call is in progress"
        if self._over is not None:
            return
        try:
            self._yield(invoke, value)
        except _Stop as stop:
            self._over = stop.step

    def held_duration(self) -> float:
        """s: what the robot has to do after the plan's current call with the text it holds.

        The expected durations of the timed calls that it would reach if every undecided condition
        were true, up to a return, a replan, a bound or the end of the text.
        """
        if self._over is not None:
            return 0.0
        busy = self._current is not None or bool(self._definitions)
        place = self._plan.next if busy else _resumes_at(self._plan, self._stack)
        if place is None:
            return 0.0
        return _duration_from(self._plan, place, self._bounds.max_steps - self._steps)

    # ---- one instruction -----------------------------------------------------------------------

    def _execute(self, frame: Frame, instruction: code.Instruction) -> Step | None:
        """Do it and go on to the next; a step if the robot or more text is needed."""
        stack = self._stack
        match instruction:
            case code.Push(value):
                stack.append(value)
            case code.Load(variable, position):
                if variable not in frame.variables:
                    raise self._fault(f"variable {variable} has no value yet", position)
                stack.append(frame.variables[variable])
            case code.Store(variable, position):
                self._count_step(position)
                frame.variables[variable] = stack.pop()
            case code.Apply(symbol, position):
                right, left = stack.pop(), stack.pop()
                stack.append(self._apply(position, symbol, left, right))
            case code.Negate(position):
                stack.append(self._apply(position, "-", 0, stack.pop()))
            case code.Invoke():
                return self._invoke(frame, instruction)
            case code.Return():
                return self._leave(stack.pop())
            case code.Refuse(reason):
                raise _Stop(Refused(reason))
            case code.Skip() | code.Enter():
                return self._decide(frame, instruction)
            case code.Repeat(count, position):
                self._count_step(position)
                frame.loops.append(count)
            case code.Again(start, position):
                frame.loops[-1] -= 1
                if frame.loops[-1]:
                    self._count_step(position)
                    frame.next = start
                    return None
                frame.loops.pop()
        frame.next += 1
        return None

    def _decide(self, frame: Frame, jump: code.Skip | code.Enter) -> Step | None:
        jumps = _taken(jump, self._stack[-1])
        target = jump.target if jumps else frame.next + 1
        if target is None:
            return NeedText()  # where it goes on has not come yet
        if not (jumps and isinstance(jump, code.Skip)):
            self._stack.pop()
        frame.next = target
        return None

    def _invoke(self, frame: Frame, invoke: code.Invoke) -> Step | None:
        skill, call = invoke.skill, invoke.call
        self._count_step(call.start)
        first = len(self._stack) - len(call.arguments)
        values, self._stack[first:] = self._stack[first:], []
        try:
            checked = skill.check(values)
        except SkillCallError as error:
            raise self._fault(str(error), call.start) from None
        if skill.role == "replan":
            raise _Stop(Replan())
        frame.next += 1
        evaluated = tuple(map(value_text, checked))
        expected = skill.expected_duration(checked)
        skill_call = SkillCall(skill.name, call.arguments, evaluated, expected)
        inside = bool(self._definitions)
        segment = self._segments[(self._definitions[0][0] if inside else invoke).index]
        if skill.body:
            arguments = {f"${i}": value for i, value in enumerate(checked, 1) if value is not None}
            self._definitions.append((invoke, Frame(skill.body, variables=arguments)))
            return None if inside else Opened(skill_call, segment)
        self._current = invoke
        number, self._calls = self._calls, self._calls + 1
        return StartCall(skill_call, segment, number, inside)

    def _leave(self, value: Value | None) -> Closed | None:
        """Out of a definition with its value, or out of the plan."""
        if not self._definitions:
            raise _Stop(Returned(value))
        invoke, _ = self._definitions.pop()
        self._yield(invoke, value)
        if self._definitions:
            return None
        return Closed(None if invoke.skill.returns == "none" else value)

    def _yield(self, invoke: code.Invoke, value: Value | None) -> None:
        """A call has ended: its value goes to where it is used."""
        if invoke.dropped:
            return
        skill = invoke.skill
        name, stays = skill.name, skill.returns == "str" and skill.role != "probe"
        if value is None:
            raise self._fault(f"{name} returned no value", invoke.call.start)
        try:
            self._stack.append(answered(value, stays))
        except ValueFault as error:
            raise self._fault(f"{name} returned {error}", invoke.call.start) from None

    def _apply(self, position: int, symbol: str, left: Value, right: Value) -> Value:
        try:
            return apply(symbol, left, right)
        except ValueFault as error:
            raise self._fault(str(error), position) from None

    def _count_step(self, position: int) -> None:
        self._steps += 1
        limit = self._bounds.max_steps
        if self._steps > limit:
            raise self._fault(f"the plan takes more than max_steps, {limit}", position)

    def _fault(self, error: str, position: int) -> _Stop:
        """The end of the plan, with where it is: inside of definitions, in which."""
        if self._definitions:
            name = self._definitions[-1][0].skill.name
            error = f"{name}, character {position} of its definition: {error}"
            position = self._definitions[0][0].call.start
        return _Stop(Fault(str(PlanError(position, error)), position))


# ---- what is held but has not run yet ----------------------------------------------------------


def _taken(jump: code.Skip | code.Enter, top: Value) -> bool:
    """Whether ``top`` of the stack sends the program to the jump's target."""
    return bool(top) is jump.when if isinstance(jump, code.Skip) else not top


def _resumes_at(frame: Frame, stack: Sequence[Value]) -> int | None:
    """The instruction it goes on with, past blocks that do not run; None: it has not come yet."""
    place: int | None = frame.next
    decided = True
    while decided and place is not None and place < len(frame.program):
        jump = frame.program[place]
        if not isinstance(jump, code.Skip | code.Enter) or not _taken(jump, stack[-1]):
            break
        place = jump.target
        decided = isinstance(jump, code.Skip)  # its value decides the next one too
    return place


def _duration_from(frame: Frame, place: int, steps: int) -> float:
    """s: expected durations of the timed calls from ``place`` on, within ``steps`` steps."""
    return _Lookahead(frame.program).run(place, steps, list(frame.loops))[0]


class _Lookahead:
    """Goes through a program without running it; the passes of a loop are all alike."""

    def __init__(self, program: Sequence[code.Instruction]) -> None:
        self._program = program
        self._passes: dict[int, tuple[float, int, bool]] = {}  # whole ones, by where they end

    def run(
        self, place: int, steps: int, loops: list[int], end: int = sys.maxsize
    ) -> tuple[float, int, bool]:
        """From ``place`` to ``end``: s, steps that are left, and whether the plan ends there."""
        total = 0.0
        while place < min(end, len(self._program)) and steps > 0:
            instruction = self._program[place]
            place += 1
            if isinstance(instruction, code.Invoke):
                if instruction.skill.role == "replan":
                    return total, steps, True
                if instruction.skill.timed:
                    total += instruction.skill.expected_duration(instruction.call.values)
                steps -= 1
            elif isinstance(instruction, code.Return | code.Refuse):
                return total, steps, True
            elif isinstance(instruction, code.Skip) and instruction.when:
                if instruction.target is None:
                    return total, steps, True
                place = instruction.target
            elif isinstance(instruction, code.Repeat):
                loops.append(instruction.count)
            elif isinstance(instruction, code.Again):
                duration, steps, over = self._again(
                    instruction.start, place - 1, steps - 1, loops.pop() - 1
                )
                total += duration
                if over:
                    return total, steps, True
        return total, steps, False

    def _again(self, start: int, end: int, steps: int, passes: int) -> tuple[float, int, bool]:
        """``passes`` more of the loop from ``start`` to ``end``."""
        if passes and end not in self._passes:
            self._passes[end] = self.run(start, sys.maxsize, [], end)
        if not passes:
            return 0.0, steps, False
        duration, left, over = self._passes[end]
        each = sys.maxsize - left + 1
        whole = 0 if over else min(passes, steps // each)
        steps -= whole * each
        if whole == passes:
            return whole * duration, steps, False
        rest, steps, _ = self.run(start, steps, [], end)
        return whole * duration + rest, steps, True


# ---- values: arithmetic, comparison, answers ---------------------------------------------------

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_ORDER: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class ValueFault(ValueError):
    """An operation that its values do not allow."""


def typed(text: str) -> Value:
    """An answer in text as a value: ``True``, ``False`` and numbers are read, the rest stays."""
    stripped = text.strip()
    if stripped in ("True", "False"):
        return stripped == "True"
    if _NUMBER.fullmatch(stripped):
        return float(stripped) if "." in stripped else int(stripped)
    return text


def answered(value: Value, stays: bool = False) -> Value:
    """What a robot or a model answered, as plans use it; a text that ``stays`` one is not read.

    ``ValueFault`` for what no plan can use: a text without end, a number that is none.
    """
    if isinstance(value, str):
        if len(value) > LONGEST:
            raise ValueFault(f"{len(value)} characters: must be at most {LONGEST}")
        value = value if stays else typed(value)
    if isinstance(value, bool | str):
        return value
    if not -LARGEST <= value <= LARGEST:  # refuses NaN too
        text = value_text(value)
        shown = text if len(text) <= 24 else f"{text[:20]}..."
        raise ValueFault(f"{shown}: must be within {LARGEST:g}")
    return value


def apply(symbol: str, left: Value, right: Value) -> Value:
    """``left symbol right``; ``ValueFault`` if the two do not allow it.

    A comparison with True or False compares truths; a number and a text are never equal.
    """
    if symbol in ("==", "!="):
        if isinstance(left, bool) or isinstance(right, bool):
            left, right = bool(left), bool(right)
        return (left == right) is (symbol == "==")
    words = f"{_shown(left)} {symbol} {_shown(right)}"
    if not (_is_number(left) and _is_number(right)):
        raise ValueFault(f"{words}: both sides must be numbers")
    if symbol in _ORDER:
        return _ORDER[symbol](left, right)
    if symbol == "/" and right == 0:
        raise ValueFault(f"{_shown(left)} / 0: division by zero")
    result = _ARITHMETIC[symbol](left, right)
    if not -LARGEST <= result <= LARGEST:
        raise ValueFault(f"{words}: beyond {LARGEST:g}")
    return result


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Value) -> str:
    return repr(value) if isinstance(value, str) else value_text(value)
