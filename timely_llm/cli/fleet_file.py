"""Fleet files: which robots there are, of which kind, where, and on which adapter. Pure.

A fleet file is YAML. Launch files and ``timely-llm demo`` start the same nodes from it::

    description: a drone and an arm
    robots:
      - id: drone_1              # letters, digits and _; also its node's name
        kind: tello              # a kind that the planner knows (config/skills), or ...
        # skill_set: crane.yaml  # ... a skill set of its own, beside this file
        namespace: drone_1       # where its topics are; default: the id
        adapter: simulated       # default: simulated
        parameters: {seed: 7}    # of the adapter; a file named here lies beside this file
        # python: ../../.venv-indy/bin/python   # that runs its node; default: the planner's
    simulators:                # of real robots, started before the robots' nodes: may be left out
      - name: tello            # `timely-llm sim-tello`
        arguments: [--count, "3", --fault, 127.0.0.2/motor@20]
        # python: ...          # as above
    script: ../scripts/x.yaml  # what `timely-llm demo` has them do, unless told otherwise
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from robot_adapters.adapter import AdapterError, AdapterParameter, adapter_class
from timely_llm.paths import share
from timely_llm.validation.names import hint
from timely_llm.validation.reader import Node, decoded, read

MAX_ROBOTS = 256
SIMULATORS = ("tello", "indy")
_MAX_SIMULATORS, _MAX_ARGUMENTS = 16, 100
_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_NAMESPACE = re.compile(r"/?[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*")

Value = bool | int | float | str


@dataclass(frozen=True, slots=True)
class RobotSpec:
    """One robot of a fleet. ``skill_set`` is the path of a file, or empty where ``kind`` is known
    to the planner; ``parameters`` are the adapter's. ``python`` is the interpreter of another
    environment, or empty; whether it is there is looked at when the node is started."""

    robot_id: str
    kind: str
    namespace: str
    adapter: str = "simulated"
    skill_set: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    python: str = ""


@dataclass(frozen=True, slots=True)
class SimulatorSpec:
    """A simulator of real robots, ``timely-llm sim-NAME`` with ``arguments``; ``python`` as in
    ``RobotSpec``."""

    name: str
    arguments: tuple[str, ...] = ()
    python: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """What follows ``timely-llm``."""
        return (f"sim-{self.name}", *self.arguments)


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a fleet file says; robots in the order of the file. ``script`` is the path of one, or
    empty."""

    description: str
    robots: tuple[RobotSpec, ...]
    simulators: tuple[SimulatorSpec, ...] = ()
    script: str = ""

    def __getitem__(self, robot_id: str) -> RobotSpec:
        return next(robot for robot in self.robots if robot.robot_id == robot_id)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(robot.robot_id for robot in self.robots)


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node to start: by launch as an executable of this package, or as a plain process.

    ``entry`` is the function behind the executable, as ``module:function``; ``python`` runs it, or
    the same interpreter as that of whoever starts it.
    """

    name: str
    namespace: str
    executable: str
    entry: str
    parameters: Mapping[str, Value]
    python: str = ""


def load_fleet(path: str | Path) -> Fleet:
    """The fleet in a file. ``YamlError`` names line, field and the nearest known name; ``OSError``
    where the file cannot be read."""
    path = Path(os.path.expanduser(path))
    text = decoded(path.read_bytes(), str(path))
    return read_fleet(text, str(path), path.resolve().parent)


def read_fleet(
    text: str, source: str = "<fleet>", folder: Path | None = None,
    kinds: Iterable[str] | None = None,
    adapter_parameters: Callable[[str], tuple[AdapterParameter, ...]] | None = None,
) -> Fleet:  # fmt: skip
    """The fleet in ``text``; ``source`` names it in errors, files in it lie in ``folder``.

    ``kinds`` and ``adapter_parameters`` say what there is; default: the package's own.
    """
    reader = _Reader(
        folder or Path.cwd(),
        sorted(bundled_kinds() if kinds is None else kinds),
        adapter_parameters or parameters_of,
    )
    known = ("description", "robots", "simulators", "script")
    entries = read(text, source).mapping(known, ("robots",))
    simulators: tuple[SimulatorSpec, ...] = ()
    if "simulators" in entries:
        listed = entries["simulators"].items(0, _MAX_SIMULATORS)
        simulators = tuple(reader.simulator(node) for node in listed)
    return Fleet(
        description=entries["description"].text() if "description" in entries else "",
        robots=tuple(reader.robot(node) for node in entries["robots"].items(1, MAX_ROBOTS)),
        simulators=simulators,
        script=str(reader.file(entries["script"])) if "script" in entries else "",
    )


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


class _Reader:
    """Reads one fleet file's entries; remembers which ids and namespaces are taken."""

    def __init__(
        self,
        folder: Path,
        kinds: list[str],
        adapter_parameters: Callable[[str], tuple[AdapterParameter, ...]],
    ) -> None:
        self.folder, self.kinds, self.adapter_parameters = folder, kinds, adapter_parameters
        self.taken: dict[tuple[str, str], Node] = {}

    def robot(self, node: Node) -> RobotSpec:
        keys = ("id", "kind", "skill_set", "namespace", "adapter", "parameters", "python")
        entries = node.mapping(keys, ("id",))
        robot_id = self._name(entries["id"], "id", _ID, "letters, digits and _, at most 64")
        namespace = robot_id
        if "namespace" in entries:
            namespace = self._name(
                entries["namespace"], "namespace", _NAMESPACE, "a ROS name such as hall/drone_1"
            )
        else:
            self._take(entries["id"], "namespace", robot_id)
        if ("kind" in entries) == ("skill_set" in entries):
            node.fail("must have either 'kind' or 'skill_set'")
        kind = entries["kind"].choice(self.kinds) if "kind" in entries else ""
        skill_set = str(self.file(entries["skill_set"])) if "skill_set" in entries else ""
        adapter = entries["adapter"].text(200) if "adapter" in entries else "simulated"
        try:
            known = self.adapter_parameters(adapter)
        except AdapterError as error:
            entries.get("adapter", node).fail(str(error).removeprefix("adapter: "))
        given = entries["parameters"].mapping(None) if "parameters" in entries else {}
        values = {name: self._parameter(name, value, known) for name, value in given.items()}
        python = self._interpreter(entries["python"]) if "python" in entries else ""
        return RobotSpec(robot_id, kind, namespace, adapter, skill_set, values, python)

    def simulator(self, node: Node) -> SimulatorSpec:
        entries = node.mapping(("name", "arguments", "python"), ("name",))
        arguments: tuple[str, ...] = ()
        if "arguments" in entries:
            texts = entries["arguments"].items(0, _MAX_ARGUMENTS)
            arguments = tuple(text.text(200) for text in texts)
        python = self._interpreter(entries["python"]) if "python" in entries else ""
        return SimulatorSpec(entries["name"].choice(SIMULATORS), arguments, python)

    def _interpreter(self, node: Node) -> str:
        """A path; links are kept, for in an environment of its own an interpreter is one."""
        path = Path(os.path.expanduser(node.text(400)))
        if not path.name.startswith("python"):
            node.fail(f"is {str(path)!r}: must be the path of an interpreter, .../bin/python")
        return os.path.normpath(self.folder / path)

    def _name(self, node: Node, what: str, pattern: re.Pattern[str], rule: str) -> str:
        text = node.text(200)
        if not pattern.fullmatch(text):
            node.fail(f"is {text!r}: must be {rule}")
        self._take(node, what, text)
        return text

    def _take(self, node: Node, what: str, name: str) -> None:
        first = self.taken.setdefault((what, name.strip("/")), node)
        if first is not node:
            node.fail(f"{what} {name!r} is already another robot's, in line {first.line}")

    def file(self, node: Node) -> Path:
        path = self.folder / os.path.expanduser(node.text())
        if not os.path.isfile(path):
            node.fail(f"there is no file {str(path)!r}")
        return path

    def _parameter(self, name: str, node: Node, known: tuple[AdapterParameter, ...]) -> Value:
        by_name = {parameter.name: parameter for parameter in known}
        if name not in by_name:
            node.fail(f"the adapter has no parameter {name!r}{hint(name, by_name)}")
        parameter, value = by_name[name], node.scalar()
        expected = type(parameter.default)
        if expected is float and type(value) is int:
            value = float(value)
        if type(value) is not expected:
            node.fail(f"is {value!r}: must be {_WORDS[expected]} ({parameter.description})")
        low, high = parameter.minimum, parameter.maximum
        if not (low is None or value >= low) or not (high is None or value <= high):
            limits = " and ".join(
                f"{words} {limit:g} {parameter.unit}".rstrip()
                for words, limit in (("at least", low), ("at most", high))
                if limit is not None
            )
            node.fail(f"is {value}: must be {limits}")
        if value != value:
            node.fail(f"is {value}: must be {_WORDS[expected]} ({parameter.description})")
        if isinstance(value, str) and value and os.path.isfile(self.folder / value):
            return str(self.folder / value)
        return value


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
