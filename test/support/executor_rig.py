"""For tests: the robot's side of a plan on virtual time. No tests here.

``Scripted`` stands in for a robot: calls take the times, yield the values and fail as a test says.
``Desk`` plays the node around it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from robot_adapters.adapter import Progress
from robot_adapters.executor.executor import RobotExecutor, Timing
from timely_llm.language.loader import read_skill_set
from timely_llm.protocols.messages import (
    Execution,
    ExecutionState,
    Segment,
    SegmentCommand,
    SkillCall,
)

SKILLS = """
kind: test
bounds: {max_steps: 60, max_time: 100, max_travel: 10, max_statements: 12, max_plan_chars: 4000}
skills:
  - {name: go, arguments: [{name: m, type: int, unit: m, minimum: 1, maximum: 9}],
     duration: {polynomial: [0, 1], of: m}}
  - {name: look, returns: bool, duration: {constant: 1}}
  - {name: ask, arguments: [{name: question, type: str}], returns: str, role: probe,
     duration: {constant: 0.5}}
  - {name: tick, returns: int, duration: {constant: 0.001}}
  - {name: spin, definition: "20{tick}"}
  - {name: seek, arguments: [{name: m, type: int, unit: m, minimum: 1, maximum: 9}],
     definition: "2{?look{->True}go($1)}->False", returns: bool, duration: {constant: 1.5}}
  - {name: again, role: replan, duration: {constant: 0}}
"""
A, B, C = "a" * 32, "b" * 32, "c" * 32
State = ExecutionState
RUN, REPLACE, CANCEL, STOP = SegmentCommand
TIMING = Timing(heartbeat_period=0.5, planner_timeout=3.0, overtime=2.0, patience=4.0)


class Scripted:
    """A robot whose calls take the expected time, unless ``durations`` says otherwise."""

    PARAMETERS: ClassVar[tuple] = ()
    skills = read_skill_set(SKILLS)

    def __init__(self) -> None:
        self.log: list[str] = []
        self.durations: dict[str, float] = {}
        self.values: dict[str, Any] = {"look": True, "tick": 7, "ask": "an apple"}
        self.errors: dict[str, str] = {}  # of the call, when it is done
        self.refusals: dict[str, str] = {}
        self.raises: set[str] = set()
        self.call: SkillCall | None = None
        self.started = 0.0
        self.last = Progress(True)

    def _enter(self, name: str, words: str = "") -> None:
        if name in self.raises:
            raise RuntimeError(f"{name} is broken")
        if words:
            self.log.append(words)

    def check(self, call: SkillCall) -> str | None:
        self._enter("check")
        return self.refusals.get(call.name)

    def travel(self, call: SkillCall) -> float:
        return float(call.evaluated[0]) if call.name == "go" else 0.0

    def start(self, call: SkillCall, now: float) -> None:
        self._enter("start", f"{now:g} start {call.name}({','.join(call.evaluated)})")
        self.call, self.started = call, now

    def _duration(self) -> float:
        return self.durations.get(self.call.name, self.call.expected_duration)

    def poll(self, now: float) -> Progress:
        self._enter("poll")
        if self.call is None:
            return self.last
        elapsed, end = now - self.started, self.started + self._duration()
        if now < end:
            return Progress(False, elapsed=elapsed, remaining=end - now)
        name, self.call = self.call.name, None
        error = self.errors.get(name, "")
        self.last = Progress(True, self.values.get(name), error, elapsed)
        return self.last

    def next_poll(self, now: float) -> float | None:
        self._enter("next_poll")
        return None if self.call is None else self.started + self._duration()

    def halt(self, now: float) -> None:
        self._enter("halt", f"{now:g} halt")
        self.call = None

    def hold(self, now: float) -> None:
        self._enter("hold", f"{now:g} hold")

    def resume(self, now: float) -> None:
        self._enter("resume", f"{now:g} resume")

    def observe(self) -> str:
        self._enter("observe")
        return "[apple]"

    def diagnostics(self) -> dict[str, str]:
        return {}

    def close(self, now: float) -> None:
        self._enter("close", f"{now:g} close")


class Desk:
    """Plays the node: hands inputs in, keeps the clock, writes down what is reported."""

    def __init__(self, ask: Any = None, registered: bool = True, timing: Timing = TIMING) -> None:
        self.robot = Scripted()
        self.executor = RobotExecutor(self.robot, timing, ask)
        self.now = 0.0
        self.reports: list[Execution] = []
        if registered:
            self.take(self.executor.new_session(1, 0.0, "p"))
            self.reports.clear()

    def take(self, reports: list[Execution]) -> None:
        self.reports += reports

    def send(self, index: int, text: str = "", last: bool = False, plan: str = A, **fields) -> None:
        segment = Segment(fields.pop("session", 1), plan, index, text=text, last=last, **fields)
        self.take(self.executor.on_segment(segment, self.now))

    def alive(self, instance: str = "p") -> None:
        self.take(self.executor.on_planner_heartbeat(instance, self.now))

    def run(self, until: float, alive: bool = True) -> None:
        """Let time pass, waking the executor when it asks for it."""
        while (wake := self.executor.next_wake(self.now)) is not None and wake <= until:
            assert wake > self.now - 1e-9, "asks to be woken in the past"
            self.now = max(self.now, wake)
            if alive:
                self.alive()
            self.take(self.executor.tick(self.now))
        self.now = until
        if alive:
            self.alive()

    def told(self, heartbeats: bool = False) -> list[str]:
        """What was reported since the last look, without repeated heartbeats."""
        lines, before = [], None
        for report in self.reports:
            line = report.state.name
            if report.call.name:
                line += f" {report.call.name}({','.join(report.call.evaluated)})"
            line += f" {report.value}" if report.has_value else ""
            line += f": {report.error}" if report.error else ""
            if heartbeats or (report.state is not State.RUNNING and line != before):
                lines.append(line)
            before = line
        self.reports.clear()
        return lines
