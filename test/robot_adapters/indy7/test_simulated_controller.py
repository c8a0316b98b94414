"""The simulated Indy7 controller in virtual time: motions, stops, states, gripper, faults."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_adapters.indy7.cell import load_cell
from robot_adapters.indy7.kinematics import (
    HOME,
    Unreachable,
    joint_way,
    joints_for,
    tool,
    within_limits,
)
from robot_adapters.indy7.simulated_controller import (
    COLLISION,
    IDLE,
    KINDS,
    MOVING,
    STOP_AND_OFF,
    VIOLATE,
    SimIndy,
)
from robot_adapters.simulated.faults import FaultError, parse_fault
from timely_llm.paths import share

CELL = load_cell(share("config", "cells", "indy_sim.yaml"))
TURN = (60.0, *HOME[1:])
OPEN, CLOSE = ({"do_signal_list": [(8, state)]} for state in (0, 1))


@pytest.fixture
def arm():
    return SimIndy(CELL, tidy=3.0)


def events(arm):
    return [text for _, mark, text in arm.log if mark == "*"]


def test_a_move_is_queued_begins_later_and_arrives(arm):
    assert arm.move("joint", TURN, 1.0) == (0, "accepted")
    before = arm.motion(1.01)  # the trap: as if it had arrived
    assert (before["is_in_motion"], before["is_target_reached"]) == (False, True)
    during = arm.motion(1.5)
    assert (during["is_in_motion"], during["is_target_reached"]) == (True, False)
    assert arm.state(1.5) == MOVING and HOME[0] < arm.joints(1.5)[0] < TURN[0]
    end = 1.05 + joint_way(HOME, TURN, 15, 100).duration
    assert arm.motion(end - 0.01)["is_in_motion"] and not arm.motion(end + 0.01)["is_in_motion"]
    assert arm.joints(end + 0.01) == TURN and arm.state(end + 0.01) == IDLE


def test_moves_are_carried_out_one_after_another(arm):
    arm.move("joint", TURN, 0.0, time=1.0)
    arm.move("joint", HOME, 0.0, time=1.0)
    assert arm.motion(0.5)["motion_queue_size"] == 1
    assert arm.joints(1.06)[0] == pytest.approx(60, abs=1)
    assert arm.joints(3.0) == HOME and arm.motion(3.0)["motion_id"] == 2


@pytest.mark.parametrize(("category", "state"), [(0, STOP_AND_OFF), (1, STOP_AND_OFF), (2, IDLE)])
def test_a_stop_ends_the_motion_by_its_category_and_forgets_the_queue(arm, category, state):
    arm.move("joint", TURN, 0.0, time=2.0)
    arm.move("joint", HOME, 0.0, time=2.0)
    arm.stop(category, 1.0)
    assert arm.motion(1.01)["is_stopping"]
    stood = arm.joints(1.5)
    assert 0 < stood[0] < 60 and arm.joints(9.0) == stood and arm.state(9.0) == state
    told = arm.motion(9.0)
    assert (told["is_in_motion"], told["is_target_reached"]) == (False, False)


@pytest.mark.parametrize(("kind", "state"), [("collision", COLLISION), ("violation", VIOLATE)])
def test_trouble_stops_it_half_way_until_it_recovers(arm, kind, state):
    arm.ask(kind, 0.0)
    arm.move("joint", TURN, 0.0, time=2.0)
    assert arm.state(1.0) == MOVING and arm.state(1.1) == state
    assert arm.joints(5.0)[0] == pytest.approx(30) and arm.violation[2]
    assert arm.move("joint", HOME, 5.0)[0] == -1
    assert arm.recover(5.0)[0] == 0 and arm.state(5.0) == IDLE
    assert arm.recover(5.0) == (-1, "nothing to recover from: IDLE")
    assert arm.move("joint", HOME, 5.0)[0] == 0


def test_what_lies_between_its_fingers_goes_with_it(arm):
    box = CELL.find("red box")
    grip = (450, 0, 30, 180, 0, 0)
    arm.move("joint", joints_for(grip, HOME), 0.0, time=1.0)
    arm.operate("set_do", CLOSE, 2.0)
    assert (arm.holds, arm.inputs()) == ("red box", {3: 1})
    arm.move("line", (450, 100, 30, 180, 0, 0), 2.0, time=1.0)
    arm.operate("set_do", OPEN, 4.0)
    assert arm.inputs() == {3: 0} and arm.outputs == {8: 0}
    assert arm.cell.find("red box").position == pytest.approx((450, 100, 0), abs=1e-6)
    for at in (2.5, 5.0, 7.9):
        arm.hear(at)
    assert arm.cell.find("red box") != box
    arm.hear(11.0)  # nobody had called for 3 s
    assert arm.cell.find("red box") == box
    assert events(arm) == ["holds red box", "released red box at 450 100 0", "things are put back"]


def test_air_is_not_held(arm):
    arm.operate("set_do", CLOSE, 0.0)
    assert arm.holds == "" and arm.inputs() == {3: 0}


def test_what_cannot_be_is_refused(arm):
    assert "6 numbers" in arm.move("joint", [0.0] * 5, 0.0)[1]
    assert "joint 1 would be 200.0 deg" in arm.move("joint", (200, 0, 0, 0, 0, 0), 0.0)[1]
    assert "from the shoulder" in arm.move("line", (1500, 0, 300, 180, 0, 0), 0.0)[1]
    assert "speed is" in arm.move("joint", HOME, 0.0, speed=0.0)[1]
    assert arm.operate("execute_tool", {"name": "saw"}, 0.0) == (-1, "execute_tool: unknown")
    assert arm.motion(9.0)["motion_id"] == 0


def test_faults_begin_when_they_shall(arm):
    assert arm.ask("loss=2@5", 10.0) == (0, "")
    assert [arm.lost(at) for at in (14.9, 15.1, 16.9, 17.1)] == [False, True, True, False]
    arm.ask("hang=1", 20.0)
    assert (arm.lost(20.5), arm.silent(20.5), arm.silent(21.5)) == (False, True, False)
    arm.ask("mute=2", 22.0)
    assert [arm.faults.take("mute") is not None for _ in range(3)] == [True, True, False]
    code, words = arm.ask("colision", 23.0)
    assert code == -1 and "did you mean 'collision'?" in words


@pytest.mark.parametrize("name", KINDS)
def test_every_fault_can_be_asked_for(name):
    kind = KINDS[name]
    text = name if kind.default is not None else f"{name}=1"
    assert parse_fault(text, KINDS).kind == name
    with pytest.raises(FaultError, match="must be"):
        parse_fault(f"{name}=9999", KINDS)


@given(
    radius=st.floats(250, 700), angle=st.floats(-150, 150), z=st.floats(20, 400),
    turn=st.floats(-170, 170),
)  # fmt: skip
def test_joints_that_are_found_put_the_tool_there(radius, angle, z, turn):
    x, y = radius * math.cos(math.radians(angle)), radius * math.sin(math.radians(angle))
    pose = (x, y, z, 180.0, 0.0, turn)
    try:
        joints = joints_for(pose, HOME)
    except Unreachable:
        assert math.hypot(radius, z + 228 - 300) > 795 or radius < 260
        return
    assert within_limits(joints) == joints
    found = tool(joints)
    assert math.dist(found[:3], pose[:3]) < 1e-6
    assert abs(math.remainder(found[5] - turn, 360)) < 1e-6
    assert abs(abs(found[3]) - 180) < 1e-6


@given(st.lists(st.tuples(st.sampled_from(["move", "stop", "recover", "collision", "wait"]),
                          st.floats(0.01, 2.0)), max_size=20))  # fmt: skip
def test_it_never_jumps(history):
    arm, now = SimIndy(), 0.0
    before = arm.joints(now)
    for kind, passed in history:
        if kind == "move":
            arm.move("joint", TURN if before[0] < 30 else HOME, now, speed=100)
        elif kind == "stop":
            arm.stop(2, now)
        elif kind == "recover":
            arm.recover(now)
        elif kind == "collision":
            arm.ask("collision", now)
        for _ in range(10):
            now += passed / 10
            here = arm.joints(now)
            assert max(abs(a - b) for a, b in zip(here, before, strict=True)) <= 36 * passed + 1e-6
            before = here
