"""What a drone's skills ask of it."""

from __future__ import annotations

import math

import pytest

from robot_adapters.tello.dead_reckoning import Way
from robot_adapters.tello.drone_skills import MOVES, TURNS, misfits, missing, step_of
from timely_llm.language.loader import load_skill_set, read_skill_set
from timely_llm.paths import share

TELLO = load_skill_set(share("config", "skills", "tello.yaml"))
BLIND = load_skill_set(share("config", "skills", "sdk", "tello_sdk.yaml"))


def test_every_move_and_turn_has_the_sdks_command() -> None:
    commands = [step_of(name, 100).command for name in (*MOVES, *TURNS)]
    assert commands == [
        *("forward 100", "back 100", "left 100", "right 100", "up 100", "down 100"),
        *("cw 100", "ccw 100"),
    ]
    assert step_of("turn_cw", 90).way == Way(turn=-90)
    assert step_of("move_left", 20.0) == step_of("move_left", 20)
    assert step_of("delay", 1.0) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("move_up", 19), ("move_up", 501), ("move_up", 20.5), ("turn_cw", 0), ("turn_ccw", 361),
     ("move_up", True), ("move_up", "20"), ("move_up", math.nan), ("move_up", math.inf)],
)  # fmt: skip
def test_what_the_sdk_does_not_take_names_its_limits(name: str, value) -> None:
    with pytest.raises(ValueError, match=r"takes whole numbers of \d+ to \d+ (cm|degrees), not"):
        step_of(name, value)


class Eyes:
    def look(self, view) -> list: ...


def test_what_a_skill_set_asks_for_beyond_the_drone() -> None:
    assert missing(BLIND) == {} and misfits(BLIND) == [] == misfits(TELLO)
    assert missing(TELLO)["goto"] == "look" and missing(TELLO)["take_picture"] == "picture"
    assert missing(TELLO, Eyes()) == {"take_picture": "picture"}
    scans = BLIND.text + "  - {name: sc, long_name: scan, duration: {constant: 1}}\n"
    assert missing(read_skill_set(scans)) == {"scan": "look"}
    rover = BLIND.text + "  - {name: sp, long_name: spray, duration: {constant: 1}}\n"
    assert missing(read_skill_set(rover)) == {"spray": ""}


def test_the_blind_set_is_the_bundled_one_without_what_needs_eyes() -> None:
    for skill in BLIND.skills:
        assert skill == TELLO[skill.name]
    left_out = {skill.long_name for skill in TELLO.skills} - {s.long_name for s in BLIND.skills}
    assert left_out == {*missing(TELLO), "probe", "scan", "scan_abstract"}
    assert BLIND.bounds == TELLO.bounds
