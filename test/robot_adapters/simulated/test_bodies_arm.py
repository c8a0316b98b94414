"""The simulated arm on virtual time: what it does, sees and refuses."""

from __future__ import annotations

import pytest
from pilot import INDY7, Pilot


@pytest.fixture
def arm() -> Pilot:
    return Pilot(INDY7)


def test_an_arm_picks_and_stacks(arm: Pilot) -> None:
    assert arm.do("sc", "red box") is True
    assert 1 <= arm.took <= 3
    arm.do("gt", "red box")
    arm.do("pi", "red box")
    assert arm.adapter.diagnostics()["holds"] == "red box"
    arm.do("gt", "blue box")
    arm.do("dr")
    world = arm.body.world
    assert world["red box"].position == (0.55, 0.15, pytest.approx(0.06))
    arm.do("pi", "green box")
    arm.do("gt", "red box")
    arm.do("dr")
    assert world["green box"].position == (0.55, 0.15, pytest.approx(0.12))


@pytest.mark.parametrize(
    ("before", "name", "values", "words"),
    [
        ([], "gt", ("moon",), "'moon' is not in view"),
        ([], "gt", ("crate",), "'crate' is 1.10 m away: reach is 0.15 to 0.93 m"),
        ([], "pi", ("crate",), "reach is"),
        ([], "dr", (), "the gripper holds nothing"),
        ([("pi", "apple")], "pi", ("lemon",), "the gripper holds 'apple' already"),
        ([("pi", "apple")], "gt", ("apple",), "'apple' is not in view"),
    ],
)
def test_an_arm_refuses_what_it_cannot_do(arm: Pilot, before, name, values, words) -> None:
    for step in before:
        arm.do(*step)
    with pytest.raises(ValueError, match=words):
        arm.do(name, *values)


def test_an_arm_that_is_halted_on_the_way_has_gripped_nothing(arm: Pilot) -> None:
    arm.start("pi", "apple")
    arm.wait(1.0)
    arm.adapter.halt(arm.now)
    arm.wait(10.0)
    assert "holds" not in arm.adapter.diagnostics()
    assert arm.body.world["apple"].position == (0.7, 0.25, 0.0)


def test_an_arm_sees_what_is_on_its_table(arm: Pilot) -> None:
    assert arm.do("sc", "unicorn") is False
    assert arm.do("iv", "lemon") is True
    assert "red_box x:" in arm.adapter.observe()
    arm.adapter.hold(arm.now)  # an arm just stays
    assert arm.adapter.next_poll(arm.now) is None
