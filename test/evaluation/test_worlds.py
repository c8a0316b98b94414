"""Worlds out of scenes: a robot sees in them what the scene says."""

import re

import pytest
from plan_language import INDY7, TELLO

from robot_adapters.simulated.adapter import SimulatedAdapter
from timely_llm.evaluation.worlds import EYE, SceneError, world_of

SCENE = "[red_box x:0.3 y:0.5 width:0.1 height:0.2, chair x:0.7 y:0.6 width:0.2 height:0.3]"


def numbers(scene: str) -> list[float]:
    return [float(text) for text in re.findall(r":([0-9.]+)", scene)]


def test_a_drone_sees_the_scene_that_its_world_was_made_of():
    world = world_of(SCENE, arm=False)
    seen = SimulatedAdapter("r", TELLO, world=world, z=EYE).observe()
    assert re.findall(r"([a-z_]+) x:", seen) == ["red_box", "chair"]
    assert numbers(seen) == pytest.approx(numbers(SCENE), abs=0.02)


def test_an_arm_reaches_what_its_scene_names():
    world = world_of(
        "[apple x:0.5 y:0.5 width:0.1 height:0.1, cup x:0.0 y:0.0 width:0.1 height:0.1]", True
    )
    arm = SimulatedAdapter("r", INDY7, world=world)
    assert re.findall(r"([a-z_]+) x:", arm.observe()) == ["apple", "cup"]
    for thing in world:
        assert 0.15 <= (thing.position[0] ** 2 + thing.position[1] ** 2) ** 0.5 <= 0.93


def test_things_of_one_name_are_numbered():
    part = "apple x:0.5 y:0.5 width:0.1 height:0.1"
    names = [thing.name for thing in world_of(f"[{part}, {part}, {part}]", arm=True)]
    assert names == ["apple", "apple_2", "apple_3"]


def test_an_empty_list_is_an_empty_world():
    assert list(world_of("[]", arm=False)) == []


@pytest.mark.parametrize(
    "scene",
    [
        "apples everywhere",
        "[apple]",
        "[apple x:2 y:0.5 width:0.1 height:0.1]",
        "[apple x:0.5 y:0..5 width:0.1 height:0.1]",
        "[apple x:0.5 y:0.5 width:0.1 height:0.1,]",
        "[" + ",".join(["a x:0 y:0 width:0 height:0"] * 1001) + "]",
    ],
)
def test_what_is_no_scene_is_refused(scene):
    with pytest.raises(SceneError):
        world_of(scene, arm=False)
