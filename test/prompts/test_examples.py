"""The examples of a prompt: plans that the robot accepts, of what its skill set offers."""

import dataclasses

import pytest
from prompt_kinds import BLIND, CRAWLER

from timely_llm.language.loader import load_skill_set
from timely_llm.language.parser import Parser, parse
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


def test_examples_are_turns_in_the_names_that_the_prompt_has():
    words = PromptTemplate.default().fixed(TELLO).examples
    short = PromptTemplate.default(names="short").fixed(TELLO).examples
    assert len(words) == len(short) == len(TELLO.examples)
    assert words[0] == ("Scene: []\nInstruction: Fly forward 2 m.\nPlan:", "move_forward(200)")
    assert short[0] == (words[0][0], "mf(200)")
    for _, plan in words:
        parse(plan, TELLO)


def test_examples_use_what_the_skill_set_offers():
    bare = dataclasses.replace(TELLO, examples=())
    assert [example.plan for example in examples(bare)] == [
        "mf(150)",
        "tc(90);mf(100)",
        "?s('apple')==True{g('apple');->True}->False",
        "?iv('apple'){l('Yes');->True}l('No');->False",
        "3{mf(100);tc(90)}",
        "mf(500);mf(300)",
        "refuse('distance is at least 20 cm')",
        "refuse('I have no skill for that')",
    ]
    assert [(example.instruction, example.plan) for example in examples(CRAWLER)] == [
        ("Crawl on 7 mm.", "go(7)"),
        ("Crawl on 3 mm.", "refuse('length is at least 7 mm')"),
        ("Bake a cake.", "refuse('I have no skill for that')"),
    ]
    tiny = dataclasses.replace(TELLO.bounds, max_nesting=0)
    assert len(examples(dataclasses.replace(bare, bounds=tiny))) == 5
