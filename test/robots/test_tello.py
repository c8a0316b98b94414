"""The Tello adapter on the real djitellopy, flying a simulated drone over real UDP."""

from __future__ import annotations

import re
import socket
import threading

import pytest
from tello_rig import BLIND, SEEING, STATE_PORT, Rig

from robot_adapters.base import Adapter, AdapterError, Notified, make_adapter
from robot_adapters.plan_run import Timing
from robot_adapters.tello.link import GivenUp, _claim_ports
from robot_adapters.tello.sim import SimTello
from timely_llm.messages import ExecutionState
from timely_llm.skills import SkillSet

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
    rig = make(SkillSet.from_yaml(loose)).connected()
    assert rig.fly("mf(10)").error == "mf: forward takes whole numbers of 20 to 500 cm, not 10"
    assert rig.fly("mu(600)").error == "mu: up takes whole numbers of 20 to 500 cm, not 600"
    assert rig.heard() == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("unit: cm", "unit: m", "skill set 'tello_sdk': mf: must take one number of cm"),
        ("long_name: delay", "long_name: brew", "a Tello cannot do brew: leave it out"),
    ],
)
def test_skills_that_it_cannot_do_are_refused_at_the_start(old, new, words) -> None:
    skills = SkillSet.from_yaml(BLIND.text.replace(old, new))
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
    assert rig.heard() == []


def test_take_off_and_landing_are_skills_where_a_skill_set_has_them(make) -> None:
    more = "".join(
        f"  - {{name: {name}, long_name: {name}, duration: {{constant: 0.3}}}}\n"
        for name in ("takeoff", "land")
    )
    rig = make(SkillSet.from_yaml(BLIND.text + more), auto_takeoff=False).connected()
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
    assert rig.heard() == ["takeoff"]


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
    rig.until(lambda: rig.adapter.flight.job() is None, "the end of it")
    assert "give or take 2.50 m" in rig.adapter.diagnostics()["pose"]
    assert rig.fly("mf(500)").error.startswith("mf: x would be 7.50 m (give or take 2.75)")


def test_an_empty_battery_begins_no_motion(make) -> None:
    rig = make(drone=SimTello(battery=14.5)).connected()
    assert rig.fly("mf(20)").error == "mf: battery is at 14 %: min_battery is 15 %"
    assert rig.heard() == []


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
        with pytest.raises(OSError, match=f"state_port {port}: Address already in use"):
            _claim_ports(0, port)


def test_a_drone_that_cannot_send_its_state_elsewhere_says_so(make) -> None:
    rig = make(drone=SimTello(sdk=20))
    rig.until(lambda: "refuses" in rig.adapter.flight.trouble, "the refusal")
    words = f"mf: the drone at {rig.host}:{rig.port} refuses 'port {STATE_PORT} 11111': unknown"
    assert rig.fly("mf(20)").error.startswith(words)


# ---- with somebody who looks ---------------------------------------------------------------------

CAMERA = "robot_adapters.sim_camera:SimulatedCamera"


def test_what_needs_a_picture_is_refused_at_the_start_without_one() -> None:
    with pytest.raises(AdapterError) as caught:
        make_adapter("tello", "r1", SEEING)
    assert str(caught.value) == (
        "skill set 'tello': the Tello SDK alone cannot do goto, is_visible, "
        "object_x, object_y, object_width, object_height, object_dis, take_picture: name a "
        "'perception' that can (look, picture; docs/tello.md), or use a skill set without "
        "them (config/skills/sdk/tello_sdk.yaml)"
    )


def test_a_perception_makes_the_skills_possible_that_it_can_do(make) -> None:
    rig = make(SEEING, perception=CAMERA, perception_config="world=house, yaw=45").connected()
    plan = "mu(20);?s('countertop')==True{g('countertop');_1=od('countertop');->_1}->False"
    returned = rig.fly(plan)
    assert (returned.state, returned.error) == (State.PLAN_RETURNED, "")
    assert 40 <= int(returned.value) <= 130
    assert rig.heard()[0] == "takeoff" and "forward" in rig.heard()[-1]
    assert rig.fly("?iv('unicorn')==True{->'yes'}->'no'").value == "no"
    assert rig.fly("ox('unicorn');").error == "ox: 'unicorn' is not in view"
    assert rig.fly("tp();").state is State.PLAN_RETURNED
    assert "countertop" in rig.adapter.observe()


class HalfBlind:
    def __init__(self, robot_id: str, config: str) -> None:
        self.config = config

    def look(self, view) -> list:
        if self.config == "hang":
            _let_go.wait()
        if self.config == "raise":
            raise OSError("the lens is dirty")
        return []


_let_go = threading.Event()
IS_VISIBLE = """\
  - name: iv
    long_name: is_visible
    arguments:
      - {name: object, type: str, maximum: 32}
    returns: bool
    duration: {constant: 0.001}
"""
LOOKS = SkillSet.from_yaml(BLIND.text + IS_VISIBLE)


def test_a_perception_that_fails_fails_the_call(make) -> None:
    path = f"{__name__}:HalfBlind"
    rig = make(LOOKS, perception=path, perception_config="raise").connected()
    assert rig.fly("iv('cat');").error == "iv: OSError: the lens is dirty"


def test_a_perception_that_hangs_is_given_up_and_a_stop_still_reaches_the_drone(make) -> None:
    timing = Timing(planner_timeout=5.0, patience=0.5)
    path = f"{__name__}:HalfBlind"
    rig = make(LOOKS, timing=timing, perception=path, perception_config="hang").connected()
    rig.fly("mu(20);")
    try:
        assert rig.fly("iv('cat');mf(20);").error.startswith("iv: not done after")
        rig.until(lambda: rig.count("stop"), "the stop")
    finally:
        _let_go.set()
    assert rig.fly("mf(20);").state is State.PLAN_RETURNED


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nonsense", "perception: 'nonsense' must be module:class"),
        ("no.such:Thing", "perception 'no.such:Thing': No module named 'no'"),
        ("robot_adapters.sim_camera:Camera", "has no attribute 'Camera'"),
    ],
)
def test_a_perception_that_is_not_there_is_refused(path: str, words: str) -> None:
    with pytest.raises(AdapterError, match=words):
        make_adapter("tello", "r1", SEEING, perception=path)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("wrld=house", "unknown key 'wrld'; did you mean 'world'"),
        ("world=huose", "no bundled world 'huose'"),
        ("x=far", "x is 'far': must be a number"),
        ("house", "'house': must be KEY=VALUE"),
    ],
)
def test_a_simulated_camera_reads_its_config_strictly(config: str, words: str) -> None:
    with pytest.raises(AdapterError, match=words):
        make_adapter("tello", "r1", SEEING, perception=CAMERA, perception_config=config)
