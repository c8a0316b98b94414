"""Dead reckoning and its fence."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from robot_adapters.tello.dead_reckoning import DeadReckoning, Way

FENCE = ((-10.0, 10.0), (-10.0, 10.0), (0.2, 3.0))


def at(dead_reckoning: DeadReckoning) -> tuple:
    pose = dead_reckoning.pose
    return tuple(round(value, 6) for value in (*pose.point, pose.yaw, dead_reckoning.radius))


def airborne(drift: float = 0.05) -> DeadReckoning:
    dead_reckoning = DeadReckoning(FENCE, drift)
    dead_reckoning.at_height(0.8)
    return dead_reckoning


def test_ways_add_up_along_the_nose_and_so_does_what_they_may_be_off() -> None:
    dead_reckoning = airborne()
    for way in (Way(ahead=2), Way(turn=90), Way(ahead=1), Way(left=1), Way(up=0.5)):
        dead_reckoning.arrived(way)
    assert at(dead_reckoning) == (1, 1, 1.3, 90, 0.2)


def test_an_interrupted_way_may_have_ended_anywhere_on_it() -> None:
    dead_reckoning = airborne()
    dead_reckoning.interrupted(Way(ahead=4))
    assert at(dead_reckoning) == (2, 0, 0.8, 0, 2)


def test_height_and_heading_are_the_drones_own() -> None:
    dead_reckoning = airborne()
    dead_reckoning.calibrate(170)  # clockwise, wherever it was switched on
    dead_reckoning.arrived(Way(turn=-90))
    dead_reckoning.observe(1.1, -95)  # over the seam at 180
    assert at(dead_reckoning) == (0, 0, 1.1, -95, 0)
    dead_reckoning.observe(None, None)
    assert at(dead_reckoning) == (0, 0, 1.1, -95, 0)


def test_a_drone_that_is_switched_on_anew_faces_as_before() -> None:
    dead_reckoning = airborne()
    dead_reckoning.calibrate(0)
    dead_reckoning.observe(None, -90)
    dead_reckoning.calibrate(30)
    dead_reckoning.observe(None, 30)
    assert dead_reckoning.pose.yaw == 90


def test_the_fence_keeps_a_distance_of_what_the_way_may_be_off() -> None:
    dead_reckoning = airborne()
    dead_reckoning.arrived(Way(ahead=5))
    assert dead_reckoning.outside(Way(ahead=4.5)) == ""
    words = "x would be 9.60 m (give or take 0.48): geofence is -10 to 10 m"
    assert dead_reckoning.outside(Way(ahead=4.6)) == words
    assert dead_reckoning.outside(Way(up=2.3)) == "z would be 3.10 m: geofence is 0.2 to 3 m"
    assert dead_reckoning.outside(Way(up=2.0), height=0.8) == ""
    assert dead_reckoning.outside(Way(turn=360)) == ""


def test_without_a_fence_everything_is_inside() -> None:
    assert DeadReckoning(None).outside(Way(ahead=1000)) == ""


def test_a_way_back_is_free_from_where_it_should_not_be() -> None:
    dead_reckoning = DeadReckoning(FENCE, 0.05)
    dead_reckoning.at_height(3.4)  # it rose by itself
    assert dead_reckoning.outside(Way(up=0.2)) != ""
    assert dead_reckoning.outside(Way(up=-0.2)) == ""
    dead_reckoning.at_height(1.0)
    dead_reckoning.radius = 11.0  # nothing is known any more
    assert dead_reckoning.outside(Way(ahead=0.2)) != ""


ways = st.builds(
    Way, st.floats(-5, 5), st.floats(-5, 5), st.just(0.0), st.floats(-360, 360)
)  # fmt: skip


@given(st.lists(ways, max_size=40), st.lists(st.floats(-1, 1), min_size=40, max_size=40))
def test_whatever_is_flown_inside_the_fence_ends_inside_it(flown: list, errors: list) -> None:
    """The true drone is off by up to ``drift`` of each way, and starts where it should."""
    dead_reckoning, x, y = airborne(0.05), 0.0, 0.0
    for way, error in zip(flown, errors, strict=False):
        if dead_reckoning.outside(way):
            continue
        before = dead_reckoning.pose
        dead_reckoning.arrived(way)
        dx, dy = dead_reckoning.pose.x - before.x, dead_reckoning.pose.y - before.y
        x, y = x + dx + 0.05 * error * dx, y + dy + 0.05 * error * dy
        assert (
            math.hypot(x - dead_reckoning.pose.x, y - dead_reckoning.pose.y)
            <= dead_reckoning.radius + 1e-6
        )
        assert abs(x) <= 10 + 1e-6 and abs(y) <= 10 + 1e-6
