"""The duration of the reference work, on a clock that is set by hand."""

import pytest

from timely_llm.bench.machine_speed import PERIOD, WINDOW, SpeedGauge, reference_work


class Machine:
    """Its clock moves while it works, ``slowness`` ms a run."""

    def __init__(self) -> None:
        self.now, self.slowness, self.done = 100.0, 1.0, 0

    def work(self) -> None:
        self.now += 1e-3 * self.slowness
        self.done += 1


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_the_first_run_counts_at_once(machine):
    machine.slowness = 3.0
    assert SpeedGauge(machine.work, lambda: machine.now).seconds() == pytest.approx(3e-3)


def test_the_work_is_run_when_it_is_due_and_no_oftener(machine):
    gauge = SpeedGauge(machine.work, lambda: machine.now)
    for _ in range(100):
        gauge.seconds()
    assert machine.done == 1
    machine.now += PERIOD
    gauge.seconds()
    assert machine.done == 2


def test_a_machine_that_gets_slow_is_followed(machine):
    gauge = SpeedGauge(machine.work, lambda: machine.now)
    gauge.seconds()
    machine.slowness = 2.0
    begun = machine.now
    while machine.now < begun + WINDOW:
        machine.now += PERIOD
        gauge.seconds()
    assert gauge.seconds() == pytest.approx(2e-3 - 1e-3 / 2.718, rel=0.05)
    while machine.now < begun + 10 * WINDOW:
        machine.now += PERIOD
        gauge.seconds()
    assert gauge.seconds() == pytest.approx(2e-3, rel=1e-3)


def test_after_a_pause_only_the_new_run_counts(machine):
    gauge = SpeedGauge(machine.work, lambda: machine.now)
    gauge.seconds()
    machine.now, machine.slowness = machine.now + 3600.0, 4.0
    assert gauge.seconds() == pytest.approx(4e-3)


def test_the_reference_work_takes_time():
    assert SpeedGauge(reference_work).seconds() > 0
