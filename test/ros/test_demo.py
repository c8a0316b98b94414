"""``timely-llm demo`` from its start to its end, however it ends.

The simulated engine stands in for a model; everything else is real.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from commands import PLANS, Command, gone

FLEET = {
    "robots": [
        {"id": "d1", "kind": "tello", "parameters": {"seed": 1}},
        {"id": "d2", "kind": "tello", "parameters": {"seed": 2}},
    ]
}
SCRIPT = {
    "instructions": [
        {"at": 0.3, "robot": "d1", "instruction": "wait in steps"},
        {"at": 0.3, "robot": "d2", "instruction": "wait long", "cancel_after": 1.0},
        {"at": 0.6, "robot": "d1", "instruction": "wait a little", "urgency": "urgent"},
    ]
}


@pytest.fixture
def demo(run, tmp_path: Path) -> Callable[..., Command]:
    """A small demo, on a domain that it finds by itself."""

    def start(*arguments: str, script: dict = SCRIPT) -> Command:
        (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(FLEET))
        (tmp_path / "script.yaml").write_text(yaml.safe_dump(script))
        return run(
            "demo", "--engine", "simulated", "--model", str(PLANS),
            "--fleet", str(tmp_path / "fleet.yaml"), "--script", str(tmp_path / "script.yaml"),
            "--logs", str(tmp_path / "logs"), *arguments, ROS_DOMAIN_ID="",
        )  # fmt: skip

    return start


def test_demo_reports_what_was_flown_under_both_policies(demo, tmp_path: Path) -> None:
    command = demo("--json", str(tmp_path / "report.json"))
    assert command.end() == 0, command.output()
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["policy"], report["baseline"]["policy"]) == ("least_loss", "vllm")
    assert report["pace"] == report["baseline"]["pace"] == "rtx4090-llama3-8b"
    assert report["engine"]["backend"] == "simulated"
    assert report["prompt_tokens_recomputed_on_resume"] == 0
    for run in (report, report["baseline"]):
        plans = {plan["instruction"]: plan for plan in run["plans"]}
        assert {name: plan["error_code"] for name, plan in plans.items()} == {
            "wait in steps": 0, "wait long": 104, "wait a little": 0,
        }  # fmt: skip
        assert plans["wait a little"]["plan"] == "d(0.2);d(0.2);"
        assert "".join(plans["wait in steps"]["segments"]) == plans["wait in steps"]["plan"]
        assert plans["wait a little"]["urgency"] == "URGENT"
        assert plans["wait in steps"]["execution_s"] == pytest.approx(2.0, abs=0.5)
        assert run["totals"]["plans"] == 3
    whole = {plan["instruction"]: plan for plan in report["baseline"]["plans"]}
    assert whole["wait in steps"]["segments"] == [whole["wait in steps"]["plan"]]
    assert len(report["plans"][0]["segments"]) > 1
    assert command.left_behind() == []


def test_demo_fails_where_a_goal_ends_other_than_the_script_says(demo) -> None:
    script = {"instructions": [{"at": 0.1, "robot": "d1", "instruction": "too far as written"}]}
    command = demo("--no-baseline", script=script)
    assert command.end() == 1
    assert "ended with INVALID_PLAN" in command.output()
    assert "expected NONE" in command.output()


def test_demo_shows_why_a_process_did_not_come_up(demo) -> None:
    command = demo("--param", "engine_args:=nonsense", "--param", "max_batch:=0")
    assert command.end() == 1
    assert "planner ended with status 1" in command.output()
    assert "max_batch" in command.output()
    assert "Traceback" not in command.output()
    assert command.left_behind() == []


PHASES = {
    "starting": "starting the planner (least_loss)",
    "ready": "all are ready",
    "flying": "segment 0",
    "between": "part 2 of 2",
}


@pytest.mark.parametrize("phase", PHASES)
def test_ctrl_c_leaves_no_process_behind(demo, phase: str) -> None:
    command = demo()
    command.read_until(PHASES[phase])
    command.signal(signal.SIGINT)
    assert command.end() == 130
    assert command.left_behind() == []
    assert "interrupted: ending all processes" in command.output()
    assert "Traceback" not in command.output()


def test_a_second_ctrl_c_kills_at_once(demo) -> None:
    command = demo()
    command.read_until(PHASES["flying"])
    command.signal(signal.SIGINT)
    command.read_until("interrupted")
    command.signal(signal.SIGINT)
    assert command.end() == 130
    assert gone(command)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_told_to_end_is_as_good_as_ctrl_c(demo, number: int) -> None:
    command = demo()
    command.read_until(PHASES["ready"])
    command.signal(number)
    assert command.end() == 130
    assert command.left_behind() == []


def test_the_fleet_ends_with_a_demo_that_is_killed(demo) -> None:
    command = demo()
    command.read_until(PHASES["flying"])
    command.signal(signal.SIGKILL)
    assert command.end() == -signal.SIGKILL
    assert gone(command)
