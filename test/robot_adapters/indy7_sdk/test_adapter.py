"""The Indy7 adapter on the real neuromeka, moving a simulated arm by its own gRPC services."""

from __future__ import annotations

import pytest

pytest.importorskip("neuromeka", reason="neuromeka is not installed: make test-indy")

import grpc  # noqa: E402
from indy_rig import CELL, SKILLS  # noqa: E402

from robot_adapters.adapter import Adapter, AdapterError, Notified, Recoverable, make_adapter
from timely_llm.language.loader import read_skill_set
from timely_llm.protocols.messages import ExecutionState as State  # noqa: E402

FAR = "gt('lemon')"  # from home, a long way
STACK = (
    "?sc('red box')==True{gt('red box');pi('red box');?sc('blue box')==True{gt('blue box');dr();};"
    "?sc('green box')==True{gt('green box');pi('green box');?sc('red box')==True{gt('red box');"
    "dr();};};"
)  # of the published arm tasks


def test_it_is_an_adapter_by_name(rig):
    for protocol in (Adapter, Notified, Recoverable):
        assert isinstance(rig.adapter, protocol)


# ---- skills --------------------------------------------------------------------------------------


def test_a_published_plan_moves_the_things_it_names(rig):
    assert rig.run(STACK).state is State.PLAN_RETURNED
    assert rig.thing("red box") == (550, 150, 60)
    assert rig.thing("green box") == (550, 150, 120)
    assert rig.heard("set_do") == [f"set_do [[(8, {on})]]" for on in (0, 1, 0, 0, 1, 0)]
    assert rig.adapter.actions.cell.find("green_box").position == pytest.approx((550, 150, 120))
    assert "green_box x:0.44" in rig.adapter.observe()


def test_way_to_a_thing_is_up_by_joints_and_down_in_a_line(rig):
    assert rig.run("pi('eraser')").state is State.PLAN_RETURNED
    kinds = [line.split()[0] for line in rig.heard()]
    assert kinds == ["joint", "line", "set_do", "line", "set_do", "line"]
    assert rig.tool() == (300, 150, 115)
    assert rig.run("gt('apple')").state is State.PLAN_RETURNED
    assert rig.heard()[6].startswith("line 300, 150, 250")  # up first
    assert rig.tool() == (650, 230, 180)


def test_named_poses_are_gone_to_by_joints_or_by_the_tool(rig):
    assert rig.run("gt('lookout')").state is State.PLAN_RETURNED
    assert rig.tool() == (350, 0, 400)
    assert rig.run("gt('home')").state is State.PLAN_RETURNED
    assert rig.heard()[-1] == "joint 0, -10, 110, 0, 80, 0"
    assert rig.tool() == (267, 0, 454)


def test_looking_tells_what_the_cell_has_and_needs_no_arm_for_it(make):
    rig = make(serve=False)
    assert rig.run("l('hello');d(0.1);?iv('cat'){->1}?iv('red cube'){->2}").value == "2"
    assert rig.adapter.diagnostics()["said"] == "hello"
    rig.until(lambda: "does not answer" in rig.adapter.arm.fault, "the connection to fail")
    failed = rig.run("gt('home')")
    assert failed.error == f"gt: the controller at {rig.host} does not answer"


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("gt('red bx')", "gt: 'red bx' is not in the cell; did you mean 'red box'?"),
        ("dr()", "dr: the gripper holds nothing"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_moves(rig, plan, words):
    assert rig.run(plan).error.startswith(words)
    assert rig.heard() == []


def test_what_is_held_is_not_picked_up_twice(rig):
    failed = rig.run("pi('eraser');pi('apple')")
    assert failed.error == "pi: the gripper holds 'eraser' already"
    assert rig.sim.holds == rig.adapter.diagnostics()["holds"] == "eraser"


def test_a_place_that_the_controller_cannot_reach_fails_in_its_words(make):
    cell = CELL.read_text().replace("[450, 0, 0]", "[790, 0, 0]")
    rig = make(cell=cell).connected()
    error = rig.run("gt('red box')").error
    assert error.startswith("gt: inverse_kin is refused: inverse kinematics failed: the wrist")
    assert rig.heard() == []


def test_state_is_in_the_diagnostics(rig):
    facts = rig.adapter.diagnostics()
    assert (facts["state"], facts["joints"]) == ("idle", "0.0 -10.0 110.0 0.0 80.0 0.0 deg")
    assert facts["tool"] == "x 267 y 0 z 454 mm, u 180 v -0 w 0 deg"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("long_name: goto", "long_name: fly", "an Indy7 cannot do fly: leave it out"),
        ("long_name: delay", "long_name: drop2", "an Indy7 cannot do drop2"),
    ],
)
def test_skills_that_it_cannot_do_are_refused_at_the_start(old, new, words):
    with pytest.raises(AdapterError, match=words):
        make_adapter("indy7", "a", read_skill_set(SKILLS.text.replace(old, new)), cell=str(CELL))


def test_an_arm_has_a_cell():
    with pytest.raises(AdapterError, match="'cell' must be given: a file, or one of indy_sim"):
        make_adapter("indy7", "a", SKILLS)
    with pytest.raises(AdapterError, match="there is no file 'nowhere'"):
        make_adapter("indy7", "a", SKILLS, cell="nowhere")


# ---- the controller's faults ---------------------------------------------------------------------


def test_a_move_that_is_refused_fails_in_the_controllers_words(rig):
    rig.fault("reject")
    failed = rig.run(FAR)
    assert failed.state is State.FAILED
    assert failed.error == "gt: movej is refused: invalid motion parameter (code -1)"
    assert len(rig.heard("joint", "line")) == 1


def test_a_move_that_is_taken_and_never_begins_is_no_success(rig):
    rig.fault("drop")
    failed = rig.run(FAR)
    assert failed.error == "gt: the controller took the move, but did not begin it within 1.2 s"
    assert len(rig.heard("joint", "line")) == 1


def test_a_move_that_ends_half_way_is_no_success(rig):
    rig.fault("short")
    assert rig.run(FAR).error == "gt: the arm stands still, but not where it should"
    assert len(rig.heard("joint", "line")) == 1


def test_a_move_that_is_not_answered_fails_is_stopped_and_never_sent_again(rig):
    rig.fault("mute")
    assert rig.run(FAR).error == "gt: movej: no answer within 0.8 s"
    rig.standing()
    assert len(rig.heard("joint", "line")) == 1 and rig.heard("stop")
    assert not rig.moving()
    assert rig.run(FAR).state is State.PLAN_RETURNED  # behind it, all is well
    assert rig.tool() == (450, -400, 160)


def test_a_move_that_comes_late_is_stopped(make):
    rig = make(late=5.0).connected()
    rig.fault("late=16")  # 2 s: longer than the call may take
    assert rig.run(FAR).error == "gt: movej: no answer within 0.8 s"
    rig.until(lambda: rig.heard("joint"), "the late move")
    rig.until(lambda: rig.heard()[-1].startswith("stop"), "a stop behind it")
    rig.standing()
    assert not rig.moving() and len(rig.heard("joint", "line")) == 1
    assert rig.tool()[1] > -390  # it has not arrived


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("collision", "the controller is in collision: collision detected at joint 2"),
        ("violation", "the controller is in violation: joint 3 exceeds its velocity limit"),
    ],
)
def test_trouble_fails_in_the_controllers_words_until_it_is_recovered(rig, kind, words):
    rig.fault(kind)
    assert rig.run(FAR).error == f"gt: {words}"
    assert rig.run("gt('home')").error == f"gt: {words}"
    assert len(rig.heard("joint", "line")) == 1
    assert rig.adapter.diagnostics()["state"] == words
    assert rig.adapter.recover(rig.now()) == ""
    rig.until(lambda: rig.adapter.diagnostics()["state"] == "idle", "the recovery")
    assert rig.adapter.diagnostics()["recovery"] == "done"
    assert rig.run("gt('home')").state is State.PLAN_RETURNED


def test_there_is_nothing_to_recover_from_where_all_is_well(rig):
    assert rig.adapter.recover(rig.now()) == "nothing to recover from: the controller is idle"
    assert rig.heard() == []


def test_a_controller_that_hangs_fails_the_call(rig):
    rig.send(FAR)
    rig.until(rig.moving, "a motion")
    rig.fault("hang=24")
    failed = rig.report(State.FAILED)
    assert failed.error.startswith("gt: link lost: nothing heard from the controller for 1.")
    rig.standing()
    assert len(rig.heard("joint", "line")) == 1 and not rig.moving()


def test_behind_a_lost_link_the_arm_is_stopped_and_works_again(rig):
    rig.send(FAR)
    rig.until(rig.moving, "a motion")
    rig.fault("loss=20")
    assert "link lost" in rig.report(State.FAILED).error
    rig.standing()
    assert len(rig.heard("joint", "line")) == 1 and rig.heard("stop")
    assert rig.run("gt('home')").state is State.PLAN_RETURNED


def test_every_call_of_the_sdk_has_a_deadline(rig):
    rig.fault("loss=40")
    sdk = rig.adapter._link.sdk
    for call in (sdk.get_home_pos, sdk.get_robot_data, sdk.stop_motion):
        with pytest.raises(grpc.RpcError) as caught:
            call()
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_gripper_that_is_refused_or_holds_nothing_fails_the_call(rig):
    rig.fault("output")
    assert rig.run("pi('eraser')").error == "pi: set_do is refused: device error (code -1)"
    rig.fault("slip")
    words = "pi: the gripper is closed, but does not hold 'eraser'"
    assert rig.run("pi('eraser')").error == words
    assert rig.run("pi('eraser')").state is State.PLAN_RETURNED


# ---- stopping ------------------------------------------------------------------------------------


@pytest.mark.parametrize("category", [1, 2])
def test_stop_stops_by_its_category_and_lasts_until_it_is_rearmed(make, category):
    rig = make(stop_category=category).connected()
    rig.send(FAR)
    rig.until(rig.moving, "a motion")
    rig.reports += rig.robot.on_stop(rig.now())
    assert rig.report(State.ABORTED).error == "stopped"
    rig.standing()
    assert set(rig.heard("stop")) == {f"stop {category}"} and not rig.moving()
    assert rig.run(FAR).error == "stopped"
    rig.robot.on_rearm(rig.now())
    if category < 2:  # the brakes are on
        assert rig.run(FAR).error == "gt: the controller is stopped and off"
        assert rig.adapter.recover(rig.now()) == ""
        rig.until(lambda: rig.adapter.diagnostics()["state"] == "idle", "the recovery")
    assert rig.run(FAR).state is State.PLAN_RETURNED
    assert rig.tool() == (450, -400, 160)


def test_a_stop_is_said_until_it_is_done(rig):
    rig.fault("deaf=2")
    rig.send(FAR)
    rig.until(rig.moving, "a motion")
    rig.robot.on_stop(rig.now())
    rig.standing()
    assert rig.heard("stop") and not rig.moving()


def test_a_stop_goes_out_even_where_the_arm_seems_to_stand(rig):
    rig.robot.on_stop(rig.now())
    rig.standing()
    assert rig.heard() == ["stop 2"]


def test_a_stop_that_comes_before_the_move_is_answered_comes_behind_it_too(rig):
    rig.send(FAR)
    rig.robot.on_stop(rig.now())  # at once: the move is on its way
    rig.standing()
    rig.until(lambda: not rig.moving(), "a standstill")
    log = [line.split()[0] for line in rig.heard()]
    assert "joint" not in log or "stop" in log[log.index("joint") :]


def test_what_is_held_is_held_behind_a_stop(rig):
    rig.run("pi('eraser')")
    rig.send(FAR)
    rig.until(rig.moving, "a motion")
    rig.robot.on_stop(rig.now())
    rig.standing()
    rig.robot.on_rearm(rig.now())
    assert rig.sim.holds == "eraser"
    assert rig.run("gt('carrot');dr()").state is State.PLAN_RETURNED
    assert rig.thing("eraser") == (680, -100, 30)


def test_without_planner_the_skill_is_finished_and_nothing_follows(make):
    rig = make(planner_timeout=0.2).connected()
    rig.send("gt('lemon');gt('home')")
    rig.until(rig.moving, "a motion")
    rig.planner_lives = False
    assert rig.report(State.ABORTED).error == "planner lost"
    assert rig.tool() == (450, -400, 160) and not rig.moving()


def test_the_end_of_the_node_stops_the_arm(rig):
    rig.send(FAR)
    rig.until(rig.moving, "a motion")
    rig.robot.shutdown(rig.now())
    assert rig.heard("stop") and not rig.moving()


def test_two_arms_do_not_hear_each_other(make):
    one, two = make().connected(), make().connected()
    one.fault("reject")
    assert two.run("gt('home')").state is State.PLAN_RETURNED
    assert one.run("gt('home')").state is State.FAILED
    assert (len(one.heard()), len(two.heard())) == (1, 1)
