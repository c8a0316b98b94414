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

from timely_llm.protocols.messages import ErrorCode, OnFailure, PlanGoal, WhenBusy
from timely_llm.protocols.utility import Urgency
from timely_llm.validation.names import hint
from timely_llm.validation.reader import Node, decoded, read

MAX_INSTRUCTIONS = 10_000
MAX_TIME = 86_400.0  # s

URGENCIES = tuple(u.name.lower() for u in Urgency if u is not Urgency.UNSPECIFIED)
BUSY = tuple(choice.name.lower() for choice in WhenBusy)
FAILURE = tuple(choice.name.lower() for choice in OnFailure)
MAX_REPLANS = 5  # what a planner allows by default
_KEYS = (
    *("at", "robot", "instruction", "scene", "urgency", "when_busy", "on_failure", "max_replans"),
    *("cancel_after", "expect"),
)


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
    """The script in a file, for a fleet of ``robots``. ``YamlError`` names line, field and the
    nearest known name; ``OSError`` where the file cannot be read."""
    path = Path(os.path.expanduser(path))
    return read_script(decoded(path.read_bytes(), str(path)), robots, str(path))


def read_script(text: str, robots: Collection[str], source: str = "<script>") -> Script:
    """The script in ``text``; ``source`` names it in errors."""
    entries = read(text, source).mapping(("description", "instructions"), ("instructions",))
    items = entries["instructions"].items(1, MAX_INSTRUCTIONS)
    instructions = [_instruction(node, robots) for node in items]
    description = entries["description"].text() if "description" in entries else ""
    return Script(description, tuple(sorted(instructions, key=lambda item: item.at)))


def _instruction(node: Node, robots: Collection[str]) -> Instruction:
    entries = node.mapping(_KEYS, ("at", "robot", "instruction"))
    robot = entries["robot"].text()
    if robot not in robots:
        entries["robot"].fail(f"{robot!r} is not in the fleet{hint(robot, robots)}")
    urgency, when_busy = Urgency.NORMAL, WhenBusy.QUEUE
    if "urgency" in entries:
        urgency = Urgency[entries["urgency"].choice(URGENCIES).upper()]
    if "when_busy" in entries:
        when_busy = WhenBusy[entries["when_busy"].choice(BUSY).upper()]
    on_failure, replans = OnFailure.ABORT, 0
    if "on_failure" in entries:
        on_failure = OnFailure[entries["on_failure"].choice(FAILURE).upper()]
        replans = int(on_failure is OnFailure.REPLAN)
    if "max_replans" in entries:
        replans = entries["max_replans"].whole(0, MAX_REPLANS)
    goal = PlanGoal(
        robot_id=robot,
        instruction=entries["instruction"].text(),
        scene=entries["scene"].text(minimum=0) if "scene" in entries else "",
        urgency=urgency,
        when_busy=when_busy,
        on_failure=on_failure,
        max_replans=replans,
    )
    cancel_after, expect = math.inf, (ErrorCode.NONE,)
    if "cancel_after" in entries:
        cancel_after = entries["cancel_after"].number(0.0, MAX_TIME, " s")
        expect = (ErrorCode.CANCELED,)
    if "expect" in entries:
        codes = [code.name for code in ErrorCode]
        expect = tuple(ErrorCode[item.choice(codes)] for item in entries["expect"].items(1))
    return Instruction(entries["at"].number(0.0, MAX_TIME, " s"), goal, cancel_after, expect)
