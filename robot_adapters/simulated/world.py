"""A simple world of boxes: what stands where, what is seen from where. Pure.

Lengths are m, angles degrees; x is forward, y left, z up, yaw counterclockwise from x. Bodies that
move in it are in ``bodies.py``; the files are in ``config/worlds`` (``docs/robots.md``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import PlainValidator

from robot_adapters.adapter import AdapterError
from robot_adapters.perception import Point, Pose, Sighting, names_one_of, plain_name
from timely_llm.validation.reader import (
    Entry,
    Fault,
    FileError,
    as_text,
    file_text,
    items,
    number,
    parse_yaml,
    text,
)

_EXTENT = 1e3  # m, the largest coordinate
_MAX_OBJECTS = 1000


def _name(value: object) -> str:
    name = as_text(value, 60)
    if not name.isprintable() or not plain_name(name):
        raise Fault(f"is {name!r}: must be a name")
    return name


_Name = Annotated[str, PlainValidator(_name)]
_Names = Annotated[tuple[_Name, ...], items()]
_Length = Annotated[float, number(0.0, _EXTENT, " m")]
_Coordinate = Annotated[float, number(-_EXTENT, _EXTENT, " m")]


@dataclass(frozen=True, slots=True)
class Thing(Entry):
    """A box. ``position`` is the centre of its underside, ``size`` its extents along x, y, z."""

    name: _Name
    position: Annotated[tuple[_Coordinate, _Coordinate, _Coordinate], items(3, 3)]
    size: Annotated[tuple[_Length, _Length, _Length], items(3, 3)] = (0.1, 0.1, 0.1)
    aliases: _Names = ()
    properties: _Names = ()

    @property
    def center(self) -> Point:
        """m"""
        x, y, z = self.position
        return (x, y, z + self.size[2] / 2)

    @property
    def top(self) -> float:
        """m, of its upper side."""
        return self.position[2] + self.size[2]

    def is_called(self, query: str) -> bool:
        """By its name or one of its aliases."""
        return names_one_of(query, self.name, *self.aliases)

    def fits(self, question: str) -> bool:
        """Whether one of its properties or names stands in ``question``, as whole words."""
        words = f" {' '.join(re.findall(r'[a-z0-9]+', question.lower()))} "
        known = (*self.properties, self.name, *self.aliases)
        return any(f" {plain_name(text)} " in words for text in known)

    def contains(self, point: Point) -> bool:
        """Whether the point (m) lies in the box."""
        return all(low <= value <= high for value, (low, high) in zip(point, self.box, strict=True))

    def covers(self, x: float, y: float) -> bool:
        """Whether it lies under or over the spot."""
        (x0, x1), (y0, y1), _ = self.box
        return x0 <= x <= x1 and y0 <= y <= y1

    @property
    def box(self) -> tuple[tuple[float, float], ...]:
        """(low, high) along x, y, z."""
        (x, y, z), (dx, dy, dz) = self.position, self.size
        return ((x - dx / 2, x + dx / 2), (y - dy / 2, y + dy / 2), (z, z + dz))


class World:
    """All things by name, in the order of the file. Only ``move`` changes it."""

    def __init__(self, things: Iterable[Thing], description: str = "") -> None:
        self._things = {thing.name: thing for thing in things}
        self.description = description

    def __iter__(self) -> Iterator[Thing]:
        return iter(self._things.values())

    def __getitem__(self, name: str) -> Thing:
        return self._things[name]

    def move(self, name: str, position: Point) -> None:
        """Put the thing there (centre of its underside)."""
        self._things[name] = replace(self._things[name], position=position)

    def support(self, x: float, y: float, without: str) -> float:
        """Height in m on which something put down at the spot comes to rest."""
        tops = [thing.top for thing in self if thing.name != without and thing.covers(x, y)]
        return max(tops, default=0.0)

    def hidden(self, eye: Point, thing: Thing) -> bool:
        """Whether another thing stands between ``eye`` and the centre of ``thing``. What contains
        one of them hides nothing."""
        target = thing.center
        return any(
            first_hit(eye, target, other) is not None
            for other in self
            if other.name != thing.name and not other.contains(eye) and not other.contains(target)
        )

    @classmethod
    def from_file(cls, path: str | Path) -> World:
        """``AdapterError`` names file, line and field."""
        try:
            content = file_text(path)
        except (OSError, FileError) as error:
            raise AdapterError(f"world {str(path)!r}: {error}") from error
        return cls.from_yaml(content, str(path))

    @classmethod
    def from_yaml(cls, content: str, source: str = "<world>") -> World:
        """As ``from_file``, of a text; ``source`` stands in errors."""
        try:
            file = parse_yaml(content, source).read(_File)
        except FileError as error:
            raise AdapterError(f"world {error}") from error
        return cls(file.objects, file.description)


@dataclass(frozen=True, slots=True)
class _File(Entry):
    objects: Annotated[tuple[Thing, ...], items(1, _MAX_OBJECTS)]
    description: Annotated[str, text()] = ""

    def checked(self, context: object) -> _File:
        names = [thing.name for thing in self.objects]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise Fault(f"name {name!r} is given twice", "objects", i)
        return self


def first_hit(start: Point, end: Point, thing: Thing) -> float | None:
    """Share of the way from ``start`` to ``end`` at which it meets the box; None: it never does."""
    first, last = 0.0, 1.0
    for a, b, (low, high) in zip(start, end, thing.box, strict=True):
        if abs(b - a) < 1e-12:
            if not low <= a <= high:
                return None
            continue
        near, far = sorted(((low - a) / (b - a), (high - a) / (b - a)))
        first, last = max(first, near), min(last, far)
    return first if first < last else None


@dataclass(frozen=True, slots=True)
class Camera:
    """Angles of view in degrees; ``reach`` in m is how far things are recognised."""

    horizontal: float
    vertical: float
    reach: float

    def see(self, eye: Point, yaw: float, thing: Thing) -> Sighting | None:
        """The thing as seen looking level along ``yaw``; None: its centre is out of the picture.
        What stands between is not looked at here."""
        dx, dy, dz = (c - e for c, e in zip(thing.center, eye, strict=True))
        angle = math.radians(yaw)
        depth = dx * math.cos(angle) + dy * math.sin(angle)
        distance = math.hypot(dx, dy, dz)
        if depth < 0.05 or distance > self.reach:
            return None
        half_x = depth * math.tan(math.radians(self.horizontal / 2))
        half_y = depth * math.tan(math.radians(self.vertical / 2))
        x = 0.5 + (dx * math.sin(angle) - dy * math.cos(angle)) / (2 * half_x)
        y = 0.5 - dz / (2 * half_y)
        if not (0 <= x <= 1 and 0 <= y <= 1):
            return None
        across = abs(thing.size[0] * math.sin(angle)) + abs(thing.size[1] * math.cos(angle))
        width, height = min(1.0, across / (2 * half_x)), min(1.0, thing.size[2] / (2 * half_y))
        return Sighting(thing.name, x, y, width, height, distance, thing.aliases)

    def sightings(self, world: World, pose: Pose) -> list[Sighting]:
        """What is seen of the world from there, in the order of its file."""
        views = [(thing, self.see(pose.point, pose.yaw, thing)) for thing in world]
        return [view for thing, view in views if view and not world.hidden(pose.point, thing)]
