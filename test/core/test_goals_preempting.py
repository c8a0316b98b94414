"""Goals for a busy robot that do not wait: rejected, or taking the robot."""

import pytest
from intake_cases import refusal, sim

from timely_llm.protocols.messages import ErrorCode, ExecutionState, WhenBusy
from timely_llm.protocols.utility import Urgency

# Reject and preempt.


def test_reject():
    run = sim()
    run.goal("r1", "long", at=1.0)
    plan = run.goal("r1", "short", at=1.5, when_busy=WhenBusy.REJECT)
    free = run.goal("drone2", "short", at=1.5, when_busy=WhenBusy.REJECT)
    assert refusal(run, plan) == ("ROBOT_BUSY", "robot 'r1' executes another plan")
    assert run.result(free).error_code is ErrorCode.NONE


def preempting(urgency: Urgency, old: Urgency = Urgency.NORMAL, **fields):
    """A goal that preempts a plan which is written and being executed."""
    run = sim()
    p = run.goal("r1", "long", at=1.0, urgency=old)
    q = run.goal(
        "r1",
        **({"instruction": "short"} | fields),
        at=1.5,
        urgency=urgency,
        when_busy=WhenBusy.PREEMPT,
    )
    return run, p, q


def test_a_normal_goal_takes_the_robot_with_its_first_segment():
    run, p, q = preempting(Urgency.NORMAL)
    run.finish()
    assert run.story(p, q)[6:] == [
        "1.500 p2 ACCEPTED",
        "1.500 p2 STARTED",
        "1.567 p1 PREEMPTED",
        "1.567 p1 ENDED PREEMPTED",
        "1.567 p2 SEGMENT 0 'go(1)'",
        "1.587 p2 SEGMENT 1 ''!",
        "2.583 p2 RETURNED",
        "2.583 p2 ENDED",
    ]
    assert run.commands("r1")[4:] == ["1.567 REPLACE 0 'go(1)'", "1.587 RUN 1 ''!"]
    assert run.motions("r1") == ["1.074 go(2)", "1.575 go(1)"]


def test_an_urgent_goal_halts_the_motion_on_acceptance():
    run, p, q = preempting(Urgency.URGENT)
    run.finish()
    assert run.story(p, q)[6:] == [
        "1.500 p2 ACCEPTED",
        "1.500 p1 PREEMPTED",
        "1.500 p2 STARTED",
        "1.516 p1 ENDED PREEMPTED",
        "1.567 p2 SEGMENT 0 'go(1)'",
        "1.587 p2 SEGMENT 1 ''!",
        "2.583 p2 RETURNED",
        "2.583 p2 ENDED",
    ]
    assert run.commands("r1")[4:] == [
        "1.500 CANCEL",
        "1.567 REPLACE 0 'go(1)'",
        "1.587 RUN 1 ''!",
    ]
    assert run.reports("r1", ExecutionState.ABORTED) == ["1.508 ABORTED go(2)"]


@pytest.mark.parametrize(
    ("new", "old", "taken"),
    [
        (Urgency.NORMAL, Urgency.URGENT, False),
        (Urgency.NORMAL, Urgency.CRITICAL, False),
        (Urgency.URGENT, Urgency.CRITICAL, False),
        (Urgency.LOW, Urgency.NORMAL, False),
        (Urgency.URGENT, Urgency.URGENT, True),
        (Urgency.NORMAL, Urgency.UNSPECIFIED, True),
        (Urgency.CRITICAL, Urgency.BACKGROUND, True),
    ],
)
def test_no_goal_preempts_a_more_urgent_one(new, old, taken):
    run, p, q = preempting(new, old)
    run.finish()
    if taken:
        assert run.result(p).error_code is ErrorCode.PREEMPTED
        assert run.result(q).error_code is ErrorCode.NONE
    else:
        assert run.result(p).error_code is ErrorCode.NONE
        assert refusal(run, q) == (
            "OUTRANKED",
            f"robot 'r1' executes a plan of urgency {old.name}: {new.name} does not preempt it",
        )


def test_a_normal_replacement_that_fails_leaves_the_old_plan_at_work():
    run, p, q = preempting(Urgency.NORMAL, instruction="bad")
    after = run.goal("r1", "short", at=2.0)
    run.finish()
    assert run.result(q).error_code is ErrorCode.INVALID_PLAN
    assert run.result(p).error_code is run.result(after).error_code is ErrorCode.NONE
    assert run.story(after, kinds="QUEUED") == ["2.000 QUEUED"]
    assert len(run.motions("r1")) == 4


def test_an_urgent_replacement_that_fails_leaves_the_robot_standing():
    run, p, q = preempting(Urgency.URGENT, instruction="bad")
    after = run.goal("r1", "short", at=5.0)
    run.finish()
    assert run.result(q).error_code is ErrorCode.INVALID_PLAN
    assert run.result(p).error_code is ErrorCode.PREEMPTED
    assert run.motions("r1") == ["1.074 go(2)", f"{run.robots['r1'].body.done[-1][0]:.3f} go(1)"]
    assert run.result(after).error_code is ErrorCode.NONE


def test_goals_that_wait_go_on_waiting_behind_one_that_preempts():
    run, p, q = preempting(Urgency.URGENT)
    w = run.goal("r1", "short", at=1.2)
    run.finish()
    assert [run.result(plan).error_code.name for plan in (p, q, w)] == ["PREEMPTED", "NONE", "NONE"]
    assert len(run.motions("r1")) == 3


def test_preempting_the_one_that_preempts():
    """The second one has sent nothing when the third takes its place: the first runs until then."""
    run, p, q = preempting(Urgency.NORMAL)
    r = run.goal("r1", "short", at=1.52, when_busy=WhenBusy.PREEMPT)
    run.finish()
    assert [run.result(plan).error_code.name for plan in (p, q, r)] == [
        "PREEMPTED",
        "PREEMPTED",
        "NONE",
    ]
    assert [line for line in run.commands("r1") if "REPLACE" in line] == ["1.594 REPLACE 0 'go(1)'"]
    assert len(run.motions("r1")) == 2


def test_a_robot_that_is_being_stopped_is_taken_by_the_next():
    run = sim()
    p = run.goal("r1", "long", at=1.0)
    run.cancel(p, at=1.5)
    q = run.goal("r1", "short", at=1.505, when_busy=WhenBusy.PREEMPT, urgency=Urgency.LOW)
    run.finish()
    assert run.result(p).error_code is ErrorCode.CANCELED
    assert run.result(q).error_code is ErrorCode.NONE
    assert run.story(p, kinds="PREEMPTED") == []


def test_an_old_plan_that_ends_first_leaves_its_robot_to_the_replacement():
    run = sim()
    p = run.goal("r1", "short", at=1.0)
    q = run.goal("r1", "long", at=2.05, when_busy=WhenBusy.PREEMPT)
    w = run.goal("r1", "short", at=2.06)
    run.finish()
    assert [run.result(plan).error_code.name for plan in (p, q, w)] == ["NONE", "NONE", "NONE"]
    assert len(run.motions("r1")) == 5
