"""The ``timely-llm`` command against real nodes: what it prints, how it ends, what it leaves.

The simulated engine stands in for a model; everything else is real.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import yaml
from nodes import LATCHED, LIMIT, ROOT, Client
from std_msgs.msg import String

from timely_llm.command.local_fleet import claim_domain

PLANS = Path(__file__).with_name("plans.yaml")
MARK = "TIMELY_LLM_TEST_MARK"


class Command:
    """One run of ``timely-llm``; ``mark`` is in the environment of all that it starts."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.mark = uuid.uuid4().hex
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "timely_llm.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, MARK: self.mark, **environment},
        )

    def read_until(self, words: str) -> str:
        """Read its lines up to the one with ``words``; fail where that never comes."""
        for line in self._process.stdout:
            self.lines.append(line)
            if words in line:
                return line
        raise AssertionError(f"{words!r} never came:\n{self.output()}")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> int:
        """Read the rest and return the exit status."""
        self.lines += self._process.stdout
        return self._process.wait(LIMIT)

    def output(self) -> str:
        return "".join(self.lines)

    def left_behind(self) -> list[str]:
        """The processes that it started and that are still there, itself included."""
        return [f"{process.pid} {process.cmdline()}" for process in _marked(self.mark)]

    def clean(self) -> None:
        for process in _marked(self.mark):
            process.kill()
        self._process.stdout.close()
        self._process.wait(LIMIT)


def _marked(mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def gone(command: Command) -> bool:
    """Whether all that ``command`` started ends by itself, without any more being done."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        processes = list(_marked(command.mark))
        if not processes:
            return True
        psutil.wait_procs(processes, timeout=1.0)
    return False


@pytest.fixture
def run(domain: int) -> Iterator[Callable[..., Command]]:
    """Run ``timely-llm``; whatever is left of it ends with the test."""
    commands: list[Command] = []

    def start(*arguments: str, **environment: str) -> Command:
        commands.append(Command(*arguments, **environment))
        return commands[-1]

    yield start
    for command in commands:
        command.clean()


# ---- one planner, two robots ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def nodes(start_for_module):
    start_for_module("planner", engine="simulated", model=PLANS, max_tokens=60)
    for robot_id in ("drone_1", "drone_2"):
        start_for_module("robot", robot_id=robot_id, heartbeat_period=0.1)


@pytest.fixture
def fleet(nodes, client: Client) -> Client:
    client.wait_for_robots("drone_1", "drone_2")
    return client


def test_plan_shows_its_segments_and_then_the_result(fleet: Client, run) -> None:
    command = run("plan", "drone_1", "wait a little", "--urgency", "urgent")
    assert command.end() == 0
    lines = command.output().splitlines()
    assert lines[:4] == ["segment 0: d(0.2)", "segment 1: ;d(0.2)", "segment 2: ;", "succeeded"]
    facts = dict(line.split(maxsplit=1) for line in lines[4:] if not line.startswith("  plan id"))
    assert (facts["plan"], facts["segments"]) == ("d(0.2);d(0.2);", "3")


def test_plan_is_planned_anew_on_demand(fleet: Client, run) -> None:
    command = run("plan", "drone_1", "too far as evaluated", "--on-failure", "replan")
    assert command.end() == 0
    assert ": d(0.2)\nsegment " in command.output() and "replans    1" in command.output()
    command = run("plan", "drone_1", "too far as evaluated")
    assert command.end() == 1
    assert "SKILL_FAILED: robot 'drone_1'" in command.output()


def test_plan_of_an_unknown_robot_fails_with_the_nearest_name(fleet: Client, run) -> None:
    command = run("plan", "drone_3", "wait a little")
    assert command.end() == 1
    assert "UNKNOWN_ROBOT: robot_id 'drone_3' is not registered; did you mean" in command.output()


def test_plan_of_a_busy_robot_is_rejected_on_demand(fleet: Client, run) -> None:
    goal = fleet.goal("drone_2", "wait long")
    goal.wait_for_segments()
    command = run("plan", "drone_2", "wait a little", "--when-busy", "reject")
    assert command.end() == 1
    assert "ROBOT_BUSY" in command.output()
    goal.cancel()
    goal.result()


def test_ctrl_c_cancels_the_goal_and_waits_for_its_result(fleet: Client, run) -> None:
    command = run("plan", "drone_1", "wait long")
    command.read_until("segment 0")
    command.signal(signal.SIGINT)
    assert command.end() == 130
    assert "CANCELED: canceled by the client" in command.output()
    assert "Traceback" not in command.output()


def test_plan_ends_when_its_planner_dies(start, run) -> None:
    planner = start("planner", "__ns:=/dying", engine="simulated", model=PLANS)
    start("robot", "__ns:=/dying/d1", robot_id="d1", planner_namespace="dying")
    command = run("plan", "d1", "wait long", "--namespace", "dying", "--timeout", str(LIMIT))
    while "UNKNOWN_ROBOT" in command.read_until(":"):  # the robot is not registered yet
        assert command.end() == 1
        command = run("plan", "d1", "wait long", "--namespace", "dying")
    planner.kill()
    assert command.end() == 1
    assert "timely-llm: the planner is silent for 10 s: is it dead?" in command.output()


def test_robots_are_listed_and_stopped(fleet: Client, run) -> None:
    command = run("robots")
    assert command.end() == 0
    assert [line.split() for line in command.output().splitlines() if " /drone_" in line] == [
        ["drone_1", "tello", "/drone_1", "alive"],
        ["drone_2", "tello", "/drone_2", "alive"],
    ]
    command = run("stop", "drone_2")
    assert (command.end(), command.output()) == (0, "stopped: drone_2\n")
    command = run("plan", "drone_2", "wait a little")
    assert command.end() == 1
    assert "ROBOT_STOPPED" in command.output()
    command = run("stop", "drone_9")
    assert command.end() == 1
    assert command.output() == "timely-llm: UNKNOWN_ROBOT: robot_id 'drone_9' is not registered\n"


# ---- without a planner ---------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("robots",), ("stop", "--all"), ("plan", "drone_1", "go")])
def test_no_planner_is_said_with_namespace_and_domain(run, domain: int, arguments) -> None:
    command = run(*arguments, "--namespace", "nowhere", "--timeout", "0.5")
    assert command.end() == 3
    assert "no planner answers on /nowhere/" in command.output()
    assert f"in ROS domain {domain} (waited 0.5 s)" in command.output()
    assert command.output().count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plam",), "No such command 'plam'"),
        (("stop",), "give the id of one robot, or --all"),
        (("stop", "drone_1", "--all"), "give the id of one robot, or --all"),
        (("plan", "drone_1"), "Missing argument"),
        (("plan", "drone_1", "go", "--urgency", "urgnt"), "'critical', 'urgent', 'normal'"),
        (("plan", "drone_1", "go", "--on-failure", "retry"), "'abort', 'replan'"),
        (("plan", "drone_1", "go", "--max-replans", "-1"), "for '--max-replans'"),
        (("serve", "--param", "policy"), "'policy': must be NAME:=VALUE"),
        (("serve", "--param", 'sampling:={"top_k": 3'), "while parsing a flow mapping"),
        (("demo", "--policy", "timly"), "did you mean 'timely'?"),
        (("demo", "--pace", "fast"), "'fast' is unknown (known: none, rtx4090-llama3-8b, "),
        (("demo", "--fleet", "/nowhere.yaml"), "does not exist"),
        (("demo", "--json", "/nowhere/report.json"), "cannot write /nowhere/report.json"),
    ],
)
def test_wrong_use_is_said_and_nothing_is_started(run, arguments, words) -> None:
    command = run(*arguments, COLUMNS="300")
    assert command.end() == 2
    assert words in command.output()
    assert "Traceback" not in command.output()


def test_help_needs_neither_ros_nor_the_engine() -> None:
    slow = "('rclpy', 'torch', 'vllm', 'rich.table', 'yaml')"
    code = f"import sys, timely_llm.command.app; print([m for m in {slow} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_serve_runs_the_planner_until_ctrl_c(run, client: Client) -> None:
    command = run(
        "serve", "--policy", "edf", "--namespace", "served", "--pace", "rtx4090-llama3-8b",
        "--param", "engine:=simulated", "--param", f"model:={PLANS}",
    )  # fmt: skip
    command.read_until("policy edf on simulated")
    listed = run("robots", "--namespace", "served", "--timeout", str(LIMIT))
    assert (listed.end(), listed.output()) == (0, "no robot is registered\n")
    command.signal(signal.SIGINT)
    assert command.end() == 0
    assert "Traceback" not in command.output()


def test_serve_of_a_wrong_policy_ends_with_one_line(run) -> None:
    command = run("serve", "--policy", "timly", "--param", "engine:=simulated")
    assert command.end() == 1
    assert "did you mean 'timely'?" in command.output()
    assert "Traceback" not in command.output()


def test_serve_passes_parameters_on_as_they_are(run, client: Client) -> None:
    command = run(
        "serve", "--namespace", "passing", "--engine-args", '{"a": "b c"}', "--web", "0",
        "--param", 'sampling:={"temperature": 0.5}', "--param", "max_batch:=3",
        "--param", "engine:=simulated", "--param", f"model:={PLANS}",
    )  # fmt: skip
    configs: list[String] = []
    client.node.create_subscription(String, "/passing/planner_config", configs.append, LATCHED)
    client.until(lambda: configs, "the planner's configuration")
    parameters = yaml.safe_load(configs[0].data)["parameters"]
    assert parameters["engine_args"] == '{"a": "b c"}'
    assert parameters["sampling"] == '{"temperature": 0.5}'
    assert parameters["max_batch"] == 3
    assert parameters["web"] == "0"
    command.read_until("the fleet is shown at http://127.0.0.1:")
    command.signal(signal.SIGINT)
    assert command.end() == 0


def test_demos_have_a_domain_each_and_take_the_one_they_are_given() -> None:
    first, claim = claim_domain({})
    second, other = claim_domain({})
    assert first != second
    assert claim_domain({"ROS_DOMAIN_ID": str(first)}) == (first, None)
    claim.close()
    other.close()


# ---- demo ----------------------------------------------------------------------------------------

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
