"""What a drone's state lines are taken for between two motions. A link is played here: the real one
and its times are in ``test_adapter.py``."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from robot_adapters.tello import flight as module
from robot_adapters.tello.dead_reckoning import DeadReckoning, Step, Way
from robot_adapters.tello.flight import Flight
from robot_adapters.tello.link import NoAnswer
from robot_adapters.tello.state import Line

FIRST = {"h": 80, "tof": 80, "yaw": 0, "time": 1, "bat": 90}
MIDDLE = FIRST | {"yaw": 40}  # of a turn by 90 degrees
LAST = FIRST | {"yaw": 88}
TURN = Step("cw 90", Way(turn=-90.0))


class PlayedLink:
    """Answers every command; ``line`` is the last state line, and each look for an answer lets
    0.1 s pass, after which the next line is there."""

    address = ("played", 0)

    def __init__(self, clock):
        self.clock, self.asked_at, self.line = clock, 0.0, Line(FIRST, 0.0)

    def state(self):
        return self.line.state

    def silence(self):
        return self.clock[0] - self.line.at

    def ask(self, command, timeout, abort):
        self.asked_at = self.clock[0]
        return "ok"

    def listen(self, timeout, abort):
        self.clock[0] += 0.1
        self.line = Line(self.line.state, self.clock[0])
        raise NoAnswer

    def send(self, command):
        pass

    def port_command(self):
        return None

    def close(self):
        pass


@pytest.fixture
def clock(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return clock


@pytest.fixture
def flight(clock, monkeypatch):
    monkeypatch.setattr(module.threading.Thread, "start", lambda thread: None)
    flight = Flight(PlayedLink(clock), DeadReckoning(), 1.0)
    flight.met(FIRST)
    flight.connected = True
    yield flight
    flight.end()


def test_a_line_from_the_middle_of_a_turn_is_not_its_end(flight, clock):
    flight.fly(TURN, 1.0)
    assert flight.dead_reckoning.pose.yaw == -90.0
    flight.link.line = Line(MIDDLE, clock[0] + module.SETTLED)
    clock[0] += 2 * module.SETTLED
    flight.observe()
    assert flight.dead_reckoning.pose.yaw == -90.0
    flight.link.line = Line(LAST, clock[0])
    flight.observe()
    assert flight.dead_reckoning.pose.yaw == pytest.approx(-88.0)


def test_an_answer_that_comes_sooner_than_can_be_is_believed_later(flight, clock):
    flight.fly(TURN, 4.0)
    assert clock[0] == pytest.approx(102.2)  # half of it, and two lines


def test_what_the_lines_say_for_a_second_is_believed(flight, clock):
    ground = FIRST | {"h": 0, "tof": 10}
    for passed in (0.0, 0.4, 0.8, 1.2):
        assert flight.flying
        flight.link.line = Line(ground, clock[0] + passed)
        flight.observe()
    assert not flight.flying
    flight.link.line = Line(FIRST, clock[0] + 1.3)
    flight.observe()
    assert flight.flying


def test_one_line_is_said_once_however_often_it_is_read(flight, clock):
    flight.link.line = Line(FIRST | {"h": 0, "tof": 10}, clock[0])
    for _ in range(9):
        clock[0] += 0.1
        flight.observe()
    assert flight.flying


def test_lines_that_do_not_tell_the_height_change_nothing(flight, clock):
    for state in (FIRST, {"bat": 50}):
        flight.link.line = Line(state, clock[0])
        flight.observe()
    assert flight.flying and flight.dead_reckoning.pose.z == 0.8


def test_a_drone_that_was_switched_on_again_counts_its_heading_from_there(flight, clock):
    flight.fly(TURN, 1.0)
    flight.met(FIRST | {"time": 0, "yaw": 10})
    flight.link.line = Line(FIRST | {"yaw": 10}, clock[0] + 1.0)
    clock[0] += 1.0
    flight.observe()
    assert flight.dead_reckoning.pose.yaw == pytest.approx(-90.0)
