"""The simulated drone on virtual time: what it does, finds out, refuses, and in what time."""

from __future__ import annotations

import random

import pytest
from pilot import TELLO, Pilot, at, call

from robot_adapters.perception import Pose
from robot_adapters.simulated.adapter import LANDING_SPEED, TAKEOFF_TIME


@pytest.fixture
def drone() -> Pilot:
    return Pilot()


@pytest.mark.parametrize(
    ("name", "value", "pose"),
    [
        ("mf", 100, (1, 0, 1, 0)),
        ("mb", 100, (-1, 0, 1, 0)),
        ("ml", 100, (0, 1, 1, 0)),
        ("mr", 100, (0, -1, 1, 0)),
        ("mu", 100, (0, 0, 2, 0)),
        ("md", 50, (0, 0, 0.5, 0)),
        ("tc", 90, (0, 0, 1, -90)),
        ("tu", 90, (0, 0, 1, 90)),
    ],
)
def test_moves_lead_where_they_say_in_the_published_time(drone, name, value, pose) -> None:
    assert drone.do(name, value) is None
    assert at(drone) == pose
    assert drone.took == pytest.approx(TELLO[name].expected_duration((value,)))


def test_moves_go_along_the_nose(drone: Pilot) -> None:
    drone.do("tu", 90)
    drone.do("mf", 100)
    drone.do("mr", 50)
    assert at(drone) == (0.5, 1, 1, 90)


def test_progress_is_linear_and_remaining_is_what_is_expected(drone: Pilot) -> None:
    drone.start("mf", 100)  # 2.5344 s
    progress = drone.wait(0.6336)
    assert (progress.done, progress.elapsed) == (False, pytest.approx(0.6336))
    assert progress.remaining == pytest.approx(1.9008)
    assert at(drone) == (0.25, 0, 1, 0)


def test_a_halt_stays_where_it_is(drone: Pilot) -> None:
    drone.start("mf", 100)
    drone.now += 1.2672
    drone.adapter.halt(drone.now)
    drone.adapter.halt(drone.now)
    assert drone.wait(10).done
    assert at(drone) == (0.5, 0, 1, 0)
    assert drone.adapter.next_poll(drone.now) is None


@pytest.mark.parametrize(
    ("start", "name", "value", "words"),
    [
        ({}, "mu", 201, "z would be 3.01 m: geofence is 0.2 to 3 m"),
        ({}, "md", 81, "z would be 0.19 m"),
        ({"yaw": 90.0}, "mf", 500, None),
        ({"x": 3.0}, "mf", 500, None),  # the fence is about where it started
    ],
)
def test_the_geofence_is_checked_before_the_motion(start, name, value, words) -> None:
    drone = Pilot(**start)
    before = at(drone)
    reason = drone.adapter.check(call(TELLO, name, value))
    assert (words in reason) if words else reason is None
    assert at(drone) == before


def test_the_fence_lies_about_the_start() -> None:
    drone = Pilot(x=2.0)
    drone.do("mf", 500)
    drone.do("mf", 500)
    with pytest.raises(ValueError, match="x would be 12.20 m: geofence is -8 to 12 m"):
        drone.do("mf", 20)


def test_travel_is_the_way_of_the_body(drone: Pilot) -> None:
    travel = drone.adapter.travel
    assert travel(call(TELLO, "mf", 150)) == pytest.approx(1.5)
    assert travel(call(TELLO, "tc", 90)) == 0
    assert travel(call(TELLO, "iv", "cat")) == 0


def test_questions_are_answered_truthfully(drone: Pilot) -> None:
    assert drone.do("iv", "countertop") is True
    assert drone.do("iv", "keys") is True
    assert drone.do("iv", "cat") is False  # not in this direction
    assert drone.do("iv", "unicorn") is False
    assert drone.do("ox", "keys") < 0.5 < drone.do("ox", "wallet")
    assert drone.do("oy", "keys") > 0.5  # below the camera
    assert drone.do("od", "keys") == 297
    assert 0.05 < drone.do("ow", "countertop") < 1
    assert 0 < drone.do("oh", "countertop") < 1
    assert drone.do("p", "which one can I drink?") == "bottle"
    assert drone.do("p", "which one is explosive?") == "False"
    with pytest.raises(ValueError, match="'cat' is not in view"):
        drone.do("ox", "cat")
    assert drone.took == pytest.approx(0.041)


def test_a_scan_turns_until_it_sees_the_thing(drone: Pilot) -> None:
    assert drone.do("s", "cat") is True
    assert at(drone) == (0, 0, 1, 45)
    assert drone.do("iv", "cat") is True
    assert drone.took == pytest.approx(0.001)
    assert drone.do("s", "unicorn") is False
    assert at(drone) == (0, 0, 1, 405)


def test_a_scan_by_description_tells_the_name(drone: Pilot) -> None:
    assert drone.do("sa", "something sharp?") == "scissors"
    assert drone.do("sa", "something explosive?") is False


def test_a_scan_takes_a_published_time_and_does_not_know_which(drone: Pilot) -> None:
    times = set()
    for _ in range(60):
        drone.do("s", "cat")
        times.add(round(drone.took / 1.5275, 6))
    assert times == set(range(1, 9))
    drone.start("s", "cat")
    assert drone.wait(0.5).remaining == pytest.approx(1.0275)


def test_goto_faces_the_thing_and_keeps_it_in_view(drone: Pilot) -> None:
    with pytest.raises(ValueError, match="'cat' is not in view"):
        drone.do("g", "cat")
    drone.do("s", "cat")
    before = drone.do("od", "cat")
    drone.do("g", "cat")
    assert drone.took == pytest.approx(2.5)
    assert drone.do("ox", "cat") == pytest.approx(0.5, abs=0.01)
    assert 0.9 < drone.do("oy", "cat") < 1  # it lies on the floor
    assert drone.do("od", "cat") < before - 50


def test_goto_stands_off_what_is_at_its_height(drone: Pilot) -> None:
    drone.do("s", "person")
    drone.do("g", "person")
    person, pose = drone.body.world["person"], drone.body.pose
    gap = max(abs(person.center[0] - pose.x), abs(person.center[1] - pose.y)) - 0.2
    assert 0.3 < gap < 0.6


def test_goto_stops_before_what_stands_in_the_way(drone: Pilot) -> None:
    drone.do("md", 30)  # level with the countertop's side
    drone.do("g", "countertop")
    assert drone.body.pose.x == pytest.approx(2.7 - 0.5)


def test_without_planner_it_hovers_then_lands(drone: Pilot) -> None:
    drone.adapter.hold(drone.now)
    drone.wait(5.0)
    assert at(drone) == (0, 0, 1, 0)
    drone.wait(1.0)
    assert drone.body.pose.z == pytest.approx(1 - LANDING_SPEED)
    drone.adapter.hold(drone.now)  # again: goes on as it was
    drone.wait(1.0)
    assert at(drone) == (0, 0, 0, 0)
    assert drone.adapter.diagnostics()["state"] == "landed"
    assert drone.adapter.next_poll(drone.now) is None


def test_it_asks_to_be_polled_when_it_has_landed(drone: Pilot) -> None:
    drone.adapter.hold(drone.now)
    drone.now = drone.adapter.next_poll(drone.now)
    drone.adapter.poll(drone.now)
    assert at(drone) == (0, 0, 0, 0)


def test_a_planner_that_is_back_ends_the_descent(drone: Pilot) -> None:
    drone.adapter.hold(drone.now)
    drone.wait(6.0)
    drone.adapter.resume(drone.now)
    drone.wait(60.0)
    assert at(drone) == (0, 0, 0.5, 0)
    drone.do("mu", 50)
    assert at(drone) == (0, 0, 1, 0)


def test_after_landing_it_takes_off_before_what_takes_time(drone: Pilot) -> None:
    drone.adapter.hold(drone.now)
    drone.wait(60.0)
    drone.adapter.resume(drone.now)
    assert drone.do("iv", "keys") is False  # from the ground
    drone.start("mf", 100)
    assert drone.wait(TAKEOFF_TIME / 2).remaining == pytest.approx(2.5344 + TAKEOFF_TIME / 2)
    assert at(drone) == (0, 0, 0.5, 0)
    drone.wait(TAKEOFF_TIME / 2 + 2.5344)
    assert at(drone) == (1, 0, 1, 0)
    drone.do("mf", 100)
    assert drone.took == pytest.approx(2.5344)


def test_a_halt_in_the_descent_stays_there(drone: Pilot) -> None:
    drone.adapter.hold(drone.now)
    drone.now += 6.0
    drone.adapter.halt(drone.now)
    drone.wait(60.0)
    assert at(drone) == (0, 0, 0.5, 0)


def test_any_walk_stays_within_the_fence() -> None:
    rng = random.Random(1)
    drone = Pilot()
    for _ in range(400):
        name = rng.choice(["mf", "mb", "ml", "mr", "mu", "md", "tc", "tu"])
        high = 360 if name in ("tc", "tu") else 500
        wanted = call(TELLO, name, rng.randint(20, high))
        if drone.adapter.check(wanted) is None:
            drone.adapter.start(wanted, drone.now)
            drone.wait(rng.uniform(0, 6))
            drone.adapter.halt(drone.now)
        pose: Pose = drone.body.pose
        assert abs(pose.x) <= 10 and abs(pose.y) <= 10 and 0.2 <= pose.z <= 3
