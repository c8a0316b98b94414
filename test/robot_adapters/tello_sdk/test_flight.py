"""What a drone's state lines are taken for between two motions. A link is played here: the real one
and its times are in ``test_adapter.py``."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from robot_adapters.tello import flight as module
from robot_adapters.tello.dead_reckoning import DeadReckoning, Step, Way
from robot_adapters.tello.flight import Flight

MIDDLE = {"h": 80, "tof": 80, "yaw": 40, "time": 3}  # of a turn by 90 degrees
LAST = MIDDLE | {"yaw": 88}
TURN = Step("cw 90", Way(turn=-90.0))


class PlayedLink:
    """Answers every command; ``told`` is the last state line, ``told_at`` when it came."""

    address = ("played", 0)
    told, told_at = {"h": 80, "tof": 80, "yaw": 0, "time": 1}, 0.0

    def state(self):
        return self.told

    def silence(self):
        return module.time.monotonic() - self.told_at

    def ask(self, command, timeout, abort):
        return "ok"

    def send(self, command):
        pass

    def port_command(self):
        return None

    def close(self):
        pass


@pytest.fixture
def flight():
    flight = Flight(PlayedLink(), DeadReckoning(), 1.0)
    flight.met(flight.link.told)
    yield flight
    flight.end()


def test_a_line_from_the_middle_of_a_turn_is_not_its_end(flight, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    flight.fly(TURN, 1.0)
    assert flight.dead_reckoning.pose.yaw == -90.0
    flight.link.told, flight.link.told_at = MIDDLE, clock[0] + module.SETTLED
    clock[0] += 2 * module.SETTLED
    flight.observe()
    assert flight.dead_reckoning.pose.yaw == -90.0
    flight.link.told, flight.link.told_at = LAST, clock[0]
    flight.observe()
    assert flight.dead_reckoning.pose.yaw == pytest.approx(-88.0)
