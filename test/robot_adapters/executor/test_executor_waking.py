"""When the executor wants to be woken: the first of poll, heartbeat, silent planner, deadline."""

from __future__ import annotations

from dataclasses import replace

import pytest
from executor_rig import CANCEL, TIMING, Desk

from robot_adapters.executor.executor import RobotExecutor
from robot_adapters.executor.guard import RETRY

NEVER = 1e6


def desk_with(**times: float) -> Desk:
    """Times that are not given are too long to matter."""
    never = {"heartbeat_period": NEVER, "planner_timeout": NEVER}
    return Desk(timing=replace(TIMING, **never | times))


def test_the_times_without_parameters() -> None:
    timing = RobotExecutor(Desk().robot).timing
    assert (timing.heartbeat_period, timing.planner_timeout, timing.probe_timeout) == (0.2, 2, 10)
    assert (timing.patience, timing.overtime) == (15, 3)


def test_a_robot_of_nobody_need_not_be_woken() -> None:
    desk = Desk(registered=False)
    assert desk.executor.next_wake(0.0) is None


def test_a_heartbeat_is_due_a_period_after_the_last_report() -> None:
    desk = desk_with(heartbeat_period=0.5)
    assert desk.executor.next_wake(0.0) == 0.5
    desk.now = 0.25
    desk.send(0, "go(9)")
    assert desk.executor.next_wake(0.25) == 0.75
    assert desk.executor.tick(0.5) == []
    assert len(desk.executor.tick(0.75)) == 1


def test_a_silent_planner_is_lost_a_timeout_after_it_was_heard() -> None:
    desk = desk_with(planner_timeout=3.0)
    assert desk.executor.next_wake(0.0) == 3.0
    desk.now = 1.0
    desk.alive()
    assert desk.executor.next_wake(1.0) == 4.0
    desk.executor.tick(3.75)
    assert not desk.executor.lost
    desk.executor.tick(4.0)
    assert desk.executor.lost
    assert desk.executor.next_wake(4.0) is None


def test_a_lost_planner_is_not_waited_for_while_its_last_call_is_done() -> None:
    desk = desk_with(planner_timeout=3.0)
    desk.send(0, "go(5)")
    desk.executor.tick(3.0)
    assert desk.executor.next_wake(3.0) == 5.0


@pytest.mark.parametrize(("text", "deadline"), [("go(1)", 6.0), ("go(3)", 10.0), ("look()", 6.0)])
def test_a_call_fails_at_its_deadline(text: str, deadline: float) -> None:
    """Twice as long as expected, and 4 s."""
    desk = desk_with()
    desk.robot.durations |= {"go": NEVER, "look": NEVER}
    desk.send(0, text)
    assert desk.executor.next_wake(0.0) == deadline
    desk.take(desk.executor.tick(deadline - 0.01))
    assert desk.told() == ["RECEIVED", f"STARTED {text if 'go' in text else 'look()'}"]
    desk.take(desk.executor.tick(deadline))
    assert desk.told()[0].endswith(f": not done after {deadline:g} s")


def test_a_call_is_polled_when_its_adapter_says() -> None:
    desk = desk_with()
    desk.send(0, "go(2);go(3)")
    assert desk.executor.next_wake(0.0) == 2.0
    desk.executor.tick(2.0)
    assert desk.executor.next_wake(2.0) == 5.0
    desk.executor.tick(5.0)
    assert desk.executor.next_wake(5.0) == NEVER


def test_an_adapter_that_cannot_say_is_polled_again_soon() -> None:
    desk = desk_with(heartbeat_period=0.5)
    desk.send(0, "go(9)")
    desk.robot.raises.add("next_poll")
    assert desk.executor.next_wake(0.25) == 0.25 + RETRY
    desk.take(desk.executor.tick(0.5))
    assert desk.executor.next_wake(0.5) == 0.5 + RETRY


def test_heartbeats_before_registration_mean_nothing() -> None:
    desk = Desk(registered=False)
    desk.alive("p")
    desk.alive("q")
    assert not desk.executor.lost and desk.robot.log == []
    desk.take(desk.executor.new_session(1, 0.0, "r"))
    desk.alive("r")
    assert not desk.executor.lost


def test_a_planner_that_named_no_instance_is_known_by_its_first_heartbeat() -> None:
    desk = Desk(registered=False)
    desk.take(desk.executor.new_session(1, 0.0))
    desk.alive("p")
    assert not desk.executor.lost
    desk.now = 2.0
    desk.alive("q")
    assert desk.executor.lost


def test_a_lost_planner_is_lost_once() -> None:
    desk = Desk()
    desk.now = 2.0
    desk.alive("q")
    desk.alive("r")
    desk.alive("p")
    assert desk.robot.log[1:] == ["2 hold"]


def test_a_cancel_of_another_plan_leaves_the_last_report_counting() -> None:
    desk = desk_with(heartbeat_period=0.5)
    desk.now = 0.4
    desk.send(0, command=CANCEL)
    assert desk.executor.next_wake(0.4) == 0.9


def test_while_the_last_call_of_a_lost_planner_is_done_it_beats_and_registers_with_nobody() -> None:
    desk = desk_with(planner_timeout=3.0, heartbeat_period=2.0)
    desk.send(0, "go(5)")
    desk.run(3.5, alive=False)
    assert desk.executor.lost and not desk.executor.needs_registration
    desk.reports.clear()
    desk.run(4.5, alive=False)
    assert [report.stamp for report in desk.reports] == [4.0]
    desk.run(5.0, alive=False)
    assert desk.executor.needs_registration


def test_the_adapter_of_an_idle_robot_is_polled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drone that is low on battery lands by itself."""
    desk, polled = Desk(), []
    monkeypatch.setattr(desk.robot, "poll", polled.append)
    desk.executor.tick(0.25)
    assert polled == [0.25]
    desk.take(desk.executor.shutdown(0.5))
    desk.executor.tick(0.75)
    assert polled == [0.25]
