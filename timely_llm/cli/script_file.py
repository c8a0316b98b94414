"""Scripts of instructions for a fleet: what is asked of whom, when, and how it may end. Pure.

A script is YAML. Times count from the start of the script::

    description: two instructions, one of them cancelled
    instructions:
      - at: 0.0                  # s
        robot: drone_1
        instruction: "[A] Find the cat."
        scene: "[]"              # default: empty
        urgency: urgent          # default: normal
        when_busy: preempt       # default: queue
        on_failure: replan       # default: abort
        max_replans: 2           # default: 1 where on_failure is replan
        cancel_after: 3.0        # s after it was sent; default: never
        expect: [CANCELED]       # error codes it may end with; default: NONE
"""

from __future__ import annotations

import math
import os.path
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from timely_llm.protocols.messages import ErrorCode, OnFailure, PlanGoal, WhenBusy
from timely_llm.protocols.utility import Urgency
from timely_llm.validation.reader import (
    Entry,
    file_text,
    items,
    known,
    named,
    number,
    parse_yaml,
    text,
    whole,
)

MAX_INSTRUCTIONS = 10_000
MAX_TIME = 86_400.0  # s

MAX_REPLANS = 5  # what a planner allows by default

_SECONDS = number(0.0, MAX_TIME, " s")
_URGENCY = named({u.name.lower(): u for u in Urgency if u is not Urgency.UNSPECIFIED})
_WHEN_BUSY = named({choice.name.lower(): choice for choice in WhenBusy})
_ON_FAILURE = named({choice.name.lower(): choice for choice in OnFailure})
_CODE = named(ErrorCode.__members__)


@dataclass(frozen=True, slots=True)
class Instruction:
    """``at``: when the goal is sent, in s after the start; ``cancel_after``: how long after that it
    is cancelled (infinite: never); ``expect``: the error codes it may end with."""

    at: float
    goal: PlanGoal
    cancel_after: float = math.inf
    expect: tuple[ErrorCode, ...] = (ErrorCode.NONE,)


@dataclass(frozen=True, slots=True)
class Script:
    """Instructions in the order in which they are sent."""

    description: str
    instructions: tuple[Instruction, ...]


def load_script(path: str | Path, robots: Collection[str]) -> Script:
    """The script in a file, for a fleet of ``robots``. ``FileError`` names line, field and the
    nearest known name; ``OSError`` where the file cannot be read."""
    path = Path(os.path.expanduser(path))
    return read_script(file_text(path), robots, str(path))


def read_script(content: str, robots: Collection[str], source: str = "<script>") -> Script:
    """The script in ``content``; ``source`` names it in errors."""
    listed = parse_yaml(content, source).read(_File, robots)
    instructions = map(_instruction, listed.instructions)
    return Script(listed.description, tuple(sorted(instructions, key=lambda item: item.at)))


@dataclass(frozen=True, slots=True)
class _Entry(Entry):
    """An instruction as the file has it."""

    at: Annotated[float, _SECONDS]
    robot: Annotated[str, known(lambda robots: robots, "is not in the fleet")]
    instruction: Annotated[str, text()]
    scene: Annotated[str, text(least=0)] = ""
    urgency: Annotated[Urgency, _URGENCY] = Urgency.NORMAL
    when_busy: Annotated[WhenBusy, _WHEN_BUSY] = WhenBusy.QUEUE
    on_failure: Annotated[OnFailure, _ON_FAILURE] = OnFailure.ABORT
    max_replans: Annotated[int, whole(0, MAX_REPLANS)] | None = None
    cancel_after: Annotated[float, _SECONDS] = math.inf
    expect: Annotated[tuple[Annotated[ErrorCode, _CODE], ...], items(1)] = ()


@dataclass(frozen=True, slots=True)
class _File(Entry):
    instructions: Annotated[tuple[_Entry, ...], items(1, MAX_INSTRUCTIONS)]
    description: Annotated[str, text()] = ""


def _instruction(entry: _Entry) -> Instruction:
    replans = entry.max_replans
    goal = PlanGoal(
        robot_id=entry.robot,
        instruction=entry.instruction,
        scene=entry.scene,
        urgency=entry.urgency,
        when_busy=entry.when_busy,
        on_failure=entry.on_failure,
        max_replans=int(entry.on_failure is OnFailure.REPLAN) if replans is None else replans,
    )
    usual = ErrorCode.NONE if entry.cancel_after == math.inf else ErrorCode.CANCELED
    return Instruction(entry.at, goal, entry.cancel_after, entry.expect or (usual,))
