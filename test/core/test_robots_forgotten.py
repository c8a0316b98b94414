"""A session that ended at the planner, without a word to its robot: the robot registers again."""

from __future__ import annotations

import pytest
from fleet_sim import FleetSim
from robot_cases import PLANS, robots

from timely_llm.core import events as ev
from timely_llm.core.robots import MOST_LEAP
from timely_llm.protocols.messages import NO_PLAN, ErrorCode, Execution, ExecutionState


def fleet() -> FleetSim:
    run = FleetSim(PLANS)
    run.add_robot("r1")
    return run


def forge(run: FleetSim, sequence: int, at: float) -> None:
    """A report in the robot's session that the robot has not made."""
    report = Execution(1, sequence, NO_PLAN, ExecutionState.IDLE)
    run.tell(ev.ExecutionArrived("r1", report), at)


def unregister(run: FleetSim, at: float) -> None:
    run.ask(lambda ticket: ev.UnregisterRobot(ticket, "r1"), at)


def test_a_robot_that_somebody_unregistered_registers_again():
    run = fleet()
    plan = run.goal("r1", "long", at=1.0)
    unregister(run, at=2.0)
    run.run(8.0)
    assert run.result(plan).error_code is ErrorCode.ROBOT_LOST
    assert robots(run) == ["r1"]
    assert run.robots["r1"].session == 2
    again = run.goal("r1", "short", at=8.0)
    run.finish()
    assert run.result(again).error_code is ErrorCode.NONE
    assert run.robots["r1"].session == 2  # and keeps that


def test_a_report_that_leaps_further_than_can_be_is_a_stranger_s():
    run = fleet()
    forge(run, 2**64 - 1, at=1.0)
    plan = run.goal("r1", "long", at=1.5)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE
    assert run.robots["r1"].session == 1


@pytest.mark.parametrize("sequence", [MOST_LEAP, MOST_LEAP // 2])
def test_a_robot_whose_reports_count_as_old_registers_again(sequence):
    run = fleet()
    forge(run, sequence, at=1.0)
    run.run(10.0)
    assert run.robots["r1"].session == 2
    plan = run.goal("r1", "short", at=10.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE


def test_so_does_one_whose_first_report_was_forged():
    run = fleet()
    forge(run, 2**64 - 1, at=0.001)
    run.run(10.0)
    assert run.robots["r1"].session == 2
    plan = run.goal("r1", "short", at=10.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE


def test_two_adapters_of_one_id_do_not_register_against_each_other_for_ever():
    run = fleet()
    first = run.robots["r1"]
    second = run.add_robot("r1", at=1.0, instance="another")
    run.robots = {"r1": first, "another": second}
    unregister(run, at=2.5)
    run.run(30.0)
    assert (first.session, second.session) == (1, 2)
    assert {code for code, _ in first.refusals} == {ErrorCode.ROBOT_EXISTS}
    assert first.body.done == second.body.done == []
