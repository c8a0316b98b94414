"""A Tello adapter under a real executor, and the simulated drone that it flies over real UDP."""

from __future__ import annotations

import itertools
import re
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from robot_adapters.adapter import make_adapter
from robot_adapters.executor.executor import RobotExecutor, Timing
from robot_adapters.tello.simulated_drone import SimTello
from robot_adapters.tello.udp_simulator import TelloSimulator
from timely_llm.language.loader import read_skill_set
from timely_llm.language.skills import SkillSet
from timely_llm.paths import share
from timely_llm.protocols.messages import Execution, ExecutionState, Segment

LIMIT = 30.0  # s; nothing here takes that long, unless it never comes
FACTOR = 10.0  # the drones' time runs so much faster
DURATION = 0.3  # s, that every motion of these skill sets is expected to take
SESSION, PLANNER = 1, "planner"
_hosts = (f"127.8.{i // 250}.{1 + i % 250}" for i in itertools.count())  # one drone each
_plans = (f"{i:032x}" for i in itertools.count(1))


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


STATE_PORT = _free_port()  # of this process: the SDK has one


def quick(path: str) -> str:
    """A skill set whose motions take as long as in these drones' time, about."""
    text = share("config", "skills", *path.split("/")).read_text()
    return re.sub(r"\{(polynomial|choice|constant: [1-9]).*\}", f"{{constant: {DURATION}}}", text)


BLIND = read_skill_set(quick("sdk/tello_sdk.yaml"))
SEEING = read_skill_set(quick("tello.yaml"))
CALM: dict[str, Any] = {"answer_timeout": 1.0, "link_timeout": 1.0, "keepalive": 0.3}
"""Parameters for a drone whose time runs fast."""


class Rig:
    """One drone, its adapter, its executor. Nothing happens but in ``until``."""

    def __init__(
        self, skills: SkillSet = BLIND, drone: SimTello | None = None, timing: Timing | None = None,
        serve: bool = True, **parameters: Any,
    ) -> None:  # fmt: skip
        self.drone = drone or SimTello(noise=0.0)
        self.simulator = TelloSimulator([(next(_hosts), 0, self.drone)], FACTOR)
        if serve:
            self.simulator.start()
        self.host, self.port = self.simulator.endpoints[0].address
        self.parameters = CALM | {"host": self.host, "port": self.port, "state_port": STATE_PORT}
        self.parameters |= parameters
        self.timing = timing or Timing(planner_timeout=1.0)
        self.adapter: Any = None
        self.planner_lives = True
        self.reports: list[Execution] = []
        self.begin(skills)

    def begin(self, skills: SkillSet = BLIND) -> None:
        """Start the robot's side, again if there was one."""
        self.adapter = make_adapter("tello", "r1", skills, **self.parameters)
        self.robot = RobotExecutor(self.adapter, self.timing)
        self.robot.new_session(SESSION, self.now(), PLANNER)

    @staticmethod
    def now() -> float:
        return time.monotonic()

    def step(self) -> None:
        if self.planner_lives:
            self.reports += self.robot.on_planner_heartbeat(PLANNER, self.now())
        self.reports += self.robot.tick(self.now())

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Let the robot go on until ``condition()`` is true; fail with ``what`` if it never is."""
        limit, pause = time.monotonic() + LIMIT, threading.Event()
        while time.monotonic() < limit:
            self.step()
            if found := condition():
                return found
            pause.wait(0.005)
        raise AssertionError(f"waited {LIMIT} s for {what}; {self.told()}; {self.lines()}")

    # The robot.

    def connected(self) -> Rig:
        self.until(lambda: self.adapter.flight.connected, "the drone")
        return self

    def send(self, plan: str, last: bool = True) -> str:
        """A plan in one segment; its id."""
        plan_id = next(_plans)
        segment = Segment(SESSION, plan_id, 0, text=plan, last=last)
        self.reports += self.robot.on_segment(segment, self.now())
        return plan_id

    def report(self, *states: ExecutionState) -> Execution:
        """Wait for the next report with one of these states, and forget all before it."""

        def found() -> Execution | None:
            return next((r for r in self.reports if r.state in states), None)

        report = self.until(found, "/".join(state.name for state in states))
        del self.reports[: self.reports.index(report) + 1]
        return report

    def fly(self, plan: str) -> Execution:
        """A plan to its end."""
        self.reports.clear()
        self.send(plan)
        State = ExecutionState
        return self.report(State.PLAN_RETURNED, State.FAILED, State.ABORTED, State.REJECTED)

    def told(self) -> list[tuple]:
        return [(r.state.name, r.call.name, r.error) for r in self.reports if r.call.name]

    # The drone.

    def fault(self, *texts: str) -> None:
        """Ask the drone for faults, at once, as ``sim FAULT`` does."""
        with self.simulator.lock:
            for text in texts:
                self.drone.receive(f"sim {text}", self.simulator.now())

    def tells(self, change: Callable[[str], str | None]) -> None:
        """From now on its state lines are what ``change`` makes of them; None: there is none."""
        told = SimTello.state_line

        def state_line(now: float) -> str | None:
            line = told(self.drone, now)
            return None if line is None else change(line)

        with self.simulator.lock:
            self.drone.state_line = state_line

    def datagram(self, data: bytes, port: int, source: str = "") -> None:
        """To a port of this process: from the drone's own address, or from ``source``."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.bind((source or self.host, 0))
            udp.sendto(data, ("127.0.0.1", port))

    def lines(self) -> list[str]:
        with self.simulator.lock:
            return [f"{mark}{text}" for _, mark, text in self.drone.log]

    def heard(self, *but: str) -> list[str]:
        """The motions and stops it was told."""
        words = ("command", "port", "rc", "battery?", *but)
        return [line[1:] for line in self.lines() if line[0] == "<" and not _is(line[1:], words)]

    def count(self, command: str) -> int:
        return sum(_is(line[1:], (command,)) for line in self.lines() if line[0] == "<")

    def pose(self) -> tuple:
        with self.simulator.lock:
            pose = self.drone.pose(self.simulator.now())
        return tuple(round(value, 2) for value in pose.values)

    def landed(self) -> None:
        self.until(lambda: "*has landed" in self.lines(), "the landing")

    def close(self) -> None:
        self.adapter.close(self.now())
        self.simulator.close()


def _is(command: str, words: tuple[str, ...]) -> bool:
    return command.split(" ")[0] in words
