"""Learned durations of a real planner node: kept when it ends, and a file that is not its own."""

from __future__ import annotations

from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nodes import Client

from timely_llm.estimation.learned_times import Learned
from timely_llm.estimation.times_file import read
from timely_llm.protocols.messages import ErrorCode

PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"


def fly(start, client: Client, path: Path):
    """A planner and a drone that executes a plan; the planner's process."""
    planner = start("planner", engine="simulated", model=PLANS, times_file=path)
    start("robot", robot_id="d1", heartbeat_period=0.1)
    client.wait_for_robots("d1")
    assert client.goal("d1", "wait a little").result()[0] is ErrorCode.NONE
    return planner


def kept(path: Path) -> Learned:
    return read(path.read_text("utf-8"), str(path))


def test_what_was_learned_is_kept_at_the_end(start, client: Client, tmp_path: Path) -> None:
    path = tmp_path / "kept" / "times.json"
    assert fly(start, client, path).interrupt() == 0
    learned = kept(path)
    ((key, samples),) = learned.kinds.items()
    assert key[:2] == ("tello", "d")
    assert [(s.expected, s.robot) for s in samples] == [(0.2, "d1")] * 2
    assert all(0.2 <= s.measured < 0.5 for s in samples)
    assert list(learned.robots) == ["d1"]


def test_a_foreign_file_is_said_and_left_alone(start, client: Client, tmp_path: Path) -> None:
    path = tmp_path / "planner.yaml"
    path.write_text("planner:\n  policy: edf\n")
    found: dict[str, DiagnosticStatus] = {}

    def heard(message: DiagnosticArray) -> None:
        found.update({status.name.split()[-1]: status for status in message.status})

    client.node.create_subscription(DiagnosticArray, "/diagnostics", heard, 10)
    planner = fly(start, client, path)
    status = client.until(lambda: found.get("planner"), "diagnostics")
    said = {value.key: value.value for value in status.values}["learned times"]
    assert f"{path}:1: is not JSON" in said
    assert status.level == DiagnosticStatus.WARN
    assert planner.interrupt() == 0
    assert planner.output().count("is not JSON") == 1
    assert path.read_text() == "planner:\n  policy: edf\n"
