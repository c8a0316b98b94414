"""What an Indy7 controller answers: its state, where the arm is, refusals in words. Pure.

The SDK gives every answer as a dict; its 64-bit numbers arrive as texts. What is missing or cannot
be is ``Nonsense``, with the field's name; it is never taken for 0 or no.
"""

from __future__ import annotations

import re
import reprlib
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


MOST_ANGLE, MOST_TOOL = 720.0, 10_000.0  # deg; mm and deg: what no arm reaches
MOVED = 0.02  # deg, from look to look, of a joint that moves
#: What these answer is a value; it shows by itself that they are not refused.
_ANSWERED_BY_VALUES = ("inverse_kin", "get_di")
_WHOLE = re.compile(r"-?[0-9]{1,19}")


class Nonsense(ValueError):
    """An answer that lacks what it must have, or has what cannot be."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the controller tells of itself. ``joints`` in deg, ``tool`` in mm and deg. ``moved``:
    the joints are not where they were at the look before."""

    op_state: int
    joints: tuple[float, ...]
    tool: tuple[float, ...]
    in_motion: bool
    reached: bool
    queued: int
    violation: str = ""
    moved: bool = False

    @property
    def still(self) -> bool:
        """The arm stands still, by its joints too, and has nothing queued."""
        moves = self.moved or self.in_motion or self.op_state in (MOVING, 18)
        return not moves and not self.queued

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


def look_of(answer: Any, before: Look | None = None) -> Look:
    """From ``get_robot_data``, ``get_motion_data`` and, in trouble, ``get_violation_data``;
    ``before`` is the look before."""
    try:
        robot, motion = _part(answer, "robot"), _part(answer, "motion")
        violation = _part(answer, "violation") if "violation" in answer else {}
        joints = numbers(robot, "q", MOST_ANGLE)
        return Look(
            _whole(robot, "op_state", 255),
            joints,
            numbers(robot, "p", MOST_TOOL),
            _flag(motion, "is_in_motion") or _flag(motion, "is_stopping"),
            _flag(motion, "is_target_reached"),
            _whole(motion, "motion_queue_size", 2**32 - 1),
            str(violation.get("violation_str", ""))[:200].strip(),
            before is not None
            and any(abs(a - b) > MOVED for a, b in zip(joints, before.joints, strict=True)),
        )
    except Nonsense as error:
        raise Nonsense(f"the controller's data make no sense: {error}") from error


def numbers(answer: Any, name: str, most: float) -> tuple[float, ...]:
    """Six numbers of at most ``most``, either way, or ``Nonsense``."""
    values = _field(answer, name)
    try:
        found = tuple(float(value) for value in values)
    except (TypeError, ValueError, OverflowError):
        found = ()
    if len(found) != 6 or not all(abs(value) <= most for value in found):  # refuses NaN too
        raise Nonsense(f"{name}: not six numbers of at most {most:g}: {reprlib.repr(values)}")
    return found


def signals_of(answer: Any) -> dict[int, int]:
    """The states of digital inputs by address, from ``get_di``."""
    signals = _field(answer, "signals")
    if not isinstance(signals, list):
        raise Nonsense(f"signals: not a list: {reprlib.repr(signals)}")
    found = {_whole(s, "address", 2**32 - 1): _whole(s, "state", 255) for s in signals}
    if len(found) != len(signals):
        raise Nonsense("signals: an address is there twice")
    return found


def refusal(method: str, answer: Any) -> str:
    """Why the controller refuses a call, or empty. Every answer has a code; 0 is yes."""
    response = answer
    if isinstance(answer, Mapping) and "response" in answer:
        response = answer["response"]
    elif method in _ANSWERED_BY_VALUES:
        return ""
    try:
        code = _whole(response, "code", 2**63 - 1, -(2**63))
    except Nonsense:
        return f"{method}: the answer has no code"
    if not code:
        return ""
    words = str(response.get("msg", "")).strip()
    return f"{method} is refused: {words or 'no reason given'} (code {code})"


def _field(fields: Any, name: str) -> Any:
    if not isinstance(fields, Mapping) or name not in fields:
        raise Nonsense(f"{name} is missing")
    return fields[name]


def _part(answer: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(part := _field(answer, name), Mapping):
        raise Nonsense(f"{name}: not fields: {reprlib.repr(part)}")
    return part


def _flag(fields: Any, name: str) -> bool:
    if not isinstance(value := _field(fields, name), bool):
        raise Nonsense(f"{name}: neither true nor false: {reprlib.repr(value)}")
    return value


def _whole(fields: Any, name: str, most: int, least: int = 0) -> int:
    value = _field(fields, name)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        words = f"a whole number of {least} to {most}"
        raise Nonsense(f"{name}: not {words}: {reprlib.repr(value)}")
    return value
