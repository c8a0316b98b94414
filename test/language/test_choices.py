"""Arguments that are one of a few values, or true or false."""

from __future__ import annotations

import pytest

from timely_llm.language.loader import read_skill_set
from timely_llm.language.parser import PlanError, parse
from timely_llm.prompts.examples import examples
from timely_llm.validation.reader import FileError

YAML = """\
kind: lamp
skills:
  - name: dr
    long_name: drive
    description: drive
    arguments:
      - {name: speed, type: str, choices: [slow, "it's fast"]}
      - {name: distance, type: float, unit: m, choices: [0.5, 1, 2.25]}
      - {name: light, type: bool}
    duration: {constant: 1}
  - name: bl
    long_name: blink
    description: blink
    arguments: [{name: times, type: int, choices: [1, 3]}]
    duration: {constant: 1}
"""
LAMP = read_skill_set(YAML)


def test_the_prompt_tells_them():
    assert LAMP["dr"].signature == (
        "dr(speed: 'slow'|\"it's fast\", distance: 0.5|1|2.25 m, light: True|False)"
    )
    assert LAMP["bl"].signature == "bl(times: 1|3)"


@pytest.mark.parametrize(
    "plan", ["dr('slow',1,True)", 'dr("it\'s fast",2.25,False)', "bl(3)", "_1=3;bl(_1)"]
)
def test_a_value_that_is_one_of_them_passes(plan):
    assert parse(plan, LAMP)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("bl(2)", "bl: times is 2: must be one of 1, 3"),
        ("bl(True)", "times is True: must be a number"),
        ("dr('quick',1,True)", "speed is 'quick': must be one of 'slow', \"it's fast\""),
        ("dr('slow',1.5,True)", "distance is 1.5 m: must be one of 0.5, 1, 2.25"),
        ("dr('slow',1,1)", "light is 1: must be True or False"),
        ("dr('slow',1,'True')", "light is 'True': must be True or False"),
        ("dr('slow',True,True)", "distance is True: must be a number"),
    ],
)
def test_another_is_refused_with_all_that_there_are(plan, words):
    with pytest.raises(PlanError) as caught:
        parse(plan, LAMP)
    assert words in str(caught.value)


def test_values_come_back_as_they_went_out():
    assert LAMP["dr"].parse_values(("slow", "2.25", "False")) == ("slow", 2.25, False)
    assert LAMP["dr"].check(("slow", 1, True)) == ("slow", 1.0, True)


def test_examples_are_made_of_them():
    plans = [example.plan for example in examples(LAMP)]
    assert plans[0] == "bl(1);dr('slow',0.5,True)"
    for plan in plans:
        parse(plan, LAMP)


DRIVE = '{name: speed, type: str, choices: [slow, "it\'s fast"]}'


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("{name: a, type: bool, choices: [true]}", "choices: a bool has no choices"),
        ("{name: a, type: bool, maximum: 1}", "maximum: does not go with choices or type bool"),
        ("{name: a, type: str, pattern: a, choices: [a]}", "pattern: does not go with choices"),
        ("{name: a, type: int, choices: []}", "choices: has 0 entries: must have 1 to 64"),
        ("{name: a, type: int, choices: [1, 1.5]}", "choices[1]: is 1.5: must be a whole number"),
        ("{name: a, type: int, choices: [true]}", "choices[0]: is True: must be a whole number"),
        ("{name: a, type: float, choices: ['1']}", "choices[0]: is '1': must be a number"),
        ("{name: a, type: float, choices: [.inf]}", "choices[0]: is inf: must be"),
        ("{name: a, type: str, choices: [1]}", "choices[0]: is 1: must be a text, in quotes"),
        ("{name: a, type: str, choices: ['']}", "must have 1 to 60 printable characters"),
        ("{name: a, type: str, choices: [a, b, a]}", "choices[2]: 'a' is given twice"),
        ("{name: a, type: str, choices: ['''\"']}", "both kinds of quotes"),
    ],
)
def test_what_a_file_cannot_say(argument, words):
    assert DRIVE in YAML
    with pytest.raises(FileError) as caught:
        read_skill_set(YAML.replace(DRIVE, argument))
    assert words in str(caught.value) and ":7: skills[0].arguments[0]" in str(caught.value)


DEFINED = """\
  - name: tw
    long_name: twice
    description: blink twice
    arguments: [{name: times, type: int, GIVEN}]
    definition: "2{bl($1)}"
"""


def test_what_is_handed_on_must_be_one_of_them():
    assert read_skill_set(YAML + DEFINED.replace("GIVEN", "choices: [3]"))
    for given in ("minimum: 1, maximum: 3", "choices: [1, 2]"):
        with pytest.raises(FileError) as caught:
            read_skill_set(YAML + DEFINED.replace("GIVEN", given))
        assert "but bl takes one of 1, 3" in str(caught.value)
