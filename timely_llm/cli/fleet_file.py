"""Fleet files: which robots there are, of which kind, where, and on which adapter. Pure.

A fleet file is YAML. Launch files and ``timely-llm demo`` start the same nodes from it::

    description: a drone and an arm
    robots:
      - id: drone_1              # letters, digits and _; also its node's name
        kind: tello              # a kind that the planner knows (config/skills), or ...
        # skill_set: crane.yaml  # ... its own skill set, in the same folder
        namespace: drone_1       # where its topics are; default: the id
        adapter: simulated       # default: simulated
        parameters: {seed: 7}    # of the adapter; files are looked for in this folder
        # python: ../../.venv-indy/bin/python   # that runs its node; default: the planner's
    simulators:                # of real robots, started before the robots' nodes: may be left out
      - name: tello            # `timely-llm sim-tello`
        arguments: [--count, "3", --fault, 127.0.0.2/motor@20]
        # python: ...          # as above
    script: ../scripts/x.yaml  # what `timely-llm demo` has them do by default
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, PlainValidator, ValidationInfo

from robot_adapters.adapter import AdapterError, AdapterParameter, adapter_class
from timely_llm.paths import share
from timely_llm.validation.names import hint
from timely_llm.validation.reader import (
    Entry,
    Fault,
    Place,
    as_text,
    choice,
    file_text,
    items,
    known,
    parse_yaml,
    text,
    typed,
)

MAX_ROBOTS = 256
SIMULATORS = ("tello", "indy")
_MAX_SIMULATORS, _MAX_ARGUMENTS = 16, 100
_ID = text(200, pattern="[A-Za-z][A-Za-z0-9_]{0,63}", words="letters, digits and _, at most 64")
_NAMESPACE = text(
    200,
    pattern="/?[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*",
    words="a ROS name such as hall/drone_1",
)
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}

Value = bool | int | float | str


class _Known(NamedTuple):
    """What there is for a fleet: where its files lie, kinds of robots, parameters of adapters."""

    folder: Path
    kinds: Iterable[str]
    adapter_parameters: Callable[[str], tuple[AdapterParameter, ...]]


def _file(value: Any, info: ValidationInfo[_Known]) -> str:
    return _existing(as_text(value), info.context.folder)


def _existing(name: str, folder: Path, *place: str) -> str:
    path = folder / os.path.expanduser(name)
    if not os.path.isfile(path):
        raise Fault(f"there is no file {str(path)!r}", *place)
    return str(path)


def _interpreter(value: Any, info: ValidationInfo[_Known]) -> str:
    """A path; links are kept, for the interpreter of a virtual environment is one."""
    path = Path(os.path.expanduser(as_text(value, 400)))
    if not path.name.startswith("python"):
        raise Fault(f"is {str(path)!r}: must be the path of an interpreter, .../bin/python")
    return os.path.normpath(info.context.folder / path)


@dataclass(frozen=True, slots=True)
class RobotSpec(Entry):
    """One robot of a fleet. ``skill_set`` is the path of a file, or empty where ``kind`` is known
    to the planner; ``parameters`` are the adapter's. ``python`` is the interpreter of another
    environment, or empty; whether it is there is looked at when the node is started."""

    robot_id: Annotated[str, _ID, Field(alias="id")]
    kind: Annotated[str, known(lambda there: there.kinds)] = ""
    namespace: Annotated[str, _NAMESPACE] = ""
    adapter: Annotated[str, text(200)] = "simulated"
    skill_set: Annotated[str, text()] = ""
    parameters: Mapping[str, Annotated[Value, PlainValidator(typed)]] = field(default_factory=dict)
    python: Annotated[str, PlainValidator(_interpreter)] = ""

    def checked(self, context: _Known) -> RobotSpec:
        if bool(self.kind) == bool(self.skill_set):
            raise Fault("must have either 'kind' or 'skill_set'")
        skill_set = self.skill_set and _existing(self.skill_set, context.folder, "skill_set")
        try:
            listed = context.adapter_parameters(self.adapter)
        except AdapterError as error:
            raise Fault(str(error).removeprefix("adapter: "), "adapter") from None
        parameters = {parameter.name: parameter for parameter in listed}
        values: dict[str, Value] = {}
        for name, value in self.parameters.items():
            if name not in parameters:
                reason = f"the adapter has no parameter {name!r}{hint(name, parameters)}"
                raise Fault(reason, "parameters", name)
            if reason := _unfit(value, parameters[name]):
                raise Fault(reason, "parameters", name)
            values[name] = value
            if type(parameters[name].default) is float:
                values[name] = float(value)
            elif isinstance(value, str) and value and os.path.isfile(context.folder / value):
                values[name] = str(context.folder / value)
        namespace = self.namespace or self.robot_id
        return replace(self, namespace=namespace, skill_set=skill_set, parameters=values)


def _unfit(value: Value, parameter: AdapterParameter) -> str:
    """Why the adapter does not take the value, or empty."""
    expected = type(parameter.default)
    words = f"is {value!r}: must be {_WORDS[expected]} ({parameter.description})"
    if type(value) is not expected and not (expected is float and type(value) is int):
        return words
    low, high = parameter.minimum, parameter.maximum
    if isinstance(value, str):
        return ""
    if not (low is None or value >= low) or not (high is None or value <= high):
        limits = " and ".join(
            f"{limit_words} {limit:g} {parameter.unit}".rstrip()
            for limit_words, limit in (("at least", low), ("at most", high))
            if limit is not None
        )
        return f"is {value}: must be {limits}"
    return words if value != value else ""


@dataclass(frozen=True, slots=True)
class SimulatorSpec(Entry):
    """A simulator of real robots, ``timely-llm sim-NAME`` with ``arguments``; ``python`` as in
    ``RobotSpec``."""

    name: Annotated[str, choice(*SIMULATORS)]
    arguments: Annotated[tuple[Annotated[str, text(200)], ...], items(0, _MAX_ARGUMENTS)] = ()
    python: Annotated[str, PlainValidator(_interpreter)] = ""

    @property
    def command(self) -> tuple[str, ...]:
        """What follows ``timely-llm``."""
        return (f"sim-{self.name}", *self.arguments)


@dataclass(frozen=True, slots=True)
class Fleet(Entry):
    """What a fleet file says; robots in the order of the file. ``script`` is the path of one, or
    empty."""

    robots: Annotated[tuple[RobotSpec, ...], items(1, MAX_ROBOTS)]
    description: Annotated[str, text()] = ""
    simulators: Annotated[tuple[SimulatorSpec, ...], items(0, _MAX_SIMULATORS)] = ()
    script: Annotated[str, PlainValidator(_file)] = ""

    def checked(self, context: _Known) -> Fleet:
        """No id and no namespace is given to two robots."""
        taken: dict[tuple[str, str], Place] = {}
        for i, robot in enumerate(self.robots):
            for what, name in (("id", robot.robot_id), ("namespace", robot.namespace)):
                first = taken.setdefault((what, name.strip("/")), ("robots", i, what))
                if first[1] != i:
                    reason = f"{what} {name!r} is already another robot's, in line {{line}}"
                    raise Fault(reason, "robots", i, what, first=first)
        return self

    def __getitem__(self, robot_id: str) -> RobotSpec:
        return next(robot for robot in self.robots if robot.robot_id == robot_id)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(robot.robot_id for robot in self.robots)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node to start: by launch as an executable of this package, or as a plain process.

    ``entry`` is the function that the executable runs, as ``module:function``. ``python`` is the
    interpreter that runs it; empty: that of whoever starts it.
    """

    name: str
    namespace: str
    executable: str
    entry: str
    parameters: Mapping[str, Value]
    python: str = ""


def load_fleet(path: str | Path) -> Fleet:
    """The fleet in a file. ``FileError`` names line, field and the nearest known name; ``OSError``
    where the file cannot be read."""
    path = Path(os.path.expanduser(path))
    return read_fleet(file_text(path), str(path), path.resolve().parent)


def read_fleet(
    text: str, source: str = "<fleet>", folder: Path | None = None,
    kinds: Iterable[str] | None = None,
    adapter_parameters: Callable[[str], tuple[AdapterParameter, ...]] | None = None,
) -> Fleet:  # fmt: skip
    """The fleet in ``text``; ``source`` names it in errors, files in it lie in ``folder``.

    ``kinds`` and ``adapter_parameters`` say what there is; default: the package's own.
    """
    there = _Known(
        folder or Path.cwd(),
        bundled_kinds() if kinds is None else kinds,
        adapter_parameters or parameters_of,
    )
    return parse_yaml(text, source).read(Fleet, there)


def bundled_kinds() -> set[str]:
    """The kinds of robot that every planner knows."""
    return {path.stem for path in share("config", "skills").glob("*.yaml")}


def parameters_of(adapter: str) -> tuple[AdapterParameter, ...]:
    """The parameters of an adapter by name; ``AdapterError`` where there is none of that name."""
    return adapter_class(adapter).PARAMETERS


def fleet_nodes(fleet: Fleet, namespace: str = "") -> tuple[NodeSpec, ...]:
    """The robots' nodes. ``namespace`` is the planner's; robots lie below it."""
    return tuple(_robot_node(robot, namespace.strip("/")) for robot in fleet.robots)


def _robot_node(robot: RobotSpec, prefix: str) -> NodeSpec:
    parameters = {
        "robot_id": robot.robot_id,
        "kind": robot.kind,
        "skill_set": robot.skill_set,
        "adapter": robot.adapter,
        "planner_namespace": f"/{prefix}",
        **robot.parameters,
    }
    given = {name: value for name, value in parameters.items() if value != ""}
    namespace = "/" + "/".join(part for part in (prefix, robot.namespace.strip("/")) if part)
    entry = "robot_adapters.node:main"
    return NodeSpec("robot_adapter", namespace, "robot_adapter", entry, given, robot.python)
