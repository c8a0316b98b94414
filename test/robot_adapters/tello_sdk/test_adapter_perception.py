"""A Tello with somebody who looks: what a perception may be, and what it makes possible."""

from __future__ import annotations

import threading

import pytest
from tello_rig import BLIND, SEEING

from robot_adapters.adapter import AdapterError, make_adapter
from robot_adapters.executor.executor import Timing
from timely_llm.language.loader import read_skill_set
from timely_llm.protocols.messages import ExecutionState

pytestmark = pytest.mark.usefixtures("sdk_ports")

State = ExecutionState


CAMERA = "robot_adapters.simulated.camera:SimulatedCamera"


def test_what_needs_a_picture_is_refused_at_the_start_without_one() -> None:
    with pytest.raises(AdapterError) as caught:
        make_adapter("tello", "r1", SEEING)
    assert str(caught.value) == (
        "skill set 'tello': the Tello SDK alone cannot do goto, is_visible, "
        "object_x, object_y, object_width, object_height, object_dis, take_picture: name a "
        "'perception' that can (look, picture; docs/robots.md), or use a skill set without "
        "them (config/skills/sdk/tello_sdk.yaml)"
    )


def test_a_perception_makes_the_skills_possible_that_it_can_do(make) -> None:
    rig = make(SEEING, perception=CAMERA, perception_config="world=house, yaw=45").connected()
    plan = "mu(20);?s('countertop')==True{g('countertop');_1=od('countertop');->_1}->False"
    returned = rig.fly(plan)
    assert (returned.state, returned.error) == (State.PLAN_RETURNED, "")
    assert 40 <= int(returned.value) <= 130
    assert rig.heard()[0] == "takeoff" and "forward" in rig.heard()[-1]
    assert rig.fly("?iv('unicorn')==True{->'yes'}->'no'").value == "no"
    assert rig.fly("ox('unicorn');").error == "ox: 'unicorn' is not in view"
    assert rig.fly("tp();").state is State.PLAN_RETURNED
    assert "countertop" in rig.adapter.observe()


class HalfBlind:
    def __init__(self, robot_id: str, config: str) -> None:
        self.config = config

    def look(self, view) -> list:
        if self.config == "hang":
            _let_go.wait()
        if self.config == "raise":
            raise OSError("the lens is dirty")
        return []


_let_go = threading.Event()
IS_VISIBLE = """\
  - name: iv
    long_name: is_visible
    arguments:
      - {name: object, type: str, maximum: 32}
    returns: bool
    duration: {constant: 0.001}
"""
LOOKS = read_skill_set(BLIND.text + IS_VISIBLE)


def test_a_perception_that_fails_fails_the_call(make) -> None:
    path = f"{__name__}:HalfBlind"
    rig = make(LOOKS, perception=path, perception_config="raise").connected()
    assert rig.fly("iv('cat');").error == "iv: OSError: the lens is dirty"


def test_a_perception_that_hangs_is_given_up_and_a_stop_still_reaches_the_drone(make) -> None:
    timing = Timing(planner_timeout=5.0, patience=0.5)
    path = f"{__name__}:HalfBlind"
    rig = make(LOOKS, timing=timing, perception=path, perception_config="hang").connected()
    rig.fly("mu(20);")
    try:
        assert rig.fly("iv('cat');mf(20);").error.startswith("iv: not done after")
        rig.until(lambda: rig.count("stop"), "the stop")
    finally:
        _let_go.set()
    assert rig.fly("mf(20);").state is State.PLAN_RETURNED


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nonsense", "perception: 'nonsense' must be module:class"),
        ("no.such:Thing", "perception 'no.such:Thing': No module named 'no'"),
        ("robot_adapters.simulated.camera:Camera", "has no attribute 'Camera'"),
    ],
)
def test_a_perception_that_is_not_there_is_refused(path: str, words: str) -> None:
    with pytest.raises(AdapterError, match=words):
        make_adapter("tello", "r1", SEEING, perception=path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("wrld=house", "unknown key 'wrld'; did you mean 'world'"),
        ("world=huose", "no bundled world 'huose'"),
        ("x=far", "x is 'far': must be a number"),
        ("house", "'house': must be KEY=VALUE"),
    ],
)
def test_a_simulated_camera_reads_its_config_strictly(config: str, words: str) -> None:
    with pytest.raises(AdapterError, match=words):
        make_adapter("tello", "r1", SEEING, perception=CAMERA, perception_config=config)
