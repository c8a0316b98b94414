"""Limits, stops and lost links of a Tello: real djitellopy, simulated drone, real UDP."""

from __future__ import annotations

import re

import pytest
from tello_rig import Rig

from robot_adapters.executor.executor import Timing
from robot_adapters.tello.simulated_drone import SimTello
from timely_llm.protocols.messages import ExecutionState

pytestmark = pytest.mark.usefixtures("sdk_ports")

State = ExecutionState


# ---- limits --------------------------------------------------------------------------------------


def test_the_geofence_is_not_left(rig: Rig) -> None:
    rig.fly("mf(500);")
    failed = rig.fly("mf(500)")
    assert failed.error == (
        "mf: x would be 10.00 m (give or take 0.50): geofence is -10 to 10 m"
    )  # fmt: skip
    assert rig.fly("mu(300)").error == "mu: z would be 3.80 m: geofence is 0.2 to 3 m"
    assert rig.heard("stop") == ["takeoff", "forward 500"]


def test_where_a_motion_was_given_up_counts_as_anywhere_on_its_way(rig: Rig) -> None:
    rig.fly("mu(20);")
    rig.send("mf(500);")
    rig.until(lambda: rig.count("forward"), "the motion")
    rig.robot.on_stop(rig.now())
    rig.robot.on_rearm(rig.now())
    rig.until(lambda: not rig.adapter.flight.busy, "the end of it")
    assert "give or take 2.50 m" in rig.adapter.diagnostics()["pose"]
    assert rig.fly("mf(500)").error.startswith("mf: x would be 7.50 m (give or take 2.75)")


def test_an_empty_battery_begins_no_motion(make) -> None:
    rig = make(drone=SimTello(battery=14.5)).connected()
    assert rig.fly("mf(20)").error == "mf: battery is at 14 %: min_battery is 15 %"
    assert rig.heard("stop") == []


def test_a_battery_that_runs_low_in_the_air_brings_it_down(rig: Rig) -> None:
    rig.fly("mf(20);")
    rig.fault("battery=12")
    rig.landed()
    assert rig.heard() == ["takeoff", "forward 20", "land"]


# ---- stop, planner, link -------------------------------------------------------------------------


def test_a_stop_stops_at_once_is_latched_and_lands(make) -> None:
    rig = make(land_after_stop=0.5).connected()
    rig.fly("mu(20);")
    plan = rig.send("mf(500);mb(500);")
    rig.until(lambda: rig.count("forward"), "the motion")
    rig.reports += rig.robot.on_stop(rig.now())
    assert rig.report(State.ABORTED).plan_id == plan
    rig.until(lambda: rig.count("stop"), "the stop")
    assert rig.pose()[0] < 4.5
    assert rig.fly("ml(20)").error == "stopped"
    rig.landed()
    assert (rig.count("forward"), rig.count("back"), rig.count("left")) == (1, 0, 0)
    rig.robot.on_rearm(rig.now())
    assert rig.fly("ml(20);").state is State.PLAN_RETURNED


def test_stopped_it_hovers_on_where_it_shall_not_land(make) -> None:
    rig = make(land_after_stop=-1.0, land_idle=0.2).connected()
    rig.fly("mu(20);")
    rig.robot.on_stop(rig.now())
    rig.until(lambda: rig.count("rc") >= 6, "six keepalives, longer than its patience")
    assert rig.drone.flying and rig.count("land") == 0


def test_a_stop_that_is_lost_on_the_way_is_said_again(rig: Rig) -> None:
    rig.fly("mu(20);")
    rig.send("d(60);")
    rig.fault("loss=5")  # 0.5 s of ours
    rig.robot.on_stop(rig.now())
    rig.until(lambda: rig.count("stop"), "a stop that gets through")


def test_it_is_kept_in_the_air_only_while_the_planner_lives(make) -> None:
    rig = make(hover_time=14.0, timing=Timing(planner_timeout=0.3)).connected()
    rig.fly("mu(20);")
    rig.send("d(60);")
    rig.until(lambda: rig.count("rc") >= 7, "keepalives for longer than 15 s of its time")
    assert rig.drone.flying
    rig.planner_lives = False
    rig.until(lambda: rig.robot.lost, "that the planner is missed")
    kept = rig.count("rc")
    rig.until(lambda: "*lands: 15 s without a command" in rig.lines(), "its own landing")
    assert rig.count("rc") <= kept + 1


def test_without_planner_it_finishes_its_motion_hovers_and_lands(make) -> None:
    rig = make(hover_time=0.4, timing=Timing(planner_timeout=0.2)).connected()
    rig.send("mf(500);mb(500);")
    rig.until(lambda: rig.count("forward"), "the motion")
    rig.planner_lives = False
    assert rig.report(State.ABORTED).error == "planner lost"
    rig.landed()
    assert rig.pose() == (5, 0, 0, 0)
    assert rig.count("back") == 0


def test_a_lost_link_fails_the_call_and_the_drone_comes_down_and_back(rig: Rig) -> None:
    rig.fly("mu(20);")
    rig.fault("loss=40@5")  # 4 s of ours, while it waits
    failed = rig.fly("d(60);mf(20);")
    assert re.fullmatch(r"d: link lost: nothing heard from the drone for 1\.\d s", failed.error)
    assert rig.fly("mf(20)").state is State.FAILED
    rig.landed()
    rig.connected()
    rig.until(lambda: not rig.adapter.flight.flying, "that it knows")
    assert rig.fly("ml(20);").state is State.PLAN_RETURNED
    assert rig.count("forward") == 0


def test_a_lost_link_in_mid_motion_fails_it(rig: Rig) -> None:
    rig.fly("mu(20);")
    rig.reports.clear()
    rig.send("mf(500);mb(500);")
    rig.until(lambda: rig.count("forward"), "the motion")
    rig.fault("loss=100")
    failed = rig.report(State.FAILED)
    assert re.fullmatch(r"mf: (link lost: .*|forward 500: no answer .*)", failed.error)
    assert rig.count("forward") == 1 and rig.count("back") == 0
