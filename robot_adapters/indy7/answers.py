"""What an Indy7 controller answers: its state, where the arm is, refusals in words. Pure.

The SDK gives every answer as a dict; its 64-bit numbers arrive as texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

IDLE, MOVING = 5, 6
#: Operation states by number (``OpState`` of the SDK), as people read them.
STATES = {
    0: "off", 1: "not ready", 2: "in violation", 3: "recovering", 4: "recovering", 5: "idle",
    6: "moving", 7: "being taught by hand", 8: "in collision", 9: "stopped and off",
    10: "in compliance control", 11: "in brake control", 12: "resetting", 13: "switching",
    15: "powered off", 16: "in manual recovery", 17: "teleoperated", 18: "moving",
}  # fmt: skip
RECOVERABLE = (2, 3, 4, 8, 9)
WORKING = (IDLE, MOVING, 18)


class Nonsense(ValueError):
    """An answer that lacks what it must have."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the controller tells of itself. ``joints`` in deg, ``tool`` in mm and deg."""

    op_state: int
    joints: tuple[float, ...]
    tool: tuple[float, ...]
    in_motion: bool
    reached: bool
    queued: int
    violation: str = ""

    @property
    def still(self) -> bool:
        """The arm stands still and has nothing queued."""
        return not self.in_motion and not self.queued and self.op_state not in (MOVING, 18)

    @property
    def trouble(self) -> str:
        """Why the arm does not work now, in the controller's words where it has some; or empty."""
        if self.op_state in WORKING:
            return ""
        violation = f": {self.violation}" if self.violation else ""
        return f"{state_words(self.op_state)}{violation}"


def state_words(op_state: int) -> str:
    """An operation state, for people."""
    return f"the controller is {STATES.get(op_state, f'in operation state {op_state}')}"


def look_of(answer: Mapping[str, Any]) -> Look:
    """From ``get_robot_data``, ``get_motion_data`` and, in trouble, ``get_violation_data``."""
    robot, motion = answer["robot"], answer["motion"]
    violation = answer.get("violation") or {}
    try:
        return Look(
            int(robot["op_state"]),
            numbers(robot["q"]),
            numbers(robot["p"]),
            bool(motion["is_in_motion"]) or bool(motion.get("is_stopping")),
            bool(motion["is_target_reached"]),
            int(motion.get("motion_queue_size", 0)),
            str(violation.get("violation_str", "")).strip(),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Nonsense(f"the controller's data make no sense: {error}") from error


def numbers(values: Any) -> tuple[float, ...]:
    """Six finite numbers, or ``Nonsense``."""
    try:
        found = tuple(float(value) for value in values)
    except (TypeError, ValueError) as error:
        raise Nonsense(f"not numbers: {values!r}") from error
    if len(found) != 6 or not all(map(math.isfinite, found)):
        raise Nonsense(f"not six numbers: {values!r}")
    return found


def refusal(method: str, answer: Mapping[str, Any]) -> str:
    """Why the controller refuses a call, or empty. Every answer has a code; 0 is yes."""
    response = answer.get("response", answer)
    try:
        code = int(response.get("code", 0))
    except (AttributeError, TypeError, ValueError):
        return f"{method}: the answer has no code"
    if not code:
        return ""
    words = str(response.get("msg", "")).strip()
    return f"{method} is refused: {words or 'no reason given'} (code {code})"
