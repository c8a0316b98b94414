"""Bags written by the tests: what a fleet on virtual time did, as a recorder would have kept it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from fleet_sim import FleetSim
from rosbags.interfaces import Nodetype

from timely_llm.protocols import messages as values
from timely_llm.protocols.utility import PRESETS, Urgency
from timely_llm.recording.bag import BagWriter, read
from timely_llm.recording.costs import Costs, costs_of
from timely_llm.recording.goals import Goal, goals_of
from timely_llm.recording.recorded_trace import RecordedTrace, trace_of
from timely_llm.recording.recording import Recording

START = 1_800_000_000.0  # s since the epoch, when a recording's clock is 0
INSTANCE = bytes(range(16))
POLICIES = ("timely", "vllm", "least_loss", "edf")  # that the same goals are recorded under


def config(policy: str = "timely", **engine: Any) -> str:
    """The text of ``planner_config``."""
    presets = {
        f"utility.{urgency.name.lower()}": [utility.ert, utility.alpha, utility.beta]
        for urgency, utility in PRESETS.items()
    }
    given = {"backend": "simulated", "version": "test", "model": "scripted", "max_batch": 8}
    given |= {"block_size": 4, "kv_blocks": 4096, "pace": ""} | engine
    parameters = {"policy": policy, "network": 0.008, "pace": "none", "overload": "late"}
    return yaml.safe_dump({"parameters": parameters | presets, "engine": given})


def record(
    sim: FleetSim,
    folder: Path,
    text: str | None = None,
    namespace: str = "",
    without: tuple[str, ...] = (),
    robots_clock: float = 0.0,
) -> Path:
    """Write what happened in ``sim`` into a new bag; ``without`` some topics, by their last name.
    Robots' own clocks show ``robots_clock`` s more. Times of receipt are those of sending."""
    with BagWriter(folder) as bag:
        write(bag, sim, text, namespace, without, robots_clock)
    return folder


def write(
    bag: BagWriter,
    sim: FleetSim,
    text: str | None = None,
    namespace: str = "",
    without: tuple[str, ...] = (),
    robots_clock: float = 0.0,
) -> None:
    make = Messages(bag.types)
    topics: dict[str, Any] = {}
    space = f"/{namespace.strip('/')}".rstrip("/")
    for at, topic, kind, message in sorted(
        messages(sim, make, text or config(), space, robots_clock), key=lambda item: item[0]
    ):
        if topic.rsplit("/", 1)[-1] in without:
            continue
        if topic not in topics:
            topics[topic] = bag.topic(topic, kind)
        bag.put(topics[topic], round((START + at) * 1e9), message)


def messages(
    sim: FleetSim, make: Messages, text: str, space: str, robots_clock: float
) -> Iterator[tuple[float, str, str, Any]]:
    """When each message was sent (s), on which topic, its type, the message."""
    event, robots = "timely_llm/msg/PlanEvent", "timely_llm/msg/RobotList"
    yield (
        0.0,
        f"{space}/planner_config",
        "std_msgs/msg/String",
        make("std_msgs/msg/String", data=text),
    )
    infos = [
        values.RobotInfo(name, robot.kind, f"/{name}", robot.session, robot.body.skills.text)
        for name, robot in sorted(sim.robots.items())
    ]
    yield (
        0.001,
        f"{space}/robots",
        robots,
        make(robots, stamp=0.001, instance=INSTANCE, robots=[make.of(info) for info in infos]),
    )
    for i in range(int(sim.now * 2) + 1):
        status = values.PlannerStatus(
            INSTANCE.hex(), "timely", kv_blocks_used=i, kv_blocks_total=1000, stamp=i / 2
        )
        yield i / 2, f"{space}/planner_status", "timely_llm/msg/PlannerStatus", make.of(status)
    for one in sim.events:
        yield one.stamp, f"{space}/plan_events", event, make.event(one)
    for at, robot_id, segment in sim.sent:
        yield at, f"/{robot_id}/segments", "timely_llm/msg/Segment", make.of(segment)
    for at, robot_id, report in sim.reported:
        stamped = dataclasses.replace(report, stamp=at + robots_clock)
        yield at, f"/{robot_id}/execution", "timely_llm/msg/Execution", make.of(stamped)


class Messages:
    """Makes messages of a type store: fields that are not given are zero."""

    def __init__(self, types: Any) -> None:
        self.types = types

    def __call__(self, kind: str, /, **given: Any) -> Any:
        fields = {
            name: given.pop(name) if name in given else self._zero(desc)
            for name, desc in self.types.fielddefs[kind][1]
        }
        assert not given, f"{kind} has no {sorted(given)}"
        for name, value in fields.items():
            fields[name] = self._value(name, value)
        return self.types.types[kind](**fields)

    def of(self, value: Any) -> Any:
        """The message of the same name as a dataclass of ``protocols/messages.py``."""
        return self(f"timely_llm/msg/{type(value).__name__}", **_fields(value))

    def event(self, event: values.PlanEvent) -> Any:
        fields = _fields(event)
        goal, result = fields.pop("goal"), fields.pop("result")
        names = {name for name, _ in self.types.fielddefs["timely_llm/msg/PlanEvent"][1]}
        if goal is not None:
            fields |= {name: value for name, value in _fields(goal).items() if name in names}
        if result is not None:
            given = _fields(result)
            given["utility_value"] = given.pop("utility")
            fields |= {name: value for name, value in given.items() if name in names}
        fields = {name: value for name, value in fields.items() if name in names}
        return self("timely_llm/msg/PlanEvent", instance=INSTANCE.hex(), **fields)

    def _value(self, name: str, value: Any) -> Any:
        if name in ("stamp", "registered") and isinstance(value, (int, float)):
            whole, part = divmod(round((START + value) * 1e9), 1_000_000_000)
            return self("builtin_interfaces/msg/Time", sec=whole, nanosec=part)
        if name == "plan_id" and isinstance(value, str):
            data = np.frombuffer(bytes.fromhex(value), np.uint8)
            return self("unique_identifier_msgs/msg/UUID", uuid=data)
        if name == "instance":
            data = bytes.fromhex(value) if isinstance(value, str) else bytes(value)
            return np.frombuffer(data, np.uint8)
        if name == "utility" and value is None:
            return self("timely_llm/msg/TimeUtility")
        if dataclasses.is_dataclass(value) and type(value).__module__.startswith("timely_llm"):
            return self.of(value)
        if name == "calls":
            return [self.of(call) for call in value]
        if name == "step_times":
            return np.array(value, np.float64)
        return list(value) if isinstance(value, tuple) else value

    def _zero(self, desc: Any) -> Any:
        kind, what = desc
        if kind is Nodetype.BASE or kind == int(Nodetype.BASE):
            zeros: Mapping[str, Callable[[], Any]] = {"string": str, "bool": bool}
            zeros |= {"float64": float, "float32": float}
            return zeros.get(what[0], int)()
        if kind == int(Nodetype.NAME):
            return self(what)
        return np.zeros(what[1], np.uint8) if kind == int(Nodetype.ARRAY) else []


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def busy_fleet(policy: str = "timely") -> FleetSim:
    """Three walkers with goals of every kind of end: queued, canceled, preempted, failed; loops,
    conditions and an early return."""
    plans = {
        "walk": "go(2);go(3)",
        "loop": "3{go(1)};go(2)",
        "look": "?find('cat')==True{go(2)};go(1);->3",
        "stop": "go(4);go(4);go(4)",
        "fail": "go(2);go(5);go(1)",
        "early": "go(1);?see('cat')==True{->True};go(2)",
    }
    sim = FleetSim(plans, policy)
    for i, faults in enumerate(({}, {}, {"go(5)": "blocked"})):
        sim.add_robot(f"r{i}", faults=faults, values={"find(cat)": i == 1})
    sim.goal("r0", "walk", 1.0)
    sim.goal("r1", "look", 1.01, urgency=Urgency.URGENT)
    sim.goal("r2", "fail", 1.02)
    sim.goal("r0", "loop", 1.1)
    sim.cancel(sim.goal("r1", "stop", 9.0), 12.0)
    sim.goal("r2", "stop", 20.0)
    sim.goal("r0", "look", 20.01)
    sim.goal("r2", "walk", 23.0, urgency=Urgency.URGENT, when_busy=values.WhenBusy.PREEMPT)
    sim.goal("r1", "early", 24.0)
    sim.cancel(sim.goal("r1", "walk", 24.01), 24.02)  # before its turn
    return sim.finish()


def recorded(
    sim: FleetSim, folder: Path, policy: str = "timely", **options: Any
) -> tuple[Recording, RecordedTrace, Costs]:
    """The recording of what happened in ``sim``, its trace and its costs."""
    recording = read(record(sim, folder, config(policy), **options))
    goals = goals_of(recording)
    return recording, trace_of(recording, goals), costs_of(goals)


def of(
    sim: FleetSim, folder: Path, policy: str = "timely", **options: Any
) -> tuple[Recording, tuple[Goal, ...]]:
    """The recording of what happened in ``sim``, and its goals."""
    recording = read(record(sim, folder / "bag", config(policy), **options))
    return recording, goals_of(recording)
