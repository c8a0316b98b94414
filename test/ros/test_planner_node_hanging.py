"""Processes that hang and go on later, and clocks that are set: goals end with a code, the robot
stands still, nothing is done twice, others go on.

The simulated engine stands in for a model. A process hangs by SIGSTOP.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from nodes import Client
from rosgraph_msgs.msg import Clock

from timely_llm.protocols.messages import ErrorCode, ExecutionState
from timely_llm.ros.conversions import time_to_ros, uuid_from_ros

PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"
SIMULATED = {"engine": "simulated", "model": PLANS}
QUICK = {"heartbeat_timeout": 1.0, "ack_timeout": 5.0, "stop_timeout": 1.0, "status_period": 0.2}
ROBOT = {"heartbeat_period": 0.1, "planner_timeout": 1.0, "hover_time": 0.5}
State = ExecutionState
# Which of them it is depends on who notices first.
OVER = (ErrorCode.ROBOT_LOST, ErrorCode.ROBOT_STOPPED, ErrorCode.ROBOT_RESTARTED)


def calls(client: Client, robot_id: str, state: State = State.STARTED) -> list[tuple[str, int]]:
    """Plan and number of the calls of which this was reported."""
    return [(r.plan_id, r.call_number) for r in client.executions[robot_id] if r.state is state]


def works(client: Client) -> None:
    """A goal succeeds, as soon as the robot is registered (again)."""
    client.until(
        lambda: client.goal("d1", "wait a little").result()[0] is ErrorCode.NONE, "a goal's success"
    )


def test_a_robot_that_hangs_in_mid_skill_and_goes_on_is_stopped(start, client: Client) -> None:
    start("planner", **SIMULATED, **QUICK)
    robot = start("robot", robot_id="d1", **ROBOT | {"planner_timeout": 30.0})
    start("robot", robot_id="d2", **ROBOT)
    client.wait_for_robots("d1", "d2")
    client.listen("d1")
    other = client.goal("d2", "wait in steps")
    goal = client.goal("d1", "wait long")
    client.until(lambda: calls(client, "d1"), "the first call")
    robot.signal(signal.SIGSTOP)
    code, result = goal.result()
    assert code is ErrorCode.ROBOT_LOST and "'d1' is silent" in result.error_msg
    robot.signal(signal.SIGCONT)
    client.until(lambda: calls(client, "d1", State.ABORTED), "it stands still")
    client.wait_for_robots("d1")
    assert client.goal("d1", "wait a little").result()[0] is ErrorCode.NONE
    assert other.result()[0] is ErrorCode.NONE
    begun = calls(client, "d1")
    assert len(set(begun)) == len(begun)
    own = [call for call in begun if call[0] == uuid_from_ros(result.plan_id)]
    assert len(own) <= 2  # that one, and the next if it ended while all was hanging


@pytest.mark.parametrize("way", ["hang", "raise"])
def test_an_engine_that_breaks_ends_every_goal_and_the_node(
    start, client: Client, monkeypatch, way: str
) -> None:
    """One goal is being written or executed, one waits after it."""
    monkeypatch.setenv("BREAK", way)
    planner = start("breaking_planner", engine_timeout=5.0, **SIMULATED, **QUICK)
    start("robot", robot_id="d1", **ROBOT)
    client.wait_for_robots("d1")
    goals = client.goals_at_once("d1", "wait long", 2)
    for goal in goals:
        code, result = goal.result()
        assert code is ErrorCode.ENGINE_FAILED
        assert "the engine failed: " in result.error_msg
    assert planner.wait() == 1
    assert "the engine failed: " in planner.output()


def test_a_planner_that_hangs_and_goes_on_ends_its_goals(start, client: Client) -> None:
    planner = start("planner", **SIMULATED, **QUICK)
    start("robot", robot_id="d1", **ROBOT)
    client.wait_for_robots("d1")
    client.listen("d1")
    goal = client.goal("d1", "wait long")
    goal.wait_for_segments(2)
    client.until(lambda: calls(client, "d1"), "the first call")
    planner.signal(signal.SIGSTOP)
    lost = client.until(
        lambda: [r for r in client.executions["d1"] if r.state is State.ABORTED], "it holds"
    )
    assert lost[0].error == "planner lost"
    before = calls(client, "d1")
    planner.signal(signal.SIGCONT)
    assert goal.result()[0] in OVER
    client.wait_for_robots("d1")
    works(client)
    begun = calls(client, "d1")
    assert begun[: len(before)] == before and len(set(begun)) == len(begun)


@pytest.mark.parametrize("jump", [-500.0, 500.0])
def test_simulated_time_that_is_set_moves_nothing_twice(start, client: Client, jump: float) -> None:
    clock = client.node.create_publisher(Clock, "/clock", 10)
    read = [1000.0]

    def tick() -> None:
        read[0] += 0.02
        clock.publish(Clock(clock=time_to_ros(read[0])))

    client.node.create_timer(0.02, tick)
    start("planner", **SIMULATED, **QUICK, use_sim_time=True)
    start("robot", robot_id="d1", **ROBOT, use_sim_time=True)
    client.wait_for_robots("d1")
    client.listen("d1")
    works(client)  # the first look at the clock is a leap from 0 to 1000 s
    client.until(lambda: client.executions["d1"], "a report")
    client.executions["d1"].clear()
    goal = client.goal("d1", "wait long")
    client.until(lambda: calls(client, "d1"), "the first call")
    read[0] += jump
    code, result = goal.result()
    if jump < 0:  # it goes on from where it was
        assert (code, len(calls(client, "d1"))) == (ErrorCode.NONE, 4)
    else:  # so much time has passed, as far as anybody can tell
        assert code is ErrorCode.NONE or (code in OVER and "'d1'" in result.error_msg)
        client.wait_for_robots("d1")
    works(client)
    begun = calls(client, "d1")
    assert len(set(begun)) == len(begun)
