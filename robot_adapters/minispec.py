"""Runs a plan on the robot's side while its text streams in. Pure: calls go out, values come back.

``timely_llm/minispec.py`` reads the text into instructions; here they are executed up to the next
skill call, or until text is missing. Arguments are checked as evaluated, right before each call.
``docs/minispec.md`` is the language's reference.
"""

from __future__ import annotations

from dataclasses import dataclass

from robot_adapters.values import ValueFault, apply, negative, truth, typed
from timely_llm import instructions as code
from timely_llm.messages import SkillCall
from timely_llm.minispec import Parser, PlanError
from timely_llm.skills import SkillCallError, SkillSet, Value, value_text


@dataclass(frozen=True, slots=True)
class StartCall:
    """The robot is to carry out ``call``, then ``complete``.

    ``segment`` is the one the call was written in; ``number`` counts the calls carried out from 0.
    """

    call: SkillCall
    segment: int
    number: int


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

    ``position`` counts the characters of the plan before the fault.
    """

    error: str
    position: int


Step = StartCall | NeedText | Returned | Replan | Fault


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
        self._program = self._parser.program
        self._segments: list[int] = []  # of each call of the text
        self._whole = False  # all text is here
        self._next = 0  # instruction
        self._stack: list[Value] = []
        self._loops: list[int] = []  # passes left, the current one included
        self._variables: dict[str, Value] = {}
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
            if self._next == len(self._program):
                if not self._whole:
                    return NeedText()
                self._over = Returned()
                break
            try:
                step = self._execute(self._program[self._next])
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
        if invoke.dropped:
            return
        if value is None:
            error = f"{invoke.skill.name} returned no value"
            self._over = self._over or Fault(error, invoke.call.start)
        else:
            self._stack.append(typed(value) if isinstance(value, str) else value)

    def held_duration(self) -> float:
        """s: what the robot has to do beyond the current call with the text it holds.

        Expected durations of the timed calls it would reach if every condition that is not decided
        yet were true, up to a return, a replan, a bound or the end of the text.
        """
        place = None if self._over is not None else self._resumes_at()
        if place is None:
            return 0.0
        total, steps = 0.0, self._steps
        loops = list(self._loops)
        while place < len(self._program) and steps < self._bounds.max_steps:
            instruction = self._program[place]
            place += 1
            if isinstance(instruction, code.Invoke):
                if instruction.skill.role == "replan":
                    break
                if instruction.skill.timed:
                    total += instruction.skill.expected_duration(instruction.call.values)
                steps += 1
            elif isinstance(instruction, code.Return):
                break
            elif isinstance(instruction, code.Skip) and instruction.when:
                if instruction.target is None:
                    break
                place = instruction.target
            elif isinstance(instruction, code.Repeat):
                loops.append(instruction.count)
            elif isinstance(instruction, code.Again):
                steps += 1
                loops[-1] -= 1
                if loops[-1]:
                    place = instruction.start
                else:
                    loops.pop()
        return total

    def _resumes_at(self) -> int | None:
        """The instruction it goes on with, past blocks that are not to run; None: not here yet."""
        place: int | None = self._next
        decided = self._current is None
        while decided and place is not None and place < len(self._program):
            jump = self._program[place]
            if not isinstance(jump, code.Skip | code.Enter) or not self._taken(jump):
                break
            place = jump.target
            decided = isinstance(jump, code.Skip)  # its value decides the next one too
        return place

    # ---- one instruction -----------------------------------------------------------------------

    def _execute(self, instruction: code.Instruction) -> Step | None:
        """Do it and go on to the next; a step if the robot or more text is needed."""
        stack = self._stack
        match instruction:
            case code.Push(value):
                stack.append(value)
            case code.Load(variable, position):
                if variable not in self._variables:
                    raise _Stop(Fault(f"variable {variable} has no value yet", position))
                stack.append(self._variables[variable])
            case code.Store(variable, position):
                self._count_step(position)
                self._variables[variable] = stack.pop()
            case code.Apply(symbol, position):
                right, left = stack.pop(), stack.pop()
                stack.append(_operate(position, apply, symbol, left, right))
            case code.Negate(position):
                stack.append(_operate(position, negative, stack.pop()))
            case code.Invoke():
                return self._invoke(instruction)
            case code.Return():
                raise _Stop(Returned(stack.pop()))
            case code.Skip() | code.Enter():
                return self._decide(instruction)
            case code.Repeat() | code.Again():
                self._repeat(instruction)
                return None
        self._next += 1
        return None

    def _taken(self, jump: code.Skip | code.Enter) -> bool:
        """Whether the top sends it to its target."""
        top = truth(self._stack[-1])
        return top is jump.when if isinstance(jump, code.Skip) else not top

    def _decide(self, jump: code.Skip | code.Enter) -> Step | None:
        taken = self._taken(jump)
        if taken and jump.target is None:
            return NeedText()  # where it goes on has not come yet
        if not (taken and isinstance(jump, code.Skip)):
            self._stack.pop()
        self._next = jump.target if taken else self._next + 1
        return None

    def _repeat(self, instruction: code.Repeat | code.Again) -> None:
        again = isinstance(instruction, code.Again)
        if again:
            self._loops[-1] -= 1
            if not self._loops[-1]:
                self._loops.pop()
                self._next += 1
                return
        else:
            self._loops.append(instruction.count)
        self._count_step(instruction.position)
        self._next = instruction.start if again else self._next + 1

    def _invoke(self, instruction: code.Invoke) -> Step:
        skill, call = instruction.skill, instruction.call
        self._count_step(call.start)
        count = len(call.arguments)
        first = len(self._stack) - count
        values, self._stack[first:] = self._stack[first:], []
        try:
            checked = skill.check(values)
        except SkillCallError as error:
            raise _Stop(Fault(str(error), call.start)) from None
        if skill.role == "replan":
            raise _Stop(Replan())
        self._next += 1
        self._current = instruction
        number, self._calls = self._calls, self._calls + 1
        evaluated = tuple(map(value_text, checked))
        skill_call = SkillCall(
            skill.name, call.arguments, evaluated, skill.expected_duration(checked)
        )
        return StartCall(skill_call, self._segments[instruction.index], number)

    def _count_step(self, position: int) -> None:
        self._steps += 1
        limit = self._bounds.max_steps
        if self._steps > limit:
            raise _Stop(Fault(f"the plan takes more than max_steps, {limit}", position))


def _operate(position: int, operation, *operands) -> Value:
    try:
        return operation(*operands)
    except ValueFault as error:
        raise _Stop(Fault(str(error), position)) from None
