"""``timely-llm replay`` and ``report`` as commands: what they write, print and refuse."""

from __future__ import annotations

import json
import shutil
import subprocess

import bag_cases
import pytest
from bag_cases import busy_fleet
from typer.testing import CliRunner

pytest.importorskip("typer")

from timely_llm.cli.replay import replay  # noqa: E402
from timely_llm.cli.report import report  # noqa: E402


def run(command, *arguments):
    import typer

    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    return bag_cases.record(busy_fleet("vllm"), folder / "flight", bag_cases.config("vllm"))


def test_replay_compares_several_policies_with_what_happened(bag, tmp_path):
    result = run(replay, bag, "--policy", "recorded,timely", "--json", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out.json").read_text())
    assert [(r["policy"], r["engine"]) for r in found["results"]] == [
        *(("vllm", "recorded"), ("vllm", "sim"), ("timely", "sim")),
    ]
    for name in ("vllm", "timely", "recorded", "left out: r1", "measured in the bag"):
        assert name in result.output
    own = found["results"][1]["difference"]
    assert abs(own["response_mean_s"]["share"]) < 0.05
    assert abs(own["waiting_mean_s"]["share"]) < 0.05


def test_replay_takes_another_batch_size(bag, tmp_path):
    file = tmp_path / "out.json"
    assert run(replay, bag, "--policy", "edf", "--max-batch", 1, "--json", file).exit_code == 0
    recorded, replayed = json.loads(file.read_text())["results"]
    assert (recorded["max_batch"], replayed["max_batch"]) == (8, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policy", "tymely"), "did you mean 'timely'"),
        (("--namespace", "elsewhere"), "in namespace 'elsewhere'"),
        (("--engine", "abacus"), "abacus"),
        (("--json", "no/such/folder/out.json"), "cannot write no/such/folder/out.json"),
    ],
)
def test_replay_refuses_what_cannot_be(bag, arguments, words):
    result = run(replay, bag, *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())


def test_a_bag_that_is_none_is_refused_by_both(tmp_path):
    for command in (replay, report):
        result = run(command, tmp_path / "nothing")
        assert result.exit_code == 2
        assert "there is no such file or folder" in " ".join(
            result.output.replace("│", " ").split()
        )


def test_report_writes_a_page_and_says_what_is_missing(bag, tmp_path):
    (bag / "metadata.yaml").rename(tmp_path / "kept.yaml")
    try:
        result = run(report, bag, "--out", tmp_path / "page.html")
    finally:
        (tmp_path / "kept.yaml").rename(bag / "metadata.yaml")
    assert result.exit_code == 0, result.output
    assert "note: the bag has no metadata" in result.output
    text = (tmp_path / "page.html").read_text()
    assert text.startswith("<!doctype html>") and "the bag has no metadata" in text


def test_without_a_policy_in_the_bag_one_must_be_named(tmp_path):
    folder = bag_cases.record(busy_fleet(), tmp_path / "bag", without=("planner_config",))
    result = run(replay, folder)
    assert result.exit_code == 2
    assert "does not say which policy" in " ".join(result.output.replace("│", " ").split())
    assert run(replay, folder, "--policy", "timely").exit_code == 0


def test_ros2_bag_reads_a_recording(bag):
    """Where ROS's own tools are installed."""
    ros2 = shutil.which("ros2")
    if ros2 is None or subprocess.run([ros2, "bag", "--help"], capture_output=True).returncode:
        pytest.skip("ros2 bag is not installed")
    done = subprocess.run([ros2, "bag", "info", str(bag)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for words in ("mcap", "/plan_events", "timely_llm/msg/PlanEvent"):
        assert words in done.stdout
