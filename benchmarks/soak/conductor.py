"""Starts the processes of a soak, kills them at random moments, starts them again, and writes down
what became of each."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml
from rich.console import Console

from benchmarks.soak.records import Writer
from timely_llm.cli.fleet_file import NodeSpec, Value
from timely_llm.cli.local_fleet import planner_node, ros_arguments
from timely_llm.protocols.messages import RobotInfo
from timely_llm.ros.client import PlannerClient
from timely_llm.system.processes import Child, Interrupt, ProcessGroup

DRONES = ("drone_1", "drone_2", "drone_3", "drone_4")
ARMS = ("arm_1", "arm_2")
ROBOTS = DRONES + ARMS
SURVIVORS = ("drone_1", "arm_1")  # are paused, and never killed
CLIENTS = 3
DEPTH = 2  # goals that each client has open on each robot
LIMIT = 120.0  # s, within which a goal ends
SAMPLE_PERIOD = 5.0  # s
LONGEST_PAUSE = 6.0  # s between SIGSTOP and SIGCONT
RESTART_DELAY = 2.0  # s, at most
END_LIMIT = 30.0  # s, for a process to end after SIGTERM
YOUNG = 15.0  # s; a process may not yet have a handler for SIGTERM
SETTLE_LIMIT = 40.0  # s, for all robots to be back once nobody disturbs them
MIB = float(1 << 20)
WEIGHTS = {"planner": 2.0, "robot": 4.0, "client": 2.0, "recorder": 1.0}
HOW = {"SIGKILL": 0.4, "SIGTERM": 0.3, "SIGSTOP": 0.3}


@dataclass(frozen=True, slots=True)
class Phase:
    """``share`` of the time; where the planner is not ``killed``, neither is the recorder: their
    memory is watched."""

    name: str
    share: float
    engine: str
    killed: bool = True


PHASES = (
    Phase("kills", 0.45, "simulated"),
    Phase("endurance", 0.35, "simulated", killed=False),
    Phase("real engine", 0.2, "vllm"),
)


@dataclass(frozen=True, slots=True)
class Options:
    """``minutes`` in all; a kill every ``kill_period`` s and a lie every ``lie_period`` s on
    average; simulated robots are ``speed`` times as fast as life."""

    minutes: float
    seed: int
    folder: Path
    kill_period: float = 6.0
    lie_period: float = 0.3
    speed: float = 20.0
    phases: Sequence[Phase] = PHASES


@dataclass(slots=True)
class Actor:
    """One process and those that replace it. ``arguments`` are of the start with that number."""

    name: str
    kind: str
    entry: str
    arguments: Callable[[int], Sequence[str]]
    mortal: bool = True
    child: Child | None = None
    starts: int = 0
    since: float = 0.0  # s, of the start
    again: float = 0.0  # s, when it is started
    doomed: str = ""  # the signal that is to end it, and ...
    doomed_at: float = 0.0  # ... when it was sent, s
    final: bool = False  # it is not started again
    paused_until: float | None = None
    expected: tuple[int, ...] = ()  # statuses

    @property
    def running(self) -> bool:
        return self.child is not None

    @property
    def end_limit(self) -> float:
        """s, for it to end after SIGTERM; a client waits for its goals."""
        return END_LIMIT + (LIMIT if self.kind == "client" else 0.0)

    def overdue(self, now: float) -> bool:
        """Whether it should have ended by now."""
        return self.doomed == "SIGTERM" and now >= self.doomed_at + self.end_limit

    @property
    def undisturbed(self) -> bool:
        return self.running and not self.doomed and self.paused_until is None


@dataclass(slots=True)
class Conductor:
    """``run`` plays all phases; ``records`` gets the kills, ends and samples."""

    options: Options
    children: ProcessGroup
    client: PlannerClient
    interrupt: Interrupt
    console: Console
    records: Writer = field(init=False)
    chance: random.Random = field(init=False)
    actors: dict[str, Actor] = field(default_factory=dict)
    asked: dict[str, Any] = field(init=False)
    told: dict[str, list[str]] = field(init=False)
    robots_out: list[str] = field(default_factory=list)
    _back: frozenset[str] = frozenset()
    _sample_at: float = 0.0

    def __post_init__(self) -> None:
        folder = self.options.folder
        self.records = Writer(folder / "conductor.jsonl")
        self.chance = random.Random(self.options.seed)
        plans = yaml.safe_load(Path(__file__).with_name("plans.yaml").read_text("utf-8"))
        self.asked = plans.pop("asked")
        tasks = [task for kind in ("drone", "arm") for task in plans[kind]]
        (folder / "tasks.yaml").write_text(yaml.safe_dump({"tasks": tasks}), "utf-8")
        self.told = {kind: [task["task"] for task in plans[kind]] for kind in ("drone", "arm")}
        self._add("witness", "witness", lambda n: [json.dumps(ROBOTS), self._file("witness", n)])
        for robot in ROBOTS:
            self._add_robot(robot)
        self.client.watch_robots(self._on_robots)

    # Who there is.

    def _file(self, name: str, number: int) -> str:
        return str(self.options.folder / f"{name}-{number}.jsonl")

    def _add(
        self,
        name: str,
        kind: str,
        arguments: Callable[[int], Sequence[str]],
        entry: str = "",
        mortal: bool = False,
    ) -> None:
        entry = entry or f"benchmarks.soak.{kind}:main"
        self.actors[name] = Actor(name, kind, entry, arguments, mortal)

    def _add_robot(self, robot: str) -> None:
        number = ROBOTS.index(robot)

        def arguments(start: int) -> list[str]:
            parameters: dict[str, Value] = {
                "kind": "tello" if robot in DRONES else "indy7",
                "adapter": "benchmarks.soak.robot:FastAdapter",
                "speed": self.options.speed,
                "seed": self.options.seed * 1000 + number * 100 + start,
                "log": self._file(robot, start),
            }
            entry = "robot_adapters.node:main"
            return ros_arguments(NodeSpec(robot, f"/{robot}", "robot_adapter", entry, parameters))

        mortal = robot not in SURVIVORS
        self._add(robot, "robot", arguments, "robot_adapters.node:main", mortal)

    def _add_for(self, phase: Phase) -> None:
        """The planner, the recorder, the clients and the hostile node of a phase."""
        options, place = self.options, file_name(phase)
        parameters: dict[str, Value] = {"engine": phase.engine}
        if phase.engine == "simulated":
            parameters["model"] = str(options.folder / "tasks.yaml")
        node = planner_node(parameters)
        self._add("planner", "planner", lambda n: ros_arguments(node), node.entry, phase.killed)

        def bag(start: int) -> list[str]:
            return [str(options.folder / f"bag-{place}-{start}"), "/"]

        self._add("recorder", "recorder", bag, "timely_llm.ros.recorder:main", phase.killed)
        words = self.told if phase.engine == "simulated" else self.asked
        robots = {robot: words["drone" if robot in DRONES else "arm"] for robot in ROBOTS}
        for number in range(1, CLIENTS + 1):
            name = f"client_{number}"

            def order(start: int, name: str = name) -> list[str]:
                seed = f"{options.seed}:{place}:{name}:{start}"
                path = self._file(f"{name}-{place}", start)
                order = {"name": f"soak_{name}", "seed": seed, "records": path, "limit": LIMIT}
                return [json.dumps(order | {"robots": robots, "depth": DEPTH})]

            self._add(name, "client", order, mortal=number > 1)
        path = self._file(f"hostile-{place}", 1)
        hostile = [json.dumps(ROBOTS), str(options.seed), str(options.lie_period), path]
        self._add("hostile", "hostile", lambda n: hostile)

    # The play.

    def run(self) -> None:
        for phase in self.options.phases:
            self._add_for(phase)
            until = time.monotonic() + 60 * self.options.minutes * phase.share
            self.records.write("phase", name=phase.name)
            self.console.print(f"{phase.name}: {60 * self.options.minutes * phase.share:.0f} s")
            strike_at = time.monotonic() + 4 * self.options.kill_period
            while time.monotonic() < until:
                self._turn()
                if time.monotonic() >= strike_at:
                    strike_at += self.chance.expovariate(1 / self.options.kill_period)
                    self._strike()
            self._settle(phase)
        self._end(*self.actors)

    def _turn(self) -> None:
        """Look after all actors once."""
        self.interrupt.check()
        self.client.spin()
        now = time.monotonic()
        for actor in self.actors.values():
            if actor.child is not None and actor.child.ended:
                self._ended(actor, now)
            elif actor.paused_until is not None and now >= actor.paused_until:
                self._resume(actor)
            elif actor.running and actor.overdue(now):
                self._signal(actor, "SIGABRT")
            if actor.child is None and not actor.final and now >= actor.again:
                self._start(actor, now)
        if now >= self._sample_at:
            self._sample_at = now + SAMPLE_PERIOD
            self._sample()

    def _start(self, actor: Actor, now: float) -> None:
        actor.starts += 1
        arguments = actor.arguments(actor.starts)
        actor.child = self.children.start(actor.name, actor.entry, arguments)
        actor.since, actor.doomed, actor.expected = now, "", ()
        self.records.write("start", name=actor.name, pid=actor.child.process.pid)

    def _ended(self, actor: Actor, now: float) -> None:
        child = actor.child
        assert child is not None
        status, tail = child.process.returncode, child.tail(4)
        expected = list(actor.expected)
        if actor.kind == "robot" and "is refused: " in tail and "is registered already" in tail:
            expected.append(1)  # a stranger has its name, which only SROS 2 can prevent
        fields = {"name": actor.name, "pid": child.process.pid, "status": status}
        self.records.write("end", **fields, expected=expected, signal=actor.doomed, tail=tail)
        self.children.children.remove(child)
        actor.child, actor.doomed, actor.paused_until = None, "", None
        actor.again = now + self.chance.uniform(0.0, RESTART_DELAY)

    def _strike(self) -> None:
        """A signal to one process of a kind."""
        kind = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        found = [a for a in self.actors.values() if a.kind == kind and a.undisturbed]
        if not found:
            return
        actor = self.chance.choice(found)
        how = self.chance.choices(list(HOW), list(HOW.values()))[0] if actor.mortal else "SIGSTOP"
        if how == "SIGSTOP":
            pause = self.chance.uniform(0.1, LONGEST_PAUSE)
            actor.paused_until = time.monotonic() + pause
        self._signal(actor, how)

    def _signal(self, actor: Actor, how: str) -> None:
        assert actor.child is not None
        now = time.monotonic()
        self.records.write("signal", name=actor.name, kind=actor.kind, signal=how)
        actor.child.signal(signal.Signals[how])
        if how == "SIGKILL":
            actor.doomed, actor.expected = how, (-signal.SIGKILL,)
        elif how == "SIGTERM":
            young = now - actor.since < YOUNG
            actor.doomed, actor.doomed_at = how, now
            actor.expected = (0, -signal.SIGTERM) if young else (0,)
        elif how == "SIGABRT":  # it hangs: its status says so
            actor.doomed = how

    def _resume(self, actor: Actor) -> None:
        assert actor.child is not None
        self.records.write("signal", name=actor.name, kind=actor.kind, signal="SIGCONT")
        actor.child.signal(signal.SIGCONT)
        actor.paused_until = None

    def _sample(self) -> None:
        for actor in self.actors.values():
            if actor.child is None:
                continue
            try:
                process = psutil.Process(actor.child.process.pid)
                memory = process.memory_info()
                fields = {
                    "memory": round((memory.rss - memory.shared) / MIB, 3),
                    "descriptors": process.num_fds(),
                    "threads": process.num_threads(),
                }
            except psutil.Error:
                continue
            pid = actor.child.process.pid
            self.records.write("sample", name=actor.name, pid=pid, **fields)

    # The end of a phase.

    def _settle(self, phase: Phase) -> None:
        """Nobody disturbs any more: all robots come back, all goals end."""
        self._end("hostile")
        self._until(lambda: self._back >= set(ROBOTS), SETTLE_LIMIT)
        missing = sorted(set(ROBOTS) - self._back)
        self.robots_out += [f"{phase.name}: {robot}" for robot in missing]
        self._end(*(name for name, actor in self.actors.items() if actor.kind == "client"))
        self._end("recorder", "planner")

    def _on_robots(self, robots: Sequence[RobotInfo]) -> None:
        fit = (robot.robot_id for robot in robots if robot.alive and not robot.stopped)
        self._back = frozenset(fit)

    def _until(self, done: Callable[[], bool], limit: float) -> None:
        deadline = time.monotonic() + limit
        while not done() and time.monotonic() < deadline:
            self._turn()

    def _end(self, *names: str) -> None:
        """End them in good order, and wait for it."""
        actors = [self.actors[name] for name in names]
        self._until(lambda: all(a.paused_until is None for a in actors), LONGEST_PAUSE + 1)
        for actor in actors:
            actor.final = True
            if actor.running and not actor.doomed:
                self._signal(actor, "SIGTERM")
        limit = max((actor.end_limit for actor in actors), default=0.0) + END_LIMIT
        self._until(lambda: not any(actor.running for actor in actors), limit)
        for name in names:
            del self.actors[name]


def file_name(phase: Phase) -> str:
    """The phase's name in names of files."""
    return phase.name.replace(" ", "_")
