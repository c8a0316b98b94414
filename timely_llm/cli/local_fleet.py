"""A planner and its robots as processes of this machine, in a separate ROS domain: the nodes that
the launch files start, without launch."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from timely_llm.cli.fleet_file import Fleet, NodeSpec, Value, fleet_nodes
from timely_llm.protocols.messages import RobotInfo
from timely_llm.ros.client import PlannerClient
from timely_llm.system.processes import Child, ProcessGroup

STARTUP_TIMEOUT = 180.0  # s; loading a model on a busy machine takes a while
RECORDER_TIMEOUT = 20.0  # s, from when all robots are registered
_DOMAINS = range(30, 102)  # above what people pick by hand; up to 101 the ports are free everywhere
_PORT_BASE, _PORTS_PER_DOMAIN, _FIRST_UNICAST = 7400, 250, 10  # of DDS


class FleetError(RuntimeError):
    """The processes did not come up, or one of them ended; the text says which and why."""


def claim_domain(environment: Mapping[str, str] = os.environ) -> tuple[int, IO[str] | None]:
    """A ROS domain for a group of processes: the environment's, where it names one, else one that
    nobody uses. It is claimed for as long as the file that comes with it is open.
    ``FleetError`` where all are in use."""
    given = environment.get("ROS_DOMAIN_ID", "")
    if given:
        return int(given), None
    for domain in _DOMAINS:
        claim = _lock(Path(tempfile.gettempdir()) / f"timely_llm_domain_{domain}.lock")
        if claim is not None and _is_unused(domain):
            return domain, claim
        if claim is not None:
            claim.close()
    raise FleetError("every ROS domain is in use: set ROS_DOMAIN_ID")


def _lock(path: Path) -> IO[str] | None:
    try:
        file = path.open("a")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return None
    return file


def _is_unused(domain: int) -> bool:
    """Whether nobody listens on the ports that the domain's first participant would take."""
    base = _PORT_BASE + _PORTS_PER_DOMAIN * domain
    for port in (base, base + _FIRST_UNICAST):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("", port))
            except OSError:
                return False
    return True


def child_environment(domain: int, folder: Path) -> dict[str, str]:
    """This process's environment with the ROS domain, discovery on this machine alone, and ROS's
    own logs in ``folder``."""
    return {
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        **os.environ,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_LOG_DIR": str(folder / "ros"),
        "PYTHONUNBUFFERED": "1",
    }


def ros_arguments(node: NodeSpec) -> list[str]:
    """The command line that gives a node its namespace and parameters."""
    arguments = ["--ros-args", "-r", f"__ns:={node.namespace}"]
    for name, value in node.parameters.items():
        arguments += ["-p", f"{name}:={json.dumps(value)}"]
    return arguments


def planner_node(parameters: Mapping[str, Value], namespace: str = "") -> NodeSpec:
    """The planner, under ``namespace``."""
    namespace = "/" + namespace.strip("/")
    entry = "timely_llm.ros.planner_node:main"
    return NodeSpec("planner", namespace, "planner_node", entry, parameters)


@dataclass(slots=True)
class LocalFleet:
    """The processes of one planner and its robots, started in a ``ProcessGroup``."""

    fleet: Fleet
    children: ProcessGroup
    registered: set[str] = field(default_factory=set)
    started: dict[str, Child] = field(default_factory=dict)

    def start(self, planner: Mapping[str, Value]) -> None:
        """Start all processes; ``planner`` are the planner's parameters. ``FleetError`` where the
        interpreter that a robot or simulator names is missing; then none is started."""
        simulators = [(f"sim-{each.name}", each) for each in self.fleet.simulators]
        interpreters = [(name, each.python) for name, each in simulators]
        interpreters += [(robot.robot_id, robot.python) for robot in self.fleet.robots]
        for name, python in interpreters:
            if python and not os.access(python, os.X_OK):
                raise FleetError(
                    f"{name}: there is no interpreter {python!r}: make its "
                    "environment first (for an Indy7 arm, `make indy`)"
                )
        for name, each in simulators:
            entry = "timely_llm.cli:main"
            self.started[name] = self.children.start(name, entry, each.command, each.python)
        self._start("planner", planner_node(planner))
        for robot, node in zip(self.fleet.robots, fleet_nodes(self.fleet), strict=True):
            self._start(robot.robot_id, node)

    def _start(self, name: str, node: NodeSpec) -> None:
        self.started[name] = self.children.start(name, node.entry, ros_arguments(node), node.python)

    def record(self, bag: Path) -> Child:
        """Start recording into the new folder ``bag``. Call it before ``start``."""
        bag.parent.mkdir(parents=True, exist_ok=True)
        entry = "timely_llm.ros.recorder:main"
        return self.children.start("record", entry, [str(bag), "/"])

    def wait_recorded(
        self, recorder: Child, client: PlannerClient, check: Callable[[], None]
    ) -> None:
        """Wait until all robots' topics are recorded, or raise ``FleetError``. ``check`` is called
        again and again and may raise."""
        spaces = [robot.namespace.strip("/") for robot in self.fleet.robots]
        topics = {f"/{space}/{name}" for space in spaces for name in ("segments", "execution")}
        topics.add("/plan_events")

        def ready() -> bool:
            self.check()
            return topics <= set(recorder.log.read_text(errors="replace").split())

        if not client.wait(ready, RECORDER_TIMEOUT, check):
            raise FleetError(f"not all robots are recorded:\n{recorder.tail()}")

    def wait_ready(self, client: PlannerClient, check: Callable[[], None]) -> None:
        """Wait until the planner is active and has all robots, or raise ``FleetError``. ``check``
        is called again and again and may raise."""
        client.watch_robots(self._on_robots)
        robots = set(self.fleet.ids)

        def ready() -> bool:
            self.check()
            return client.status is not None and self.registered >= robots

        if not client.wait(ready, STARTUP_TIMEOUT, check):
            missing = sorted(robots - self.registered)
            what = "the planner is silent"
            if missing:
                what = f"robots not registered: {', '.join(missing)}"
            tails = [f"{name}: {self.started[name].tail(6)}" for name in ["planner", *missing][:2]]
            words = "\n".join([f"not ready after {STARTUP_TIMEOUT:g} s: {what}", *tails])
            raise FleetError(words)
        client.wait_for_planner(10.0, check)

    def check(self) -> None:
        """Raise ``FleetError`` where a process has ended by itself."""
        child = self.children.ended()
        if child is not None:
            status = child.process.returncode
            words = f"signal {-status}" if status < 0 else f"status {status}"
            raise FleetError(f"{child.name} ended with {words}:\n{child.tail()}")

    def _on_robots(self, robots: Iterable[RobotInfo]) -> None:
        self.registered = {robot.robot_id for robot in robots if robot.alive}


@contextlib.contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Take ``values`` into this process's environment for as long as the ``with`` lasts."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
