"""Bags are read whatever state they are in: whole, cut, of another version, without our topics."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import bag_cases
import pytest
from bag_cases import START, Messages, busy_fleet
from fleet_sim import FleetSim
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from timely_llm.paths import share
from timely_llm.protocols.messages import PlanEventType
from timely_llm.protocols.utility import PRESETS
from timely_llm.recording import bag
from timely_llm.recording.bag import BagError, BagWriter, typestore
from timely_llm.recording.costs import costs_of
from timely_llm.recording.goals import goals_of
from timely_llm.recording.recorded_trace import trace_of
from timely_llm.recording.replay import replay


def small_fleet() -> FleetSim:
    sim = FleetSim({"walk": "go(2);go(3)"})
    sim.add_robot("r0")
    sim.goal("r0", "walk", 1.0)
    return sim.finish()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[FleetSim, Path]:
    sim = busy_fleet()
    folder = tmp_path_factory.mktemp("bags") / "whole"
    return sim, bag_cases.record(sim, folder, robots_clock=-1e9)


class FullDisk:
    """A file that takes so many bytes and no more."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(28, "No space left on device")
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_a_full_disk_is_said_and_what_is_there_can_be_read(tmp_path):
    """Each of the bag's own errors, in each of its ways to write; the end hides none of them."""
    sim = small_fleet()
    make = Messages(typestore())
    words = "cannot write the bag .*: .*No space left on device"
    with pytest.raises(BagError, match=words), BagWriter(tmp_path / "bag") as bag_writer:
        bag_cases.write(bag_writer, sim)
        bag_writer.flush()
        storage = bag_writer._writer.storage
        storage.bio = FullDisk(storage.bio, 100)
        text = make("std_msgs/msg/String", data="x" * 2_000_000)
        bag_writer.put(bag_writer.topic("/more", "std_msgs/msg/String"), 1, text)
    recording = bag.read(tmp_path / "bag")
    assert len(recording.events) == len(sim.events)
    assert any("ends in the middle" in note for note in recording.notes)
    for fails in ("flush", "close"):
        writer = BagWriter(tmp_path / fails)
        writer.topic("/more", "std_msgs/msg/String")
        writer.put(next(iter(writer._writer.connections)), 1, make("std_msgs/msg/String", data="x"))
        writer._writer.storage.bio = FullDisk(writer._writer.storage.bio, 100)
        with pytest.raises(BagError, match="No space left on device"):
            getattr(writer, fails)()


@pytest.mark.parametrize("words", ["a: " + "[" * 5000, "name: {x: y} #"])
def test_metadata_that_cannot_be_read_is_left_aside(tmp_path, words):
    """Nested so deeply that its reader would take minutes; a topic without a name."""
    folder = bag_cases.record(small_fleet(), tmp_path / "bag")
    text = (folder / "metadata.yaml").read_text()
    (folder / "metadata.yaml").write_text(text.replace("name: /", f"{words} /", 1))
    recording = bag.read(folder)
    assert len(recording.events) == 7
    assert any("the bag's metadata cannot be read: " in note for note in recording.notes)


FORGED = {
    "step_times": ((float("nan"), 0.1), "step_times is nan: must be 0 to 1e+06"),
    "horizon": (float("inf"), "horizon is inf: must be -1e+15 to 1e+15"),
}


@pytest.mark.parametrize("field", FORGED)
def test_an_event_with_a_number_that_cannot_be_is_left_out_and_counted(tmp_path, field):
    sim = small_fleet()
    value, words = FORGED[field]
    first = next(i for i, e in enumerate(sim.events) if e.type is PlanEventType.SEGMENT)
    sim.events[first] = dataclasses.replace(sim.events[first], **{field: value})
    recording = bag.read(bag_cases.record(sim, tmp_path / "bag"))
    assert len(recording.events) == len(sim.events) - 1
    assert f"/plan_events: 1 messages could not be read: {words}" in recording.notes


def test_steps_of_no_time_have_costs(tmp_path):
    sim = small_fleet()
    sim.events[:] = [
        dataclasses.replace(event, step_times=(0.0,) * 3 if event.step_times else ())
        for event in sim.events
    ]
    goals = goals_of(bag.read(bag_cases.record(sim, tmp_path / "bag")))
    assert costs_of(goals).steps == {1: 0.0}


@pytest.mark.parametrize("kind", ["std_msgs/msg/String", "timely_llm/msg/Segment"])
def test_a_topic_whose_type_changes_is_read_as_far_as_it_is_ours(tmp_path, kind):
    sim, make = small_fleet(), Messages(typestore())
    other = {"data": "x"} if "String" in kind else {"text": "x"}
    with BagWriter(tmp_path / "bag") as writer:
        bag_cases.write(writer, sim)
        for name in ("/r0/execution", "/plan_events", "/robots", "/planner_status"):
            late = writer.topic(name, kind)
            writer.put(late, round((START + 100) * 1e9), make(kind, **other))
    recording = bag.read(tmp_path / "bag")
    assert len(recording.events) == len(sim.events)
    assert [g.code for g in goals_of(recording)] == [0]
    assert any("/r0/execution: 1 messages could not be read" in note for note in recording.notes)


def test_every_event_comes_back_as_it_was(whole):
    sim, folder = whole
    recording = bag.read(folder)
    assert recording.notes == ()
    assert len(recording.events) == len(sim.events)
    for read, sent in zip(recording.events, sim.events, strict=True):
        assert (read.plan_id, read.type, read.segment, read.text, read.last, read.tokens) == (
            *(sent.plan_id, sent.type, sent.segment, sent.text, sent.last, sent.tokens),
        )
        assert read.stamp == pytest.approx(START + sent.stamp, abs=1e-6)
        assert read.step_times == pytest.approx(sent.step_times)
        assert read.goal == sent.goal
        assert (read.result is None) == (sent.result is None)
        if sent.result is not None:
            assert read.result.error_code is sent.result.error_code
            assert read.result.waiting_time == sent.result.waiting_time
            assert read.result.utility == sent.result.utility


def test_reports_and_segments_come_back_on_the_planner_s_clock(whole):
    sim, folder = whole
    recording = bag.read(folder)
    for name, robot in recording.robots.items():
        reported = [(at, r) for at, robot_id, r in sim.reported if robot_id == name]
        assert [r.stamp for r in robot.reports] == pytest.approx(
            [START + at for at, _ in reported], abs=1e-5
        )
        assert [(r.state, r.call, r.sequence) for r in robot.reports] == [
            (r.state, r.call, r.sequence) for _, r in reported
        ]
        sent = [s for _, robot_id, s in sim.sent if robot_id == name]
        assert [(s.index, s.text, s.calls) for s in robot.segments] == [
            (s.index, s.text, s.calls) for s in sent
        ]


def test_a_written_bag_is_one_for_rosbag2(whole):
    with Reader(whole[1]) as reader:
        ours = typestore()
        for connection in reader.connections:
            assert connection.digest == ours.hash_rihs01(connection.msgtype)
            assert connection.msgdef.data
        assert reader.message_count == sum(c.msgcount for c in reader.connections) > 100


def test_a_bag_whose_recorder_was_killed_is_read_up_to_its_last_flush(tmp_path):
    sim, killed = small_fleet(), tmp_path / "killed"
    with BagWriter(tmp_path / "whole") as writer:
        bag_cases.write(writer, sim)
        writer.flush()
        topic = next(iter(writer._writer.connections))
        writer.write(topic, 2_000_000_000 * 10**9, b"\x00\x01\x00\x00\x00\x00\x00\x00")
        killed.mkdir()  # as the file is now, the last message not in it
        shutil.copy(tmp_path / "whole" / "whole.mcap", killed)
    recording = bag.read(killed)
    assert len(recording.events) == len(sim.events)
    assert any("ends in the middle" in note for note in recording.notes)
    assert recording.ended < START + 100


def test_what_stands_behind_the_last_whole_chunk_is_left_out(tmp_path):
    sim, file = small_fleet(), tmp_path / "cut.mcap"
    with BagWriter(tmp_path / "whole") as writer:
        bag_cases.write(writer, sim)
        writer.flush()
        begun = b"\x06" + (10**6).to_bytes(8, "little") + bytes(500)  # of a chunk
        file.write_bytes((tmp_path / "whole" / "whole.mcap").read_bytes() + begun)
    assert len(bag.read(file).events) == len(sim.events)


def test_a_bag_without_metadata_is_read(tmp_path):
    folder = bag_cases.record(small_fleet(), tmp_path / "bag")
    (folder / "metadata.yaml").unlink()
    recording = bag.read(folder)
    assert len(goals_of(recording)) == 1
    assert "its recorder did not come to an end" in recording.notes[0]
    assert bag.read(folder / "bag.mcap").events == recording.events


@settings(max_examples=15)
@given(share_kept=st.floats(0, 1), flushed=st.booleans())
def test_a_cut_file_is_read_up_to_the_cut_or_refused_in_words(
    tmp_path_factory, share_kept, flushed
):
    folder = tmp_path_factory.mktemp("cut")
    sim = small_fleet()
    with BagWriter(folder / "bag") as writer:
        bag_cases.write(writer, sim)
        if flushed:
            writer.flush()
    file = folder / "bag" / "bag.mcap"
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share_kept)])
    try:
        recording = bag.read(folder / "bag")
    except BagError as error:
        assert str(folder) in str(error)
        return
    assert [e.type for e in recording.events] == [
        e.type for e in sim.events[: len(recording.events)]
    ]
    assert share_kept == 1 or recording.notes


def test_what_is_no_bag_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no bag")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "readme.md").write_text("no bag")
    (tmp_path / "false.mcap").write_text("no mcap, whatever its name says")
    (tmp_path / "false.db3").write_text("no database")
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "bag.mcap").write_bytes(b"")
    (tmp_path / "young.mcap").write_bytes(b"\x89MCAP")
    for name, words in {
        "empty": "is an empty folder",
        "notes.txt": "is no bag",
        "texts": "is no bag",
        "false.mcap": "is no mcap file",
        "false.db3": "cannot be read",
        "killed": "is empty: its recorder ended before it had written anything",
        "young.mcap": "is empty: its recorder ended before it had written anything",
        "missing": "there is no such file or folder",
    }.items():
        with pytest.raises(BagError, match=words) as caught:
            bag.read(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize("length", [1 << 40, 1 << 63, (1 << 63) - 1, (1 << 64) - 1])
def test_a_record_of_an_impossible_length_is_a_damaged_file(tmp_path, length):
    magic, folder = b"\x89MCAP0\r\n", tmp_path / "huge"
    folder.mkdir()
    file = folder / "huge.mcap"
    file.write_bytes(magic + b"\x01" + length.to_bytes(8, "little") + b"x" * 100)
    for path in (file, folder):
        with pytest.raises(BagError, match="cannot be read"):
            bag.read(path)


@pytest.mark.parametrize(
    ("config", "note"),
    [
        ("when: 2001-99-99", "is not YAML"),
        ("[" * 3000, "is not YAML"),
        ("[1]", "is not a mapping"),
        ("parameters: [a]", "parameters is ['a']: must be a mapping"),
        ("engine: vllm", "engine is 'vllm': must be a mapping"),
        ("engine: {max_batch: x}", "engine.max_batch is 'x': must be a whole number"),
        ("engine: {max_batch: -3}", "engine.max_batch is -3: must be"),
        ("engine: {kv_blocks: [1]}", "engine.kv_blocks is [1]: must be"),
        ("engine: {block_size: true}", "engine.block_size is True: must be"),
        ("parameters: {max_batch: .nan}", "parameters.max_batch is nan: must be"),
        ("parameters: {network: soon}", "parameters.network is 'soon': must be"),
        ("parameters: {network: .inf}", "parameters.network is inf: must be"),
        ("parameters: {pace: [a]}", "parameters.pace is ['a']: must be a text"),
        ("parameters: {utility.normal: [a, 1, 2]}", "parameters.utility.normal is ['a', 1, 2]"),
        ("parameters: {utility.normal: [1, 1, 2]}", "must be ert, alpha and beta"),
        ("parameters: {utility.low: 3}", "parameters.utility.low is 3: must be ert, alpha"),
    ],
)
def test_odd_settings_of_the_planner_are_noted_and_left_out(tmp_path, config, note):
    recording = bag.read(bag_cases.record(small_fleet(), tmp_path / "bag", config))
    (words,) = [words for words in recording.notes if words.startswith("planner_config: ")]
    assert note in words
    goals = goals_of(recording)
    assert [goal.utility for goal in goals] == [PRESETS[goal.urgency] for goal in goals]
    run = replay(recording, trace_of(recording, goals), costs_of(goals), "vllm")
    assert len(run.outcomes) == len(goals)


def test_a_bag_without_our_topics_says_what_it_holds(tmp_path):
    with BagWriter(tmp_path / "other") as writer:
        topic = writer.topic("/chatter", "std_msgs/msg/String")
        writer.put(topic, 1, Messages(writer.types)("std_msgs/msg/String", data="hello"))
    with pytest.raises(BagError, match=r"it holds /chatter \(std_msgs/msg/String\)"):
        bag.read(tmp_path / "other")


@pytest.mark.parametrize("missing", ["robots", "planner_config", "planner_status", "execution"])
def test_a_missing_topic_is_noted(tmp_path, missing):
    recording = bag.read(bag_cases.record(small_fleet(), tmp_path / "bag", without=(missing,)))
    (goal,) = goals_of(recording)
    assert goal.text == "go(2);go(3)"
    assert any(missing in note for note in recording.notes) or missing == "robots"
    assert bool(recording.config) == (missing != "planner_config")


def test_of_several_planners_one_is_to_be_named(tmp_path):
    sim = small_fleet()
    with BagWriter(tmp_path / "two") as writer:
        bag_cases.write(writer, sim, namespace="north")
        bag_cases.write(writer, sim, namespace="south", without=("segments", "execution"))
    with pytest.raises(BagError, match=r"several planners: .*\(/north, /south\)"):
        bag.read(tmp_path / "two")
    assert len(bag.read(tmp_path / "two", "south").events) == len(sim.events)
    with pytest.raises(BagError, match="in namespace 'west'"):
        bag.read(tmp_path / "two", "west")


def test_a_bag_of_another_version_is_read_by_its_own_definitions(tmp_path):
    """Its events lack a field that ours have, have one that ours lack, and one of a type that is
    not known here."""
    store, types = get_typestore(Stores.ROS2_KILTED), {}
    for path in share("msg").glob("*.msg"):
        text = path.read_text()
        if path.stem == "PlanEvent":
            text = text.replace("uint32 cached_tokens ", "float32 mood ")
        types |= get_types_from_msg(text, f"timely_llm/msg/{path.stem}")
    store.register(types)
    make, sim = Messages(store), small_fleet()
    with Writer(tmp_path / "old", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        kind = "timely_llm/msg/PlanEvent"
        topic = writer.add_connection("/plan_events", kind, typestore=store)
        made = [(event.stamp, make.event(event)) for event in sim.events]
        made.append((99.0, make(kind, stamp=99.0, type=200)))
        for at, message in made:
            writer.write(topic, round((START + at) * 1e9), store.serialize_cdr(message, kind))
    recording = bag.read(tmp_path / "old")
    assert [e.type for e in recording.events] == [e.type for e in sim.events]
    started = next(e for e in recording.events if e.type is PlanEventType.STARTED)
    assert started.cached_tokens == 0
    assert any("1 messages could not be read: 200 is not a valid" in n for n in recording.notes)


def test_sqlite_bags_are_read_too(tmp_path):
    sim, store = small_fleet(), typestore()
    make, kind = Messages(store), "timely_llm/msg/PlanEvent"
    with Writer(tmp_path / "db", version=8, storage_plugin=StoragePlugin.SQLITE3) as writer:
        topic = writer.add_connection("/plan_events", kind, typestore=store)
        for event in sim.events:
            data = store.serialize_cdr(make.event(event), kind)
            writer.write(topic, round((START + event.stamp) * 1e9), data)
    assert len(bag.read(tmp_path / "db").events) == len(sim.events)


def test_a_bag_is_never_written_over(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(BagError, match="exists already"):
        BagWriter(tmp_path / "there")
