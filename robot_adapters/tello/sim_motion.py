"""The motions of a simulated Tello: where a command leads, and how long it takes. Pure."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

CEILING = 30.0  # m

#: Direction (ahead, left, up) of a move.
SHIFTS = {
    "forward": (1, 0, 0),
    "back": (-1, 0, 0),
    "left": (0, 1, 0),
    "right": (0, -1, 0),
    "up": (0, 0, 1),
    "down": (0, 0, -1),
}
TURNS = {"cw": -1, "ccw": 1}
MOTIONS = ("flip", "go", *SHIFTS, *TURNS)
_FLIPS = ("l", "r", "f", "b")


@dataclass(frozen=True, slots=True)
class Pose:
    """m, and degrees counterclockwise."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    yaw: float = 0.0

    def shifted(self, ahead: float, left: float, up: float) -> Pose:
        angle = math.radians(self.yaw)
        x = self.x + ahead * math.cos(angle) - left * math.sin(angle)
        y = self.y + ahead * math.sin(angle) + left * math.cos(angle)
        return replace(self, x=x, y=y, z=min(CEILING, max(0.0, self.z + up)))

    def toward(self, end: Pose, share: float) -> Pose:
        ways = ((a, b) for a, b in zip(self.values, end.values, strict=True))
        return Pose(*(a + share * (b - a) for a, b in ways))

    @property
    def values(self) -> tuple[float, float, float, float]:
        return (self.x, self.y, self.z, self.yaw)


@dataclass(frozen=True, slots=True)
class Motion:
    """A command being carried out; ``answer`` is sent when it is done, unless it is empty."""

    command: str
    started: float
    ends: float
    start: Pose
    end: Pose
    answer: str = "ok"

    def pose(self, now: float) -> Pose:
        if now >= self.ends:
            return self.end
        return self.start.toward(self.end, (now - self.started) / (self.ends - self.started))

    @property
    def velocity(self) -> tuple[float, float, float]:
        """m/s along x, y, z."""
        pairs = zip(self.start.values[:3], self.end.values[:3], strict=True)
        return tuple((b - a) / (self.ends - self.started) for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Chance:
    """How much a drone scatters; ``noise`` 0: not at all."""

    rng: random.Random
    noise: float

    def scatter(self, deviation: float) -> float:
        return self.noise * max(-3.0, min(3.0, self.rng.gauss(0.0, 1.0))) * deviation

    def scattered(self, end: Pose, way: float) -> Pose:
        """The end of a way of so many m, as it is reached."""
        x, y = end.x + self.scatter(0.02 * way), end.y + self.scatter(0.02 * way)
        return replace(end, x=x, y=y, z=max(0.0, end.z + self.scatter(0.01)))


def planned(
    name: str, arguments: list[str], start: Pose, speed: int, chance: Chance
) -> tuple[float, Pose] | None:
    """How long a command takes in s, and where it leads; None: an argument is out of range."""
    if name == "flip":
        return (1.5, start) if arguments and arguments[0] in _FLIPS else None
    if name == "go":
        return _go(arguments, start, chance)
    limits = (20, 500) if name in SHIFTS else (1, 360)
    value = whole(arguments[0], *limits) if len(arguments) == 1 else None
    if value is None:
        return None
    if name in TURNS:
        yaw = start.yaw + TURNS[name] * (value + chance.scatter(1.0))
        return 0.784 + 0.0165 * value, replace(start, yaw=yaw)
    ahead, left, up = (value / 100 * share for share in SHIFTS[name])
    if up:
        duration = 1.3195 + 0.0388 * value - 0.0003 * value**2 + 8.0e-7 * value**3
    else:
        duration = 1.8144 + 0.72 / speed * value
    return duration, chance.scattered(start.shifted(ahead, left, up), value / 100)


def _go(arguments: list[str], start: Pose, chance: Chance) -> tuple[float, Pose] | None:
    if len(arguments) != 4:
        return None
    limits = ((-500, 500),) * 3 + ((10, 100),)
    values = [whole(text, *span) for text, span in zip(arguments, limits, strict=True)]
    if None in values or all(abs(value) < 20 for value in values[:3]):
        return None
    way = math.hypot(*values[:3])
    end = start.shifted(*(value / 100 for value in values[:3]))
    return 1.0 + way / values[3], chance.scattered(end, way / 100)


def whole(text: str, low: int, high: int) -> int | None:
    """The number, if it is one and within its limits."""
    number = int(text) if text.removeprefix("-").isdecimal() and text.isascii() else None
    return number if number is not None and low <= number <= high else None
