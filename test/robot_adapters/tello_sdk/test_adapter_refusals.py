"""What a Tello refuses, and what it does not say: real djitellopy, simulated drone, real UDP."""

from __future__ import annotations

import threading

import pytest
from tello_rig import Rig

from robot_adapters.tello.link import GivenUp
from robot_adapters.tello.simulated_drone import SimTello
from timely_llm.protocols.messages import ExecutionState

pytestmark = pytest.mark.usefixtures("sdk_ports")

State = ExecutionState


@pytest.mark.parametrize(
    ("fault", "words"),
    [("joystick", "error Not joystick"), ("imu", "error No valid imu")],
)
def test_an_error_fails_the_call_in_the_drones_own_words_and_is_not_tried_again(
    rig: Rig, fault: str, words: str
) -> None:
    rig.fly("mu(20);")
    rig.fault(fault)
    failed = rig.fly("mf(100);mb(100);")
    assert (failed.state, failed.error) == (State.FAILED, f"mf: {words}")
    assert (rig.count("forward"), rig.count("back")) == (1, 0)
    assert rig.fly("ml(20);").state is State.PLAN_RETURNED
    lines = [line for line in rig.lines() if not line.startswith("<rc")]
    assert lines[lines.index("<left 20") - 2] == "<command"  # into SDK mode again


def test_motors_that_stop_fail_the_call(rig: Rig) -> None:
    rig.fly("mu(20);")
    rig.fault("motor")
    assert rig.fly("mf(100);mb(100);").error == "mf: error Motor stop"
    rig.until(lambda: not rig.adapter.flight.flying, "that it knows that it is down")
    assert rig.count("back") == 0


def test_a_take_off_that_fails_does_not_move(make) -> None:
    rig = make(drone=SimTello(battery=8), min_battery=0).connected()
    assert rig.fly("mf(20)").error == "mf: takeoff: error Motor stop"
    assert rig.heard("stop") == ["takeoff"]
    rig.until(lambda: not rig.adapter.flight.flying, "that it knows that it is on the ground")


def test_a_motion_without_an_answer_fails_in_time_and_is_never_sent_twice(rig: Rig) -> None:
    rig.fly("mu(20);")
    rig.fault("silence")
    failed = rig.fly("mf(20);mb(20);")
    assert (failed.state, failed.error) == (
        State.FAILED, "mf: forward 20: no answer within 1.6 s",
    )  # fmt: skip
    rig.until(lambda: rig.count("stop"), "the stop behind it")
    assert rig.fly("ml(20);").state is State.PLAN_RETURNED
    assert (rig.count("forward"), rig.count("back"), rig.count("left")) == (1, 0, 1)


def test_a_late_answer_is_not_taken_for_the_next_motions(rig: Rig) -> None:
    rig.fly("mu(20);")
    rig.fault("late=26")  # 2.8 s of ours, in the midst of what would be the next plan
    assert "no answer" in rig.fly("mf(20);").error
    assert rig.fly("mb(500);mf(500);mb(500);").error == ""
    assert rig.pose()[0] == -4.8
    told, back = (
        next(at for at, mark, text in rig.drone.log if (mark, text) == ("<", command))
        for command in ("forward 20", "back 500")
    )
    assert back > told + 26


def test_an_answer_that_comes_with_a_stop_is_not_the_motions(rig: Rig) -> None:
    link, stopped = rig.adapter.flight.link, threading.Event()
    stopped.set()
    link.sdk.get_own_udp_object()["responses"].append(b"ok")
    with pytest.raises(GivenUp):
        link.listen(1.0, stopped)


def test_nothing_is_sent_behind_a_stop(rig: Rig) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(GivenUp) as caught:
        rig.adapter.flight.link.ask("forward 100", 1.0, stopped)
    assert not caught.value.sent
    rig.fly("mu(20);")
    assert rig.heard() == ["takeoff", "up 20"]


def test_answers_of_the_past_are_forgotten(rig: Rig) -> None:
    rig.fly("mu(20);")
    rig.adapter.flight.link.sdk.get_own_udp_object()["responses"].append(b"error Run timeout")
    assert rig.fly("mf(20);").error == ""


def test_before_the_next_motion_only_a_number_answers_the_question(rig: Rig, monkeypatch) -> None:
    flight = rig.adapter.flight
    answers = flight.link.sdk.get_own_udp_object()["responses"]

    def ask(command: str, timeout: float, abort: threading.Event) -> str:
        """The second answer to a stop comes instead; then the first motion's; then the number."""
        assert command == "battery?"
        answers.extend([b"forced stop", b"87"])
        return "ok"

    monkeypatch.setattr(flight.link, "ask", ask)
    flight._synchronise()
    assert answers == []


def test_a_stopped_motions_answer_is_not_taken_for_the_next_one(make) -> None:
    rig = make(drone=SimTello(noise=0.0, stop_answer="forced stop")).connected()
    rig.fly("mu(20);")
    rig.send("mf(500);")
    rig.until(lambda: rig.count("forward"), "the motion")
    rig.robot.on_stop(rig.now())
    rig.robot.on_rearm(rig.now())
    assert rig.fly("ml(500);").state is State.PLAN_RETURNED
    assert rig.pose()[1] == 5.0
