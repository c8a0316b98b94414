"""The robot node as a process of its own over real DDS: what ends it, its planner, or its start.

A fake planner in this process (see ``fake_planner.py``) stands in for the planner.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from fake_planner import FAST, FakePlanner, instance_of
from nodes import LIMIT

from timely_llm.paths import share
from timely_llm.protocols.messages import ErrorCode, ExecutionState, RobotInfo

State = ExecutionState
HOSTILE = "hostile_adapter:HostileAdapter"
A, B = "a" * 32, "b" * 32


@pytest.fixture
def planner(domain: int) -> Iterator[FakePlanner]:
    planner = FakePlanner()
    yield planner
    planner.die()


@pytest.fixture
def robot(start, planner: FakePlanner):
    """A drone that is registered, and has said so."""
    robot = start("robot", **FAST)
    planner.registered()
    return robot


def test_a_lost_planner_ends_the_plan_behind_the_current_call(robot, planner) -> None:
    planner.send(A, 0, "d(2);d(1);d(1);")
    planner.report(State.STARTED)
    planner.fall_silent()
    assert planner.report(State.ABORTED, plan_id=A).error == "planner lost"
    assert planner.calls(State.SUCCEEDED) == ["d(2)"]
    planner.registered(2)  # it is there again: a new session, and nothing of the old plan
    planner.heartbeats(3)
    assert planner.calls() == ["d(2)"]


def test_a_planner_that_starts_again_gets_a_fresh_robot(robot, planner) -> None:
    planner.send(A, 0, "d(1);d(2);d(2);")
    planner.report(State.STARTED)
    planner.die()
    second = FakePlanner()
    second.session = 100
    second.registered(101)
    assert second.reports[0].session <= 101
    second.send(B, 0, "d(0.1);", last=True)
    second.report(State.PLAN_RETURNED, plan_id=B)
    assert "d(2)" not in second.calls()
    second.die()


def test_stop_and_rearm_work_without_a_planner(robot, planner: FakePlanner) -> None:
    planner.send(A, 0, "d(60)")
    planner.report(State.STARTED)
    planner.die()
    helper = FakePlanner(refusal=(ErrorCode.PLANNER_INACTIVE, "not yet"))  # to call with
    helper.fall_silent()
    helper.listen("/r1")
    assert helper.trigger("/r1/robot_adapter/stop").success
    assert helper.trigger("/r1/robot_adapter/stop").success
    assert helper.trigger("/r1/robot_adapter/rearm").success
    helper.refusal = None
    helper.registered()
    helper.until(lambda: helper.reports[-1].error == "", "it takes plans again")
    helper.die()


def test_a_robot_killed_in_mid_plan_does_nothing_twice(start, robot, planner) -> None:
    planner.send(A, 0, "d(0.2)")
    planner.send(A, 1, ";d(60)")
    planner.until(lambda: planner.calls() == ["d(0.2)", "d(60)"], "the second call")
    robot.kill()
    planner.reports.clear()
    start("robot", **FAST)
    planner.registered(2)
    for index, text in enumerate(["d(0.2)", ";d(60)", ";d(0.3)"]):  # of the old session
        planner.send(A, index, text, session=1)
    planner.report(State.REJECTED, segment=2)
    planner.send(B, 0, "d(0.1);", last=True)
    planner.report(State.PLAN_RETURNED, plan_id=B)
    assert planner.calls() == ["d(0.1)"]
    first, second = planner.requests[0], planner.requests[-1]
    assert instance_of(first) != instance_of(second)


def test_a_taken_id_is_asked_for_again_for_a_while(start, planner: FakePlanner) -> None:
    planner.refusal = (ErrorCode.ROBOT_EXISTS, "robot_id 'r1' is another's")
    start("robot", **FAST)
    planner.until(lambda: len(planner.requests) >= 3, "three requests")
    planner.refusal = None
    planner.registered()


def test_a_taken_id_is_given_up_at_last(start, planner: FakePlanner) -> None:
    planner.refusal = (ErrorCode.ROBOT_EXISTS, "robot_id 'r1' is another's")
    robot = start("robot", **FAST, register_timeout=0.5)
    planner.until(lambda: robot.ended, "the end of the node")
    assert robot.wait() == 1
    assert "robot 'r1' is refused: robot_id 'r1' is another's" in robot.output()
    assert "Traceback" not in robot.output()


def test_any_other_refusal_is_final(start, planner: FakePlanner) -> None:
    planner.refusal = (ErrorCode.INVALID_SKILL_SET, "skill_set:3: kind: is 'X'")
    robot = start("robot", **FAST)
    planner.until(lambda: robot.ended, "the end of the node")
    assert robot.wait() == 1
    assert "skill_set:3: kind: is 'X'" in robot.output()
    assert len(planner.requests) == 1


def test_an_interrupt_halts_unregisters_and_exits_cleanly(robot, planner: FakePlanner) -> None:
    planner.send(A, 0, "d(60)")
    planner.report(State.STARTED)
    robot.signal()
    planner.until(lambda: robot.ended, "the end of the node")
    assert robot.wait() == 0
    assert planner.unregistered == [("r1", 1)]
    assert planner.report(State.ABORTED).error == "the robot node ends"
    assert "Traceback" not in robot.output()


def test_an_interrupt_without_planner_exits_cleanly(start) -> None:
    robot = start("robot", **FAST)
    limit = time.monotonic() + LIMIT
    while "waits for a planner" not in robot.output():
        assert time.monotonic() < limit and not robot.ended
    assert robot.interrupt() == 0
    assert "Traceback" not in robot.output()


def test_an_own_skill_set_is_sent_along(start, planner: FakePlanner) -> None:
    path = share("config", "skills", "indy7.yaml")
    start("robot", **FAST, skill_set=path)
    planner.registered()
    assert planner.requests[0].skill_set == path.read_text()
    planner.send(A, 0, "gt('moon')")
    assert planner.report(State.FAILED).error == "gt: 'moon' is not in view"


def test_a_probe_goes_to_the_model_if_it_shall(start, planner: FakePlanner) -> None:
    start("robot", **FAST, probes="planner")
    planner.registered()
    planner.send(A, 0, "_1=p('what is on the table');->_1", last=True)
    assert planner.report(State.PLAN_RETURNED).value == "a banana"
    request = planner.probes[0]
    assert (request.robot_id, request.session) == ("r1", 1)
    assert request.question == "what is on the table"
    assert request.scene.startswith("[countertop_1 x:")
    planner.send(B, 0, "_1=p('what now');", last=True)
    assert planner.report(State.FAILED, plan_id=B).error == "p: too slow"


BAD_PARAMETERS = {
    "unknown": ({"adaptor": "simulated"}, "'adaptor' is unknown; did you mean 'adapter'?"),
    "range": ({"heartbeat_period": 0.0}, "'heartbeat_period': is 0.0: must be a float from 0.01"),
    "type": ({"seed": "many"}, "'seed': is 'many': must be a int"),
    "adapter": ({"adapter": "simulate"}, "adapter: unknown name 'simulate'; did you mean"),
    "kind": (
        {"kind": "tallo"},
        "'kind': 'tallo' has no bundled skill set (known: indy7, rover, tello)",
    ),
    "skill set": ({"skill_set": "/nowhere.yaml"}, "No such file or directory: '/nowhere.yaml'"),
    "world": ({"world": "hous"}, "world: no bundled world 'hous'; did you mean 'house'?"),
    "probes": ({"probes": "model"}, "parameter 'probes': 'model' is none of ('robot', 'planner')"),
    "start": ({"z": 5.0}, "start: z would be 5.00 m: geofence is 0.2 to 3 m"),
}


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameters_end_in_one_line(start, case: str) -> None:
    parameters, words = BAD_PARAMETERS[case]
    robot = start("robot", **({"robot_id": "r1"} | parameters))
    assert robot.wait() == 1
    assert words in robot.output()
    assert len(robot.output().strip().splitlines()) == 1


def test_a_robot_needs_a_name(start) -> None:
    robot = start("robot")
    assert robot.wait() == 1
    assert "parameter 'robot_id': must be given" in robot.output()


def test_a_namespace_names_the_robot(start, planner: FakePlanner) -> None:
    start("robot", "__ns:=/hall/r7", heartbeat_period=0.05)
    planner.registered()
    request = planner.requests[0]
    assert (request.robot_id, request.robot_namespace) == ("hall/r7", "/hall/r7")


def test_a_session_that_the_planner_has_ended_is_followed_by_another(robot, planner) -> None:
    planner.show(RobotInfo("r1", "tello", "/r1", planner.session, ""))
    planner.send(A, 0, "d(60);d(1);", last=True)
    planner.report(State.STARTED)
    planner.show()  # somebody unregistered it
    over = planner.report(State.ABORTED, plan_id=A)
    assert over.error == "the planner has ended the session"
    planner.registered(2)


# ---- an adapter at fault -------------------------------------------------------------------------


def test_a_stop_that_the_robot_does_not_confirm_is_answered_so(start, planner: FakePlanner) -> None:
    robot = start("robot", **FAST, adapter=HOSTILE, fault="halt")
    planner.registered()
    planner.send(A, 0, "d(60)")
    planner.report(State.STARTED)
    answer = planner.trigger("/r1/robot_adapter/stop")
    undone = "the robot did not confirm the halt: adapter: the brake is stuck"
    assert not answer.success and answer.message.startswith(undone)
    assert planner.report(State.FAILED, plan_id=A).error == f"stopped; {undone}"
    planner.report(State.IDLE, error=f"stopped; {undone}")
    planner.report(State.IDLE, error="stopped")  # at last
    assert planner.trigger("/r1/robot_adapter/stop").success
    assert robot.output().count("halt: adapter: the brake is stuck") == 1


def test_an_adapter_whose_diagnostics_fail_goes_on(start, planner: FakePlanner) -> None:
    robot = start("robot", **FAST, adapter=HOSTILE, fault="diagnostics")
    planner.registered()
    planner.send(A, 0, "d(3);", last=True)
    planner.report(State.PLAN_RETURNED)
    assert not robot.ended
    assert "diagnostics: adapter: no diagnostics?" in robot.output()


def test_what_nobody_foresaw_ends_the_node_in_good_order(start, planner: FakePlanner) -> None:
    robot = start("robot", **FAST, adapter=HOSTILE, fault="callback")
    planner.registered()
    planner.send(A, 0, "d(60)")
    assert planner.report(State.ABORTED, plan_id=A).error == "the robot node ends"
    planner.until(lambda: robot.ended, "the end of the node")
    assert robot.wait() == 1
    assert planner.unregistered == [("r1", 1)]
    assert "closes" in robot.output() and "a fault in a callback" in robot.output()


def test_a_robot_that_never_halts_is_not_left_in_silence(start, planner: FakePlanner) -> None:
    robot = start("robot", **FAST, adapter=HOSTILE, fault="never")
    planner.registered()
    planner.send(A, 0, "d(60)")
    planner.report(State.STARTED)
    robot.signal()
    planner.until(lambda: robot.ended, "the end of the node")
    assert robot.wait() == 1
    assert planner.unregistered == [("r1", 1)]
    assert robot.output().count("closes") > 2
    assert "ends, but the robot did not confirm the" in robot.output()
