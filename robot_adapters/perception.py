"""The eyes of a drone: the protocol between its adapter and whoever looks at its picture. Pure.

The Tello SDK delivers video and recognises nothing. A class of your own, named by the adapter's
parameter ``perception`` (``module:class``), makes the skills that depend on a picture possible. It
is made with the robot's id and the parameter ``perception_config``, and has those methods of
``Looks``, ``Answers`` and ``TakesPictures`` that it can do: skills that need another are refused at
start. Methods may take their time and raise; they are called one after another, from a thread of
the adapter. ``docs/robots.md`` has an example; ``simulated/camera.py`` is one for simulated drones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from robot_adapters.adapter import AdapterError, load_class
from timely_llm.language.skills import Value

Point = tuple[float, float, float]
"""In m."""


@dataclass(frozen=True, slots=True)
class Pose:
    """x ahead, y left, z up in m; yaw in degrees counterclockwise from x."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0
    yaw: float = 0.0

    @property
    def point(self) -> Point:
        """x, y, z in m."""
        return (self.x, self.y, self.z)

    @property
    def values(self) -> tuple[float, float, float, float]:
        """x, y, z in m, yaw in degrees."""
        return (self.x, self.y, self.z, self.yaw)

    def moved(self, ahead: float, left: float, up: float = 0.0, turn: float = 0.0) -> Pose:
        """The pose so many m along, across and above the nose, turned by degrees."""
        angle = math.radians(self.yaw)
        x = self.x + ahead * math.cos(angle) - left * math.sin(angle)
        y = self.y + ahead * math.sin(angle) + left * math.cos(angle)
        return Pose(x, y, self.z + up, self.yaw + turn)

    def toward(self, end: Pose, share: float) -> Pose:
        """The pose at ``share`` (0 to 1) of the way; yaw is not taken the short way round."""
        return Pose(*(a + share * (b - a) for a, b in zip(self.values, end.values, strict=True)))

    def __str__(self) -> str:
        return f"x {self.x:.2f} y {self.y:.2f} z {self.z:.2f} m, yaw {self.yaw % 360:.0f} deg"


def plain_name(name: str) -> str:
    """Lower case, blanks for underscores, without a number at the end."""
    return re.sub(r"[ _]*\d+$", "", name.lower()).replace("_", " ").strip()


def names_one_of(query: str, *names: str) -> bool:
    """Whether ``query`` means one of them; ``table``, ``Table`` and ``table_1`` are the same."""
    return plain_name(query) in map(plain_name, names)


@dataclass(frozen=True, slots=True)
class Sighting:
    """A thing in the picture: centre, width and height as shares of it (0 left and top), and the
    distance in m. ``aliases`` are further names that it answers to."""

    name: str
    x: float
    y: float
    width: float
    height: float
    distance: float
    aliases: tuple[str, ...] = ()

    def is_called(self, query: str) -> bool:
        """By its name or one of its aliases."""
        return names_one_of(query, self.name, *self.aliases)

    def __str__(self) -> str:
        numbers = {"x": self.x, "y": self.y, "width": self.width, "height": self.height}
        name = self.name.replace(" ", "_")
        return f"{name} {' '.join(f'{key}:{value:.2g}' for key, value in numbers.items())}"


@dataclass(frozen=True, slots=True)
class View:
    """What a perception gets: ``pose`` by dead reckoning from the start, the drone's last state,
    and the SDK's object (``sdk.get_frame_read()``), which is None in a simulation of everything.
    """

    pose: Pose
    state: Mapping[str, Any]
    sdk: Any = None


@runtime_checkable
class Looks(Protocol):
    """Recognises things: for ``is_visible``, ``object_x`` …, ``scan``, ``goto``."""

    def look(self, view: View) -> Sequence[Sighting]:
        """What is in the picture now."""
        ...


@runtime_checkable
class Answers(Protocol):
    """Answers questions about the picture: for ``scan_abstract`` and the robot's own probes."""

    def answer(self, question: str, view: View) -> str:
        """The name of what in the picture fits the question, or ``False``."""
        ...


@runtime_checkable
class TakesPictures(Protocol):
    """For ``take_picture``."""

    def picture(self, view: View) -> None:
        """Take a picture and keep it."""
        ...


def make_perception(path: str, robot_id: str, config: str) -> object:
    """The perception named ``module:class``, or None for an empty name. ``AdapterError`` says why
    it cannot be had."""
    if not path:
        return None
    if ":" not in path:
        raise AdapterError(f"perception: {path!r} must be module:class")
    cls = load_class(path, f"perception {path!r}")
    try:
        return cls(robot_id, config)
    except (AdapterError, ValueError, OSError) as error:
        raise AdapterError(f"perception {path!r}: {error}") from error


#: Skills that read something off a thing in the picture.
SIGHTS = ("object_x", "object_y", "object_width", "object_height", "object_dis")


def seen(sightings: Sequence[Sighting], name: str) -> Sighting | None:
    """The nearest thing of that name."""
    found = [sighting for sighting in sightings if sighting.is_called(name)]
    return min(found, key=lambda sighting: (sighting.distance, sighting.name), default=None)


def reading(action: str, sighting: Sighting) -> Value:
    """What a skill such as ``object_x`` reads off a thing."""
    if action == "object_dis":
        return round(100 * sighting.distance)
    values = (sighting.x, sighting.y, sighting.width, sighting.height)
    return round(values[SIGHTS.index(action)], 2)


def scene(sightings: Sequence[Sighting]) -> str:
    """As prompts have it: ``[cat x:0.48 y:0.5 width:0.1 height:0.2, ...]``."""
    return f"[{', '.join(map(str, sightings))}]"
