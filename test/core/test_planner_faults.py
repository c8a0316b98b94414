"""Plans that are wrong and engines that fail: what is sent all the same, and how goals end.

Times as in ``test_planner.py``.
"""

import pytest
from fleet_sim import FleetSim
from planner_cases import PLANS, config, sim
from sim_parts import PROMPTS, walker

from timely_llm.core import events as ev
from timely_llm.core.planner import RETRY
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import EngineDead, EngineError, Output, StepResult
from timely_llm.protocols.messages import ErrorCode, ExecutionState

# Plans that are wrong.


def test_nothing_of_a_segment_that_breaks_a_limit_is_sent_and_the_robot_halts():
    run = sim()
    plan = run.goal("r1", "bad", at=1.0)
    run.finish()
    assert run.commands("r1") == ["1.065 RUN 0 'go(2)'", "1.165 CANCEL"]
    assert run.motions("r1") == ["1.073 go(2)"]
    assert run.reports("r1", ExecutionState.ABORTED) == ["1.173 ABORTED go(2)"]
    assert run.story(plan)[-1] == "1.181 ENDED INVALID_PLAN"  # when the robot stands still
    result = run.result(plan)
    assert result.error_msg == "plan, character 6: go: seconds is 99 s: must be 0.1 to 60 s"
    assert result.execution_time == pytest.approx(0.1)


def test_of_a_whole_plan_that_breaks_a_limit_nothing_is_sent():
    run = sim(policy="vllm")
    plan = run.goal("r1", "bad", at=1.0)
    run.finish()
    assert run.commands("r1") == []
    assert run.story(plan)[-1] == "1.165 ENDED INVALID_PLAN"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("go(1);jump(3)", "'jump' is not a skill of walker"),
        ("go(1);?see('cat')", "the plan is cut off"),
        ("go(1)go(1)", "';' must stand here"),
        ("go(1);say('", "cut off"),
    ],
)
def test_wrong_plans_end_with_the_place_and_the_reason(text, reason):
    run = sim(plans={"x": text})
    plan = run.goal("r1", "x", at=1.0)
    run.finish()
    result = run.result(plan)
    assert result.error_code is ErrorCode.INVALID_PLAN
    assert reason in result.error_msg
    assert run.segments(plan) == ["go(1)"]
    assert len(run.motions("r1")) == 1


@pytest.mark.parametrize(("policy", "sent"), [("timely", ["go(2)"]), ("vllm", [])])
def test_a_plan_cut_by_the_token_limit_is_an_error(policy, sent):
    run = sim(policy=policy, config=config(max_tokens=9))  # go(2);go(3) has nine tokens
    plan = run.goal("r1", "a", at=1.0)
    run.finish()
    result = run.result(plan)
    assert result.error_code is ErrorCode.PLAN_TRUNCATED
    assert result.error_msg == "the plan reached the limit of 9 tokens"
    assert run.segments(plan) == sent  # of the text that the cut completes nothing is sent
    assert len(run.motions("r1")) == len(sent)


def test_an_early_return_ends_the_rest_of_the_generation():
    plan_text = "go(0.1);->True;" + "go(9);" * 20
    run = sim(plans={"x": plan_text})
    plan = run.goal("r1", "x", at=1.0)
    run.finish()
    result = run.result(plan)
    assert (result.error_code, result.value) == (ErrorCode.NONE, "True")
    assert run.motions("r1") == ["1.111 go(0.1)"]
    assert plan_text.startswith(result.plan) and len(result.plan) < len(plan_text)
    assert plan not in run.engine._live
    assert run.busy[-1][1] < 1.5


# The engine fails.


def failing(fault, *robots: str) -> FleetSim:
    return sim(*robots, fault=fault)


def test_an_engine_error_ends_the_plans_in_the_engine_and_halts_their_robots():
    def fault(step: int) -> None:
        if step == 14:
            raise EngineError("out of luck")

    run = failing(fault, "r1", "r2", "r3")
    done = run.goal("r1", "b", at=0.5)
    p = run.goal("r1", "a", at=4.0)
    q = run.goal("r2", "a", at=4.0)
    later = run.goal("r3", "b", at=6.0)
    run.finish()
    assert run.result(done).error_code is ErrorCode.NONE
    for plan in (p, q):
        assert run.result(plan).error_code is ErrorCode.ENGINE_FAILED
        assert run.result(plan).error_msg == "out of luck"
    assert run.result(later).error_code is ErrorCode.NONE
    assert run.planner.failure is None


def test_a_queued_goal_is_tried_after_an_engine_error():
    def fault(step: int) -> None:
        if step == 5:
            raise EngineError("out of luck")

    run = failing(fault)
    p, q = run.goal("r1", "a", at=1.0), run.goal("r1", "b", at=1.0)
    run.finish()
    assert run.result(p).error_code is ErrorCode.ENGINE_FAILED
    assert run.result(q).error_code is ErrorCode.NONE
    assert run.story(p)[-1] == "1.043 ENDED ENGINE_FAILED"
    assert run.story(q, kinds="STARTED") == ["1.048 STARTED"]  # it waits for no event


def test_a_dead_engine_fails_every_goal_and_is_told():
    def fault(step: int) -> None:
        if step > 6:
            raise EngineDead("the engine is gone")

    run = failing(fault, "r1", "r2")
    ids = [run.goal("r1", "a", at=1.0), run.goal("r1", "b", at=1.0), run.goal("r2", "b", at=2.0)]
    run.finish()
    assert {run.result(plan).error_code for plan in ids} == {ErrorCode.ENGINE_FAILED}
    assert str(run.planner.failure) == "the engine is gone"
    assert run.commands("r1")[-1].endswith("CANCEL")


def test_a_dead_engine_takes_no_request():
    run = sim()
    run.run(0.9)

    def submit(request) -> int:
        raise EngineDead("the engine is gone")

    run.planner.engine.submit = submit
    plan = run.goal("r1", "a", at=1.0)
    other = walker("another").text
    ticket = run.ask(lambda t: ev.RegisterRobot(t, "r2", skill_set=other), at=1.0)
    run.finish()
    assert run.result(plan).error_code is ErrorCode.ENGINE_FAILED
    assert run.answers[ticket].code is ErrorCode.ENGINE_FAILED
    assert run.answers[ticket].error == "the engine is gone"


@pytest.mark.parametrize("block", ["system", "user"])
def test_a_template_that_fails_for_one_kind_or_goal_fails_it_alone(block):
    broken = "{% if skills.kind == 'b' or scene == 'b' %}{{ skills.nothing }}{% endif %}"
    system = broken.replace(" or scene == 'b'", "")
    text = PROMPTS.replace("{{ skills.description }}", "x" + system * (block == "system"))
    prompts = PromptTemplate(text.replace("{{ scene }}", broken * (block == "user")))
    run = FleetSim(PLANS, prompts=prompts, kinds=[walker(), walker(kind="b")])
    run.add_robot("r1")
    robot = run.add_robot("r2", kind="b")
    plan = run.goal("r1", "b", at=1.0, scene="b")
    fine = run.goal("r1", "b", at=1.0)
    run.finish()
    assert run.result(fine).error_code is ErrorCode.NONE
    if block == "system":
        assert robot.refusals[0][0] is ErrorCode.INVALID_SKILL_SET
        assert "nothing" in robot.refusals[0][1]
    else:
        assert run.result(plan).error_code is ErrorCode.INVALID_GOAL
        assert "nothing" in run.result(plan).error_msg


def test_a_request_that_fails_by_itself_ends_alone():
    name = f"{1:032x}"

    def fault(step: int):
        return {name: Output("", 0, "error", "grammar broke")} if step == 6 else None

    run = failing(fault, "r1", "r2")
    p, q = run.goal("r1", "a", at=1.0), run.goal("r2", "b", at=1.0)
    run.finish()
    assert run.result(p).error_code is ErrorCode.ENGINE_FAILED
    assert run.result(p).error_msg == "grammar broke"
    assert run.result(q).error_code is ErrorCode.NONE


def test_a_fixed_prompt_that_fails_leaves_goals_to_compute_it():
    def fault(step: int):
        (key,) = run.planner.state.prefixes.missing if step == 1 else ("",)
        return {key: Output("", 0, "error", "no")} if key else None

    run = failing(fault)
    plan = run.goal("r1", "b", at=1.0)
    run.finish()
    assert run.planner.state.prefixes.missing == ()
    assert run.result(plan).error_code is ErrorCode.NONE
    assert run.result(plan).response_time == pytest.approx(0.007 + 0.06)


def test_a_step_that_computes_nothing_is_not_repeated_at_once():
    run = failing(lambda step: None)
    run.run(0.9)
    run.planner.engine.step = lambda *arguments: StepResult()
    run.goal("r1", "b", at=1.0)
    run.run(1.0 + 10.5 * RETRY)
    starts = [at for at, _ in run.busy if at >= 1.0]
    assert starts == []  # never busy, and the simulation's guard against spinning is silent
