"""Runs a plan on the robot's side while its text streams in. Pure: calls go out, values come back.

``language/parser.py`` reads the text into instructions; here they are executed up to the next
skill call, or until text is missing. Arguments are checked as evaluated, right before each call. A
call of a skill that has a definition runs that definition in its place.
``docs/minispec.md`` is the language's reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from robot_adapters.executor.frames import Frame, held_duration, taken
from robot_adapters.executor.values import ValueFault, answered, apply, negative
from timely_llm.language import instructions as code
from timely_llm.language.parser import Parser, PlanError
from timely_llm.language.skills import SkillCallError, SkillSet, Value, value_text
from timely_llm.protocols.messages import SkillCall


@dataclass(frozen=True, slots=True)
class StartCall:
    """The robot is to carry out ``call``, then ``complete``.

    ``segment`` is the one the call was written in; ``number`` counts the calls carried out from 0.
    ``opened``: it stands in the definition of the call that was opened last, and has its segment.
    """

    call: SkillCall
    segment: int
    number: int
    opened: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """``call`` has a definition, whose calls come next; it is over with ``Closed``.

    Definitions inside are not told.
    """

    call: SkillCall
    segment: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The call that was opened has ended, with its value."""

    value: Value | None = None


@dataclass(frozen=True, slots=True)
class NeedText:
    """Nothing more can run until ``feed``: the robot is dry."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The plan is over: by ``->``, with its value, or by the end of its last segment."""

    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Replan:
    """The plan is over and asks for a new one."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The plan is over: a failed check, a broken bound, a wrong type or text, a cut-off plan.

    ``position`` counts the characters of the plan before the fault, which ``error`` tells too.
    """

    error: str
    position: int


Step = StartCall | Opened | Closed | NeedText | Returned | Replan | Fault


class _Stop(Exception):
    """Ends the plan with ``step``."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step


class Interpreter:
    """One run of one plan. A text with a fault stops the plan at once, before any further call."""

    def __init__(self, skills: SkillSet) -> None:
        self._bounds = skills.bounds
        self._parser = Parser(skills)
        self._frames = [Frame(self._parser.program)]
        self._segments: list[int] = []  # of each call of the text
        self._whole = False  # all text is here
        self._stack: list[Value] = []
        self._steps = 0
        self._calls = 0  # carried out
        self._current: code.Invoke | None = None  # the call in progress
        self._over: Step | None = None

    def feed(self, text: str, segment: int, last: bool = False) -> None:
        """Add the text of one segment; never raises, ``advance`` tells what is wrong with it."""
        try:
            self._parser.feed(text)
            if last:
                self._parser.finish()
                self._whole = True
        except PlanError as error:
            self._over = self._over or Fault(str(error), error.position)
        known = len(self._segments)
        self._segments += [segment] * (len(self._parser.calls) - known)

    def advance(self) -> Step:
        """Run until something is needed. Not allowed while a call is in progress.

        Behind the end of the plan it returns the same step again.
        """
        assert self._current is None, "complete() the call in progress first"
        while self._over is None:
            frame = self._frames[-1]
            try:
                if frame.next < len(frame.program):
                    step = self._execute(frame, frame.program[frame.next])
                elif frame.invoke is not None or self._whole:
                    step = self._leave(None)
                else:
                    return NeedText()
            except _Stop as stop:
                self._over = stop.step
            else:
                if step is not None:
                    return step
        return self._over

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
        """s: what the robot has to do beyond the plan's current call with the text it holds.

        Expected durations of the timed calls it would reach if every condition that is not decided
        yet were true, up to a return, a replan, a bound or the end of the text.
        """
        if self._over is not None:
            return 0.0
        busy = self._current is not None or len(self._frames) > 1
        left = self._bounds.max_steps - self._steps
        return held_duration(self._frames[0], self._stack, busy, left)

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
                stack.append(self._operate(position, apply, symbol, left, right))
            case code.Negate(position):
                stack.append(self._operate(position, negative, stack.pop()))
            case code.Invoke():
                return self._invoke(frame, instruction)
            case code.Return():
                return self._leave(stack.pop())
            case code.Skip() | code.Enter():
                return self._decide(frame, instruction)
            case code.Repeat() | code.Again():
                self._repeat(frame, instruction)
                return None
        frame.next += 1
        return None

    def _decide(self, frame: Frame, jump: code.Skip | code.Enter) -> Step | None:
        jumps = taken(jump, self._stack[-1])
        if jumps and jump.target is None:
            return NeedText()  # where it goes on has not come yet
        if not (jumps and isinstance(jump, code.Skip)):
            self._stack.pop()
        frame.next = jump.target if jumps else frame.next + 1
        return None

    def _repeat(self, frame: Frame, instruction: code.Repeat | code.Again) -> None:
        again = isinstance(instruction, code.Again)
        if again:
            frame.loops[-1] -= 1
            if not frame.loops[-1]:
                frame.loops.pop()
                frame.next += 1
                return
        else:
            frame.loops.append(instruction.count)
        self._count_step(instruction.position)
        frame.next = instruction.start if again else frame.next + 1

    def _invoke(self, frame: Frame, instruction: code.Invoke) -> Step | None:
        skill, call = instruction.skill, instruction.call
        self._count_step(call.start)
        count = len(call.arguments)
        first = len(self._stack) - count
        values, self._stack[first:] = self._stack[first:], []
        try:
            checked = skill.check(values)
        except SkillCallError as error:
            raise self._fault(str(error), call.start) from None
        if skill.role == "replan":
            raise _Stop(Replan())
        frame.next += 1
        evaluated = tuple(map(value_text, checked))
        skill_call = SkillCall(
            skill.name, call.arguments, evaluated, skill.expected_duration(checked)
        )
        opened = len(self._frames) > 1
        outermost = self._frames[1].invoke if opened else instruction
        segment = self._segments[outermost.index]
        if skill.body:
            self._enter(instruction, checked)
            return None if opened else Opened(skill_call, segment)
        self._current = instruction
        number, self._calls = self._calls, self._calls + 1
        return StartCall(skill_call, segment, number, opened)

    def _enter(self, invoke: code.Invoke, values: Sequence[Value]) -> None:
        """Go on with the definition of a skill; its variables are its own."""
        arguments = {f"${i}": value for i, value in enumerate(values, 1)}
        frame = Frame(invoke.skill.body, variables=arguments, invoke=invoke)
        self._frames.append(frame)

    def _leave(self, value: Value | None) -> Closed | None:
        """Out of a definition with its value, or out of the plan."""
        invoke = self._frames[-1].invoke
        if invoke is None:
            raise _Stop(Returned(value))
        self._frames.pop()
        self._yield(invoke, value)
        if len(self._frames) > 1:
            return None
        return Closed(None if invoke.skill.returns == "none" else value)

    def _yield(self, invoke: code.Invoke, value: Value | None) -> None:
        """A call has ended: its value goes to where it is used."""
        if invoke.dropped:
            return
        name = invoke.skill.name
        if value is None:
            raise self._fault(f"{name} returned no value", invoke.call.start)
        try:
            self._stack.append(answered(value))
        except ValueFault as error:
            raise self._fault(f"{name} returned {error}", invoke.call.start) from None

    # ---- faults --------------------------------------------------------------------------------

    def _fault(self, error: str, position: int) -> _Stop:
        """The end of the plan, with where it is: inside of definitions, in which."""
        inner = self._frames[1:]
        if inner:
            name = inner[-1].invoke.skill.name
            error = f"{name}, character {position} of its definition: {error}"
            position = inner[0].invoke.call.start
        return _Stop(Fault(str(PlanError(position, error)), position))

    def _count_step(self, position: int) -> None:
        self._steps += 1
        limit = self._bounds.max_steps
        if self._steps > limit:
            raise self._fault(f"the plan takes more than max_steps, {limit}", position)

    def _operate(self, position: int, operation: Callable[..., Value], *operands: Value) -> Value:
        try:
            return operation(*operands)
        except ValueFault as error:
            raise self._fault(str(error), position) from None
