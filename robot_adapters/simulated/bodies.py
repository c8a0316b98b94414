"""Simulated bodies: what a skill does to a drone or an arm in a ``World``, and what it finds out.

Pure; no time here: a ``Move`` says where a call leads and what it yields, ``adapter.py`` how long
it takes. Skills are told apart by their long names. Lengths are m, angles degrees (``world.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from robot_adapters.perception import SIGHTS, Pose, Sighting, reading, scene, seen
from robot_adapters.simulated.world import Camera, Thing, World, first_hit
from timely_llm.language.skills import SkillSet, Value

Fence = tuple[tuple[float, float], ...]

#: Ryze Tello: 82.6 degrees over the diagonal of a 4:3 picture.
TELLO_CAMERA = Camera(horizontal=70.2, vertical=55.6, reach=8.0)
ARM_VIEW = 1.2  # m around its base, seen from above
STANDOFF = 0.5  # m, the least between a drone and what it goes to
SCAN_STEP = 45.0  # degrees; eight steps are a full turn
CLEARANCE = 0.1  # m, between a gripper and the top of what it is above


class Refusal(Exception):
    """The body cannot do this from here; the words say why."""


@dataclass(frozen=True, slots=True)
class Move:
    """What one call does: ``end`` is where it leads, ``value`` what it finds out. ``arrive`` is
    done at the end alone: a call that is given up on the way grips nothing."""

    end: Pose
    value: Value | None = None
    arrive: Callable[[], None] | None = None


class Body(Protocol):
    """``pose`` is the body's own; only the simulation that moves it sets it. ``lands``: left alone,
    it comes down. ``holds`` is the name of what it has picked up."""

    pose: Pose
    lands: bool
    holds: str | None

    def move(self, action: str, values: Sequence[Value]) -> Move | None:
        """What the skill with long name ``action`` does; None: nothing that a body could know.
        ``Refusal`` where it must not or cannot be done."""
        ...

    def observe(self) -> str: ...


class Drone:
    """Flies level, looks where its nose points. ``fence`` is relative to where it started."""

    holds: str | None = None

    def __init__(self, world: World, start: Pose, skills: SkillSet) -> None:
        self.world, self.pose = world, start
        self.lands = "move_up" in skills or "move_down" in skills
        self._fence = _absolute(skills.bounds.geofence, start)
        self._camera = TELLO_CAMERA
        self._within(start)

    def move(self, action: str, values: Sequence[Value]) -> Move | None:
        if action in _SHIFTS:
            way = (float(values[0]) / 100 * share for share in _SHIFTS[action])
            return Move(self._within(self.pose.moved(*way)))
        if action in _TURNS:
            return Move(self.pose.moved(0.0, 0.0, turn=_TURNS[action] * float(values[0])))
        if not values:
            return None
        text = str(values[0])
        if action in SIGHTS:
            return Move(self.pose, reading(action, self._in_view(text)))
        match action:
            case "goto":
                return Move(self._within(self._beside(self.world[self._in_view(text).name])))
            case "scan":
                return self._scan(lambda sighting: sighting.is_called(text), named=False)
            case "scan_abstract":
                return self._scan(lambda sighting: self._fits(sighting, text), named=True)
            case "is_visible":
                return Move(self.pose, seen(self._sightings(self.pose), text) is not None)
            case "probe":
                fitting = (s.name for s in self._sightings(self.pose) if self._fits(s, text))
                return Move(self.pose, next(fitting, "False"))
        return None

    def observe(self) -> str:
        return scene(self._sightings(self.pose))

    def _sightings(self, pose: Pose) -> list[Sighting]:
        return self._camera.sightings(self.world, pose)

    def _in_view(self, name: str) -> Sighting:
        if sighting := seen(self._sightings(self.pose), name):
            return sighting
        raise Refusal(f"{name!r} is not in view")

    def _fits(self, sighting: Sighting, question: str) -> bool:
        return self.world[sighting.name].fits(question)

    def _beside(self, thing: Thing) -> Pose:
        """Facing the thing, at least ``STANDOFF`` away from it and from whatever stands before it,
        and not so near that it would drop out of the picture."""
        x, y, z = self.pose.point
        dx, dy, dz = (c - p for c, p in zip(thing.center, self.pose.point, strict=True))
        distance = math.hypot(dx, dy)
        level = (thing.center[0], thing.center[1], z)
        hits = [first_hit((x, y, z), level, other) for other in self.world]
        free = distance * min((hit for hit in hits if hit is not None), default=1.0)
        seen_from = 1.1 * abs(dz) / math.tan(math.radians(self._camera.vertical / 2))
        ahead = max(0.0, min(free - STANDOFF, distance - seen_from))
        way = ahead / distance if distance else 0.0
        turn = _short_way(math.degrees(math.atan2(dy, dx)) - self.pose.yaw)
        return Pose(x + way * dx, y + way * dy, z, self.pose.yaw + turn)

    def _scan(self, wanted: Callable[[Sighting], bool], named: bool) -> Move:
        """Turn by steps until something wanted is seen; once around if nothing is."""
        for step in range(8):
            pose = replace(self.pose, yaw=self.pose.yaw + step * SCAN_STEP)
            if found := next(filter(wanted, self._sightings(pose)), None):
                return Move(pose, found.name if named else True)
        return Move(replace(self.pose, yaw=self.pose.yaw + 360), False)

    def _within(self, pose: Pose) -> Pose:
        """``pose``, if it lies in the geofence. That is a box, so the way there does too."""
        for axis, value, limits in zip("xyz", pose.point, self._fence or (), strict=False):
            if not limits[0] - 1e-9 <= value <= limits[1] + 1e-9:
                raise Refusal(
                    f"{axis} would be {value:.2f} m: geofence is {limits[0]:g} to {limits[1]:g} m"
                )
        return pose


#: Direction (ahead, left, up) of a move by long name.
_SHIFTS = {
    "move_forward": (1, 0, 0),
    "move_backward": (-1, 0, 0),
    "move_left": (0, 1, 0),
    "move_right": (0, -1, 0),
    "move_up": (0, 0, 1),
    "move_down": (0, 0, -1),
}
_TURNS = {"turn_cw": -1, "turn_ccw": 1}


def _absolute(fence: Fence | None, start: Pose) -> Fence | None:
    """x and y are given from the start, z from the ground."""
    if fence is None:
        return None
    offsets = (start.x, start.y, 0.0)
    return tuple((lo + at, hi + at) for (lo, hi), at in zip(fence, offsets, strict=True))


def _short_way(degrees: float) -> float:
    """The same turn as -180 to 180 degrees."""
    return (degrees + 180) % 360 - 180


class Arm:
    """An arm on its base; ``pose`` is the gripper's. ``reach`` (least, most) and ``view`` are
    level distances from the base."""

    lands = False

    def __init__(
        self,
        world: World,
        base: Pose,
        reach: tuple[float, float] = (0.15, 0.93),
        view: float = ARM_VIEW,
    ) -> None:
        self.world, self.base = world, base
        self.holds: str | None = None
        self._reach, self._view = reach, view
        angle, middle = math.radians(base.yaw), sum(reach) / 2
        x, y = base.x + middle * math.cos(angle), base.y + middle * math.sin(angle)
        self.pose = Pose(x, y, base.z + 0.4)

    def move(self, action: str, values: Sequence[Value]) -> Move | None:
        match action:
            case "scan" | "is_visible":
                return Move(self.pose, bool(self._seen(str(values[0]))))
            case "goto":
                return Move(self._above(self._reachable(str(values[0]))))
            case "pick":
                if self.holds is not None:
                    raise Refusal(f"the gripper holds {self.holds!r} already")
                thing = self._reachable(str(values[0]))
                return Move(self._above(thing), arrive=partial(self._grip, thing.name))
            case "drop":
                if self.holds is None:
                    raise Refusal("the gripper holds nothing")
                return Move(self.pose, arrive=partial(self._release, self.holds))
        return None

    def observe(self) -> str:
        """From above: x from the right to the left of the base, y from far to near."""
        span = 2 * self._view
        sightings = []
        for thing in self._in_view():
            ahead, left = self._from_base(thing)
            x, y = 0.5 - left / span, 0.5 - ahead / span
            width, height = thing.size[1] / span, thing.size[0] / span
            distance = math.hypot(ahead, left)
            sightings.append(Sighting(thing.name, x, y, width, height, distance))
        return scene(sightings)

    def _from_base(self, thing: Thing) -> tuple[float, float]:
        """How far ahead of the base and left of it, in m."""
        dx, dy = thing.position[0] - self.base.x, thing.position[1] - self.base.y
        angle = math.radians(self.base.yaw)
        ahead = dx * math.cos(angle) + dy * math.sin(angle)
        return ahead, dy * math.cos(angle) - dx * math.sin(angle)

    def _in_view(self) -> list[Thing]:
        return [thing for thing in self.world if math.hypot(*self._from_base(thing)) <= self._view]

    def _seen(self, name: str) -> list[Thing]:
        """Nearest to the base first."""
        things = [thing for thing in self._in_view() if thing.is_called(name)]
        return sorted(things, key=lambda t: (math.hypot(*self._from_base(t)), t.name))

    def _reachable(self, name: str) -> Thing:
        things = [thing for thing in self._seen(name) if thing.name != self.holds]
        if not things:
            raise Refusal(f"{name!r} is not in view")
        distance = math.hypot(*self._from_base(things[0]))
        low, high = self._reach
        if not low <= distance <= high:
            limits = f"reach is {low:g} to {high:g} m"
            raise Refusal(f"{things[0].name!r} is {distance:.2f} m away: {limits}")
        return things[0]

    def _above(self, thing: Thing) -> Pose:
        return replace(self.pose, x=thing.position[0], y=thing.position[1], z=thing.top + CLEARANCE)

    def _grip(self, name: str) -> None:
        self.holds = name

    def _release(self, name: str) -> None:
        """What was held comes to rest on whatever lies under the gripper."""
        self.holds = None
        x, y, _ = self.pose.point
        self.world.move(name, (x, y, self.world.support(x, y, without=name)))
