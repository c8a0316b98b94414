"""What a plan may use up, and what its reports say of the time that is left."""

from __future__ import annotations

from dataclasses import replace

import pytest
from executor_rig import CANCEL, REPLACE, TIMING, B, Desk, State


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize(("begin", "told"), [(95.0, "STARTED go(5)"), (95.5, "FAILED go(5): go: ")])
def test_a_plan_may_take_max_time_and_no_longer(desk: Desk, begin: float, told: str) -> None:
    """100 s, from its first segment on."""
    desk.run(7.0)
    desk.send(0, "go(1)")
    desk.run(7.0 + begin)
    desk.told()
    desk.send(1, ";go(5)")
    assert desk.told()[1].startswith(told)


def test_a_plan_may_travel_max_travel_and_no_further(desk: Desk) -> None:
    desk.send(0, "go(9);go(1);go(1);")
    desk.run(15.0)
    assert desk.told()[3:] == [
        "STARTED go(1)",
        "SUCCEEDED go(1)",
        "FAILED go(1): go: the plan would travel further than max_travel, 10 m",
        "IDLE",
    ]


def test_each_plan_travels_for_itself(desk: Desk) -> None:
    desk.send(0, "go(9);", last=True)
    desk.run(9.0)
    desk.send(0, "go(9);", last=True, plan=B)
    desk.run(18.0)
    assert desk.told()[-3:] == ["SUCCEEDED go(9)", "PLAN_RETURNED", "IDLE"]


def test_an_aborted_call_says_how_long_it_took_itself(desk: Desk) -> None:
    desk.send(0, "go(2);go(5)")
    desk.run(5.0)
    desk.send(0, command=CANCEL)
    (aborted,) = [report for report in desk.reports if report.state is State.ABORTED]
    assert (aborted.call.evaluated, aborted.elapsed, aborted.call_number) == (("5",), 3.0, 1)


def test_between_two_calls_nothing_is_under_way(desk: Desk) -> None:
    desk.send(0, "go(2)")
    desk.run(5.0)
    desk.send(0, command=CANCEL)
    (aborted,) = [report for report in desk.reports if report.state is State.ABORTED]
    assert (aborted.call.name, aborted.elapsed) == ("", 0.0)


def test_a_starved_robot_has_nothing_left_to_do(desk: Desk) -> None:
    desk.send(0, "go(2)")
    desk.run(3.0)
    desk.reports.clear()
    desk.send(1, ";go(4)")
    received, started = desk.reports
    assert (received.state, received.skill_remaining, received.total_remaining) == (
        State.RECEIVED, 0.0, 4.0,
    )  # fmt: skip
    assert (started.state, started.skill_remaining, started.total_remaining) == (
        State.STARTED, 4.0, 4.0,
    )  # fmt: skip


def test_what_is_left_counts_the_call_and_what_is_held(desk: Desk) -> None:
    desk.send(0, "go(3);go(4)")
    desk.run(1.0)
    desk.reports.clear()
    desk.send(1, ";go(2);")
    assert [(r.skill_remaining, r.total_remaining) for r in desk.reports] == [(2.0, 8.0)]


def test_a_call_of_a_replan_goes_on_counting(desk: Desk) -> None:
    desk.robot.errors["go"] = "motor"
    desk.send(0, "look();go(2)")
    desk.run(3.0)
    desk.robot.errors.clear()
    from_plan = [r.call_number for r in desk.reports if r.state is State.STARTED]
    desk.reports.clear()
    desk.send(1, "go(1)", command=REPLACE)
    assert from_plan == [0, 1]
    assert [r.call_number for r in desk.reports if r.state is State.STARTED] == [2]


def test_a_call_that_was_refused_is_none_that_was_carried_out(desk: Desk) -> None:
    desk.robot.refusals["go"] = "a wall"
    desk.send(0, "look();go(2)")
    desk.run(3.0)
    desk.robot.refusals.clear()
    failed = [r.call_number for r in desk.reports if r.state is State.FAILED]
    desk.send(1, "go(1)", command=REPLACE)
    assert failed == [1]
    assert [r.call_number for r in desk.reports if r.state is State.STARTED] == [0, 1]


def test_another_plan_counts_its_calls_from_zero(desk: Desk) -> None:
    desk.send(0, "look();go(2);", last=True)
    desk.run(3.0)
    desk.reports.clear()
    desk.send(0, "go(1)", plan=B)
    assert [r.call_number for r in desk.reports if r.state is State.STARTED] == [0]


def test_what_is_left_of_a_question_is_what_was_expected() -> None:
    """0.5 s for an answer; after that, nobody knows."""
    desk = Desk(ask=lambda question: None, timing=replace(TIMING, heartbeat_period=0.25))
    desk.send(0, "_1=ask('is it open?');go(2)")
    desk.run(1.0)
    running = [r for r in desk.reports if r.state is State.RUNNING]
    assert [(r.elapsed, r.skill_remaining, r.total_remaining) for r in running] == [
        (0.25, 0.25, 2.25), (0.5, 0.0, 2.0), (0.75, 0.0, 2.0), (1.0, 0.0, 2.0),
    ]  # fmt: skip
