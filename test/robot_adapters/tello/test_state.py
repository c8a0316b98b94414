"""What a Tello's state lines tell, and what they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_adapters.tello.simulated_drone import SimTello
from robot_adapters.tello.state import (
    LIMITS,
    MAX_BYTES,
    NEEDED,
    airborne,
    moves,
    read_state,
    text_of,
)


def test_a_drones_own_line_tells_all() -> None:
    drone = SimTello()
    drone.receive("command", 0.0)
    state = read_state(text_of(drone.state_line(0.0).encode()))
    assert set(LIMITS) | {"mpry"} == set(state) and set(NEEDED) <= set(state)
    assert (state["bat"], state["tof"], state["agz"], state["mpry"]) == (100, 10, -1000.0, "0,0,0")


@pytest.mark.parametrize(
    "value",
    ["", "nan", "inf", "1e999", "1e2", "9" * 401, "9" * 5000, "101", "-1", "1_0", "0x1", "\u0661"],
)
def test_a_number_that_cannot_be_is_unknown(value: str) -> None:
    assert read_state(f"bat:{value};h:80;") == {"h": 80}


@pytest.mark.parametrize("text", ["", "ok", ";;", "a:b;", "bat", "bat:nan"])
def test_a_line_without_a_number_of_ours_is_none(text: str) -> None:
    assert read_state(text) == {}


@pytest.mark.parametrize("data", [b"\xff", b"a\x00b", b"\x1b[2J", b"x" * (MAX_BYTES + 1)])
def test_bytes_that_a_drone_does_not_send_are_no_text(data: bytes) -> None:
    assert text_of(data) == ""


@given(st.binary(max_size=2000))
def test_whatever_comes_is_read(data: bytes) -> None:
    state = read_state(text_of(data))
    assert airborne(state) in (True, False, None)
    assert not moves(state, state) or any(abs(state.get(f"vg{a}", 0)) > 1 for a in "xyz")


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        ({"h": 80, "tof": 80}, True),
        ({"h": 0, "tof": 10}, False),
        ({"h": -10, "tof": 10}, False),
        ({"h": 70, "tof": 10}, None),  # on a table
        ({"h": -50, "tof": 90}, None),  # above the stairs
        ({"h": 80}, True),
        ({"tof": 80}, True),
        ({"h": 0}, None),
        ({"tof": 10}, None),
        ({}, None),
    ],
)
def test_in_the_air_or_on_the_ground_or_unknown(state, answer) -> None:
    assert airborne(state) is answer


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        ({}, {"vgx": 1, "vgy": -1, "vgz": 0}, False),
        ({}, {"vgy": -2}, True),
        ({"yaw": 179}, {"yaw": -178}, False),
        ({"yaw": 0}, {"yaw": -4}, True),
        ({"yaw": 0}, {}, False),
    ],
)
def test_two_lines_show_a_motion(before, after, answer) -> None:
    assert moves(before, after) is answer
