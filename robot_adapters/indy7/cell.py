"""The cell of an arm: named poses, objects, gripper, workspace, read from YAML. Pure.

``docs/robots.md`` describes the file. Lengths are mm and angles degrees, as the controller has
them; x ahead, y left, z up from the arm's base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from robot_adapters.adapter import AdapterError
from robot_adapters.perception import Point, names_one_of, plain_name
from timely_llm.validation.names import hint
from timely_llm.validation.reader import (
    NOT_IN_FILE,
    Entry,
    Fault,
    FileError,
    Place,
    described_by,
    file_text,
    flag,
    items,
    named,
    number,
    parse_yaml,
    text,
    whole,
)

Call = tuple[str, Mapping[str, Any]]
"""A method of the SDK and its arguments."""

EXTENT = 2000.0  # mm, the largest coordinate
MAX_ENTRIES = 200
DOWN = (180.0, 0.0)  # deg, u and v of a gripper that points down


_Name = Annotated[str, text(60)]
_Size = Annotated[float, number(0.0, EXTENT, " mm")]
_Length = Annotated[float, number(-EXTENT, EXTENT, " mm")]
_Angle = Annotated[float, number(-360, 360, " deg")]
_Point = Annotated[tuple[_Length, _Length, _Length], items(3, 3)]


@dataclass(frozen=True, slots=True)
class NamedPose(Entry):
    """``joints`` (deg), or the ``task`` pose of the gripper (mm, mm, mm, deg, deg, deg)."""

    name: Annotated[str, NOT_IN_FILE] = ""
    joints: Annotated[tuple[_Angle, _Angle, _Angle, _Angle, _Angle, _Angle], items(6, 6)] | None = (
        None
    )
    task: (
        Annotated[tuple[_Length, _Length, _Length, _Angle, _Angle, _Angle], items(6, 6)] | None
    ) = None

    def checked(self, context: object) -> NamedPose:
        if (self.joints is None) == (self.task is None):
            raise Fault("must have either 'joints' or 'task'")
        return self


@dataclass(frozen=True, slots=True)
class Object(Entry):
    """A box. ``position`` is the centre of its underside, ``grip`` how high above it the gripper
    closes (default: half its height), ``angle`` the gripper's turn about z for it."""

    name: _Name
    position: _Point
    size: Annotated[tuple[_Size, _Size, _Size], items(3, 3)]
    grip: Annotated[float, number(0.0, EXTENT, " mm")] = -1.0
    angle: Annotated[float, number(-180, 180, " deg")] = 0.0
    aliases: Annotated[tuple[_Name, ...], items()] = ()

    def checked(self, context: object) -> Object:
        height = self.size[2]
        if self.grip > height:
            raise Fault(f"is {self.grip:g} mm: must be 0 to {height:g} mm", "grip")
        return replace(self, grip=height / 2) if self.grip < 0 else self

    @property
    def top(self) -> float:
        """mm, of its upper side."""
        return self.position[2] + self.size[2]

    def covers(self, x: float, y: float) -> bool:
        """Whether it lies under or over the spot."""
        (px, py, _), (dx, dy, _) = self.position, self.size
        return abs(x - px) <= dx / 2 and abs(y - py) <= dy / 2

    def is_called(self, query: str) -> bool:
        """By its name or one of its aliases."""
        return names_one_of(query, self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class Gripper:
    """What opens and closes it: a call of the SDK each. ``time`` s later it has. ``sensor`` is
    (digital input, its state while something is held)."""

    open: Call
    close: Call
    time: float
    sensor: tuple[int, bool] | None = None


@dataclass(frozen=True, slots=True)
class _Output(Entry):
    address: Annotated[int, whole(0, 63)]
    closed: Annotated[bool, flag()] = True

    def checked(self, context: object) -> list[Call]:
        states = (not self.closed, self.closed)
        return [("set_do", {"do_signal_list": [(self.address, int(on))]}) for on in states]


_Level = Annotated[
    int, named({"off": 0, "high_pnp": 2, "high_npn": 1, "low_npn": -1, "low_pnp": -2})
]


@dataclass(frozen=True, slots=True)
class _Endtool(Entry):
    port: Annotated[str, text(2)]
    open: _Level
    close: _Level

    def checked(self, context: object) -> list[Call]:
        levels = (self.open, self.close)
        return [
            ("set_endtool_do", {"end_do_signal_list": [(self.port, [level])]}) for level in levels
        ]


@dataclass(frozen=True, slots=True)
class _Tool(Entry):
    open: _Name
    close: _Name

    def checked(self, context: object) -> list[Call]:
        return [("execute_tool", {"name": name}) for name in (self.open, self.close)]


@dataclass(frozen=True, slots=True)
class _Numbers(Entry):
    command: Annotated[int, whole(0, 1000)]
    data: Annotated[tuple[Annotated[int, whole(-(2**31), 2**31 - 1)], ...], items(0, 16)] = ()


@dataclass(frozen=True, slots=True)
class _Command(Entry):
    """As ``set_gripper_command`` takes them; the numbers are the gripper's maker's."""

    type: Annotated[int, whole(0, 1000)]
    open: _Numbers
    close: _Numbers

    def checked(self, context: object) -> list[Call]:
        return [
            (
                "set_gripper_command",
                {"command": move.command, "gripper_type": self.type, "pvt_data": [*move.data]},
            )
            for move in (self.open, self.close)
        ]


@dataclass(frozen=True, slots=True)
class _Sensor(Entry):
    input: Annotated[int, whole(0, 63)]
    holding: Annotated[bool, flag()] = True

    def checked(self, context: object) -> tuple[int, bool]:
        return self.input, self.holding


@dataclass(frozen=True, slots=True)
class _Gripper(Entry):
    time: Annotated[float, number(0.0, 10.0, " s")]
    output: Annotated[list[Call], described_by(_Output)] = field(default_factory=list)
    endtool: Annotated[list[Call], described_by(_Endtool)] = field(default_factory=list)
    tool: Annotated[list[Call], described_by(_Tool)] = field(default_factory=list)
    command: Annotated[list[Call], described_by(_Command)] = field(default_factory=list)
    sensor: Annotated[tuple[int, bool] | None, described_by(_Sensor)] = None

    def checked(self, context: object) -> Gripper:
        given = [calls for calls in (self.output, self.endtool, self.tool, self.command) if calls]
        if len(given) != 1:
            raise Fault("must have one of 'output', 'endtool', 'tool' and 'command'")
        open_call, close_call = given[0]
        return Gripper(open_call, close_call, self.time, self.sensor)


def _rising(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] >= pair[1]:
        raise Fault(f"is {pair[0]:g} to {pair[1]:g}: the first must be the smaller one")
    return pair


_Range = Annotated[tuple[_Length, _Length], items(2, 2), AfterValidator(_rising)]


@dataclass(frozen=True, slots=True)
class _Workspace(Entry):
    x: _Range
    y: _Range
    z: _Range

    def checked(self, context: object) -> tuple[tuple[float, float], ...]:
        return self.x, self.y, self.z


@dataclass(frozen=True, slots=True)
class Cell(Entry):
    """What the file says. ``approach`` mm above an object the way down begins, and ways from place
    to place are at least ``travel_height`` high; ``workspace`` are (low, high) along x, y, z,
    ``reach`` the level distances from the base."""

    gripper: Annotated[Gripper, described_by(_Gripper)]
    workspace: Annotated[tuple[tuple[float, float], ...], described_by(_Workspace)]
    objects: Annotated[tuple[Object, ...], items(1, MAX_ENTRIES)]
    description: Annotated[str, text()] = ""
    poses: Mapping[str, NamedPose] = field(default_factory=dict)
    reach: Annotated[tuple[_Size, _Size], items(2, 2), AfterValidator(_rising)] = (0.0, 2 * EXTENT)
    approach: Annotated[float, number(10.0, EXTENT, " mm")] = 100.0
    travel_height: _Size = 0.0
    scan: Annotated[str, text()] = ""  # name of the pose to look from
    where: Annotated[Mapping[str, Point], NOT_IN_FILE] = field(default_factory=dict)
    """Of objects that were moved."""

    def checked(self, context: object) -> Cell:
        """Names differ, and the gripper can be wherever the file says that it will."""
        if self.scan and self.scan not in self.poses:
            raise Fault(f"{self.scan!r} is unknown{hint(self.scan, self.poses)}", "scan")
        taken: dict[str, str] = {}
        for name, pose in self.poses.items():
            self._check_pose(name, pose, taken)
        for i, thing in enumerate(self.objects):
            self._check_object(thing, taken, ("objects", i))
        poses = {name: replace(pose, name=name) for name, pose in self.poses.items()}
        return replace(self, poses=poses)

    def _check_pose(self, name: str, pose: NamedPose, taken: dict[str, str]) -> None:
        plain, place = _plain(name, "poses", name), ("poses", name)
        if plain in taken:
            like = taken[plain].removeprefix("the pose ")
            reason = f"is called like the pose {like}: a number at the end does not count"
            raise Fault(reason, *place)
        taken[plain] = f"the pose {name!r}"
        if pose.task and (reason := self.outside(pose.task[:3])):
            raise Fault(reason, *place)

    def _check_object(self, thing: Object, taken: dict[str, str], place: Place) -> None:
        places: list[tuple[str, Place]] = [(thing.name, (*place, "name"))]
        places += [(alias, (*place, "aliases", i)) for i, alias in enumerate(thing.aliases)]
        for name, where in places:
            if (plain := _plain(name, *where)) in taken:
                raise Fault(f"{name!r} is already the name of {taken[plain]}", *where)
        taken.update({plain_name(name): repr(thing.name) for name, _ in places})
        if thing.grip >= self.approach:
            limit = f"must be less than approach, {self.approach:g} mm"
            raise Fault(f"its grip is {thing.grip:g} mm: {limit}", *place)
        x, y, z = thing.position
        for height in (z + thing.grip, thing.top + self.approach):
            if reason := self.outside((x, y, height)):
                raise Fault(f"the gripper could not be there: {reason}", *place, "position")

    @property
    def names(self) -> list[str]:
        """What plans may call poses and objects."""
        return [*self.poses, *(n for thing in self.objects for n in (thing.name, *thing.aliases))]

    def __iter__(self) -> Iterator[Object]:
        """The objects, where they are now."""
        for thing in self.objects:
            yield replace(thing, position=self.where.get(thing.name, thing.position))

    def __getitem__(self, name: str) -> Object:
        """The object of exactly this name."""
        return next(thing for thing in self if thing.name == name)

    def find(self, query: str) -> Object | None:
        """The first object that answers to the name."""
        return next((thing for thing in self if thing.is_called(query)), None)

    def pose(self, query: str) -> NamedPose | None:
        """The pose that answers to the name."""
        wanted = plain_name(query)
        return next((pose for name, pose in self.poses.items() if plain_name(name) == wanted), None)

    def unknown(self, query: str) -> str:
        """That nothing is called so, in words."""
        return f"{query!r} is not in the cell{hint(query, self.names)}"

    def moved(self, name: str, position: Point) -> Cell:
        """The cell with one object elsewhere; ``position`` in mm."""
        return replace(self, where={**self.where, name: position})

    def support(self, x: float, y: float, without: str = "") -> float:
        """mm: the top of the highest thing under the spot; 0 is the base's height."""
        tops = (thing.top for thing in self if thing.name != without and thing.covers(x, y))
        return max(tops, default=0.0)

    def outside(self, point: Sequence[float]) -> str:
        """Why the gripper must not be there, or empty."""
        for axis, value, (low, high) in zip("xyz", point, self.workspace, strict=True):
            if not low - 1e-6 <= value <= high + 1e-6:
                return f"{axis} would be {value:.0f} mm: the workspace is {low:g} to {high:g} mm"
        distance, (low, high) = (point[0] ** 2 + point[1] ** 2) ** 0.5, self.reach
        if not low <= distance <= high:
            return f"it is {distance:.0f} mm from the base: reach is {low:g} to {high:g} mm"
        return ""


def load_cell(path: str | Path) -> Cell:
    """The cell in a file; ``AdapterError`` names file, line and field."""
    path = Path(path).expanduser()
    try:
        return read_cell(file_text(path), str(path))
    except (FileError, OSError) as error:
        raise AdapterError(f"cell: {error}") from error


def read_cell(content: str, source: str = "<cell>") -> Cell:
    """The cell in ``content``. ``FileError`` names line, field and the nearest known name."""
    return parse_yaml(content, source).read(Cell)


def _plain(name: str, *place: str | int) -> str:
    """The name as plans are answered by it."""
    if not (plain := plain_name(name)):
        raise Fault("must have more to it than a number", *place)
    return plain
