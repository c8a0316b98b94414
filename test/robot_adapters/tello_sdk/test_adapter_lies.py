"""A Tello whose answers and state lines lie, lack or are no text: real djitellopy, real UDP."""

from __future__ import annotations

import re

import pytest
from tello_rig import BLIND, STATE_PORT, Rig

from robot_adapters.executor.executor import Timing
from timely_llm.language.loader import read_skill_set
from timely_llm.protocols.messages import ExecutionState

pytestmark = pytest.mark.usefixtures("sdk_ports")

State = ExecutionState
LAND = "  - {name: land, long_name: land, duration: {constant: 0.3}}\n"


def without(*names: str):
    """A state line without these fields."""
    return lambda line: re.sub(rf"\b({'|'.join(names)}):[^;]*;", "", line)


# ---- in the air, or on the ground ----------------------------------------------------------------


@pytest.fixture
def liar(make) -> Rig:
    """In the air, after a take-off that was answered by an error."""
    rig = make(read_skill_set(BLIND.text + LAND), land_idle=0.0, land_after_stop=-1.0)
    rig.connected()
    rig.fault("lie")
    assert rig.fly("mu(20)").error == "mu: takeoff: error"
    rig.until(lambda: not rig.drone.busy, "the take-off")
    assert rig.drone.flying
    return rig


def test_a_take_off_that_was_answered_by_an_error_may_be_one(liar: Rig) -> None:
    liar.until(lambda: liar.adapter.flight.flying, "that it knows")
    assert liar.adapter.diagnostics()["state"] == "in the air"
    assert liar.fly("mf(20);").state is State.PLAN_RETURNED
    assert liar.count("takeoff") == 1


def test_it_lands_after_such_a_take_off(liar: Rig) -> None:
    assert liar.fly("land();").state is State.PLAN_RETURNED
    assert not liar.drone.flying


def test_the_end_of_the_node_lands_it_after_such_a_take_off(liar: Rig) -> None:
    liar.robot.shutdown(liar.now())
    liar.until(lambda: liar.count("land"), "the landing")


def test_a_lost_planner_lands_it_after_such_a_take_off(make) -> None:
    rig = make(hover_time=0.1, land_idle=0.0, timing=Timing(planner_timeout=0.3)).connected()
    rig.fault("lie")
    rig.fly("mu(20)")
    rig.planner_lives = False
    rig.landed()


def test_a_stop_is_sent_to_a_drone_that_is_believed_to_be_on_the_ground(rig: Rig) -> None:
    assert not rig.adapter.flight.flying
    rig.robot.on_stop(rig.now())
    rig.until(lambda: rig.count("stop"), "the stop")


def test_a_drone_that_somebody_else_starts_is_in_the_air(rig: Rig) -> None:
    with rig.simulator.lock:
        rig.drone.receive("takeoff", rig.simulator.now())
    rig.until(lambda: rig.adapter.diagnostics()["state"] == "in the air", "that it knows")


def test_height_that_is_not_told_is_not_the_ground(make) -> None:
    rig = make(land_idle=0.0).connected()
    rig.fly("mu(20);")
    rig.tells(without("h", "tof"))
    rig.until(lambda: "height" not in rig.adapter.diagnostics(), "such a line")
    passed = rig.count("rc")
    rig.until(lambda: rig.count("rc") >= passed + 5, "1.5 s")
    assert rig.adapter.diagnostics()["state"] == "in the air"
    rig.robot.on_stop(rig.now())
    rig.until(lambda: rig.count("stop"), "the stop")


@pytest.mark.parametrize(
    ("lacks", "words"),
    [
        (("h", "tof"), "answers, but its state lacks h, tof"),
        (("bat", "yaw", "time"), "answers, but its state lacks bat, time, yaw"),
    ],
)
def test_a_drone_whose_state_lacks_what_is_needed_is_not_connected(make, lacks, words) -> None:
    rig = make(serve=False)
    rig.tells(without(*lacks))
    rig.simulator.start()
    rig.until(lambda: words in rig.adapter.flight.trouble, "the words")
    assert rig.fly("mf(20)").error.endswith(words)
    rig.tells(lambda line: line)
    rig.connected()


def test_a_drone_in_the_air_whose_state_does_not_arrive_is_brought_down(make) -> None:
    rig = make(serve=False, land_idle=0.0)
    with rig.simulator.lock:
        rig.drone.receive("command", 0.0)
        rig.drone.receive("takeoff", 0.0)
    rig.tells(lambda line: None)
    rig.simulator.start()
    rig.until(lambda: rig.count("land"), "a landing")


# ---- answers of other commands -------------------------------------------------------------------


@pytest.mark.parametrize("again", [0.5, 4.0])  # before and during the next motion
def test_an_answer_that_comes_twice_ends_no_other_motion(make, again: float) -> None:
    rig = make(keepalive=10.0).connected()
    rig.fly("mu(20);")
    rig.fault(f"twice={again}")
    rig.reports.clear()
    rig.send("mf(20);mf(500);")
    ended = rig.report(State.PLAN_RETURNED, State.FAILED)
    assert ended.error == ""
    assert rig.pose()[0] == 5.2 and not rig.drone.busy


def test_an_answer_from_nowhere_ends_no_motion(rig: Rig) -> None:
    rig.fly("mu(20);")
    rig.reports.clear()
    rig.send("mf(500);")
    rig.until(lambda: rig.count("forward"), "the motion")
    rig.adapter.flight.link.sdk.get_own_udp_object()["responses"].append(b"ok")
    assert rig.report(State.PLAN_RETURNED, State.FAILED).error == ""
    assert rig.pose()[0] == 5.0 and not rig.drone.busy


def test_nothing_gets_in_the_way_of_a_motion_whose_answer_is_awaited(make) -> None:
    rig = make(keepalive=0.1).connected()
    rig.fly("mu(20);")
    rig.reports.clear()
    rig.send("mf(500);")
    rig.until(lambda: rig.count("forward"), "the motion")
    rig.adapter.flight.link.sdk.get_own_udp_object()["responses"].append(b"ok")
    rig.report(State.PLAN_RETURNED, State.FAILED)
    lines = rig.lines()
    assert lines[lines.index("<forward 500") + 1] == ">ok"


def test_an_answer_from_nowhere_is_no_take_off(rig: Rig) -> None:
    rig.reports.clear()
    rig.send("mu(20);")
    rig.until(lambda: rig.count("takeoff"), "the take-off")
    rig.adapter.flight.link.sdk.get_own_udp_object()["responses"].append(b"ok")
    assert rig.report(State.PLAN_RETURNED, State.FAILED).error == ""


def test_an_answer_from_nowhere_is_no_landing(make) -> None:
    rig = make(read_skill_set(BLIND.text + LAND)).connected()
    rig.fly("mu(200);")
    rig.reports.clear()
    rig.send("land();")
    rig.until(lambda: rig.count("land"), "the landing")
    rig.adapter.flight.link.sdk.get_own_udp_object()["responses"].append(b"ok")
    assert rig.report(State.PLAN_RETURNED, State.FAILED).error == ""
    assert not rig.drone.flying


def test_an_answer_from_nowhere_confirms_no_stop(make) -> None:
    rig = make(serve=False, land_after_stop=-1.0)
    rig.simulator.factor = 2.0  # a motion lasts
    rig.simulator.start()
    rig.connected()
    rig.fly("mu(20);")
    stop, lost = rig.drone._stop, [1, 2]

    def hear(now: float) -> None:
        """Two stops get lost, and an old answer comes."""
        if lost:
            lost.pop()
            rig.drone._say("ok", now)
        else:
            stop(now)

    rig.drone._stop = hear
    rig.send("mf(500);")
    rig.until(lambda: rig.count("forward"), "the motion")
    rig.robot.on_stop(rig.now())
    rig.until(lambda: not rig.drone.busy, "a standstill")
    assert rig.pose()[0] < 4.9 and rig.count("stop") == 3


# ---- datagrams that are none of its own ----------------------------------------------------------

NONSENSE = [
    b"\xff\xfe h:0;tof:10;\r\n",
    b"",
    b"ok",
    b"h;tof;bat",
    b"h:nan;tof:1e999;bat:inf;",
    b"bat:" + b"9" * 401 + b";h:" + b"9" * 5000 + b";",
    b"bat:-5;h:0x10;tof:1_0;time:1e3;",
    b"x" * 20_000,
    b"h:0;tof:10;bat:100;yaw:0;time:0;" + b"pad:1;" * 1000,
]


def test_state_lines_that_make_no_sense_are_none(make) -> None:
    one, two = make().connected(), make().connected()
    one.fly("mu(20);")
    for data in NONSENSE:
        one.datagram(data, STATE_PORT)
    before = one.adapter.flight.link.state()
    one.until(lambda: one.adapter.flight.link.state() is not before, "the next line of one")
    before = two.adapter.flight.link.state()
    two.until(lambda: two.adapter.flight.link.state() is not before, "the next line of the other")
    state = one.adapter.flight.link.state()
    assert state["h"] == 100 and 90 < state["bat"] < 100 and one.adapter.flight.flying
    assert one.fly("mf(20);").error == two.fly("mf(20);").error == ""


def test_state_lines_of_strangers_are_nobodys(rig: Rig) -> None:
    rig.datagram(b"h:990;tof:990;bat:1;", STATE_PORT, "127.77.7.7")
    assert rig.fly("mf(20);").error == ""


def test_bytes_that_are_no_text_answer_nothing(rig: Rig) -> None:
    """Real drones send such packets now and then."""
    from djitellopy import tello as sdk

    rig.fly("mu(20);")
    rig.reports.clear()
    rig.send("mf(500);")
    rig.until(lambda: rig.count("forward"), "the motion")
    for data in (b"\xcc\x18\x01\xb9\x88V\x00", b"", b"o" * 3000, b"\x1b[2Jok"):
        rig.datagram(data, sdk.client_socket.getsockname()[1])
    assert rig.report(State.PLAN_RETURNED, State.FAILED).error == ""
    assert rig.pose()[0] == 5.0 and not rig.drone.busy


def test_answers_that_nobody_waits_for_do_not_pile_up(rig: Rig) -> None:
    from djitellopy import tello as sdk

    answers = rig.adapter.flight.link.sdk.get_own_udp_object()["responses"]
    for _ in range(300):
        rig.datagram(b"ok", sdk.client_socket.getsockname()[1])
    rig.datagram(b"last", sdk.client_socket.getsockname()[1])
    rig.until(lambda: b"last" in list(answers), "the last one")
    assert len(answers) <= 100
