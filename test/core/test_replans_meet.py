"""What comes in between while a plan is planned again: cancels, stops, other goals, losses.

The failure is known at 6.079, the replan's first segment comes at 6.144. Times as in
``test_planner.py``.
"""

import pytest
from fleet_sim import NETWORK
from planner_cases import config, sim
from replan_cases import PLANS, REPLAN, fleet, outcome

from robot_adapters.executor.executor import RobotExecutor
from timely_llm.core import events as ev
from timely_llm.protocols.engine import EngineDead, PromptTooLong
from timely_llm.protocols.messages import (
    Execution,
    ExecutionState,
    Segment,
    SegmentCommand,
    WhenBusy,
)
from timely_llm.protocols.utility import Urgency

BETWEEN = 6.1  # s


def test_a_cancel_during_a_replan_ends_it_and_nothing_more_moves():
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    run.cancel(plan, at=BETWEEN)
    run.finish()
    assert run.story(plan)[-1] == "6.100 ENDED CANCELED"
    assert run.motions("r1") == ["1.071 go(2)", "3.071 go(3)"]
    assert plan not in run.engine._live


@pytest.mark.parametrize("at", [BETWEEN, 6.15, 7.0])
@pytest.mark.parametrize("own", [True, False])
def test_a_stop_during_a_replan_holds(at, own):
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    if own:
        run.act("r1", at, RobotExecutor.on_stop)
    else:
        run.ask(lambda ticket: ev.StopRobots(ticket, "r1"), at=at)
    run.finish()
    assert outcome(run, plan)[0] in ("ROBOT_STOPPED", "SEGMENT_REFUSED")
    assert run.robots["r1"].executor.stopped
    assert all(float(line.split()[0]) < at + NETWORK for line in run.motions("r1"))


@pytest.mark.parametrize("urgency", [Urgency.URGENT, Urgency.NORMAL])
def test_a_replan_loses_its_robot_to_a_goal_that_preempts(urgency):
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    other = run.goal("r1", "b", at=BETWEEN, urgency=urgency, when_busy=WhenBusy.PREEMPT)
    run.finish()
    assert outcome(run, plan)[0] == "PREEMPTED"
    assert outcome(run, other) == ("NONE", "")
    calls = [call for _, call in run.robots["r1"].body.done]
    assert calls[:2] == ["go(2)", "go(3)"] and calls[-2:] == ["go(1)", "go(1)"]
    assert calls.count("go(1)") == 2


def test_a_plan_that_fails_while_another_one_takes_its_robot_is_not_planned_anew():
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    other = run.goal("r1", "b", at=6.06, when_busy=WhenBusy.PREEMPT)
    run.finish()
    assert outcome(run, plan) == ("SKILL_FAILED", "robot 'r1': go(3): go: a wall")
    assert outcome(run, other) == ("NONE", "")


def test_a_goal_that_waits_goes_on_waiting():
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    other = run.goal("r1", "b", at=1.5)
    run.finish()
    assert outcome(run, plan) == outcome(run, other) == ("NONE", "")
    assert run.story(other, kinds="STARTED") == ["10.161 STARTED"]


def test_a_robot_lost_during_a_replan_ends_the_goal():
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)

    def vanish() -> None:
        run.robots["r1"].alive = False

    run.at(BETWEEN, vanish)
    run.finish()
    assert outcome(run, plan)[0] in ("ROBOT_LOST", "DELIVERY_FAILED")
    assert run.motions("r1") == ["1.071 go(2)", "3.071 go(3)"]


def test_a_robot_restarted_during_a_replan_ends_the_goal():
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    run.restart_robot("r1", at=BETWEEN, instance="r1-1")
    run.finish(settle=5.0)
    assert outcome(run, plan)[0] == "ROBOT_RESTARTED"
    assert [call for _, call in run.robots["r1"].body.done] == ["go(2)", "go(3)"]


@pytest.mark.parametrize(
    "lost",
    [ExecutionState.FAILED, ExecutionState.RECEIVED, SegmentCommand.REPLACE, SegmentCommand.RUN],
)
def test_what_the_network_loses_moves_nothing_twice(lost):
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)

    def loses(robot_id: str, message: Segment | Execution) -> bool:
        kind = message.state if isinstance(message, Execution) else message.command
        return robot_id == "r1" and run.now > 5.0 and kind is lost

    run.lose = loses
    run.finish(settle=5.0)
    assert outcome(run, plan)[0] in ("DELIVERY_FAILED", "SEGMENT_REFUSED")
    calls = [call for _, call in run.robots["r1"].body.done]
    assert calls in (["go(2)", "go(3)"], ["go(2)", "go(3)", "go(4)"])


def test_a_replan_that_does_not_fit_ends_the_goal_with_both_reasons():
    run = fleet()
    run.run(0.9)
    submit = run.planner.engine.submit

    def full(request):
        if request.user.endswith("+1"):
            raise PromptTooLong("prompt of 9999 tokens")
        return submit(request)

    run.planner.engine.submit = full
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    other = run.goal("r2", "b", at=6.0)
    run.finish()
    words = (
        "robot 'r1': go(3): go: a wall; it cannot be planned again: instruction (1 characters), "
        "scene (0 characters) and execution history are too long: prompt of 9999 tokens"
    )
    assert outcome(run, plan) == ("SKILL_FAILED", words)
    assert outcome(run, other) == ("NONE", "")


def test_a_dead_engine_ends_a_replan_as_any_other():
    run = fleet()
    run.run(0.9)
    submit = run.planner.engine.submit

    def dead(request):
        if request.user.endswith("+1"):
            raise EngineDead("the engine is gone")
        return submit(request)

    run.planner.engine.submit = dead
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    run.finish()
    assert outcome(run, plan) == ("ENGINE_FAILED", "the engine is gone")


def test_others_do_not_notice():
    def motions(**goal) -> list[str]:
        run = fleet(max_batch=2)
        run.goal("r1", "a", at=1.0, **goal)
        run.goal("r2", "b", at=1.0)
        return run.finish().motions("r2")

    assert motions() == motions(**REPLAN)


def test_a_planner_that_is_deactivated_plans_nothing_anew():
    run = sim(plans=PLANS, config=config())
    run.robots["r1"].body.faults["go(3)"] = "a wall"
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    run.tell(ev.Deactivate(), at=6.075)
    run.finish()
    assert outcome(run, plan)[0] == "PLANNER_INACTIVE"
    assert len(run.motions("r1")) == 2
