"""A bag recorded by an earlier version (`test/data/README.md`) is read, replayed and reported as
that version did it. No reader, replay or report may change what the bag says."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from timely_llm.cli.replay import replay
from timely_llm.cli.report import report
from timely_llm.protocols.messages import ErrorCode
from timely_llm.recording.bag import read
from timely_llm.recording.goals import goals_of

DATA = Path(__file__).parents[1] / "data"
BAG = DATA / "flight"


def run(command: Any, *arguments: object) -> None:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and text in JSON, with the path to it."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from leaves(part, f"{path}/{key}")
    else:
        yield path, value


def test_all_of_it_is_read() -> None:
    recording = read(BAG)
    assert recording.notes == ()
    assert (len(recording.events), len(recording.statuses)) == (136, 44)
    assert {name: len(robot.reports) for name, robot in recording.robots.items()} == {
        "arm_1": 129, "arm_2": 131, "drone_1": 142, "drone_2": 133, "drone_3": 131, "drone_4": 125,
    }  # fmt: skip
    goals = goals_of(recording)
    assert [goal.code for goal in goals if goal.code is not ErrorCode.NONE] == [
        None, ErrorCode.PREEMPTED, None, ErrorCode.CANCELED,
    ]  # fmt: skip
    assert (len(goals), sum(len(goal.segments) for goal in goals)) == (15, 59)


def test_its_replay_is_the_same_in_every_figure(tmp_path: Path) -> None:
    out = tmp_path / "replay.json"
    run(replay, BAG, "--policy", "recorded,vllm,least_loss", "--json", out)
    found = dict(leaves(json.loads(out.read_text())))
    expected = dict(leaves(json.loads((DATA / "flight_replay.json").read_text())))
    expected["/bag"] = str(BAG)
    assert [k for k in found if k not in expected] == [k for k in expected if k not in found] == []
    for path, value in expected.items():
        # Sums of floats differ in the last digits from Python 3.12 on.
        same = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
        assert found[path] == same, path


def test_its_report_says_the_same(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run(report, BAG, "--out", page)
    body = page.read_text().partition("<body>")[2]
    body = re.sub(r"<script.*?</script>", "", body, flags=re.DOTALL)
    text = html.unescape(re.sub(r"<[^>]+>", "\n", body))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert lines == (DATA / "flight_page.txt").read_text().splitlines()
