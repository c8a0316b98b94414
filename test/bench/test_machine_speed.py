"""Beats as long as the machine makes them, on a clock that is set by hand."""

import pytest

from timely_llm.bench.machine_speed import PERIOD, WINDOW, Metronome, medley


class Machine:
    """Its clock moves while it works, ``slowness`` ms a beat."""

    def __init__(self) -> None:
        self.now, self.slowness, self.done = 100.0, 1.0, 0

    def work(self) -> None:
        self.now += 1e-3 * self.slowness
        self.done += 1


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_the_first_beat_counts_at_once(machine):
    machine.slowness = 3.0
    assert Metronome(machine.work, lambda: machine.now).listen() == pytest.approx(3e-3)


def test_it_works_when_a_beat_is_due_and_no_oftener(machine):
    metronome = Metronome(machine.work, lambda: machine.now)
    for _ in range(100):
        metronome.listen()
    assert machine.done == 1
    machine.now += PERIOD
    metronome.listen()
    assert machine.done == 2


def test_a_machine_that_gets_slow_is_followed(machine):
    metronome = Metronome(machine.work, lambda: machine.now)
    metronome.listen()
    machine.slowness = 2.0
    begun = machine.now
    while machine.now < begun + WINDOW:
        machine.now += PERIOD
        metronome.listen()
    assert metronome.listen() == pytest.approx(2e-3 - 1e-3 / 2.718, rel=0.05)
    while machine.now < begun + 10 * WINDOW:
        machine.now += PERIOD
        metronome.listen()
    assert metronome.listen() == pytest.approx(2e-3, rel=1e-3)


def test_after_a_pause_only_the_new_beat_counts(machine):
    metronome = Metronome(machine.work, lambda: machine.now)
    metronome.listen()
    machine.now, machine.slowness = machine.now + 3600.0, 4.0
    assert metronome.listen() == pytest.approx(4e-3)


def test_the_medley_plays():
    assert Metronome(medley).listen() > 0
