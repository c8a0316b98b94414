"""Worlds as a scene tells them, so that a robot sees in them what its prompt says. Pure."""

from __future__ import annotations

import math
import re

from robot_adapters.perception import Point
from robot_adapters.simulated.bodies import ARM_VIEW, TELLO_CAMERA
from robot_adapters.simulated.world import Thing, World

EYE = 1.0  # m above the ground, of a drone that looks at its scene
DEPTH = 1.5  # m ahead, of the first thing in view; each next one is a little behind
BEHIND = 0.05  # m
REACHED = (0.25, 0.85)  # m from an arm's base
MOST = 1000  # things
UNSEEN_SIZE = 0.2  # m
_THING = re.compile(
    r"\s*(?P<name>[^\s:,\[\]]{1,60})"
    r"\s+x:(?P<x>[0-9.]+)\s+y:(?P<y>[0-9.]+)\s+width:(?P<width>[0-9.]+)\s+height:(?P<height>[0-9.]+)"
    r"\s*"
)


class SceneError(ValueError):
    """A scene that does not say where things are."""


def world_of(scene: str, arm: bool) -> World:
    """The world in which a drone at the height ``EYE``, or an arm, sees this scene,
    ``[apple x:0.4 y:0.5 width:0.1 height:0.2, ...]``; ``SceneError`` names the part that is none.
    """
    things: list[Thing] = []
    inner = scene.strip().removeprefix("[").removesuffix("]").strip()
    for part in inner.split(",") if inner else ():
        match = _THING.fullmatch(part)
        shares = [_share(text) for text in match.groups()[1:]] if match else []
        if match is None or None in shares:
            raise SceneError(
                f"{part.strip()!r:.80}: must be 'name x:0.5 y:0.5 width:0.1 height:0.1'"
            )
        if len(things) == MOST:
            raise SceneError(f"more than {MOST} things")
        x, y, width, height = (share for share in shares if share is not None)
        place = _on_table if arm else _ahead
        name = _distinct(match["name"].replace("_", " "), things)
        things.append(place(name, x, y, width, height, len(things)))
    return World(things)


def names_in(scene: str) -> list[str]:
    """The names of the things of a scene that a simulated robot tells, with blanks."""
    inner = scene.strip().removeprefix("[").removesuffix("]")
    return [part.split()[0].replace("_", " ") for part in inner.split(",") if part.strip()]


def thing_at(name: str, place: Point) -> Thing:
    """A thing that a scene does not tell of; ``place`` is its centre, in m."""
    x, y, z = place
    return Thing(name, (x, y, z - UNSEEN_SIZE / 2), (UNSEEN_SIZE,) * 3)


def _share(text: str) -> float | None:
    """A share of the view, 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _distinct(name: str, things: list[Thing]) -> str:
    """Things of one name are numbered, as worlds have it."""
    names = {thing.name for thing in things}
    numbered = (f"{name}_{number}" for number in range(2, MOST + 2))
    return name if name not in names else next(each for each in numbered if each not in names)


def _ahead(name: str, x: float, y: float, width: float, height: float, number: int) -> Thing:
    """In the picture of a drone's camera."""
    depth = DEPTH + BEHIND * number
    across = 2 * depth * math.tan(math.radians(TELLO_CAMERA.horizontal / 2))
    upward = 2 * depth * math.tan(math.radians(TELLO_CAMERA.vertical / 2))
    size = (0.02, width * across, height * upward)
    centre = EYE + (0.5 - y) * upward
    return Thing(name, (depth, (0.5 - x) * across, centre - size[2] / 2), size)


def _on_table(name: str, x: float, y: float, width: float, height: float, number: int) -> Thing:
    """As an arm sees them, from above; within its reach, whatever the scene says: the plan is
    judged, not the place."""
    span = 2 * ARM_VIEW
    ahead, left = (0.5 - y) * span, (0.5 - x) * span
    distance = math.hypot(ahead, left)
    nearest, farthest = REACHED
    scale = min(max(distance, nearest), farthest) / distance if distance else 0.0
    place = (ahead * scale, left * scale) if distance else (nearest, 0.0)
    return Thing(name, (*place, 0.0), (height * span, width * span, 0.05))
