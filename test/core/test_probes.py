"""Questions to the model from inside running plans, on virtual time."""

import pytest
from fleet_sim import FleetSim
from sim_parts import PROMPTS

from timely_llm.core import events as ev
from timely_llm.core.config import PlannerConfig
from timely_llm.core.probes import MOST_OPEN
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.messages import ErrorCode

TEXTS = {"what is it": " a cup", "slow": ["a"] * 20, "a": "go(2);go(3);say('hi')"}
WITH_PROBE = PromptTemplate(PROMPTS + "{% block probe %}{{ scene }}{{ instruction }}{% endblock %}")


def sim(prompts: PromptTemplate = WITH_PROBE, max_batch: int = 8, **fields: float) -> FleetSim:
    config = PlannerConfig(network=0.008, **fields)
    made = FleetSim(TEXTS, prompts=prompts, config=config, max_batch=max_batch)
    made.add_robot("r1")
    made.run(until=1.0)
    return made


def ask(run: FleetSim, question: str, robot_id: str = "r1", **fields) -> int:
    session = fields.pop("session", run.robots["r1"].session)
    return run.ask(lambda ticket: ev.AskProbe(ticket, robot_id, session, question, **fields))


def test_the_answer_comes_back():
    run = sim()
    ticket = ask(run, "what is it")
    run.run(until=2.0)
    assert run.answers[ticket] == ev.Probed(ticket, answer="a cup")
    assert not run.planner.probes and not run.planner.engine.pending


def test_a_question_runs_before_plans():
    run = sim(max_batch=1)
    run.goal("r1", "a")
    run.run(until=1.01)
    ticket = ask(run, "what is it")
    run.finish()
    kinds = [type(c).__name__ for _, c in run.log if isinstance(c, ev.Probed | ev.SendSegment)]
    assert kinds == ["Probed"] + ["SendSegment"] * 3
    assert run.answers[ticket].answer == "a cup"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"robot_id": "r9"}, ErrorCode.UNKNOWN_ROBOT, "'r9'"),
        ({"session": 7}, ErrorCode.INVALID_SESSION, "session 7"),
        ({"question": ""}, ErrorCode.INVALID_GOAL, "1 to 200"),
        ({"question": "x" * 201}, ErrorCode.INVALID_GOAL, "201 characters"),
        ({"scene": "x" * 4001}, ErrorCode.INVALID_GOAL, "at most 4000"),
        ({"timeout": -1.0}, ErrorCode.INVALID_GOAL, "timeout is -1.0"),
        ({"timeout": float("nan")}, ErrorCode.INVALID_GOAL, "timeout is nan"),
        ({"timeout": 1e308}, ErrorCode.INVALID_GOAL, "timeout is 1e+308 s: must be 0 to 1e+06 s"),
    ],
)
def test_a_wrong_question_is_answered_with_the_field(fields, code, words):
    run = sim()
    ticket = ask(run, fields.pop("question", "what is it"), **fields)
    run.run(until=1.1)
    assert run.answers[ticket].code is code and words in run.answers[ticket].error


def test_a_template_without_questions_says_so():
    run = sim(PromptTemplate(PROMPTS, "mine.jinja2"))
    ticket = ask(run, "what is it")
    run.run(until=1.1)
    assert run.answers[ticket].code is ErrorCode.INVALID_GOAL
    assert "mine.jinja2 has no block 'probe'" in run.answers[ticket].error


def test_a_template_that_fails_on_a_question_ends_no_more_than_that():
    broken = "{% block probe %}{{ instruction }}{{ skills.nothing }}{% endblock %}"
    run = sim(PromptTemplate(PROMPTS + broken))
    ticket = ask(run, "what is it")
    plan = run.goal("r1", "a")
    run.finish()
    assert run.answers[ticket].code is ErrorCode.INVALID_GOAL
    assert "nothing" in run.answers[ticket].error
    assert run.result(plan).error_code is ErrorCode.NONE


@pytest.mark.parametrize(("fields", "timeout"), [({"timeout": 0.1}, 5.0), ({}, 0.1)])
def test_an_answer_that_comes_too_late_is_given_up(fields, timeout):
    run = sim(probe_timeout=timeout)
    ticket = ask(run, "slow", **fields)
    run.run(until=2.0)
    assert run.answers[ticket].code is ErrorCode.TIMEOUT
    assert not run.planner.probes


def test_deactivated_every_question_is_answered():
    run = sim()
    ticket = ask(run, "slow")
    run.tell(ev.Deactivate("enough"), at=1.1)
    late = run.ask(lambda t: ev.AskProbe(t, "r1", 1, "what is it"), at=1.2)
    run.run(until=2.0)
    assert run.answers[ticket].code is ErrorCode.PLANNER_INACTIVE
    assert run.answers[late].code is ErrorCode.PLANNER_INACTIVE


def test_a_question_that_the_engine_stumbles_over_ends_no_more_than_that(monkeypatch):
    run = sim()
    plan = run.goal("r1", "a")
    run.run(until=1.01)

    def fails(request) -> int:
        raise RecursionError("a test")

    with monkeypatch.context() as broken:
        broken.setattr(run.engine, "submit", fails)
        ticket = ask(run, "what is it")
        run.run(until=1.2)
    assert run.answers[ticket] == ev.Probed(ticket, ErrorCode.ENGINE_FAILED, "a test")
    run.finish()
    assert run.result(plan).error_code is ErrorCode.NONE


def test_a_robot_that_floods_the_model_with_questions():
    """Only so many are open at once; when they have ended, it may ask again."""
    run = sim()
    tickets = [ask(run, "slow") for _ in range(MOST_OPEN + 3)]
    run.run(until=9.0)
    codes = [run.answers[ticket].code for ticket in tickets]
    assert codes == [ErrorCode.NONE] * MOST_OPEN + [ErrorCode.ROBOT_BUSY] * 3
    words = f"{MOST_OPEN} questions of robot 'r1' are open: at most {MOST_OPEN}"
    assert run.answers[tickets[-1]].error == words
    again = ask(run, "slow")
    run.run(until=10.0)
    assert run.answers[again].code is ErrorCode.NONE
