"""What an adapter that wants to know is told by the executor, and in which order."""

from __future__ import annotations

from robot_adapters.adapter import Notice, Notified
from robot_adapters.executor.executor import RobotExecutor, Timing
from robot_adapters.simulated.adapter import SimulatedAdapter
from timely_llm.language.loader import load_skill_set
from timely_llm.paths import share
from timely_llm.protocols.messages import Segment, SegmentCommand

TELLO = load_skill_set(share("config", "skills", "tello.yaml"))
A, B = "a" * 32, "b" * 32


class Curious(SimulatedAdapter):
    """The simulated drone, with a memory."""

    def __init__(self) -> None:
        super().__init__("r1", TELLO)
        self.log: list[tuple[float, str]] = []

    def notice(self, notice: Notice, now: float) -> None:
        self.log.append((now, notice.name))

    def halt(self, now: float) -> None:
        super().halt(now)
        self.log.append((now, "halt"))

    def hold(self, now: float) -> None:
        self.log.append((now, "hold"))
        super().hold(now)


def robot() -> tuple[RobotExecutor, list]:
    adapter = Curious()
    assert isinstance(adapter, Notified) and not isinstance(SimulatedAdapter("r2", TELLO), Notified)
    executor = RobotExecutor(adapter, Timing(planner_timeout=2.0))
    executor.new_session(1, 0.0, "planner")
    return executor, adapter.log


def test_a_plan_that_ends_is_told_once() -> None:
    executor, log = robot()
    executor.on_segment(Segment(1, A, 0, text="d(1);", last=True), 0.0)
    executor.tick(1.0)
    assert log == [(1.0, "PLAN_OVER")]


def test_a_plan_that_is_replaced_is_not_over_for_the_robot() -> None:
    executor, log = robot()
    executor.on_segment(Segment(1, A, 0, text="d(9)"), 0.0)
    executor.on_segment(Segment(1, B, 0, SegmentCommand.REPLACE, "d(9)"), 0.5)
    assert log == [(0.5, "halt")]


def test_stop_and_rearm_come_behind_the_halt() -> None:
    executor, log = robot()
    executor.on_segment(Segment(1, A, 0, text="d(9)"), 0.0)
    executor.on_stop(0.5)
    executor.on_rearm(1.5)
    assert log == [(0.5, "halt"), (0.5, "PLAN_OVER"), (0.5, "STOPPED"), (1.5, "REARMED")]


def test_a_lost_planner_is_told_at_once_and_held_behind_the_call() -> None:
    executor, log = robot()
    executor.on_segment(Segment(1, A, 0, text="d(5);d(5);", last=True), 0.0)
    executor.tick(2.0)
    executor.tick(5.0)
    assert log[:3] == [(2.0, "PLANNER_LOST"), (5.0, "PLAN_OVER"), (5.0, "hold")]


def test_without_a_plan_a_lost_planner_is_a_hold() -> None:
    executor, log = robot()
    executor.tick(2.0)
    assert log[0] == (2.0, "hold")


def test_an_adapter_that_fails_to_listen_ends_nothing(monkeypatch) -> None:
    executor, _ = robot()
    monkeypatch.setattr(Curious, "notice", lambda self, notice: None)  # lacks an argument
    executor.on_segment(Segment(1, A, 0, text="d(1);", last=True), 0.0)
    assert executor.tick(1.0)[-1].state.name == "IDLE"
    assert "argument" in executor.adapter.faults["notice"]
