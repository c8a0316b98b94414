"""The examples of a prompt: plans that the robot accepts, of what its skill set offers."""

import dataclasses

import pytest
from prompt_kinds import BLIND, CRAWLER

from timely_llm.language.loader import load_skill_set
from timely_llm.language.parser import Parser
from timely_llm.paths import share
from timely_llm.prompts.examples import examples
from timely_llm.prompts.template import PromptTemplate

TELLO = load_skill_set(share("config", "skills", "tello.yaml"))
INDY7 = load_skill_set(share("config", "skills", "indy7.yaml"))


@pytest.mark.parametrize("skills", [TELLO, INDY7, CRAWLER, BLIND], ids=lambda skills: skills.kind)
def test_every_example_is_a_plan_that_the_robot_accepts(skills):
    shown = examples(skills)
    assert shown
    for example in shown:
        checker = Parser(skills)
        checker.feed(example.plan)
        checker.finish()
        assert example.plan in PromptTemplate.default().system(skills)


def test_examples_use_what_the_skill_set_offers():
    assert [example.plan for example in examples(TELLO)] == [
        "mf(100);tc(90)",
        "?s('apple')==True{g('apple');->True}->False",
        "?iv('apple'){l('Yes');->True}l('No');->False",
        "3{mf(100);tc(90)}",
        "l('I cannot do that')",
    ]
    assert [example.plan for example in examples(CRAWLER)] == ["go(7)", "->False"]
    tiny = dataclasses.replace(TELLO.bounds, max_nesting=0)
    assert len(examples(dataclasses.replace(TELLO, bounds=tiny))) == 2
