"""Faults between planner and robot, on virtual time: reports that come twice, late or in disorder,
a planner that is gone for 30 s. Goals end with a code, nothing moves twice, the others go on.

Lost reports and segments are in ``test_reports_lost_messages.py``, restarts in
``test_robots.py``.
"""

import pytest
from fleet_sim import FleetSim
from hypothesis import given, settings
from hypothesis import strategies as st

from timely_llm.core import events as ev
from timely_llm.protocols.messages import ErrorCode, ExecutionState, OnFailure

PLANS = {"long": "go(2);go(3);go(1)", "short": "go(1)", "short+1": "go(0.5)"}
CALLS = ["go(2)", "go(3)", "go(1)"]


def fleet(late=lambda robot_id: 0.0, copies: int = 1) -> FleetSim:
    """``late(robot_id)``: how much later than usual a report comes, in s; and how many times."""
    run = FleetSim(PLANS)
    tell = run.tell

    def disturbed(event: ev.Event, at: float | None = None) -> None:
        if not isinstance(event, ev.ExecutionArrived):
            tell(event, at)
            return
        for _ in range(copies):
            tell(event, at + late(event.robot_id))

    run.tell = disturbed
    for robot_id in ("r1", "r2"):
        run.add_robot(robot_id)
    return run


def done(run: FleetSim, robot_id: str = "r1") -> list[str]:
    return [call for _, call in run.robots[robot_id].body.done]


def test_reports_that_come_twice_change_nothing():
    once, twice = fleet(), fleet(copies=3)
    for run in (once, twice):
        run.goal("r1", "long", at=1.0)
        run.finish()
    assert twice.log == once.log


@pytest.mark.parametrize("late", [0.5, 1.9])
def test_reports_that_come_late_only_cost_time(late):
    run = fleet(lambda robot_id: late)
    plan = run.goal("r1", "long", at=3.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE
    assert done(run) == CALLS


def test_reports_later_than_the_limit_end_the_goal_and_halt_the_robot():
    run = fleet(lambda robot_id: 2.5 if robot_id == "r1" else 0.0)
    plan, other = run.goal("r1", "long", at=4.0), run.goal("r2", "long", at=4.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.DELIVERY_FAILED
    assert "did not acknowledge segment 0 within 2.0 s" in run.result(plan).error_msg
    assert run.commands("r1")[-1].endswith("CANCEL")
    assert done(run) == ["go(2)", "go(3)"]  # halted 2 s behind the start of the first
    assert run.result(other).error_code is ErrorCode.NONE
    assert done(run, "r2") == CALLS


@given(st.lists(st.sampled_from([0.0, 0.1, 0.7, 1.5]), min_size=40, max_size=40), st.booleans())
@settings(max_examples=25)
def test_reports_in_disorder_move_nothing_twice(delays, replan):
    """An older report than the last is no news: what only it told is lost."""
    waits = iter(delays)
    run = fleet(lambda robot_id: next(waits, 0.0) if robot_id == "r1" else 0.0, copies=2)
    run.robots["r1"].body.faults["go(3)"] = "a wall"
    wish = OnFailure.REPLAN if replan else OnFailure.ABORT
    plan = run.goal("r1", "short", at=2.0, on_failure=wish)
    again = run.goal("r1", "short", at=2.0)
    other = run.goal("r2", "long", at=2.0)
    run.finish(settle=5.0)
    for goal in (plan, again):
        result = run.result(goal)
        assert result.error_code in (ErrorCode.NONE, ErrorCode.DELIVERY_FAILED)
        assert bool(result.error_msg) == (result.error_code is not ErrorCode.NONE)
        started = [
            e.call_number
            for _, _, e in run.reported
            if e.plan_id == goal and e.state is ExecutionState.STARTED
        ]
        assert started == list(range(len(started)))
    assert run.result(other).error_code is ErrorCode.NONE
    assert run.robots["r1"].executor.plan_id == "0" * 32


GONE = 30.0  # s


def hang(run: FleetSim, at: float) -> None:
    """The planner's process hangs: it takes nothing in, sends nothing, and then goes on."""

    def begin() -> None:
        run._stepping = True
        for robot in run.robots.values():
            robot.deaf = True

    def end() -> None:
        for robot in run.robots.values():
            robot.deaf = False
        run._step_over([])

    run.at(at, begin)
    run.at(at + GONE, end)


def test_a_planner_that_is_gone_for_30_s_leaves_robots_that_hold():
    run = fleet()
    plan = run.goal("r1", "long", at=1.0)
    waiting = run.goal("r1", "short", at=1.0)
    hang(run, at=1.5)
    late = run.goal("r2", "short", at=33.0)
    run.run(10.0)
    # The silence is noticed at 3.0; its call is finished, then it holds.
    assert done(run) == ["go(2)"]
    assert run.reports("r1", ExecutionState.ABORTED) == ["3.074 ABORTED"]
    assert run.robots["r1"].executor.lost
    run.finish(settle=5.0)
    assert run.result(plan).error_code in (
        ErrorCode.ROBOT_LOST,
        ErrorCode.ROBOT_STOPPED,
        ErrorCode.ROBOT_RESTARTED,
    )
    assert run.result(plan).error_msg
    assert run.result(waiting).error_code in (ErrorCode.NONE, ErrorCode.ROBOT_LOST)
    assert run.result(late).error_code is ErrorCode.NONE
    assert done(run) in (["go(2)"], ["go(2)", "go(1)"])  # the second goal's
    assert not run.robots["r1"].executor.lost


def test_a_planner_that_is_gone_during_a_replan_moves_nothing_twice():
    run = fleet()
    run.robots["r1"].body.faults["go(1)"] = "a wall"
    plan = run.goal("r1", "short", at=1.0, on_failure=OnFailure.REPLAN)
    hang(run, at=2.1)  # the failure is known, the next plan is being written
    run.finish(settle=5.0)
    assert run.result(plan).replans == 1
    assert run.result(plan).error_code is not ErrorCode.NONE
    assert done(run) == ["go(1)"]
