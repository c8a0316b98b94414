"""Nodes that die, come back, never start: goals end with a code, nothing is done twice.

The simulated engine stands in for a model; the nodes and their deaths are real.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from nodes import Client

from timely_llm.msg import Execution as ExecutionMessage
from timely_llm.protocols.messages import ErrorCode, Execution, ExecutionState, PlanEventType
from timely_llm.ros.conversions import to_ros, uuid_from_ros
from timely_llm.srv import UnregisterRobot

PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"
SIMULATED = {"engine": "simulated", "model": PLANS}
QUICK = {"heartbeat_timeout": 1.0, "ack_timeout": 5.0, "stop_timeout": 1.0, "status_period": 0.2}
ROBOT = {"heartbeat_period": 0.1, "planner_timeout": 1.0, "hover_time": 0.5}


@pytest.fixture
def planner(start):
    return start("planner", **SIMULATED, **QUICK)


def starts(client: Client, robot_id: str) -> list[tuple[str, int]]:
    """Plan and number of every call that the robot began."""
    reports = client.executions[robot_id]
    return [(r.plan_id, r.call_number) for r in reports if r.state is ExecutionState.STARTED]


def test_a_robot_that_vanishes_ends_its_goal_and_no_other(start, planner, client: Client) -> None:
    lost = start("robot", robot_id="d1", **ROBOT)
    start("robot", robot_id="d2", **ROBOT)
    client.wait_for_robots("d1", "d2")
    other = client.goal("d2", "wait in steps")
    goal = client.goal("d1", "wait long")
    goal.wait_for_segments()
    lost.kill()
    code, result = goal.result()
    assert code is ErrorCode.ROBOT_LOST and "'d1'" in result.error_msg
    assert other.result()[0] is ErrorCode.NONE
    code, _ = client.goal("d1", "wait a little").result()
    assert code is ErrorCode.ROBOT_LOST


def test_a_robot_restarted_in_mid_plan_runs_nothing_twice(start, planner, client: Client) -> None:
    first = start("robot", robot_id="d1", **ROBOT)
    client.wait_for_robots("d1")
    client.listen("d1")
    goal = client.goal("d1", "wait long")
    goal.wait_for_segments(2)
    client.until(lambda: starts(client, "d1"), "the first call")
    first.kill()
    start("robot", robot_id="d1", **ROBOT)
    code, result = goal.result()
    assert code in (ErrorCode.ROBOT_LOST, ErrorCode.ROBOT_RESTARTED) and "'d1'" in result.error_msg
    client.wait_for_robots("d1")
    old = uuid_from_ros(result.plan_id)
    before = [call for call in starts(client, "d1") if call[0] == old]
    assert client.goal("d1", "wait a little").result()[0] is ErrorCode.NONE
    assert [call for call in starts(client, "d1") if call[0] == old] == before
    assert len(set(starts(client, "d1"))) == len(starts(client, "d1"))


def test_a_planner_killed_in_mid_plan_and_started_again(start, planner, client: Client) -> None:
    start("robot", robot_id="d1", **ROBOT)
    client.wait_for_robots("d1")
    client.listen("d1")
    modes: list[str] = []
    client.node.create_subscription(DiagnosticArray, "/diagnostics", lambda m: note(modes, m), 10)
    goal = client.goal("d1", "wait long")
    goal.wait_for_segments()
    client.until(lambda: starts(client, "d1"), "the first call")
    planner.kill()
    client.until(lambda: ended_calls(client), "the skill in progress is finished")
    client.until(lambda: "landed" in modes, f"the drone has landed; modes: {modes}")
    assert len(starts(client, "d1")) == len(ended_calls(client)) <= 2
    client.robots.clear()
    start("planner", **SIMULATED, **QUICK)
    client.wait_for_robots("d1")
    assert client.goal("d1", "wait a little").result()[0] is ErrorCode.NONE
    assert len(set(starts(client, "d1"))) == len(starts(client, "d1"))


def ended_calls(client: Client) -> list[Execution]:
    return [r for r in client.executions["d1"] if r.state is ExecutionState.SUCCEEDED]


def note(modes: list[str], message: DiagnosticArray) -> None:
    for status in message.status:
        modes.extend(value.value for value in status.values if value.key in ("state", "mode"))


def test_reports_of_a_plan_that_ended_change_nothing(planner, client: Client) -> None:
    """This process plays the robot."""
    session = client.register("d1").session
    reports = client.node.create_publisher(ExecutionMessage, "/d1/execution", 1000)
    client.listen("d1")
    client.until(reports.get_subscription_count, "the planner listens")
    numbers = iter(range(1000))

    def report(plan_id: str, state: ExecutionState, **fields: Any) -> None:
        execution = Execution(session, next(numbers), plan_id, state, **fields)
        reports.publish(to_ros(execution))

    report("0" * 32, ExecutionState.IDLE)
    goal = client.goal("d1", "wait a little")
    client.until(lambda: client.segments["d1"], "the first segment")
    plan_id = uuid_from_ros(client.segments["d1"][0].plan_id)
    report(plan_id, ExecutionState.FAILED, error="a test")
    assert goal.result()[0] is ErrorCode.SKILL_FAILED
    for state in (ExecutionState.RUNNING, ExecutionState.PLAN_RETURNED, ExecutionState.RECEIVED):
        report(plan_id, state, total_remaining=5.0, value="7")
    client.until(lambda: client.segments["d1"][-1].command == 2, "the planner cancels it again")
    report("0" * 32, ExecutionState.IDLE)
    second = client.goal("d1", "wait a little")
    client.until(lambda: len({bytes(s.plan_id.uuid) for s in client.segments["d1"]}) == 2, "a plan")
    second.cancel()
    report(uuid_from_ros(client.segments["d1"][-1].plan_id), ExecutionState.ABORTED)
    assert second.result()[0] is ErrorCode.CANCELED


def test_a_planner_interrupted_in_mid_plan_ends_every_goal(start, planner, client) -> None:
    start("robot", robot_id="d1", **ROBOT)
    client.wait_for_robots("d1")
    client.listen("d1")
    running, queued = client.goal("d1", "wait long"), client.goal("d1", "wait a little")
    client.until(lambda: starts(client, "d1"), "the first call")
    assert planner.interrupt() == 0
    assert running.result()[0] is ErrorCode.PLANNER_INACTIVE
    assert queued.result()[0] is ErrorCode.PLANNER_INACTIVE
    client.until(
        lambda: any(r.state is ExecutionState.ABORTED for r in client.executions["d1"]),
        "the robot stops",
    )


def test_a_planner_leaves_no_result_behind(start, client: Client) -> None:
    """A client that asks late finds it, and a goal that comes late has one."""
    planner = start("patient_planner", **SIMULATED, **QUICK)
    start("robot", robot_id="d1", **ROBOT)
    client.wait_for_robots("d1")
    goal = client.goal("d1", "wait long", fetch=False)
    client.until(lambda: client.events, "an event, so that the last one is heard, too")
    planner.signal()
    client.until(lambda: any(e.type is PlanEventType.ENDED for e in client.events), "its end")
    late = client.goal("d1", "wait long")
    goal.fetch()
    for each in (late, goal):
        assert each.result()[0] is ErrorCode.PLANNER_INACTIVE
    assert planner.wait() == 0


def test_a_robot_that_somebody_unregisters_comes_back(start, planner, client: Client) -> None:
    start("robot", robot_id="d1", **ROBOT)
    client.wait_for_robots("d1")
    goal = client.goal("d1", "wait long")
    goal.wait_for_segments()
    session = client.robots["d1"].session
    assert client.call(UnregisterRobot, "unregister_robot", robot_id="d1").error_code == 0
    assert goal.result()[0] is ErrorCode.ROBOT_LOST
    client.until(  # the list without it may be followed by the next at once
        lambda: "d1" in client.robots and client.robots["d1"].session not in (0, session),
        "another session",
    )
    client.wait_for_robots("d1")
    assert client.goal("d1", "wait a little").result()[0] is ErrorCode.NONE


def test_a_robot_interrupted_unregisters(start, planner, client: Client) -> None:
    robot = start("robot", robot_id="d1", **ROBOT)
    client.wait_for_robots("d1")
    goal = client.goal("d1", "wait long")
    goal.wait_for_segments()
    assert robot.interrupt() == 0
    assert goal.result()[0] in (ErrorCode.ROBOT_LOST, ErrorCode.ROBOT_STOPPED)
    client.until(lambda: "d1" not in client.robots, "d1 is gone")
    assert "Traceback" not in robot.output()


WRONG_STARTS = {
    "unknown policy": ({"policy": "timley"}, "policy 'timley'", "timely"),
    "unknown parameter": ({"polcy": "timely"}, "parameter 'polcy'", "policy"),
    "out of range": ({"max_batch": 0}, "parameter 'max_batch'", "1"),
    "unknown pace": ({"pace": "gpu"}, "parameter 'pace'", "rtx4090-llama3-8b"),
    "unknown engine": ({"engine": "vlm"}, "parameter 'engine'", "vllm"),
    "no such skill sets": ({"skill_sets": "[/nowhere]"}, "parameter 'skill_sets'", "/nowhere"),
    "rising utility": ({"utility__urgent": "[0.2, 1.0, 2.0]"}, "'utility.urgent'", "alpha"),
    "no such template": ({"prompt_template": "/nowhere.jinja2"}, "/nowhere.jinja2", "template"),
    "not JSON": ({"engine": "vllm", "engine_args": "length=3"}, "'engine_args'", "JSON"),
    "no such model": ({"engine": "vllm", "model": "/nowhere/model"}, "/nowhere/model", "model"),
}


@pytest.mark.parametrize("case", WRONG_STARTS)
def test_a_wrong_start_is_one_line_and_status_1(start, case: str) -> None:
    parameters, name, hint = WRONG_STARTS[case]
    planner = start("planner", **({"engine": "simulated"} | parameters))
    assert planner.wait() == 1
    lines = planner.output().strip().splitlines()
    assert len(lines) == 1
    assert name in lines[0] and hint in lines[0]


def test_a_broken_model_folder_is_named(start, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    planner = start("planner", engine="vllm", model=folder)
    assert planner.wait() == 1
    lines = planner.output().strip().splitlines()
    assert str(folder) in lines[-1]


def test_an_early_interrupt_ends_the_planner(start) -> None:
    planner = start("planner", engine="simulated")
    assert planner.interrupt() in (0, 130, -signal.SIGINT)
    assert "Traceback" not in planner.output()


def test_a_planner_that_stumbles_at_its_end_ends_all_the_same(start, client: Client) -> None:
    planner = start("clumsy_planner", **SIMULATED)
    start("robot", robot_id="d1", heartbeat_period=0.1)
    client.wait_for_robots("d1")
    goal = client.goal("d1", "wait long")
    goal.wait_for_segments()
    planner.signal()
    assert goal.result()[0] is ErrorCode.PLANNER_INACTIVE
    assert planner.wait() == 0
    assert "RuntimeError: a test" in planner.output()
