"""What the silence of a robot means, and that of the planner."""

import pytest
from fleet_sim import NETWORK, FleetSim
from report_cases import PLANS, outcome, sim

from timely_llm.core import events as ev
from timely_llm.core.config import PlannerConfig
from timely_llm.protocols.messages import ErrorCode


def test_a_robot_that_falls_silent_is_lost_with_all_its_goals():
    run = sim()
    plan = run.goal("r1", "long", at=1.0)
    queued = run.goal("r1", "short", at=1.5)
    other = run.goal("r2", "long", at=1.0)
    run.at(2.0, lambda: setattr(run.robots["r1"], "mute", True))
    refused = run.goal("r1", "short", at=6.0)
    run.finish()
    # Last heard at 1.902: it beats every 0.2 s from its last other report on.
    silent = ("ROBOT_LOST", "robot 'r1' is silent for 3.0 s")
    assert outcome(run, plan) == outcome(run, queued) == silent
    assert outcome(run, refused) == ("ROBOT_LOST", "robot 'r1' does not answer")
    (at,) = [e.stamp for e in run.events if e.plan_id == plan and e.type.name == "ENDED"]
    heard = max(t for t, r, _ in run.reported if r == "r1" and t < 2.0) + NETWORK
    assert at == pytest.approx(heard + 3.0)
    assert run.commands("r1")[-1].endswith("CANCEL")  # should it still hear
    assert run.result(other).error_code is ErrorCode.NONE
    alive = [c.robots for _, c in run.log if isinstance(c, ev.RobotsChanged)][-1]
    assert [(info.robot_id, info.alive) for info in alive] == [("r1", False), ("r2", True)]


def test_a_lost_robot_that_is_heard_again_takes_goals_again():
    run = sim()
    first = run.goal("r1", "long", at=1.0)
    run.at(2.0, lambda: setattr(run.robots["r1"], "mute", True))
    run.at(8.0, lambda: setattr(run.robots["r1"], "mute", False))
    second = run.goal("r1", "short", at=9.0)
    run.finish()
    assert run.result(first).error_code is ErrorCode.ROBOT_LOST
    assert run.result(second).error_code is ErrorCode.NONE
    calls = [call for _, call in run.robots["r1"].body.done]
    assert calls.count("go(1)") == 1  # the second goal's; the first was stopped before its own


def test_a_robot_without_goals_is_lost_too():
    run = sim()
    run.at(1.0, lambda: setattr(run.robots["r1"], "mute", True))
    run.run(10.0)
    refused = run.goal("r1", "short")
    run.finish()
    assert outcome(run, refused)[0] == "ROBOT_LOST"


def test_the_only_robot_can_be_lost_twice():
    run = FleetSim(PLANS)
    robot = run.add_robot("r1")
    for at, mute in ((1.0, True), (6.0, False), (7.0, True)):
        run.at(at, lambda mute=mute: setattr(robot, "mute", mute))
    alive = []
    for at in (3.5, 5.5, 6.5, 9.5, 10.5):
        run.run(at)
        alive.append(run.planner.state.fleet.find("r1").alive)
    assert alive == [True, False, True, True, False]


def test_nothing_is_looked_at_too_early_or_for_ever():
    """With no robot alive the planner sleeps."""
    run = sim()
    run.at(1.0, lambda: [setattr(robot, "mute", True) for robot in run.robots.values()])
    run.run(10.0)
    turn = run.planner.run_once(run.now)
    assert (turn.busy, turn.wake_at) == (False, None)


def test_the_planner_s_silence_ends_a_plan_on_the_robot():
    """The robot hears nothing: it finishes its call, and its report ends the goal."""
    run = sim()
    plan = run.goal("r1", "long", at=1.0)
    run.at(1.6, lambda: setattr(run.robots["r1"], "deaf", True))
    run.finish()
    assert outcome(run, plan) == ("ROBOT_STOPPED", "robot 'r1' stopped the plan: planner lost")
    assert [call for _, call in run.robots["r1"].body.done] == ["go(2)", "go(3)"]


def test_a_robot_may_be_silent_for_longer_until_its_first_report():
    """Discovery takes its time: its segments wait, and count as sent when it is there."""
    run = sim(config=PlannerConfig(network=NETWORK, first_report_timeout=6.0))
    run.at(0.001, lambda: setattr(run.robots["r1"], "mute", True))
    plan = run.goal("r1", "short", at=1.0)
    run.at(5.0, lambda: setattr(run.robots["r1"], "mute", False))
    run.run(until=5.5)
    assert plan not in run.results and run.planner.state.fleet.robots["r1"].alive


def test_a_robot_that_never_reports_is_lost():
    run = sim(config=PlannerConfig(network=NETWORK, first_report_timeout=6.0))
    run.at(0.001, lambda: setattr(run.robots["r1"], "mute", True))
    plan = run.goal("r1", "short", at=1.0)
    run.run(until=8.0)
    assert run.results[plan].error_code is ErrorCode.ROBOT_LOST
