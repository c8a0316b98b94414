"""What is in progress of a plan: its own instructions, and those of the definitions it is in. Pure.

``minispec.py`` runs them; here stands what they are, where they go on, and how long they last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from robot_adapters.executor.values import truth
from timely_llm.language import instructions as code
from timely_llm.language.skills import Value


@dataclass(slots=True)
class Frame:
    """A program in progress: the plan, or the definition of the skill that ``invoke`` calls.

    ``variables`` are its own, a definition's arguments among them; ``loops`` the passes left, the
    current one included.
    """

    program: Sequence[code.Instruction]
    next: int = 0
    loops: list[int] = field(default_factory=list)
    variables: dict[str, Value] = field(default_factory=dict)
    invoke: code.Invoke | None = None


def taken(jump: code.Skip | code.Enter, top: Value) -> bool:
    """Whether ``top`` of the stack sends it to its target."""
    return truth(top) is jump.when if isinstance(jump, code.Skip) else not truth(top)


def held_duration(frame: Frame, stack: Sequence[Value], busy: bool, steps: int) -> float:
    """s: expected durations of the timed calls that lie ahead within ``steps`` steps.

    Conditions that are not decided yet count as true; ``busy``: a call is in progress, so that none
    is. A return, a replan or the end of the text ends it.
    """
    place = frame.next if busy else _resumes_at(frame, stack)
    return 0.0 if place is None else _walk(frame, place, steps)


def _resumes_at(frame: Frame, stack: Sequence[Value]) -> int | None:
    """The instruction it goes on with, past blocks that are not to run; None: not here yet."""
    place: int | None = frame.next
    decided = True
    while decided and place is not None and place < len(frame.program):
        jump = frame.program[place]
        if not isinstance(jump, code.Skip | code.Enter) or not taken(jump, stack[-1]):
            break
        place = jump.target
        decided = isinstance(jump, code.Skip)  # its value decides the next one too
    return place


def _walk(frame: Frame, place: int, steps: int) -> float:
    total, loops = 0.0, list(frame.loops)
    while place < len(frame.program) and steps > 0:
        instruction = frame.program[place]
        place += 1
        if isinstance(instruction, code.Invoke):
            if instruction.skill.role == "replan":
                break
            if instruction.skill.timed:
                total += instruction.skill.expected_duration(instruction.call.values)
            steps -= 1
        elif isinstance(instruction, code.Return):
            break
        elif isinstance(instruction, code.Skip) and instruction.when:
            if instruction.target is None:
                break
            place = instruction.target
        elif isinstance(instruction, code.Repeat):
            loops.append(instruction.count)
        elif isinstance(instruction, code.Again):
            steps -= 1
            loops[-1] -= 1
            if loops[-1]:
                place = instruction.start
            else:
                loops.pop()
    return total
