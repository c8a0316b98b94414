"""Faults of a simulated Tello: what they are called, and how they are asked for. Pure.

``parse_fault`` reads those of other simulated robots too, with their own ``kinds``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from timely_llm.validation.names import hint


class FaultError(ValueError):
    """A fault that does not exist, or with a wrong value."""


@dataclass(frozen=True, slots=True)
class Kind:
    """``default`` is the value where none is given; None: it must be."""

    words: str
    low: float = 0.0
    high: float = 3600.0
    default: float | None = None


KINDS = {
    "silence": Kind("the next N motions are carried out, but not answered", 1, 1000, 1),
    "late": Kind("the next motion is answered S s late", default=None),
    "joystick": Kind("the next motion is refused: error Not joystick", 1, 1, 1),
    "imu": Kind("the next motion is refused: error No valid imu", 1, 1, 1),
    "motor": Kind("in the middle of the next motion the motors stop", 1, 1, 1),
    "loss": Kind("for S s nothing gets through in either direction", default=None),
    "battery": Kind("the battery is at P percent", 0, 100, None),
}
_WORDS = {"joystick": "error Not joystick", "imu": "error No valid imu"}
_FORM = re.compile(r"([a-z]+)(?:=([0-9]+(?:\.[0-9]+)?))?(?:@([0-9]+(?:\.[0-9]+)?))?")


@dataclass(frozen=True, slots=True)
class Fault:
    """``at`` in s on the drone's clock, 0: at once. Kinds ``error`` refuse a motion with ``text``;
    ``silence``, ``late``, ``error`` and ``motor`` concern the next motion."""

    kind: str
    value: float = 1.0
    at: float = 0.0
    text: str = ""


def parse_fault(text: str, kinds: Mapping[str, Kind] = KINDS) -> Fault:
    """``KIND``, ``KIND=VALUE``, either with ``@SECONDS``. ``FaultError`` names what is wrong."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise FaultError(f"fault {text!r}: must be KIND, KIND=VALUE or KIND=VALUE@SECONDS")
    name, value, at = match.groups()
    kind = kinds.get(name)
    if kind is None:
        raise FaultError(f"fault {name!r} is unknown{hint(name, kinds)}")
    if value is None and kind.default is None:
        raise FaultError(f"fault {name!r} needs a value: {kind.words}")
    number = kind.default if value is None else float(value)
    if not kind.low <= number <= kind.high:
        limits = f"{kind.low:g} to {kind.high:g}"
        raise FaultError(f"fault {name!r}: value is {number:g}: must be {limits}")
    words = _WORDS.get(name, "")
    return Fault("error" if words else name, number, float(at or 0.0), words)
