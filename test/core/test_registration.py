"""Robots that register again, and the fixed prompts of their kinds."""

from dataclasses import replace

import pytest
from fleet_sim import NETWORK, FleetSim
from robot_cases import PLANS
from sim_parts import PROMPTS, walker

from robot_adapters.executor.executor import RobotExecutor
from timely_llm.core import events as ev
from timely_llm.core.config import PlannerConfig
from timely_llm.language.skills import Example
from timely_llm.prompts import template
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.messages import NO_PLAN, ErrorCode


def test_a_robot_that_registers_again_in_mid_plan_ends_the_plan_and_runs_nothing_twice():
    run = FleetSim(PLANS)
    run.add_robot("r1")
    plan = run.goal("r1", "long", at=1.0)
    queued = run.goal("r1", "short", at=1.5)
    run.restart_robot("r1", 2.0, instance="r1-1")
    run.finish()
    result = run.result(plan)
    assert (result.error_code, result.error_msg) == (
        ErrorCode.ROBOT_RESTARTED,
        "robot 'r1' registered again",
    )
    assert run.story(plan)[-1] == "2.000 ENDED ROBOT_RESTARTED"
    assert run.result(queued).error_code is ErrorCode.NONE  # it waited for the new session
    assert [call for _, call in run.robots["r1"].body.done] == ["go(2)", "go(1)"]
    assert {s.session for _, _, s in run.sent if s.plan_id == queued} == {2}


def test_a_robot_killed_and_started_again_runs_nothing_twice():
    """A new process is told from a stranger only by the silence of the old one."""
    run = FleetSim(PLANS)
    run.add_robot("r1")
    plan = run.goal("r1", "long", at=1.0)
    run.restart_robot("r1", 2.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.ROBOT_LOST
    after = run.goal("r1", "short", at=8.0)
    run.finish()
    assert run.result(after).error_code is ErrorCode.NONE
    assert [call for _, call in run.robots["r1"].body.done] == ["go(2)", "go(1)"]


def test_registering_again_while_the_plan_is_still_being_written():
    run = FleetSim(PLANS, max_batch=1)
    run.add_robot("r1")
    run.add_robot("r2")
    p = run.goal("r1", "long", at=1.0)
    q = run.goal("r2", "long", at=1.0)
    run.restart_robot("r1", 1.12, instance="r1-1")
    run.finish()
    assert run.result(p).error_code is ErrorCode.ROBOT_RESTARTED
    assert run.result(q).error_code is ErrorCode.NONE
    assert p not in run.engine._live


def test_segments_on_their_way_to_the_earlier_session_are_not_run_by_the_new_one():
    run = FleetSim(PLANS, network=0.2)
    run.add_robot("r1")
    plan = run.goal("r1", "long", at=2.0)
    run.restart_robot("r1", 2.3, instance="r1-1")  # three of four are underway
    run.finish()
    assert run.result(plan).error_code is ErrorCode.ROBOT_RESTARTED
    assert [at for at, _, s in run.sent if s.plan_id == plan and at + 0.2 > 2.3] != []
    assert run.motions("r1") == ["2.266 go(2)"]


def test_a_latched_stop_outlives_a_new_session():
    run = FleetSim(PLANS)
    robot = run.add_robot("r1")
    run.act("r1", 1.0, RobotExecutor.on_stop)
    run.at(2.0, lambda: run._register(robot))
    refused = run.goal("r1", "short", at=2.001)
    run.act("r1", 3.0, RobotExecutor.on_rearm)
    taken = run.goal("r1", "short", at=3.5)
    run.finish()
    assert run.story(refused)[-1] == "2.001 REFUSED ROBOT_STOPPED"
    assert run.result(taken).error_code is ErrorCode.NONE


def test_a_latched_stop_outlives_the_robot_s_process():
    run = FleetSim(PLANS)
    run.add_robot("r1")
    run.ask(lambda t: ev.StopRobots(t, "r1"), at=1.0)
    run.restart_robot("r1", 10.0)
    refused = run.goal("r1", "short", at=30.0)
    run.at(31.0, lambda: run.act("r1", 32.0, RobotExecutor.on_rearm))
    taken = run.goal("r1", "short", at=33.0)
    run.finish()
    assert len([line for line in run.commands("r1") if "STOP" in line]) == 2
    assert run.story(refused)[-1] == "30.000 REFUSED ROBOT_STOPPED"
    assert run.result(taken).error_code is ErrorCode.NONE


def test_a_stop_not_yet_confirmed_reaches_the_new_session():
    run = FleetSim(PLANS)
    run.add_robot("r1")
    run.goal("r1", "long", at=1.0)
    run.ask(lambda t: ev.StopRobots(t, "r1"), at=2.0)
    run.lose = lambda robot_id, message: run.now < 2.001 and message.plan_id == NO_PLAN
    run.restart_robot("r1", 2.001, instance="r1-1")
    refused = run.goal("r1", "short", at=3.0)
    run.finish()
    stops = [line for line in run.commands("r1") if "STOP" in line]
    assert stops == ["2.000 STOP", "2.001 STOP"]
    assert run.robots["r1"].executor.stopped
    assert run.result(refused).error_code is ErrorCode.ROBOT_STOPPED


def test_robots_of_one_kind_share_a_fixed_prompt():
    run = FleetSim(PLANS)
    for robot_id in ("r1", "r2", "r3"):
        run.add_robot(robot_id)
    run.run(1.0)
    assert len(run.engine._live) == 1
    assert run.planner.last_step.kv_blocks_used == 2


def test_a_fixed_prompt_is_freed_with_its_last_robot():
    run = FleetSim(PLANS, kinds=[walker(), walker("another", kind="crawler")])
    run.add_robot("r1")
    run.add_robot("r2")
    run.add_robot("r3", kind="crawler")
    for robot_id, left in (("r1", 2), ("r2", 1), ("r3", 0)):
        run.at(run.now + 1.0, lambda name=robot_id: setattr(run.robots[name], "alive", False))
        run.ask(lambda t, robot_id=robot_id: ev.UnregisterRobot(t, robot_id), at=run.now + 1.0)
        run.run(run.now + 1.5)
        assert len(run.engine._live) == left
    assert run.engine.step(()).kv_blocks_used == 0


def test_a_kind_whose_prompt_leaves_no_room_for_plans_is_refused():
    config = PlannerConfig(network=NETWORK, max_tokens=40)
    kinds = [walker(), walker("x" * 30, kind="crawler")]
    run = FleetSim(PLANS, kinds=kinds, kv_blocks=20, config=config)
    run.add_robot("r1")
    crawler = run.add_robot("r2", kind="crawler", at=1.0)
    plan = run.goal("r1", "short", at=1.5)
    run.finish()
    assert crawler.refusals[0] == (
        ErrorCode.INVALID_SKILL_SET,
        "prompt of kind 'crawler' has 30 tokens: with it, 10 of 20 KV blocks are left for plans, "
        "which need 11",
    )
    assert run.result(plan).error_code is ErrorCode.NONE
    assert len(run.engine._live) == 1


def test_a_kind_whose_prompt_would_leave_no_room_for_an_accepted_plan_is_refused():
    config = PlannerConfig(network=NETWORK, max_tokens=40)
    kinds = [walker(), walker("x" * 22, kind="crawler")]
    plans = {"a plan with a great many words": "go(9)"}
    run = FleetSim(plans, kinds=kinds, kv_blocks=24, config=config)
    run.add_robot("r1")
    run.goal("r1", next(iter(plans)), at=1.0)
    crawler = run.add_robot("r2", kind="crawler", at=1.01)
    run.finish(settle=3.0)
    assert crawler.refusals[0][0] is ErrorCode.INVALID_SKILL_SET
    assert "16 of 24 KV blocks are left for plans, which need 18" in crawler.refusals[0][1]
    assert crawler.session  # it asked again when the plan was written


def test_a_prompt_that_is_too_long_for_the_model_is_refused():
    run = FleetSim(PLANS, kinds=[walker("x" * 90)], max_model_len=80)
    robot = run.add_robot("r1")
    run.run(0.5)
    code, error = robot.refusals[0]
    assert code is ErrorCode.INVALID_SKILL_SET
    assert "exceed max_model_len 80" in error


@pytest.mark.parametrize(("context", "shown"), [(200, 3), (96, 2), (84, 1), (70, 0)])
def test_a_context_too_short_for_the_examples_gets_fewer_and_says_so(context, shown):
    examples = tuple(Example(f"ten lette{n}", "go(1)") for n in range(3))
    prompts = PromptTemplate(PROMPTS + "{% block example %}{{ instruction }}{% endblock %}")
    config = PlannerConfig(network=NETWORK, max_tokens=60)
    kinds = [replace(walker(), examples=examples)]
    run = FleetSim(PLANS, kinds=kinds, prompts=prompts, config=config, max_model_len=context)
    robot = run.add_robot("r1")
    run.run(0.5)
    assert run.planner.state.fleet.robots["r1"].fixed.examples == tuple(
        (each.instruction, each.plan) for each in examples[:shown]
    )
    (answer,) = [each for each in run.answers.values() if isinstance(each, ev.Registered)]
    words = f"the model has room for {shown} of 3 examples" if shown < 3 else ""
    assert (answer.code, answer.error) == (ErrorCode.NONE, words) and robot.session


def test_a_skill_set_that_nobody_thought_of_costs_its_robot_alone(monkeypatch):
    run = FleetSim(PLANS)
    run.add_robot("r1")
    plan = run.goal("r1", "long", at=1.0)
    run.run(2.0)

    def fails(skills) -> str:
        raise RecursionError("a test")

    with monkeypatch.context() as broken:
        broken.setattr(template, "plan_grammar", fails)
        ticket = run.ask(lambda ticket: ev.RegisterRobot(ticket, "r2", "walker", instance="r2"))
        run.run(2.1)
    words = "skill_set cannot be used: RecursionError: a test"
    assert run.answers[ticket] == ev.Registered(ticket, 0, ErrorCode.INVALID_SKILL_SET, words)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE
