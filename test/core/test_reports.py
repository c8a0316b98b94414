"""What robots report while they execute, and reports that are no news."""

import pytest
from fleet_sim import FleetSim
from report_cases import outcome, report, sim

from timely_llm.core import events as ev
from timely_llm.protocols.messages import (
    NO_PLAN,
    ErrorCode,
    Execution,
    ExecutionState,
    OnFailure,
    SegmentCommand,
    SkillCall,
)


@pytest.mark.parametrize(
    ("seen", "value", "calls"),
    [(True, "seen", ["find(cat)", "go(1)"]), (False, "gone", ["find(cat)", "go(2)"])],
)
def test_the_value_that_a_plan_returns_is_the_goal_s(seen, value, calls):
    run = sim(values={"find(cat)": seen})
    plan = run.goal("r1", "find", at=1.0)
    run.finish()
    assert outcome(run, plan) == ("NONE", "")
    assert run.result(plan).value == value
    assert [call for _, call in run.robots["r1"].body.done] == calls


def test_a_skill_that_fails_ends_the_plan():
    run = sim(faults={"go(3)": "a wall"})
    plan = run.goal("r1", "long", at=1.0)
    run.finish()
    assert outcome(run, plan) == ("SKILL_FAILED", "robot 'r1': go(3): go: a wall")
    assert run.motions("r1") == ["1.074 go(2)", "3.074 go(3)"]
    assert run.story(plan)[-1] == "6.082 ENDED SKILL_FAILED"
    assert run.result(plan).execution_time == pytest.approx(5.0)
    assert all("CANCEL" not in line for line in run.commands("r1"))  # it halted by itself


def test_a_limit_broken_by_an_evaluated_argument_ends_the_plan_without_motion():
    run = sim()
    plan = run.goal("r1", "vary", at=1.0)
    run.finish()
    code, error = outcome(run, plan)
    assert code == "SKILL_FAILED"
    assert "go: seconds is 99 s: must be 0.1 to 60 s" in error
    assert run.motions("r1") == []


def test_a_plan_that_asks_to_replan_is_over():
    run = sim()
    plan = run.goal("r1", "replan", at=1.0)
    run.finish()
    assert outcome(run, plan) == (
        "SKILL_FAILED",
        "robot 'r1' ended the plan and asked for another one",
    )
    assert [call for _, call in run.robots["r1"].body.done] == ["go(1)"]
    assert run.story(plan)[-1] == "2.084 ENDED SKILL_FAILED"


def test_a_plan_that_refuses_is_over_and_says_why():
    run = FleetSim({"refuse": "go(1);refuse('too far');"})
    run.add_robot("r1")
    plan = run.goal("r1", "refuse", at=1.0, on_failure=OnFailure.REPLAN)
    run.finish()
    assert outcome(run, plan) == ("REFUSED", "too far")
    assert [call for _, call in run.robots["r1"].body.done] == ["go(1)"]
    assert run.result(plan).replans == 0


def test_a_failure_while_the_rest_is_being_written_ends_the_writing():
    run = FleetSim({"x": "go(0.1);" + "go(9);" * 30})
    run.add_robot("r1", faults={"go(0.1)": "a wall"})
    plan = run.goal("r1", "x", at=1.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.SKILL_FAILED
    assert run.busy[-1][1] < 1.4
    assert plan not in run.engine._live
    assert len(run.motions("r1")) == 1


def test_what_other_robots_do_is_not_disturbed():
    def motions(faulty: bool) -> list[str]:
        run = sim(faults={"go(3)": "a wall"} if faulty else {})
        run.goal("r1", "long", at=1.0)
        run.goal("r2", "long", at=1.0)
        return run.finish().motions("r2")

    assert motions(True) == motions(False)


def test_feedback_for_an_ended_plan_is_ignored():
    run = sim()
    plan = run.goal("r1", "short", at=1.0)
    run.finish()
    log = len(run.log)
    in_progress = (ExecutionState.STARTED, ExecutionState.RUNNING, ExecutionState.IDLE)
    for state in ExecutionState:
        if state not in in_progress:
            report(run, "r1", plan, state, sequence=20_000 + state)
    run.run(run.now + 0.001)
    assert len(run.log) == log
    assert run.result(plan).error_code is ErrorCode.NONE


def test_a_robot_that_executes_what_is_over_is_told_to_stop():
    run = sim()
    plan = run.goal("r1", "short", at=1.0)
    run.finish()
    report(run, "r1", plan, ExecutionState.RUNNING)
    run.run(run.now + 0.001)
    assert run.sent[-1][2].command is SegmentCommand.CANCEL
    assert run.sent[-1][2].plan_id == plan


@pytest.mark.parametrize(
    ("fields", "news"),
    [
        ({}, True),
        ({"sequence": 0}, False),  # a repeat
        ({"session": 77}, False),  # of another session
    ],
)
def test_repeats_and_reports_of_another_session_are_ignored(fields, news):
    run = sim()
    plan = run.goal("r1", "long", at=1.0)
    run.run(2.0)
    report(run, "r1", plan, ExecutionState.FAILED, error="a lie", **fields)
    run.run(2.5)
    assert (plan in run.results) is news
    run.finish()
    assert (run.result(plan).error_code is ErrorCode.NONE) is not news


def test_a_report_of_another_robot_s_plan_is_ignored():
    run = sim()
    plan = run.goal("r1", "long", at=1.0)
    run.run(2.0)
    report(run, "r2", plan, ExecutionState.FAILED)
    stranger = Execution(1, 1, plan, ExecutionState.FAILED)
    run.tell(ev.ExecutionArrived("nobody", stranger))
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE


@pytest.mark.parametrize("state", [ExecutionState.PLAN_RETURNED, ExecutionState.FAILED])
def test_a_report_of_a_plan_that_was_never_sent_is_ignored(state):
    run = sim()
    run.goal("r1", "long", at=1.0)
    waiting = run.goal("r1", "short", at=1.5)
    run.run(2.0)
    report(run, "r1", waiting, state)
    run.run(2.1)
    assert waiting not in run.results


def test_a_robot_that_waits_for_more_of_a_plan_that_is_over_is_told():
    """Its cancel was lost, while it was dry."""
    run = sim()
    plan = run.goal("r1", "short", at=1.0)
    run.finish()
    before = len(run.commands("r1"))
    report(run, "r1", plan, ExecutionState.IDLE)
    run.run(run.now + 0.001)
    assert [line.split()[1] for line in run.commands("r1")[before:]] == ["CANCEL"]


def test_idle_without_a_plan_is_nothing_to_a_robot_without_goals():
    run = sim()
    run.run(1.0)
    report(run, "r1", NO_PLAN, ExecutionState.IDLE, call=SkillCall(""))
    log = len(run.log)
    run.run(1.001)
    assert len(run.log) == log
