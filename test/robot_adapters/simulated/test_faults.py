"""Faults that wait for their time, or for a call that they concern."""

from robot_adapters.simulated.faults import Fault, PendingFaults


def test_timed_faults_are_due_once_and_never_before_now() -> None:
    faults = PendingFaults()
    faults.schedule(Fault("loss", 2.0, at=5.0), 1.0)
    faults.schedule(Fault("late", 1.0, at=0.0), 3.0)
    assert faults.times == [5.0, 3.0]
    assert faults.due(2.9) == []
    assert faults.due(3.0) == [Fault("late", 1.0, 3.0)]
    assert faults.due(9.0) == [Fault("loss", 2.0, 5.0)] and faults.due(9.0) == []


def test_a_waiting_fault_is_taken_as_often_as_it_was_asked_for_in_order() -> None:
    faults, mute, drop = PendingFaults(), Fault("mute", 2), Fault("drop")
    faults.wait(mute, 2)
    faults.wait(drop)
    assert faults.take("hang") is None
    assert [faults.take("mute", "drop") for _ in range(4)] == [mute, mute, drop, None]
