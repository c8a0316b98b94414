"""The simulated Tello on virtual time: the SDK's commands and answers, its body, its faults."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_adapters.simulated.faults import Fault, FaultError, parse_fault
from robot_adapters.tello.simulated_drone import AUTO_LAND, KINDS, SimTello


class Pilot:
    """Says something, and lets time go by."""

    def __init__(self, drone: SimTello) -> None:
        self.drone, self.now = drone, 0.0

    def say(self, *commands: str) -> list[str]:
        """The answers that come at once."""
        for command in commands:
            self.drone.receive(command, self.now)
        return self.drone.answers(self.now)

    def wait(self, seconds: float) -> list[str]:
        self.now += seconds
        return self.drone.answers(self.now)

    def fly(self, *commands: str) -> list[str]:
        """Each to its answer, which takes as long as it takes; the answers."""
        answers = []
        for command in commands:
            answer = self.say(command)
            while not answer:
                event = self.drone.next_event()
                assert event is not None, command
                answer = self.wait(event - self.now)
            answers += answer
        return answers

    def pose(self) -> tuple:
        return tuple(round(value, 3) for value in self.drone.pose(self.now).values)

    def did(self) -> list[str]:
        """What the drone did by itself."""
        return [text for _, mark, text in self.drone.log if mark == "*"]


@pytest.fixture
def pilot() -> Pilot:
    return Pilot(SimTello(noise=0.0))


@pytest.fixture
def flying(pilot: Pilot) -> Pilot:
    assert pilot.fly("command", "takeoff") == ["ok", "ok"]
    return pilot


def test_it_is_deaf_before_sdk_mode(pilot: Pilot) -> None:
    assert pilot.say("battery?") == []
    assert pilot.drone.state_line(0.0) is None
    assert pilot.say("command", "battery?") == ["ok", "100"]


def test_its_state_reads_like_the_drones(flying: Pilot) -> None:
    flying.fly("cw 90", "up 50")
    line = flying.drone.state_line(flying.now)
    assert line.endswith("\r\n")
    fields = dict(field.split(":") for field in line.strip().rstrip(";").split(";"))
    assert (fields["h"], fields["tof"], fields["yaw"], fields["bat"]) == ("130", "130", "90", "98")
    assert list(fields)[:6] == ["mid", "x", "y", "z", "mpry", "pitch"]


@pytest.mark.parametrize(
    ("command", "pose", "seconds"),
    [
        ("forward 100", (1, 0, 0.8, 0), 2.5344),
        ("back 100", (-1, 0, 0.8, 0), 2.5344),
        ("left 20", (0, 0.2, 0.8, 0), 1.9584),
        ("right 500", (0, -5, 0.8, 0), 5.4144),
        ("up 100", (0, 0, 1.8, 0), 2.9995),
        ("down 50", (0, 0, 0.3, 0), 2.6095),
        ("cw 90", (0, 0, 0.8, -90), 2.269),
        ("ccw 360", (0, 0, 0.8, 360), 6.724),
        ("go 100 0 0 50", (1, 0, 0.8, 0), 3.0),
        ("flip l", (0, 0, 0.8, 0), 1.5),
    ],
)
def test_motions_take_the_published_time_and_are_answered_at_their_end(
    flying: Pilot, command: str, pose: tuple, seconds: float
) -> None:
    began = flying.now
    assert flying.fly(command) == ["ok"]
    assert flying.pose() == pose
    assert flying.now - began == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("forward 19", "out of range"),
        ("forward 501", "out of range"),
        ("forward", "out of range"),
        ("forward far", "out of range"),
        ("forward 20.5", "out of range"),
        ("cw 0", "out of range"),
        ("ccw 361", "out of range"),
        ("go 10 10 10 50", "out of range"),
        ("speed 5", "out of range"),
        ("somersault 1", "unknown command: somersault 1"),
        ("what?", "unknown command: what?"),
        ("takeoff", "error"),
    ],
)
def test_what_it_refuses_at_once(flying: Pilot, command: str, answer: str) -> None:
    pose = flying.pose()
    assert flying.say(command) == [answer]
    assert flying.pose() == pose


def test_on_the_ground_its_motors_do_not_run(pilot: Pilot) -> None:
    assert pilot.say("command", "forward 100", "land") == ["ok", "error Motor stop"] + [
        "error Motor stop"
    ]


def test_a_second_motion_gets_in_the_way_of_the_first(flying: Pilot) -> None:
    flying.say("forward 100")
    assert flying.say("up 50") == ["error Not joystick"]
    assert flying.wait(3.0) == ["ok"]
    assert flying.pose() == (1, 0, 0.8, 0)


@pytest.mark.parametrize("words", ["ok", "forced stop"])
def test_a_stop_hovers_where_it_is_and_the_motion_is_not_answered(words: str) -> None:
    pilot = Pilot(SimTello(noise=0.0, stop_answer=words))
    pilot.fly("command", "takeoff")
    pilot.say("forward 100")
    pilot.wait(1.2672)
    assert pilot.say("stop") == [words]
    assert pilot.pose() == (0.5, 0, 0.8, 0)
    assert pilot.wait(10) == []


def test_it_lands_by_itself_after_a_silence_that_counts_from_the_last_command(
    flying: Pilot,
) -> None:
    flying.fly("forward 500")
    flying.wait(AUTO_LAND - 0.1)
    flying.say("rc 0 0 0 0")  # not answered, but heard
    flying.wait(AUTO_LAND - 0.1)
    assert flying.drone.flying
    flying.wait(5.0)
    assert not flying.drone.flying
    assert flying.did() == ["takes off", "lands: 15 s without a command", "has landed"]
    assert flying.say("up 50") == ["error Motor stop"]


def test_rc_moves_it_until_it_is_told_otherwise(flying: Pilot) -> None:
    flying.say("rc 0 50 0 0")
    flying.wait(2.0)
    flying.say("rc 0 0 0 0")
    flying.wait(2.0)
    assert flying.pose() == (1, 0, 0.8, 0)


def test_its_battery_runs_down_and_then_it_lands(flying: Pilot) -> None:
    for _ in range(80):
        flying.wait(10.0)
        flying.say("rc 0 0 0 0")
    assert not flying.drone.flying
    assert "lands: the battery is empty" in flying.did()
    assert flying.say("takeoff") == ["error Motor stop"]


def test_the_same_seed_flies_the_same_and_noise_is_small() -> None:
    def ends(seed: int) -> tuple:
        pilot = Pilot(SimTello(seed))
        pilot.fly("command", "takeoff", "forward 400", "cw 90", "forward 400")
        return pilot.pose()

    assert ends(1) == ends(1) != ends(2)
    assert ends(1)[:3] == pytest.approx((4, -4, 0.8), abs=0.7)


# ---- faults --------------------------------------------------------------------------------------


def test_a_silent_drone_flies_and_says_nothing(flying: Pilot) -> None:
    assert flying.say("sim silence") == ["ok"]
    flying.say("forward 100")
    assert flying.wait(10.0) == []
    assert flying.pose() == (1, 0, 0.8, 0)
    assert flying.fly("back 100") == ["ok"]


def test_a_late_answer_comes_late(flying: Pilot) -> None:
    flying.say("sim late=4")
    flying.say("forward 100")
    assert flying.wait(6.5) == []
    assert flying.wait(0.1) == ["ok"]


def test_errors_on_request_move_nothing(flying: Pilot) -> None:
    flying.say("sim joystick", "sim imu")
    assert flying.say("forward 100", "forward 100") == ["error Not joystick", "error No valid imu"]
    assert flying.pose() == (0, 0, 0.8, 0)


def test_motors_that_stop_in_mid_motion(flying: Pilot) -> None:
    flying.say("sim motor")
    assert flying.fly("forward 100") == ["error Motor stop"]
    assert flying.pose() == (0.5, 0, 0, 0)
    assert not flying.drone.flying


def test_a_lost_link_swallows_both_directions(flying: Pilot) -> None:
    flying.say("forward 100")
    flying.say("sim loss=5@1")
    assert flying.wait(1.5) == []
    assert flying.drone.state_line(flying.now) is None
    assert flying.say("land") == []
    assert flying.wait(2.0) == []  # its answer to the motion is lost
    assert flying.wait(3.0) == []
    assert flying.drone.state_line(flying.now) is not None
    assert flying.say("battery?") == ["98"]


def test_a_fault_at_its_time(pilot: Pilot) -> None:
    pilot.drone.inject(Fault("battery", 7, at=5.0), 0.0)
    assert pilot.say("command", "battery?") == ["ok", "100"]
    pilot.wait(6.0)
    assert pilot.say("battery?", "takeoff") == ["6", "error Motor stop"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("los=3", "fault 'los' is unknown; did you mean 'loss'?"),
        ("loss", "fault 'loss' needs a value: for S s nothing gets through"),
        ("battery=101", "fault 'battery': value is 101: must be 0 to 100"),
        ("late=-1", "must be KIND, KIND=VALUE or KIND=VALUE@SECONDS"),
    ],
)
def test_a_wrong_fault_is_refused_with_words(pilot: Pilot, text: str, words: str) -> None:
    with pytest.raises(FaultError, match=words.replace("?", r"\?")):
        parse_fault(text, KINDS)
    (answer,) = pilot.say(f"sim {text}")
    assert words in answer


def test_what_a_fault_says() -> None:
    assert parse_fault("late=4@12.5", KINDS) == Fault("late", 4.0, 12.5)
    assert parse_fault("joystick", KINDS) == Fault("joystick", 1.0, 0.0)


commands = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["takeoff", "land", "stop", "rc 0 9 0 9", "sim loss=1", "sim motor", "flip l"]),
    st.builds("{} {}".format, st.sampled_from(["forward", "up", "down", "cw", "go", "sim late=2"]),
              st.integers(-10, 600)),
)  # fmt: skip


@given(st.lists(st.tuples(commands, st.floats(0, 20)), max_size=30), st.integers(0, 5))
def test_whatever_it_is_told_it_stays_a_drone(script: list, seed: int) -> None:
    pilot = Pilot(SimTello(seed))
    pilot.say("command")
    for command, seconds in script:
        pilot.say(command)
        for answer in pilot.wait(seconds):
            assert answer and answer.isprintable()
        pose = pilot.drone.pose(pilot.now)
        assert pose.z >= 0 and (pilot.drone.flying or pose.z == 0)
        assert 0 <= pilot.drone.battery <= 100
        event = pilot.drone.next_event()
        assert event is None or event > pilot.now
    pilot.wait(100.0)
    assert not pilot.drone.flying  # left alone, it lands
