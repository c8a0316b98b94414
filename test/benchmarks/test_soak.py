"""The soak: its judges find what they are there for, and a short one comes to its end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.soak import judges
from benchmarks.soak.records import Writer, read
from timely_llm.language.loader import load_skill_set
from timely_llm.paths import share


def at(t: float, event: str, **fields) -> dict:
    return {"t": t, "event": event, **fields}


def test_a_goal_without_a_result_and_one_that_took_too_long_are_found() -> None:
    records = [at(1, "sent", goal="a"), at(2, "sent", goal="b"), at(2, "sent", goal="c")]
    records += [at(3, "ended", goal="a", code="NONE"), at(9, "ended", goal="c", code="NONE")]
    found = ["goal c ended after 7.0 s", "goal b has no result"]
    assert judges.without_result(records, 6.0) == found
    assert judges.without_result(records[:1] + records[3:4], 6.0) == []


def test_who_hears_late_that_the_planner_is_dead_is_found() -> None:
    records = [at(1, "sent", goal="a"), at(2, "sent", goal="b"), at(12, "sent", goal="c")]
    records += [at(9, "ended", goal="a", code="dead"), at(16, "ended", goal="b", code="dead")]
    records += [at(19, "ended", goal="c", code="dead")]
    late = "goal b was told 6.0 s after the kill"
    assert judges.told_late(records, [10.0], []) == ([late], [6.0])  # a: before, c: after the kill
    assert judges.told_late(records, [10.0], [(14.0, 15.0)]) == ([], [])


def segment(index: int, command: int = 0, plan: str = "p", robot: str = "r") -> dict:
    return at(1.0, "segment", robot=robot, plan=plan, index=index, command=command)


@pytest.mark.parametrize(
    ("segments", "twice", "disordered"),
    [
        ([segment(0, 1), segment(1), segment(2, 1), segment(0, 2)], 0, 0),  # a replan, a CANCEL
        ([segment(3), segment(4)], 0, 0),  # the witness came late
        ([segment(0), segment(1, robot="s"), segment(1), segment(0, plan="q")], 0, 0),
        ([segment(0), segment(1), segment(1), segment(2)], 1, 0),
        ([segment(0), segment(2), segment(1), segment(3)], 1, 1),
        ([segment(0), segment(1), segment(3)], 0, 1),
    ],
)
def test_segments_twice_and_out_of_order_are_found(segments, twice, disordered) -> None:
    found = judges.segments_wrong(segments)
    assert [len(lines) for lines in found] == [twice, disordered]


def test_a_call_that_is_begun_twice_is_found() -> None:
    started = [at(1.0, "started", robot="r", plan="p", call=call) for call in (0, 1, 1)]
    assert judges.calls_twice(started) == ["r: plan p: call 1 was begun 2 times"]
    assert judges.calls_twice(started[:2]) == []


def test_motions_that_overlap_or_follow_the_end_are_found() -> None:
    start = [at(t, "start", name="mf", values=["50"]) for t in (1.0, 2.0, 3.0)]
    assert judges.motions_overlapping([start[0], at(1.5, "end"), start[1], at(2.5, "halt")]) == []
    assert judges.motions_overlapping(start[:2]) == ["mf(50) at 2.00 began during mf(50) at 1.00"]
    found = judges.motions_overlapping([at(0.5, "close"), start[0]])
    assert found == ["mf(50) at 1.00 began after the end"]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (at(1.0, "start", name="mf", values=["50"], at=[11.0, 0.0, 1.0]), ""),
        (at(1.0, "halt", at=[1.0, 0.0, 0.0]), ""),  # landed
        (at(1.0, "start", name="mf", values=["9999"], at=[1.0, 0.0, 1.0]), "9999"),
        (at(1.0, "start", name="mf", values=["nan"], at=[1.0, 0.0, 1.0]), "mf(nan)"),
        (at(1.0, "start", name="fly", values=[], at=[1.0, 0.0, 1.0]), "fly"),
        (at(1.0, "end", at=[11.1, 0.0, 1.0]), "x is 11.100 m"),
        (at(1.0, "end", at=[1.0, 0.0, 3.1]), "z is 3.100 m"),
    ],
)
def test_motions_outside_of_the_limits_are_found(record: dict, words: str) -> None:
    skills = load_skill_set(share("config", "skills", "tello.yaml"))
    found = judges.motions_outside([at(0.0, "place", at=[1.0, 0.0, 1.0]), record], skills)
    assert bool(found) is bool(words) and words in "".join(found)


def test_a_process_that_grows_is_found_and_one_that_warms_up_is_not() -> None:
    def samples(name: str, levels: list[float]) -> list[dict]:
        pairs = enumerate(levels)
        return [at(10.0 * i, "sample", name=name, pid=1, memory=level) for i, level in pairs]

    leaks = samples("leaks", [40.0 + 2 * i for i in range(30)])
    warms = samples("warms", [40.0 + min(2 * i, 16) for i in range(30)])
    young = samples("young", [40.0 + 2 * i for i in range(10)])
    found, table = judges.not_flat([*leaks, *warms, *young], 200.0, {"memory": 2.0}, 0.05)
    assert found == ["leaks (1): memory grew by 20 from 69 in 290 s"]
    assert [(line["name"], line["growth"]) for line in table] == [("leaks", 20.0), ("warms", 0.0)]


def test_ends_that_nobody_asked_for_and_faults_in_logs_are_found() -> None:
    fields = {"name": "planner", "tail": "it"}
    ends = [at(1.0, "end", status=status, expected=[0], **fields) for status in (0, -11)]
    assert judges.ends_unexpected(ends) == ["planner ended with -11 (expected [0]): it"]
    assert judges.log_faults("a.log", "all\nis\nwell") == []
    log = "well\nTraceback (most recent call last):\n  File\nTraceback\nError"
    assert len(judges.log_faults("a.log", log)) == 1


def test_records_are_read_up_to_where_their_writer_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    Writer(path).write("sent", goal="a")
    path.write_bytes(path.read_bytes() + json.dumps({"event": "ended"}).encode()[:7])
    assert [(record["event"], record["goal"]) for record in read(path)] == [("sent", "a")]


@pytest.mark.skipif("SOAK" not in os.environ, reason="half a minute of real nodes: SOAK=1")
def test_a_short_soak_finds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("rclpy", reason="rclpy is missing")
    from rich.console import Console

    from benchmarks.soak.__main__ import play
    from benchmarks.soak.conductor import Options, Phase
    from benchmarks.soak.verdict import report

    phases = (Phase("kills", 1.0, "simulated"),)
    options = Options(0.2, 1, tmp_path, kill_period=1.5, phases=phases)
    out = play(options, Console(quiet=True))
    result = report(options, out, least=1)
    assert [figure for figure in result.figures if figure.met is False] == []
