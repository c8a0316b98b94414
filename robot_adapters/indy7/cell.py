"""The cell of an arm: named poses, objects, gripper, workspace, read from YAML. Pure.

``docs/robots.md`` describes the file. Lengths are mm and angles degrees, as the controller has
them; x ahead, y left, z up from the arm's base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from robot_adapters.adapter import AdapterError
from robot_adapters.perception import plain_name
from timely_llm.validation.names import hint
from timely_llm.validation.reader import Node, YamlError, read

Six = tuple[float, float, float, float, float, float]
Point = tuple[float, float, float]
EXTENT = 2000.0  # mm, the largest coordinate
MAX_ENTRIES = 200
DOWN = (180.0, 0.0)  # deg, u and v of a gripper that points down


@dataclass(frozen=True, slots=True)
class NamedPose:
    """``joints`` (deg), or the ``task`` pose of the gripper (mm, mm, mm, deg, deg, deg)."""

    name: str
    joints: Six | None = None
    task: Six | None = None


@dataclass(frozen=True, slots=True)
class Object:
    """A box. ``position`` is the centre of its underside, ``grip`` how high above it the gripper
    closes, ``angle`` the gripper's turn about z for it."""

    name: str
    position: Point
    size: Point
    grip: float
    angle: float = 0.0
    aliases: tuple[str, ...] = ()

    @property
    def top(self) -> float:
        return self.position[2] + self.size[2]

    def covers(self, x: float, y: float) -> bool:
        """Whether it lies under or over the spot."""
        (px, py, _), (dx, dy, _) = self.position, self.size
        return abs(x - px) <= dx / 2 and abs(y - py) <= dy / 2

    def is_called(self, query: str) -> bool:
        """``red box``, ``Red_Box`` and ``red_box_1`` are the same."""
        return plain_name(query) in map(plain_name, (self.name, *self.aliases))


@dataclass(frozen=True, slots=True)
class Gripper:
    """What opens and closes it: a call of the SDK each, as (method, arguments). ``time`` s later it
    has. ``sensor`` is (digital input, its state while something is held)."""

    open: tuple[str, Mapping[str, Any]]
    close: tuple[str, Mapping[str, Any]]
    time: float
    sensor: tuple[int, bool] | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """What the file says. ``approach`` mm above an object the way down begins, and ways from place
    to place are at least ``travel_height`` high; ``workspace`` are (low, high) along x, y, z,
    ``reach`` the level distances from the base."""

    description: str
    poses: Mapping[str, NamedPose]
    objects: tuple[Object, ...]
    gripper: Gripper
    workspace: tuple[tuple[float, float], ...]
    reach: tuple[float, float]
    approach: float
    travel_height: float
    scan: str = ""  # name of the pose to look from
    where: Mapping[str, Point] = field(default_factory=dict)  # of objects that were moved

    @property
    def names(self) -> list[str]:
        return [*self.poses, *(n for thing in self.objects for n in (thing.name, *thing.aliases))]

    def __iter__(self) -> Iterator[Object]:
        """The objects, where they are now."""
        for thing in self.objects:
            yield replace(thing, position=self.where.get(thing.name, thing.position))

    def find(self, query: str) -> Object | None:
        return next((thing for thing in self if thing.is_called(query)), None)

    def pose(self, query: str) -> NamedPose | None:
        wanted = plain_name(query)
        return next((pose for name, pose in self.poses.items() if plain_name(name) == wanted), None)

    def unknown(self, query: str) -> str:
        """That nothing is called so, in words."""
        return f"{query!r} is not in the cell{hint(query, self.names)}"

    def moved(self, name: str, position: Point) -> Cell:
        return replace(self, where={**self.where, name: position})

    def support(self, x: float, y: float, without: str = "") -> float:
        """mm: the top of the highest thing under the spot; 0 is the base's height."""
        return max(
            (thing.top for thing in self if thing.name != without and thing.covers(x, y)),
            default=0.0,
        )

    def outside(self, point: Point) -> str:
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
        return read_cell(path.read_text(encoding="utf-8"), str(path))
    except (YamlError, OSError, UnicodeDecodeError) as error:
        raise AdapterError(f"cell: {error}") from error


def read_cell(text: str, source: str = "<cell>") -> Cell:
    """The cell in ``text``. ``YamlError`` names line, field and the nearest known name."""
    keys = ("description", "scan", "approach", "travel_height", "workspace", "reach", "gripper",
            "poses", "objects")  # fmt: skip
    entries = read(text, source).mapping(keys, ("gripper", "workspace", "objects"))
    poses = _poses(entries["poses"]) if "poses" in entries else {}
    scan = entries["scan"].choice(poses) if "scan" in entries else ""
    cell = Cell(
        description=entries["description"].text() if "description" in entries else "",
        poses=poses,
        objects=(),
        gripper=_gripper(entries["gripper"]),
        workspace=_workspace(entries["workspace"]),
        reach=_pair(entries["reach"], 0, EXTENT) if "reach" in entries else (0.0, 2 * EXTENT),
        approach=_length(entries.get("approach"), 100.0, 10.0),
        travel_height=_length(entries.get("travel_height"), 0.0, 0.0),
        scan=scan,
    )
    for name, pose in poses.items():
        if pose.task and (reason := cell.outside(pose.task[:3])):
            entries["poses"].mapping(None)[name].fail(reason)
    return replace(cell, objects=_objects(entries["objects"], cell))


def _length(node: Node | None, default: float, low: float) -> float:
    return default if node is None else node.number(low, EXTENT, " mm")


def _numbers(node: Node, count: int, limit: float, unit: str) -> tuple[float, ...]:
    return tuple(item.number(-limit, limit, unit) for item in node.items(count, count))


def _pair(node: Node, low: float, high: float) -> tuple[float, float]:
    first, second = (item.number(low, high, " mm") for item in node.items(2, 2))
    if first >= second:
        node.fail(f"is {first:g} to {second:g}: the first must be the smaller one")
    return first, second


def _workspace(node: Node) -> tuple[tuple[float, float], ...]:
    entries = node.mapping("xyz", "xyz")
    return tuple(_pair(entries[axis], -EXTENT, EXTENT) for axis in "xyz")


def _poses(node: Node) -> dict[str, NamedPose]:
    poses: dict[str, NamedPose] = {}
    taken: dict[str, str] = {}
    for name, entry in node.mapping(None).items():
        plain = _plain(entry, name)
        if plain in taken:
            entry.fail(
                f"is called like the pose {taken[plain]!r}: a number at the end does not count"
            )
        taken[plain] = name
        given = entry.mapping(("joints", "task"))
        if len(given) != 1:
            entry.fail("must have either 'joints' or 'task'")
        if "joints" in given:
            poses[name] = NamedPose(name, joints=_numbers(given["joints"], 6, 360, " deg"))
        else:
            items = given["task"].items(6, 6)
            values = [item.number(-EXTENT, EXTENT, " mm") for item in items[:3]]
            values += [item.number(-360, 360, " deg") for item in items[3:]]
            poses[name] = NamedPose(name, task=tuple(values))
    return poses


def _plain(node: Node, name: str) -> str:
    """The name as plans are answered by it."""
    return plain_name(name) or node.fail("must have more to it than a number")


def _objects(node: Node, cell: Cell) -> tuple[Object, ...]:
    taken = {plain_name(name): f"the pose {name!r}" for name in cell.poses}
    return tuple(_object(item, cell, taken) for item in node.items(1, MAX_ENTRIES))


def _object(node: Node, cell: Cell, taken: dict[str, str]) -> Object:
    keys = ("name", "position", "size", "grip", "angle", "aliases")
    entries = node.mapping(keys, ("name", "position", "size"))
    name = entries["name"].text(60)
    aliases = [entry for entry in entries["aliases"].items()] if "aliases" in entries else []
    for entry in (entries["name"], *aliases):
        if (plain := _plain(entry, text := entry.text(60))) in taken:
            entry.fail(f"{text!r} is already the name of {taken[plain]}")
    taken.update({plain_name(entry.text(60)): repr(name) for entry in (entries["name"], *aliases)})
    sides = entries["size"].items(3, 3)
    size = tuple(side.number(0.0, EXTENT, " mm") for side in sides)
    grip = entries["grip"].number(0, size[2], " mm") if "grip" in entries else size[2] / 2
    angle = entries["angle"].number(-180, 180, " deg") if "angle" in entries else 0.0
    if grip >= cell.approach:
        node.fail(f"its grip is {grip:g} mm: must be less than approach, {cell.approach:g} mm")
    position = _numbers(entries["position"], 3, EXTENT, " mm")
    thing = Object(name, position, size, grip, angle, tuple(e.text(60) for e in aliases))
    x, y, z = position
    for height in (z + grip, thing.top + cell.approach):
        if reason := cell.outside((x, y, height)):
            entries["position"].fail(f"the gripper could not be there: {reason}")
    return thing


def _gripper(node: Node) -> Gripper:
    entries = node.mapping(("output", "endtool", "tool", "command", "time", "sensor"), ("time",))
    kinds = [name for name in ("output", "endtool", "tool", "command") if name in entries]
    if len(kinds) != 1:
        node.fail("must have one of 'output', 'endtool', 'tool' and 'command'")
    make = {"output": _output, "endtool": _endtool, "tool": _tool, "command": _command}[kinds[0]]
    open_call, close_call = make(entries[kinds[0]])
    time = entries["time"].number(0.0, 10.0, " s")
    sensor = None
    if "sensor" in entries:
        given = entries["sensor"].mapping(("input", "holding"), ("input",))
        sensor = (_whole(given["input"], 0, 63), _flag(given.get("holding"), True))
    return Gripper(open_call, close_call, time, sensor)


def _output(node: Node) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    given = node.mapping(("address", "closed"), ("address",))
    address, closed = _whole(given["address"], 0, 63), _flag(given.get("closed"), True)
    return tuple(
        ("set_do", {"do_signal_list": [(address, int(on))]}) for on in (not closed, closed)
    )


_LEVELS = {"off": 0, "high_pnp": 2, "high_npn": 1, "low_npn": -1, "low_pnp": -2}


def _endtool(node: Node) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    given = node.mapping(("port", "open", "close"), ("port", "open", "close"))
    port = given["port"].text(2)
    states = (_LEVELS[given[key].choice(_LEVELS)] for key in ("open", "close"))
    return tuple(("set_endtool_do", {"end_do_signal_list": [(port, [s])]}) for s in states)


def _tool(node: Node) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    given = node.mapping(("open", "close"), ("open", "close"))
    return tuple(("execute_tool", {"name": given[key].text(60)}) for key in ("open", "close"))


def _command(node: Node) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """As ``set_gripper_command`` takes them; the numbers are the gripper's maker's."""
    given = node.mapping(("type", "open", "close"), ("type", "open", "close"))
    kind = _whole(given["type"], 0, 1000)
    calls = []
    for key in ("open", "close"):
        entry = given[key].mapping(("command", "data"), ("command",))
        data = [_whole(item, -(2**31), 2**31 - 1) for item in entry["data"].items(0, 16)] \
            if "data" in entry else []  # fmt: skip
        command = _whole(entry["command"], 0, 1000)
        arguments = {"command": command, "gripper_type": kind, "pvt_data": data}
        calls.append(("set_gripper_command", arguments))
    return tuple(calls)


def _whole(node: Node, low: int, high: int) -> int:
    value = node.number(low, high)
    if value != int(value):
        node.fail(f"is {value:g}: must be a whole number")
    return int(value)


def _flag(node: Node | None, default: bool) -> bool:
    value = default if node is None else node.scalar()
    if not isinstance(value, bool):
        node.fail(f"is {value!r}: must be true or false")
    return value
