"""Goals that are planned again when their plan fails, or asks for it: exact logs on virtual time.

Times as in ``test_planner.py``; a replan's prompt is the instruction with ``+1``, ``+2``: two more
tokens than the instruction's own.
"""

from dataclasses import replace

import pytest
from fleet_sim import NETWORK, FleetSim
from replan_cases import PLANS, REPLAN, WALL, fleet, outcome

from timely_llm.prompts.history import Attempt, Done
from timely_llm.protocols.messages import ExecutionState, PlanEventType, Segment
from timely_llm.protocols.utility import TimeUtility


def test_a_failed_skill_has_its_goal_planned_anew():
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    run.finish()
    assert outcome(run, plan) == ("NONE", "")
    assert run.story(plan) == [
        "1.000 ACCEPTED",
        "1.000 STARTED",
        "1.063 SEGMENT 0 'go(2)'",
        "1.163 SEGMENT 1 ';go(3)'",
        "1.263 SEGMENT 2 ';go(1)'",
        "1.283 SEGMENT 3 ''!",
        "6.079 REPLANNED SKILL_FAILED",
        "6.079 STARTED",
        "6.144 SEGMENT 4 'go(4)'",
        "6.304 SEGMENT 5 \";say('hi')\"!",
        "10.161 RETURNED",
        "10.161 ENDED",
    ]
    assert run.commands("r1")[4:] == ["6.144 REPLACE 4 'go(4)'", "6.304 RUN 5 \";say('hi')\"!"]
    assert run.motions("r1") == ["1.071 go(2)", "3.071 go(3)", "6.152 go(4)", "10.152 say(hi)"]


def test_the_result_tells_of_all_plans_of_the_goal():
    run = fleet()
    utility = TimeUtility(0.0, -2.0, 1.0)
    plan = run.goal("r1", "a", at=1.0, utility=utility, **REPLAN)
    run.finish()
    result = run.result(plan)
    assert result.replans == 1
    assert result.plan == f"{PLANS['a']}\n{PLANS['a+1']}"
    assert (result.num_segments, result.prompt_tokens) == (6, 7 + 9)
    assert result.response_time == pytest.approx(0.063)  # the goal's own first
    assert result.utility == pytest.approx(utility(0.065))  # of the slower of both
    assert result.execution_time == pytest.approx(9.001)
    assert result.waiting_time == pytest.approx(0.063 + 0.065 + 4 * NETWORK)


def test_a_replan_is_a_new_first_segment_due_from_the_failure_on():
    run = fleet()
    seen = []
    choose = run.planner.policy.choose

    def watch(now, views, state):
        seen.extend((view.segment, round(view.arrival, 3), round(view.due, 3)) for view in views)
        return choose(now, views, state)

    run.planner.policy = replace(run.planner.policy, choose=watch)
    run.goal("r1", "a", at=1.0, utility=TimeUtility(0.5, -1.0, 1.0), **REPLAN)
    run.finish()
    first = [(index, asked, due) for index, asked, due in seen if index == 0]
    assert set(first) == {(0, 1.0, 1.5), (0, 6.079, 6.579)}
    assert {(index, asked) for index, asked, _ in seen if asked > 6 and index} == {(1, 6.079)}


def test_events_of_a_replan_carry_why_and_where_it_begins():
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    run.finish()
    (event,) = [e for e in run.events if e.type is PlanEventType.REPLANNED]
    assert (event.plan_id, event.segment, event.result.replans) == (plan, 4, 0)
    assert event.result.error_msg == "robot 'r1': go(3): go: a wall"
    told = [(round(at, 3), f.state.name) for at, f in run.feedback if 6.07 < at < 6.2]
    assert told[:3] == [(6.079, "WAITING"), (6.084, "GENERATING"), (6.144, "GENERATING")]


def test_the_prompt_tells_of_the_calls_that_were_done_and_of_the_failure():
    run = fleet(faults={"go(0.5)": "a wall"})
    asked = []
    template = run.planner.state.prompts
    run.planner.state.prompts = Spy(template, asked)
    plan = run.goal("r1", "find", at=1.0, scene="[cat]", **REPLAN)
    run.finish()
    assert outcome(run, plan)[0] == "NONE"
    attempt = Attempt(
        plan=PLANS["find"],
        done=(Done("find('cat')", "True"),),
        failed="go(0.5)",
        failure="a wall",
        written=PLANS["find"],
        prompt_tokens=15,
        tokens=24,
    )
    assert asked == [("[cat]", "find", (attempt,))]


class Spy:
    """Around a template: what it was asked for."""

    def __init__(self, template, asked) -> None:
        self._template, self._asked = template, asked

    def __getattr__(self, name):
        return getattr(self._template, name)

    def replan(self, skills, scene, instruction, attempts):
        self._asked.append((scene, instruction, tuple(attempts)))
        return self._template.replan(skills, scene, instruction, attempts)


def test_the_robot_goes_on_counting_its_calls():
    run = fleet()
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    run.finish()
    started = [e for _, _, e in run.reported if e.state is ExecutionState.STARTED]
    numbers = [(e.call_number, e.segment) for e in started if e.plan_id == plan]
    assert numbers == [(0, 0), (1, 1), (2, 4), (3, 5)]


def test_what_was_still_being_written_is_given_up():
    run = fleet(faults={"go(0.1)": "a wall"}, lag=True)
    plan = run.goal("r1", "long", at=1.0, **REPLAN)
    run.finish()
    assert outcome(run, plan) == ("NONE", "")
    last = run.story(plan, kinds="REPLANNED SEGMENT")
    again = next(i for i, line in enumerate(last) if "REPLANNED" in line)
    assert [line.split(" ", 3)[3] for line in last[again + 1 :]] == ["'go(1)'", "';go(1)'", "''!"]
    calls = [call for _, call in run.robots["r1"].body.done]
    assert calls == ["go(0.1)", "go(1)", "go(1)"]
    text = run.result(plan).plan.split("\n")
    assert PLANS["long"].startswith(text[0]) and text[1] == PLANS["long+1"]


@pytest.mark.parametrize("policy", ["vllm", "vllm_stream", "least_loss", "edf", "isrtf", "slice"])
def test_under_other_policies_too(policy):
    run = fleet(policy=policy)
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    run.finish()
    assert outcome(run, plan) == ("NONE", "")
    calls = [call for _, call in run.robots["r1"].body.done]
    assert calls == ["go(2)", "go(3)", "go(4)", "say(hi)"]


@pytest.mark.parametrize(
    ("goal", "replans", "end"),
    [
        ({}, 0, "robot 'r1': go(3): go: a wall"),
        ({"max_replans": 3}, 0, "robot 'r1': go(3): go: a wall"),  # a failure needs REPLAN too
        (REPLAN, 1, "robot 'r1': go(4): go: a ditch (after 1 of 1 replans)"),
        (REPLAN | {"max_replans": 2}, 2, "robot 'r1': go(5): go: a river (after 2 of 2 replans)"),
    ],
)
def test_at_last_the_goal_ends_with_the_robot_s_words(goal, replans, end):
    run = fleet(WALL | {"go(4)": "a ditch", "go(5)": "a river"})
    plan = run.goal("r1", "a", at=1.0, **goal)
    run.finish()
    assert outcome(run, plan) == ("SKILL_FAILED", end)
    assert run.result(plan).replans == replans
    assert len(run.story(plan, kinds="REPLANNED")) == replans
    assert len(run.motions("r1")) == 2 + replans


@pytest.mark.parametrize(
    ("goal", "calls"),
    [
        ({}, ["go(1)"]),
        ({"max_replans": 1}, ["go(1)", "go(0.5)"]),  # asked for by the plan, whatever on_failure
        (REPLAN, ["go(1)", "go(0.5)"]),
    ],
)
def test_a_plan_that_asks_for_another_one_gets_it_within_max_replans(goal, calls):
    run = fleet()
    plan = run.goal("r1", "ask", at=1.0, **goal)
    run.finish()
    assert [call for _, call in run.robots["r1"].body.done] == calls
    code = "NONE" if len(calls) > 1 else "SKILL_FAILED"
    assert outcome(run, plan)[0] == code


def test_a_limit_broken_on_the_robot_is_a_failure_to_be_planned_anew():
    run = FleetSim({"v": "_1=99;go(_1)", "v+1": "go(1)"})
    run.add_robot("r1")
    plan = run.goal("r1", "v", at=1.0, **REPLAN)
    run.finish()
    assert outcome(run, plan) == ("NONE", "")
    assert [call for _, call in run.robots["r1"].body.done] == ["go(1)"]


def test_a_replan_that_is_no_sound_plan_ends_the_goal_and_halts_the_robot():
    run = fleet()
    plan = run.goal("r1", "wrong", at=1.0, **REPLAN)
    run.finish()
    assert outcome(run, plan)[0] == "INVALID_PLAN"
    assert [call for _, call in run.robots["r1"].body.done] == ["go(3)", "go(1)"]
    assert run.commands("r1")[-1].endswith("CANCEL")


LIMIT = "go: seconds is 99 s: must be 0.1 to 60 s"


def spied(run: FleetSim) -> list:
    asked: list = []
    run.planner.state.prompts = Spy(run.planner.state.prompts, asked)
    return asked


def test_a_plan_that_the_check_refuses_is_planned_again_before_anything_moves():
    run = fleet()
    asked = spied(run)
    plan = run.goal("r1", "high", at=1.0, **REPLAN)
    run.finish()
    assert outcome(run, plan) == ("NONE", "")
    assert run.result(plan).replans == 1
    assert [call for _, call in run.robots["r1"].body.done] == ["go(9)"]
    (event,) = [e for e in run.events if e.type is PlanEventType.REPLANNED]
    assert (event.result.error_code.name, event.segment) == ("INVALID_PLAN", 0)
    ((_, _, (attempt,)),) = asked
    assert attempt.plan.startswith("go(99)") and LIMIT in attempt.failure
    assert (attempt.done, attempt.failed) == ((), "")


def test_what_ran_before_the_refused_part_is_done_first_and_told():
    run = fleet()
    asked = spied(run)
    plan = run.goal("r1", "later", at=1.0, **REPLAN)
    run.finish()
    assert outcome(run, plan) == ("NONE", "")
    assert [call for _, call in run.robots["r1"].body.done] == ["go(2)", "go(1)", "go(0.5)"]
    ((_, _, (attempt,)),) = asked
    assert attempt.done == (Done("go(2)"), Done("go(1)")) and LIMIT in attempt.failure
    numbers = [r.call_number for _, _, r in run.reported if r.state is ExecutionState.STARTED]
    assert numbers == [0, 1, 2]


def test_a_robot_that_fails_before_the_refused_part_is_what_is_told():
    run = fleet()
    asked = spied(run)
    plan = run.goal("r1", "walled", at=1.0, **REPLAN)
    run.finish()
    assert outcome(run, plan) == ("NONE", "")
    assert asked[0][2][0].failure == "a wall"


@pytest.mark.parametrize("goal", ["never", "high"])
def test_a_plan_that_is_refused_to_the_last_ends_with_the_limit(goal):
    run = fleet()
    wish = REPLAN if goal == "never" else {}
    plan = run.goal("r1", goal, at=1.0, **wish)
    run.finish()
    code, words = outcome(run, plan)
    assert code == "INVALID_PLAN" and "must be 0.1 to 60 s" in words
    assert words.endswith("(after 1 of 1 replans)") == (goal == "never")
    assert not run.robots["r1"].body.done


def test_a_cancel_while_the_robot_still_runs_what_it_has():
    run = fleet()
    plan = run.goal("r1", "later", at=1.0, **REPLAN)
    run.run(1.9)
    run.cancel(plan)
    run.finish()
    assert outcome(run, plan)[0] == "CANCELED"
    assert [call for _, call in run.robots["r1"].body.done] == ["go(2)"]
    assert run.result(plan).replans == 0


def test_a_segment_that_was_refused_is_no_reason_to_plan_anew():
    run = fleet(faults={})
    plan = run.goal("r1", "a", at=1.0, **REPLAN)
    run.run(1.2)
    stranger = Segment(run.robots["r1"].session, plan, 7, text="go(9)")
    run.act("r1", 1.2, lambda executor, now: executor.on_segment(stranger, now))
    run.finish()
    assert outcome(run, plan)[0] == "SEGMENT_REFUSED"
    assert run.result(plan).replans == 0
