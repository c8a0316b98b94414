"""An Indy7 adapter under a real executor, and the simulated controller that it talks to by gRPC."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_adapters.adapter import make_adapter
from robot_adapters.executor.executor import RobotExecutor, Timing
from robot_adapters.indy7.cell import load_cell
from robot_adapters.indy7.grpc_simulator import IndySimulator
from robot_adapters.indy7.kinematics import tool
from robot_adapters.indy7.simulated_controller import SimIndy
from timely_llm.language.loader import load_skill_set
from timely_llm.language.skills import SkillSet
from timely_llm.paths import share
from timely_llm.protocols.messages import Execution, ExecutionState, Segment

LIMIT = 30.0  # s; nothing here takes that long, unless it never comes
FACTOR = 8.0  # the arms' time runs so much faster
SESSION, PLANNER = 1, "planner"
SKILLS = load_skill_set(share("config", "skills", "indy7.yaml"))
CELL = share("config", "cells", "indy_sim.yaml")
#: Parameters for an arm whose time runs fast.
CALM: dict[str, Any] = {
    "call_timeout": 0.8, "link_timeout": 1.6, "start_timeout": 1.2, "speed": 40.0,
}  # fmt: skip
_hosts = (f"127.9.{os.getpid() % 250}.{i}" for i in itertools.count(1))  # one arm each
_plans = (f"{i:032x}" for i in itertools.count(1))


class Rig:
    """One arm, its adapter, its executor. Nothing happens but in ``until``."""

    def __init__(
        self, folder: Path, skills: SkillSet = SKILLS, serve: bool = True, cell: str = "",
        late: float = 0.5, planner_timeout: float = 1.0, **parameters: Any,
    ) -> None:  # fmt: skip
        path = folder / "cell.yaml"
        path.write_text(cell or CELL.read_text().replace("time: 0.4", "time: 0.02"))
        self.sim, self.host = SimIndy(load_cell(path)), next(_hosts)
        self.simulator = IndySimulator([(self.host, self.sim)] if serve else [], FACTOR)
        self.parameters = CALM | {"host": self.host, "cell": str(path)} | parameters
        self.planner_lives = True
        self.reports: list[Execution] = []
        self.adapter: Any = make_adapter("indy7", "arm", skills, **self.parameters)
        self.adapter.arm.settings = replace(self.adapter.arm.settings, late=late)
        self.robot = RobotExecutor(self.adapter, Timing(planner_timeout=planner_timeout))
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
        self.until(lambda: self.adapter.arm.look is not None, "the controller")
        return self

    def send(self, plan: str) -> None:
        segment = Segment(SESSION, next(_plans), 0, text=plan, last=True)
        self.reports += self.robot.on_segment(segment, self.now())

    def report(self, *states: ExecutionState) -> Execution:
        """Wait for the next report with one of these states."""
        found = lambda: next((r for r in self.reports if r.state in states), None)  # noqa: E731
        return self.until(found, "/".join(state.name for state in states))

    def run(self, plan: str) -> Execution:
        """A plan to its end."""
        self.reports.clear()
        self.send(plan)
        State = ExecutionState
        return self.report(State.PLAN_RETURNED, State.FAILED, State.ABORTED, State.REJECTED)

    def told(self) -> list[tuple]:
        return [(r.state.name, r.call.name, r.error) for r in self.reports if r.call.name]

    def standing(self) -> None:
        """Wait until the adapter knows that the arm stands still."""
        self.until(lambda: not self.adapter.arm.busy, "a standstill")

    # The arm.

    def fault(self, *texts: str) -> None:
        """Ask for faults as any client can: by a program of that name."""
        for text in texts:
            answer = self.adapter._link.sdk.play_program(prog_name=f"sim {text}")
            assert answer == {"code": "0", "msg": ""}

    def lines(self) -> list[str]:
        if not self.simulator.controllers:
            return []
        with self.simulator.controllers[0].lock:
            return [f"{mark}{text}" for _, mark, text in self.sim.log]

    def heard(self, *kinds: str) -> list[str]:
        """What the controller was asked to do."""
        return [line[1:] for line in self.lines()
                if line[0] == "<" and (not kinds or line[1:].split()[0] in kinds)]  # fmt: skip

    def moving(self) -> bool:
        with self.simulator.controllers[0].lock:
            return self.sim.motion(self.simulator.now())["is_in_motion"]

    def tool(self) -> tuple[float, ...]:
        with self.simulator.controllers[0].lock:
            return tuple(round(v) for v in tool(self.sim.joints(self.simulator.now()))[:3])

    def thing(self, name: str) -> tuple[int, ...]:
        """Where it really is."""
        return tuple(round(v) for v in self.sim.cell.find(name).position)

    def close(self) -> None:
        self.adapter.close(self.now())
        self.simulator.close()
