"""Reads and writes rosbag2 bags of our topics. An edge; needs no ROS.

Messages are read into plain values (``recording.py``) by the definitions that the bag carries:
fields that another version did not have take their default, those it had more are left out. A file
that was cut is read up to there.
"""

from __future__ import annotations

import dataclasses
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from rosbags.interfaces import Connection, MessageDefinitionFormat, Qos
from rosbags.rosbag2 import Reader, ReaderError, StoragePlugin, Writer, WriterError
from rosbags.rosbag2.storage_mcap import McapWriter
from rosbags.serde import SerdeError
from rosbags.typesys import (
    Stores,
    TypesysError,
    get_types_from_idl,
    get_types_from_msg,
    get_typestore,
)
from rosbags.typesys.store import Typestore

from timely_llm.paths import share
from timely_llm.protocols import messages as values
from timely_llm.protocols.utility import TimeUtility, Urgency
from timely_llm.recording.recording import Recording, Robot, Topic, on_our_clock, usable_config
from timely_llm.validation.reader import file_text, yaml_value

PACKAGE = "timely_llm"
_MAGIC = b"\x89MCAP0\r\n"
_HEAD = struct.Struct("<BQ")  # of a record: what it is, its length
_END = _HEAD.pack(0x0F, 4) + bytes(4) + _HEAD.pack(0x02, 20) + bytes(20) + _MAGIC
_ENDS = (0x02, 0x0F)  # footer and end of data: no data comes after them
_FILES, _METADATA = (".mcap", ".db3"), "metadata.yaml"
_DAMAGED = (
    *(OSError, ReaderError, IndexError, ValueError, TypeError, KeyError, EOFError),
    *(OverflowError, MemoryError, struct.error, RecursionError),
)
"""What reading a damaged file raises; the last four for lengths and depths that cannot be."""


class BagError(ValueError):
    """A bag that cannot be written or read; the text names the path and says why."""


class EmptyBag(BagError):
    """One whose recorder ended before it had written anything."""


def read(path: str | Path, namespace: str | None = None) -> Recording:
    """The recording in a bag: its folder, or its one file. ``namespace`` is the planner's, needed
    only where several planners were recorded. ``BagError`` says what the bag is instead."""
    path = Path(path)
    with _opened(path) as (reader, notes):
        return _Reading(path, reader, notes, namespace).recording()


# ---- files ---------------------------------------------------------------------------------------


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Reader, list[str]]]:
    """A reader of the bag, and what is to be said of its files."""
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="timely-llm-bag-") as scratch:
        reader = _reader(path, Path(scratch), notes)
        try:
            yield reader, notes
        finally:
            reader.close()


def _reader(path: Path, scratch: Path, notes: list[str]) -> Reader:
    if not path.exists():
        raise BagError(f"{path}: there is no such file or folder")
    if path.is_file() and path.suffix not in _FILES:
        raise BagError(f"{path}: is no bag: a folder, or a file *.mcap or *.db3, is")
    try:
        return _open(path)
    except _DAMAGED as error:
        file = _only_file(path, error)
        why = _first_line(error)
    if file.suffix != ".mcap":
        raise BagError(f"{file}: cannot be read: {why}")
    try:
        reader = _open(file) if file != path else None
    except _DAMAGED:
        reader = None
    if reader is not None:
        there = (path / _METADATA).exists()
        no_end = "the bag has no metadata: its recorder did not come to an end"
        notes.append(f"the bag's metadata cannot be read: {why}" if there else no_end)
        return reader
    whole, kept = _mended(file, scratch)
    notes.append(f"{file.name} ends in the middle: {kept} bytes of it could be read")
    try:
        return _open(whole)
    except _DAMAGED as error:
        raise BagError(f"{file}: cannot be read: {_first_line(error)}") from error


def _open(path: Path) -> Reader:
    metadata = path / _METADATA
    if metadata.is_file():
        yaml_value(file_text(metadata))  # rosbags' own reader takes minutes for deep lists
    reader = Reader(path)
    reader.open()
    if not all(isinstance(text, str) for c in reader.connections for text in (c.topic, c.msgtype)):
        reader.close()
        raise ValueError("the name or the type of a topic is no text")
    return reader


def _only_file(path: Path, error: Exception) -> Path:
    """The file to be read where the bag as a whole cannot be."""
    if path.is_file():
        return path
    files = sorted(file for file in path.iterdir() if file.suffix in _FILES)
    if not files:
        if not any(path.iterdir()):
            raise BagError(f"{path}: is an empty folder") from error
        raise BagError(f"{path}: is no bag: it has no *.mcap and no *.db3 file") from error
    if len(files) > 1 or (path / _METADATA).exists() and files[0].suffix != ".mcap":
        raise BagError(f"{path}: cannot be read: {_first_line(error)}") from error
    return files[0]


def _mended(file: Path, scratch: Path) -> tuple[Path, int]:
    """A copy of a cut mcap file that ends after its last whole record, and that record's end."""
    size = file.stat().st_size
    with file.open("rb") as source:
        begin = source.read(len(_MAGIC))
        if size < len(_MAGIC) and _MAGIC.startswith(begin):
            raise EmptyBag(f"{file}: is empty: its recorder ended before it had written anything")
        if begin != _MAGIC:
            raise BagError(f"{file}: is no mcap file")
        kept = source.tell()
        while len(head := source.read(_HEAD.size)) == _HEAD.size:
            kind, length = _HEAD.unpack(head)
            if kind in _ENDS or source.tell() + length > size:
                break
            source.seek(length, 1)
            kept = source.tell()
        source.seek(0)
        mended = scratch / "mended.mcap"
        with mended.open("wb") as target:
            shutil.copyfileobj(source, target)
            target.truncate(kept)
            target.seek(kept)
            target.write(_END)
    return mended, kept


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


# ---- messages ------------------------------------------------------------------------------------


class _Reading:
    """One pass over a bag."""

    def __init__(self, path: Path, reader: Reader, notes: list[str], namespace: str | None) -> None:
        self.path, self.reader, self.notes = path, reader, notes
        self.prefix = self._prefix(namespace)
        self.types = self._types()
        self.bad: dict[str, int] = {}  # messages that could not be read, by topic
        self.why: dict[str, str] = {}

    def _prefix(self, namespace: str | None) -> str:
        """What the planner's topics begin with, "/" or "/NAMESPACE/"."""
        kind = f"{PACKAGE}/msg/PlanEvent"
        found = [c.topic for c in self.reader.connections if c.msgtype == kind]
        if namespace is not None:
            wanted = f"/{namespace.strip('/')}/plan_events".replace("//", "/")
            found = [topic for topic in found if topic == wanted]
        if len(found) == 1:
            return found[0].rsplit("/", 1)[0] + "/"
        if found:
            spaces = ", ".join(sorted(topic.rsplit("/", 1)[0] or "/" for topic in found))
            raise BagError(f"{self.path}: has several planners: name one's namespace ({spaces})")
        held = ", ".join(f"{c.topic} ({c.msgtype})" for c in self.reader.connections) or "no topics"
        where = f" in namespace {namespace!r}" if namespace is not None else ""
        raise BagError(f"{self.path}: has no topic of type {kind}{where}; it holds {held}")

    def _types(self) -> Typestore:
        """By the bag's own definitions; by ours where it has none."""
        connections = self.reader.connections
        if all(c.msgdef.format is MessageDefinitionFormat.NONE for c in connections):
            return typestore()
        store, types = get_typestore(Stores.EMPTY), dict[str, Any]()
        for connection in connections:
            definition = connection.msgdef
            try:
                if definition.format is MessageDefinitionFormat.IDL:
                    types |= get_types_from_idl(definition.data)
                elif definition.format is MessageDefinitionFormat.MSG:
                    types |= get_types_from_msg(definition.data, connection.msgtype)
            except TypesysError as error:
                self.notes.append(f"{connection.topic}: its definition: {_first_line(error)}")
        store.register(types)
        return store

    def recording(self) -> Recording:
        lists = self._messages("robots", _robots)
        infos = {info.robot_id: info for _, robots in lists for info in robots}
        reader = self.reader
        found = Recording(
            source=str(self.path),
            topics=tuple(Topic(c.topic, c.msgtype, c.msgcount) for c in reader.connections),
            events=tuple(event for _, event in self._messages("plan_events", _event)),
            robots={name: self._robot(info) for name, info in sorted(infos.items())},
            config=self._config(),
            statuses=tuple(
                status for _, status in self._messages("planner_status", _of(values.PlannerStatus))
            ),
            begun=reader.start_time / 1e9,
            ended=(reader.end_time - 1) / 1e9,
        )
        for topic, count in self.bad.items():
            self.notes.append(f"{topic}: {count} messages could not be read: {self.why[topic]}")
        return dataclasses.replace(found, notes=tuple(self.notes))

    def _config(self) -> dict[str, Any]:
        texts = [text for _, text in self._messages("planner_config", lambda m: str(m.data))]
        if not texts:
            return {}
        try:
            config = yaml_value(texts[-1])
        except ValueError as error:
            self.notes.append(f"planner_config: is not YAML: {_first_line(error)}")
            return {}
        if not isinstance(config, dict):
            self.notes.append("planner_config: is not a mapping")
            return {}
        config, notes = usable_config(config)
        self.notes += notes
        return config

    def _robot(self, info: values.RobotInfo) -> Robot:
        space = "/".join(("", *filter(None, info.robot_namespace.split("/")), ""))
        reports = list(self._messages(f"{space}execution", _of(values.Execution)))
        segments = self._messages(f"{space}segments", _of(values.Segment))
        return Robot(info, on_our_clock(reports), tuple(segment for _, segment in segments))

    def _messages(self, topic: str, take: Callable[[Any], Any]) -> Iterator[tuple[float, Any]]:
        """When each message of a topic was received (s), and its value."""
        name = topic if topic.startswith("/") else self.prefix + topic
        connections = [c for c in self.reader.connections if c.topic == name]
        if not connections:
            self.notes.append(f"{name} is not in the bag")
        elif not any(c.msgcount for c in connections):
            self.notes.append(f"{name} has no messages")
        for connection, stamp, data in self._raw(connections):
            try:
                yield stamp / 1e9, take(self.types.deserialize_cdr(data, connection.msgtype))
            except (SerdeError, TypesysError, ValueError, KeyError, AttributeError) as error:
                self.bad[name] = self.bad.get(name, 0) + 1
                self.why.setdefault(name, _first_line(error))

    def _raw(self, connections: list[Connection]) -> Iterator[tuple[Connection, int, bytes]]:
        """Serialized messages, as far as the file can be read."""
        if not connections:
            return
        try:
            yield from self.reader.messages(connections)
        except _DAMAGED as error:
            self.notes.append(f"{connections[0].topic}: reading ended early: {_first_line(error)}")


# ---- values --------------------------------------------------------------------------------------

_ENUMS: dict[tuple[type, str], type[IntEnum]] = {
    (values.Segment, "command"): values.SegmentCommand,
    (values.Execution, "state"): values.ExecutionState,
    (values.PlanGoal, "urgency"): Urgency,
    (values.PlanGoal, "when_busy"): values.WhenBusy,
    (values.PlanGoal, "on_failure"): values.OnFailure,
    (values.PlanResult, "error_code"): values.ErrorCode,
}
#: Events that tell how a plan, or an attempt at it, ended.
_WITH_RESULT = (
    values.PlanEventType.RETURNED,
    values.PlanEventType.ENDED,
    values.PlanEventType.REFUSED,
    values.PlanEventType.REPLANNED,
)
_ABSENT = object()


def _of(kind: type) -> Callable[[Any], Any]:
    """Reads messages of one dataclass."""
    return lambda message: _value(kind, message)


def _value(kind: type, message: Any, **given: Any) -> Any:
    """A dataclass of ``messages.py`` from a message, by the names of its fields, but for what is
    ``given``; what the message does not have keeps its default, and without one is a
    ``ValueError``."""
    for field in dataclasses.fields(kind):
        if field.name in given:
            continue
        value = getattr(message, field.name, _ABSENT)
        if value is not _ABSENT:
            given[field.name] = _field(kind, field.name, value)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"a message has no field {field.name!r}")
    return kind(**given)


def _field(kind: type, name: str, value: Any) -> Any:
    if (kind, name) in _ENUMS:
        return _ENUMS[kind, name](value)
    if hasattr(value, "nanosec"):
        return value.sec + value.nanosec / 1e9
    if hasattr(value, "uuid"):
        return bytes(value.uuid).hex()
    if name == "instance":
        return bytes(value).hex()
    if name == "utility" and not isinstance(value, float):
        return _utility(value)
    if name == "call":
        return _value(values.SkillCall, value)
    if name == "calls":
        return tuple(_value(values.SkillCall, call) for call in value)
    if name == "step_times":
        return tuple(_number(name, float(time), 0.0, values.LONGEST_TIME) for time in value)
    if isinstance(value, float):
        return _number(name, value, -values.MOST_NUMBER, values.MOST_NUMBER)
    return tuple(value) if isinstance(value, list) else value


def _number(name: str, value: float, low: float, high: float) -> float:
    if not low <= value <= high:
        raise ValueError(f"{name} is {value:g}: must be {low:g} to {high:g}")
    return value


def _utility(message: Any) -> TimeUtility | None:
    """None where the goal left it to its urgency."""
    given = (float(message.ert), float(message.alpha), float(message.beta))
    return TimeUtility(*given) if any(given) else None


def _event(message: Any) -> values.PlanEvent:
    kind, goal, result = values.PlanEventType(message.type), None, None
    if kind is values.PlanEventType.ACCEPTED:
        goal = _value(values.PlanGoal, message)
    if kind in _WITH_RESULT:
        result = _value(values.PlanResult, message, utility=getattr(message, "utility_value", 0.0))
    return _value(values.PlanEvent, message, type=kind, goal=goal, result=result)


def _robots(message: Any) -> tuple[values.RobotInfo, ...]:
    return tuple(_value(values.RobotInfo, robot) for robot in message.robots)


# ---- writing -------------------------------------------------------------------------------------


@cache
def typestore() -> Typestore:
    """The types of ROS 2 Kilted and this package's own, from its ``.msg`` files. Add none."""
    store = get_typestore(Stores.ROS2_KILTED)
    types: dict[str, Any] = {}
    for path in sorted(share("msg").glob("*.msg")):
        types |= get_types_from_msg(path.read_text(), f"{PACKAGE}/msg/{path.stem}")
    store.register(types)
    return store


class BagWriter:
    """A new bag in the folder ``path``, which must not exist; use it in a ``with``.

    Messages come serialized (CDR) with the time of their receipt in ns. ``BagError`` where the bag
    cannot be made, or the disk takes no more: what was flushed until then can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._checked():  # version 9 of the metadata: as ROS 2 Jazzy and later write it
            self._writer = Writer(path, version=9, storage_plugin=StoragePlugin.MCAP)
            self._writer.open()
        self.types = typestore()
        self.messages = 0

    def topic(self, name: str, kind: str, qos: Sequence[Qos] = ()) -> Connection:
        """Add a topic of type ``kind`` ("timely_llm/msg/Segment"), offered with ``qos``."""
        with self._checked():
            return self._writer.add_connection(
                name, kind, typestore=self.types, offered_qos_profiles=qos
            )

    def write(self, topic: Connection, stamp: int, data: bytes | memoryview) -> None:
        """Add a serialized message, received at ``stamp`` (ns since the epoch)."""
        with self._checked():
            self._writer.write(topic, stamp, data)
        self.messages += 1

    def put(self, topic: Connection, stamp: int, message: Any) -> None:
        """Add a message of this writer's ``types``."""
        self.write(topic, stamp, self.types.serialize_cdr(message, topic.msgtype))

    def flush(self) -> None:
        """Put everything into the file, in whole chunks. What is there outlives this process."""
        storage = self._writer.storage
        assert isinstance(storage, McapWriter), "the bag is open"
        if storage.chunk.bio.tell() and not storage.chunk.msgs:
            return  # a chunk without messages has no times
        with self._checked():
            if storage.chunk.msgs:
                storage.close_chunk()
            storage.bio.flush()

    def close(self) -> None:
        """Write index and metadata. A bag without messages keeps its topics."""
        with self._checked():
            self._writer.close()

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except (WriterError, OSError) as error:
            raise BagError(f"cannot write the bag {self.path}: {error}") from error

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        with suppress(BagError) if kind is not None else nullcontext():  # the first error counts
            self.close()
