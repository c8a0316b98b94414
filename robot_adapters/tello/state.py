"""What a Tello tells of itself ten times a second: its state lines. Pure.

A field that a line lacks, or whose value cannot be, is unknown. It is never taken for 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

MAX_BYTES = 1024  # of a datagram; what is longer was not sent by a Tello
#: What a state line must have before the drone counts as connected.
NEEDED = ("bat", "h", "time", "tof", "yaw")
#: Least and most of every number: %, cm, s, degrees, dm/s, degrees C, m, mg.
LIMITS: dict[str, tuple[float, float]] = {
    "bat": (0, 100),
    "h": (-10_000, 10_000),
    "time": (0, 1_000_000),
    "tof": (0, 10_000),
    **dict.fromkeys(("pitch", "roll", "yaw"), (-180, 180)),
    **dict.fromkeys(("vgx", "vgy", "vgz"), (-1_000, 1_000)),
    **dict.fromkeys(("templ", "temph"), (-100, 200)),
    **dict.fromkeys(("mid", "x", "y", "z"), (-1_000, 1_000)),
    **dict.fromkeys(("baro", "agx", "agy", "agz"), (-100_000, 100_000)),
}
_NUMBER = re.compile(r"-?[0-9]{1,6}(\.[0-9]{1,6})?")
_GROUND = 20  # cm; the range finder reads 10 or less on the ground
_SPEED, _TURNED = 1, 3  # dm/s, and degrees from line to line, of a drone that hovers


class Line(NamedTuple):
    """A state line by field, and when it came, in s."""

    state: Mapping[str, Any]
    at: float


def text_of(data: bytes) -> str:
    """A datagram as text; empty: a Tello has not sent it as an answer or a state line."""
    text = data.decode("ascii", errors="replace").strip() if len(data) <= MAX_BYTES else ""
    return text if text.isascii() and text.isprintable() else ""


def read_state(text: str) -> dict[str, int | float | str]:
    """The fields of a state line; empty where it has no number of ours, and is none."""
    state: dict[str, int | float | str] = {}
    for name, colon, value in (item.partition(":") for item in text.split(";")):
        if name not in LIMITS:
            state |= {name: value} if colon else {}
        elif _NUMBER.fullmatch(value):
            number = float(value) if "." in value else int(value)
            low, high = LIMITS[name]
            state |= {name: number} if low <= number <= high else {}
    return state if state.keys() & LIMITS else {}


def airborne(state: Mapping[str, Any]) -> bool | None:
    """By its height, counted from where it took off, and its range finder. None where these do not
    say the same, as on a table or above stairs, or where what is told does not show it."""
    told = [state[name] > limit for name, limit in (("h", 0), ("tof", _GROUND)) if name in state]
    if told and all(told):
        return True
    return False if len(told) == 2 and not any(told) else None


def moves(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two lines, one after the other, show a motion."""
    if any(abs(after.get(name, 0)) > _SPEED for name in ("vgx", "vgy", "vgz")):
        return True
    if "yaw" not in before or "yaw" not in after:
        return False
    turned = (after["yaw"] - before["yaw"] + 180) % 360 - 180
    return bool(abs(turned) > _TURNED)
