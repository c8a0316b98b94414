"""The Tello adapter on the real djitellopy, flying a simulated drone over real UDP."""

from __future__ import annotations

import re
import socket

import pytest
from tello_rig import BLIND, STATE_PORT, Rig

from robot_adapters.adapter import Adapter, AdapterError, Notified, make_adapter
from robot_adapters.tello.link import _claim_ports
from robot_adapters.tello.simulated_drone import SimTello
from timely_llm.language.loader import read_skill_set
from timely_llm.protocols.messages import ExecutionState

pytestmark = pytest.mark.usefixtures("sdk_ports")

State = ExecutionState


def test_it_is_an_adapter_by_name(rig: Rig) -> None:
    assert isinstance(rig.adapter, Adapter) and isinstance(rig.adapter, Notified)


# ---- skills --------------------------------------------------------------------------------------


def test_every_skill_of_the_sdk_is_flown_by_its_own_command(rig: Rig) -> None:
    plan = "mf(100);ml(50);tc(90);mb(20);mr(30);mu(60);md(40);tu(180);l('hello');d(0.1);"
    assert rig.fly(plan).state is State.PLAN_RETURNED
    assert rig.heard() == [
        *("takeoff", "forward 100", "left 50", "cw 90", "back 20", "right 30"),
        *("up 60", "down 40", "ccw 180"),
    ]
    assert rig.pose() == (0.7, 0.7, 1.0, 90)
    assert rig.adapter.diagnostics()["said"] == "hello"


def test_dead_reckoning_is_where_the_drone_is(rig: Rig) -> None:
    rig.fly("mf(200);tu(90);mf(100);mu(50);")
    rig.until(lambda: rig.adapter.diagnostics()["height"] == "130 cm", "its height")
    assert rig.adapter.diagnostics()["pose"] == (
        "x 2.00 y 1.00 z 1.30 m, yaw 90 deg, give or take 0.15 m"
    )


def test_a_wait_and_a_word_need_no_drone_and_a_motion_says_what_is_missing(make) -> None:
    rig = make(serve=False)  # nobody answers
    assert rig.fly("l('hello');d(0.1);").state is State.PLAN_RETURNED
    rig.until(lambda: "does not answer" in rig.adapter.flight.trouble, "the connection to fail")
    failed = rig.fly("mf(100)")
    assert (failed.state, failed.error) == (
        State.FAILED, f"mf: the drone at {rig.host}:{rig.port} does not answer",
    )  # fmt: skip


def test_state_and_battery_are_in_the_diagnostics(make) -> None:
    rig = make(drone=SimTello(battery=62.5)).connected()
    facts = rig.adapter.diagnostics()
    assert (facts["battery"], facts["height"], facts["state"]) == ("62 %", "0 cm", "on the ground")
    rig.fly("mu(20);")
    assert rig.adapter.diagnostics()["state"] == "in the air"


def test_limits_of_the_sdk_hold_whatever_the_skill_set_says(make) -> None:
    loose = BLIND.text.replace("maximum: 500", "maximum: 700").replace("minimum: 20", "minimum: 1")
    loose = re.sub(r"  geofence:.*?\nskills:", "skills:", loose, flags=re.S)
    rig = make(read_skill_set(loose)).connected()
    assert rig.fly("mf(10)").error == "mf: forward takes whole numbers of 20 to 500 cm, not 10"
    assert rig.fly("mu(600)").error == "mu: up takes whole numbers of 20 to 500 cm, not 600"
    assert rig.heard("stop") == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("unit: cm", "unit: m", "skill set 'tello_sdk': mf: must take one number of cm"),
        ("long_name: delay", "long_name: brew", "a Tello cannot do brew: leave it out"),
    ],
)
def test_skills_that_it_cannot_do_are_refused_at_the_start(old, new, words) -> None:
    skills = read_skill_set(BLIND.text.replace(old, new))
    with pytest.raises(AdapterError, match=words):
        make_adapter("tello", "r1", skills)


# ---- taking off and landing ----------------------------------------------------------------------


def test_it_takes_off_once_and_lands_when_it_is_idle(make) -> None:
    rig = make(land_idle=0.3).connected()
    rig.fly("mf(20);mb(20);")
    rig.landed()
    assert rig.heard() == ["takeoff", "forward 20", "back 20", "land"]
    rig.until(lambda: not rig.adapter.flight.flying, "that it knows")
    assert rig.fly("mu(20);").state is State.PLAN_RETURNED
    assert rig.heard()[4:6] == ["takeoff", "up 20"]


def test_it_lands_behind_the_plan_where_it_shall(make) -> None:
    rig = make(land_after_plan=True, land_idle=0.0).connected()
    rig.fly("mf(20);")
    rig.landed()
    assert rig.heard() == ["takeoff", "forward 20", "land"]


def test_without_automatic_take_off_a_motion_on_the_ground_is_refused(make) -> None:
    rig = make(auto_takeoff=False).connected()
    assert rig.fly("mf(20)").error == "mf: the drone is on the ground, and auto_takeoff is off"
    assert rig.heard("stop") == []


def test_take_off_and_landing_are_skills_where_a_skill_set_has_them(make) -> None:
    more = "".join(
        f"  - {{name: {name}, long_name: {name}, duration: {{constant: 0.3}}}}\n"
        for name in ("takeoff", "land")
    )
    rig = make(read_skill_set(BLIND.text + more), auto_takeoff=False).connected()
    assert rig.fly("takeoff();mf(20);land();").state is State.PLAN_RETURNED
    assert rig.heard() == ["takeoff", "forward 20", "land"]
    assert "*has landed" in rig.lines()


@pytest.mark.parametrize("land", [True, False])
def test_the_end_of_the_node_lands_it_by_parameter(make, land: bool) -> None:
    rig = make(land_on_exit=land).connected()
    rig.fly("mf(20);")
    rig.robot.shutdown(rig.now())
    if land:
        rig.until(lambda: rig.count("land"), "the landing")
    else:  # nothing keeps it in the air any more
        rig.until(lambda: "*lands: 15 s without a command" in rig.lines(), "its own landing")
        assert rig.count("land") == 0


def test_a_node_that_starts_again_finds_its_drone_in_the_air(make) -> None:
    rig = make(land_on_exit=False).connected()
    rig.fly("mu(50);")
    rig.adapter.close(rig.now())
    rig.begin()
    rig.connected()
    assert rig.fly("mf(20);").state is State.PLAN_RETURNED
    assert rig.count("takeoff") == 1
    assert " z 1.30 m" in rig.adapter.diagnostics()["pose"]


# ---- what the drone refuses, and what it does not say --------------------------------------------

# ---- several drones, ports -----------------------------------------------------------------------


def test_several_drones_do_not_hear_each_others_answers(make) -> None:
    rigs = [make().connected() for _ in range(3)]
    rigs[1].fault("joystick")
    for rig in rigs:
        rig.fly("mu(20);") if rig is not rigs[1] else None
    plans = ["mf(300);mb(100);", "mu(20);", "ml(200);mr(50);"]
    for rig, plan in zip(rigs, plans, strict=True):
        rig.reports.clear()
        rig.send(plan)
    ends = (State.PLAN_RETURNED, State.FAILED)

    def ended() -> bool:
        for rig in rigs:
            rig.step()
        return all(any(r.state in ends for r in rig.reports) for rig in rigs)

    rigs[0].until(ended, "all plans")
    outcomes = [rig.report(*ends).error for rig in rigs]
    assert outcomes == ["", "mu: takeoff: error Not joystick", ""]
    assert (rigs[0].pose()[:2], rigs[2].pose()[:2]) == ((2, 0), (0, 1.5))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"state_port": STATE_PORT + 1}, "this process has a drone on"),
        ({"host": "no.such.host.invalid"}, "host 'no.such.host.invalid'"),
    ],
)
def test_a_link_that_cannot_be_opened_is_refused_with_words(rig: Rig, parameters, words) -> None:
    with pytest.raises(AdapterError, match=words):
        make_adapter("tello", "r2", BLIND, **({"state_port": STATE_PORT} | parameters))


def test_one_process_flies_a_drone_once(rig: Rig) -> None:
    with pytest.raises(AdapterError, match="has a drone of that address already"):
        make_adapter("tello", "r2", BLIND, host=rig.host, state_port=STATE_PORT)


def test_a_state_port_that_is_taken_is_seen_at_the_start(monkeypatch) -> None:
    monkeypatch.setattr("robot_adapters.tello.link._claimed", None)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("", 0))
        port = other.getsockname()[1]
        with pytest.raises(AdapterError, match=f"state_port {port}: Address already in use"):
            _claim_ports(0, port)


def test_a_drone_that_cannot_send_its_state_elsewhere_says_so(make) -> None:
    rig = make(drone=SimTello(sdk=20))
    rig.until(lambda: "refuses" in rig.adapter.flight.trouble, "the refusal")
    words = f"mf: the drone at {rig.host}:{rig.port} refuses 'port {STATE_PORT} 11111': unknown"
    assert rig.fly("mf(20)").error.startswith(words)
