"""An Indy7 controller that lies about itself: the real neuromeka, a simulated arm, real gRPC."""

from __future__ import annotations

import pytest

pytest.importorskip("neuromeka", reason="neuromeka is not installed: make test-indy")

from timely_llm.protocols.messages import ExecutionState as State  # noqa: E402

FAR = "gt('lemon')"  # from home, a long way


def test_a_stop_is_said_until_the_joints_stand_still_whatever_the_controller_says(make):
    rig = make(speed=5.0).connected()
    rig.fault("shrug=2", "deny=600")
    rig.send(FAR)
    rig.until(lambda: rig.heard("joint"), "a motion")
    start = rig.tool()
    rig.until(lambda: rig.tool() != start, "that it moves")
    rig.robot.on_stop(rig.now())
    rig.standing()
    assert len(rig.heard("stop")) >= 3
    assert rig.tool()[1] > -390  # it has not arrived


def test_a_controller_that_tells_no_numbers_fails_the_call_and_is_stopped(rig):
    rig.send(FAR)
    rig.until(rig.moving, "a motion")
    rig.fault("nonsense=40")
    failed = rig.report(State.FAILED)
    assert failed.error.startswith("gt: the controller's data make no sense: q: not six numbers")
    rig.standing()
    assert len(rig.heard("joint", "line")) == 1 and rig.heard("stop") and not rig.moving()
    assert rig.run("gt('home')").state is State.PLAN_RETURNED
