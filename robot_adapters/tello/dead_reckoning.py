"""Where a drone is by what it was told to do: dead reckoning, and the geofence around it. Pure.

The Tello tells its height and heading, never where it is. The ways it was told to fly are added up;
how far that may be off is added up too, and kept away from the fence. m from where the node
started, x ahead, y left, z above the ground; degrees counterclockwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from robot_adapters.perception import Pose
from robot_adapters.simulated.bodies import Fence


@dataclass(frozen=True, slots=True)
class Way:
    """What a command does to the pose: m ahead, left and up; degrees counterclockwise."""

    ahead: float = 0.0
    left: float = 0.0
    up: float = 0.0
    turn: float = 0.0

    @property
    def length(self) -> float:
        """m"""
        return (self.ahead**2 + self.left**2 + self.up**2) ** 0.5

    def after(self, start: Pose) -> Pose:
        """The pose at its end."""
        return start.moved(self.ahead, self.left, self.up, self.turn)


@dataclass(frozen=True, slots=True)
class Step:
    """One command of the SDK and where it leads."""

    command: str
    way: Way


class DeadReckoning:
    """``drift`` is how far a way may be off, as a share of its length; ``radius`` (m) how far x and
    y may be off by now."""

    def __init__(self, fence: Fence | None = None, drift: float = 0.05) -> None:
        self.pose = Pose()
        self.radius = 0.0
        self._fence, self._drift = fence, drift
        self._heading_at_zero: float | None = None  # where the drone counts its yaw from

    def outside(self, way: Way, height: float | None = None) -> str:
        """Why the way must not be flown, or empty. ``height`` (m) is that before it; default: as
        it is. The fence is a box, so a way whose ends lie in it does too."""
        start = self.pose if height is None else replace(self.pose, z=height)
        end = way.after(start)
        off = self.radius + self._drift * math.hypot(way.ahead, way.left)
        axes = zip("xyz", start.point, end.point, self._fence or (), strict=False)
        for axis, a, b, limits in axes:
            before, spare = (0.0, 0.0) if axis == "z" else (self.radius, off)
            excess = _excess(b, spare, limits)
            if excess > 1e-9 and excess > _excess(a, before, limits) - 1e-9:  # not a way back
                about = f" (give or take {spare:.2f})" if spare else ""
                fence = f"geofence is {limits[0]:g} to {limits[1]:g} m"
                return f"{axis} would be {b:.2f} m{about}: {fence}"
        return ""

    def arrived(self, way: Way) -> None:
        """The way was flown to its end."""
        self.pose = way.after(self.pose)
        self.radius += self._drift * math.hypot(way.ahead, way.left)

    def interrupted(self, way: Way) -> None:
        """The way was begun: the drone is somewhere on it."""
        half = Way(way.ahead / 2, way.left / 2, way.up / 2, way.turn / 2)
        self.pose = half.after(self.pose)
        self.radius += math.hypot(half.ahead, half.left)

    def calibrate(self, yaw: float) -> None:
        """The drone is switched on (again), and counts ``yaw`` (clockwise) from now."""
        self._heading_at_zero = self.pose.yaw + yaw

    def observe(self, height: float | None, yaw: float | None) -> None:
        """What the drone tells between two ways: m above the ground, degrees clockwise."""
        if height is not None:
            self.at_height(max(0.0, height))
        if yaw is not None and self._heading_at_zero is not None:
            heading = self._heading_at_zero - yaw
            turn = (heading - self.pose.yaw + 180) % 360 - 180
            self.pose = replace(self.pose, yaw=self.pose.yaw + turn)

    def at_height(self, height: float) -> None:
        """The drone took off to, or landed at, this height in m."""
        self.pose = replace(self.pose, z=height)

    def __str__(self) -> str:
        return f"{self.pose}, give or take {self.radius:.2f} m"


def _excess(value: float, spare: float, limits: tuple[float, float]) -> float:
    """m beyond the limits, at the worst."""
    return max(0.0, limits[0] - (value - spare), value + spare - limits[1])
