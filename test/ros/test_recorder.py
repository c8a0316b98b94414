"""``timely-llm record`` on a real planner and a real robot node: topics alone hold everything.

The simulated engine stands in for a model; everything else is real.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import typer
import yaml
from nodes import LATCHED, LIMIT, ROOT, Client
from rosbags.interfaces import QosDurability, QosReliability
from rosbags.rosbag2 import Reader, Writer

from timely_llm.cli.record import record
from timely_llm.msg import RobotInfo, RobotList
from timely_llm.protocols.messages import ErrorCode, PlanEventType
from timely_llm.recording import bag
from timely_llm.recording.bag import BagWriter
from timely_llm.recording.costs import costs_of
from timely_llm.recording.goals import goals_of
from timely_llm.recording.recorded_trace import trace_of
from timely_llm.recording.replay import replay, what_happened
from timely_llm.recording.report import page
from timely_llm.ros import recorder as recorder_module

PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"


@pytest.fixture(scope="module")
def fleet(start_for_module) -> None:
    start_for_module("planner", engine="simulated", model=PLANS, max_tokens=60)
    start_for_module("robot", robot_id="d1", heartbeat_period=0.1)


class Recorder:
    def __init__(self, folder: Path, log: Path) -> None:
        self.folder, self.log = folder, log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "timely_llm.cli", "record", "--out", str(folder)],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=os.environ,
            )

    def records(self, topic: str) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return topic in self.log.read_text()

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(LIMIT)


@pytest.fixture
def recorder(fleet, tmp_path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "bag", tmp_path / "log")
    yield recorder
    if recorder.process.poll() is None:
        recorder.process.kill()
        recorder.process.wait(LIMIT)


def test_a_recorded_flight_can_be_evaluated_shown_and_replayed(recorder, client: Client):
    client.wait_for_robots("d1")
    client.listen("d1")
    for topic in ("/plan_events", "/d1/segments", "/d1/execution"):
        client.until(partial(recorder.records, topic), f"the recorder to find {topic}")
    goal = client.goal("d1", "wait a little")
    assert goal.result()[0] is ErrorCode.NONE
    client.until(lambda: client.events[-1].type is PlanEventType.ENDED, "the plan's end")
    assert recorder.end() == 0
    assert "messages on 6 topics" in recorder.log.read_text()

    with Reader(recorder.folder) as reader:
        topics = {c.topic: c for c in reader.connections}
        (qos,) = topics["/robots"].ext.offered_qos_profiles
        assert (qos.durability, qos.reliability) == (
            *(QosDurability.TRANSIENT_LOCAL, QosReliability.RELIABLE),
        )
        (qos,) = topics["/plan_events"].ext.offered_qos_profiles
        assert (qos.durability, qos.depth >= 0) == (QosDurability.VOLATILE, True)
        kinds = {c.msgtype for c in topics.values()}
        assert kinds >= {f"timely_llm/msg/{n}" for n in ("PlanEvent", "Segment", "Execution")}
    metadata = yaml.safe_load((recorder.folder / "metadata.yaml").read_text())
    for topic in metadata["rosbag2_bagfile_information"]["topics_with_message_count"]:
        assert topic["topic_metadata"]["type_description_hash"].startswith("RIHS01_")

    recording = bag.read(recorder.folder)
    ours = [e for e in client.events if e.plan_id == recording.events[0].plan_id]
    assert [e.type for e in recording.events] == [e.type for e in ours]
    assert recording.parameters["policy"] == "least_loss"
    (one,) = goals_of(recording)
    assert (one.text, one.code) == ("d(0.2);d(0.2);", ErrorCode.NONE)
    assert [call.text for call in one.calls] == ["d(0.2)", "d(0.2)"]
    assert len(recording.robots["d1"].segments) == len(client.segments["d1"]) > 1

    trace = trace_of(recording, [one])
    (was,) = what_happened(trace)
    (now,) = replay(recording, trace, costs_of([one]), "least_loss").outcomes
    assert now.error_code is ErrorCode.NONE
    assert now.execution_s == pytest.approx(was.execution_s, abs=1e-6)
    assert "wait a little" in page(recording, [one])


def test_a_recorder_that_is_killed_leaves_a_bag(recorder, client: Client):
    file = recorder.folder / "bag.mcap"
    client.until(lambda: recorder.records("/d1/execution"), "the recorder to find the robot")
    client.until(lambda: file.stat().st_size > 10_000, "the first messages on disk")
    recorder.end(signal.SIGKILL)
    recording = bag.read(recorder.folder)
    assert recording.config and list(recording.robots) == ["d1"]
    assert any("ends in the middle" in note for note in recording.notes)


def test_a_folder_that_is_there_is_not_written_over(tmp_path):
    with pytest.raises(typer.BadParameter, match="exists already"):
        record(out=tmp_path)


SPACES = ("/good", "/", "a b", "//", "/twice//x", "x" * 300, "/é", "")


def forged_robots(*spaces: str) -> RobotList:
    robots = [RobotInfo(robot_id=f"r{i}", robot_namespace=s) for i, s in enumerate(spaces)]
    return RobotList(robots=robots)


def test_forged_robots_end_no_recording(tmp_path, domain, monkeypatch):
    """Namespaces that no topic can have, bytes that are no message, more robots than there are."""
    monkeypatch.setattr(recorder_module, "MOST_FOLLOWED", 8, raising=False)
    said = []
    with (
        BagWriter(tmp_path / "bag") as writer,
        recorder_module.Recorder(writer, "forged", said.append) as recorder,
    ):
        publisher = recorder.node.create_publisher(RobotList, "robots", LATCHED)

        def until(done):
            for _ in range(400):
                if done():
                    return
                recorder.spin()
            raise AssertionError(said)

        until(lambda: publisher.get_subscription_count() > 0)
        publisher.publish(b"\x00\x01\x00\x00\xff\xff\xff\xff\xff\xff")
        until(lambda: any("cannot be read" in line for line in said))
        publisher.publish(forged_robots(*SPACES))
        until(lambda: "/good/execution" in recorder.topics)
        publisher.publish(forged_robots(*(f"/x{i}" for i in range(9)), "/late"))
        until(lambda: any("not more than" in line for line in said))
        publisher.publish(forged_robots("/late"))
        recorder.spin(0.2)
        assert not any(topic.startswith("/late") for topic in recorder.topics)
        assert {"/segments", "/execution"} <= recorder.topics.keys()
        refused = [line.split(":")[0] for line in said if "not recorded" in line]
        assert refused == [f"robot 'r{i}' is not recorded" for i in range(2, 8)]
    assert len(bag.read(tmp_path / "bag", "forged").topics) > 4


def test_a_disk_that_is_full_ends_the_recorder_in_a_line(tmp_path, client, monkeypatch, capfd):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    publisher = client.node.create_publisher(RobotList, "/full/robots", LATCHED)
    publisher.publish(RobotList())
    monkeypatch.setattr(Writer, "write", full)
    monkeypatch.setattr(sys, "argv", ["recorder", str(tmp_path / "bag"), "full"])
    with pytest.raises(SystemExit) as ended:
        recorder_module.main()
    assert ended.value.code == 1
    words = "[Errno 28] No space left on device"
    said = capfd.readouterr().err
    assert said.endswith(f"recorder: cannot write the bag {tmp_path / 'bag'}: {words}\n")
    assert "Exception" not in said
