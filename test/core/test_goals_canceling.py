"""Goals that are canceled, and a planner that is deactivated."""

import pytest
from fleet_sim import NETWORK
from intake_cases import sim

from timely_llm.core import events as ev
from timely_llm.core.config import PlannerConfig
from timely_llm.protocols.messages import ErrorCode, ExecutionState
from timely_llm.protocols.utility import Urgency

# Cancelling.


def canceled(at: float, *, before: str = "", **options):
    run = sim(**options)
    if before:
        run.goal("r1", before, at=0.9)
    plan = run.goal("r1", "long", at=1.0)
    run.cancel(plan, at=at)
    return run, plan


def test_cancel_while_queued():
    run, plan = canceled(1.5, before="long")
    run.finish()
    assert run.story(plan) == ["1.000 ACCEPTED", "1.000 QUEUED", "1.500 REFUSED CANCELED"]
    assert run.result(plan).error_msg == "canceled by the client"
    assert len(run.motions("r1")) == 3


def test_cancel_while_running_ends_within_the_step():
    run, plan = canceled(1.01)
    run.finish()
    assert run.story(plan) == ["1.000 ACCEPTED", "1.000 STARTED", "1.010 ENDED CANCELED"]
    assert run.commands("r1") == []
    assert run.busy[-1][1] <= 1.026 + 1e-9


def test_cancel_while_waiting_for_the_engine():
    run = sim(max_batch=1)
    p = run.goal("drone2", "long", at=1.0)
    q = run.goal("r1", "long", at=1.0)
    run.cancel(q, at=1.04)
    run.finish()
    assert run.story(q) == ["1.000 ACCEPTED", "1.040 ENDED CANCELED"]
    assert run.result(p).error_code is ErrorCode.NONE


def test_cancel_while_suspended_stops_the_robot():
    run = sim(max_batch=1)
    p = run.goal("r1", "long", at=1.0)
    q = run.goal("drone2", "long", at=1.0, urgency=Urgency.URGENT)
    run.cancel(p, at=1.1)
    run.finish()
    assert run.story(p) == [
        "1.000 ACCEPTED",
        "1.000 STARTED",
        "1.066 SEGMENT 0 'go(2)'",
        "1.066 SUSPENDED",
        "1.128 ENDED CANCELED",
    ]
    assert run.commands("r1")[-1] == "1.112 CANCEL"
    assert run.motions("r1") == ["1.074 go(2)"]
    assert run.result(q).error_code is ErrorCode.NONE


def test_cancel_while_executing_stops_the_robot():
    run, plan = canceled(2.0)
    run.finish()
    assert run.commands("r1")[-1] == "2.000 CANCEL"
    assert run.story(plan)[-1] == "2.016 ENDED CANCELED"  # there and back
    assert run.result(plan).execution_time == pytest.approx(2.008 - 1.074)
    assert len(run.motions("r1")) == 1


def test_cancel_while_being_stopped_changes_nothing():
    run, plan = canceled(2.0)
    run.cancel(plan, at=2.01)
    run.finish()
    assert [line for line in run.commands("r1") if "CANCEL" in line] == ["2.000 CANCEL"]
    assert run.story(plan)[-1] == "2.016 ENDED CANCELED"


def test_cancel_of_a_goal_that_has_ended_or_never_was_is_nothing():
    run = sim()
    plan = run.goal("r1", "short", at=1.0)
    run.finish()
    log = len(run.log)
    run.cancel(plan, at=10.0)
    run.cancel("e" * 32, at=10.0)
    run.run(11.0)
    assert len(run.log) == log


def test_a_lost_abort_is_made_up_for_by_the_next_heartbeat():
    run, plan = canceled(2.0)
    run.lose = lambda robot_id, message: getattr(message, "state", None) is ExecutionState.ABORTED
    run.finish()
    assert run.story(plan)[-1] == "2.016 ENDED CANCELED"
    assert run.result(plan).error_msg == "canceled by the client"


def test_a_robot_that_does_not_confirm_its_stop_is_told_again():
    run, plan = canceled(2.0, config=PlannerConfig(network=NETWORK, stop_timeout=2.0))
    run.lose = lambda robot_id, message: getattr(message, "command", None) and run.now < 3.0
    run.finish()
    assert run.story(plan)[-1] == "4.000 ENDED CANCELED"
    assert run.result(plan).error_msg == (
        "canceled by the client; the robot did not confirm that it stands still"
    )
    cancels = [line for line in run.commands("r1") if "CANCEL" in line]
    assert cancels == ["2.000 CANCEL", "4.082 CANCEL"]  # upon its next heartbeat
    assert run.reports("r1", ExecutionState.ABORTED) == ["4.090 ABORTED go(3)"]


# Deactivate and activate.


def test_deactivating_ends_every_goal_and_halts_every_robot():
    run = sim()
    ids = [run.goal("r1", "long", at=1.0), run.goal("r1", "short", at=1.1)]
    ids.append(run.goal("drone2", "short", at=1.99))
    run.tell(ev.Deactivate("going home"), at=2.0)
    refused = run.goal("r1", "short", at=3.0)
    run.finish()
    for plan in ids:
        assert run.result(plan).error_code is ErrorCode.PLANNER_INACTIVE
        assert run.result(plan).error_msg == "going home"
    assert run.commands("r1")[-1] == "2.017 CANCEL"  # when the step is over
    assert run.result(refused).error_msg == "the planner is not active"
    assert run.planner.state.requests == {}
    assert len(run.motions("r1")) == 1


def test_activating_accepts_goals_again():
    run = sim()
    run.goal("r1", "long", at=1.0)
    run.tell(ev.Deactivate(), at=2.0)
    run.tell(ev.Activate(), at=2.5)
    plan = run.goal("r1", "short", at=2.6)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE
    assert len(run.motions("r1")) == 2
