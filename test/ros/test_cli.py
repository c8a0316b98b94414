"""``timely-llm`` as people use it: with a fleet, without one, and with wrong options.

The simulated engine stands in for a model; everything else is real.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
import yaml
from commands import PLANS
from nodes import LATCHED, LIMIT, ROOT, Client
from std_msgs.msg import String

from timely_llm.cli.local_fleet import claim_domain


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


def test_a_failed_plan_is_planned_again_on_demand(fleet: Client, run) -> None:
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
    assert " (/dying/plan) is silent for 3 s: is it dead?" in command.output()


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
    code = f"import sys, timely_llm.cli.app; print([m for m in {slow} if m in sys.modules])"
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
