"""Prompt templates: what the blocks see, what is refused and where, the default for any robot."""

import dataclasses
from pathlib import Path

import pytest

import timely_llm.paths
from timely_llm.language.loader import load_skill_set, read_skill_set
from timely_llm.language.parser import PlanChecker
from timely_llm.paths import data, share
from timely_llm.prompts.examples import examples
from timely_llm.prompts.template import PromptTemplate, TemplateError

TELLO = load_skill_set(share("config", "skills", "tello.yaml"))
INDY7 = load_skill_set(share("config", "skills", "indy7.yaml"))
CRAWLER = read_skill_set(
    """
kind: crawler
description: a crawler with one motor, one eye and a printer
bounds: {max_nesting: 1, max_statements: 4, max_loop: 2}
skills:
  - name: go
    long_name: go
    description: crawl on
    arguments: [{name: length, type: int, unit: mm, minimum: 7, maximum: 9}]
    duration: {constant: 1}
  - name: tag
    long_name: tag
    description: print a label
    arguments: [{name: label, type: str, maximum: 8, pattern: "[A-Z]{1,8}"}]
    duration: {constant: 1}
  - name: see
    long_name: see
    description: whether the object is in view
    arguments: [{name: object, type: str, maximum: 8}]
    returns: bool
    duration: {constant: 0.001}
"""
)
BLIND = read_skill_set(
    """
kind: blind
description: one that can only wait
skills:
  - name: w
    long_name: wait
    description: wait
    arguments: [{name: seconds, type: float, unit: s, minimum: 0.1, maximum: 0.4}]
    duration: {argument: seconds}
"""
)
SIMPLE = """{% macro quoted(text) %}<{{ text }}>{% endmacro %}
left out
{% block system %}{{ skills.kind }} {{ quoted("a") }}
{% for skill in skills.skills %}
{{ skill.name }}
{% endfor %}
{% endblock %}
{% block user %}{{ quoted(scene) }}{{ quoted(instruction) }}{% endblock %}
"""


def test_blocks_see_their_part_and_nothing_else_is_rendered():
    template = PromptTemplate(SIMPLE)
    assert template.system(CRAWLER) == "crawler <a>\ngo\ntag\nsee\n"
    assert template.user(CRAWLER, "[cat]", "go on") == "<[cat]><go on>"


def test_blocks_inside_of_blocks_belong_to_them():
    template = PromptTemplate(
        "{% block system %}a{% block inner %}b{% endblock %}c{% endblock %}"
        "{% block user %}{{ instruction }}{% endblock %}"
    )
    assert template.system(CRAWLER) == "abc"
    assert template.user(CRAWLER, "", "d") == "d"


def test_texts_are_taken_as_they_are():
    hostile = "{{ skills }}{% endblock %}</s>&"
    assert PromptTemplate(SIMPLE).user(CRAWLER, "", hostile) == f"<><{hostile}>"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{% block system %}\n{% if %}", "t:2: "),
        ("{% block user %}{{ instruction }}{% endblock %}", "t: has no block 'system'"),
        ("{% block system %}{% endblock %}", "t: has no block 'user'"),
        (
            "\n{% block system %}\n{{ scene }}{% endblock %}{% block user %}{% endblock %}",
            "t:3: block system uses 'scene', but is computed once",
        ),
        (
            "{% block system %}{% endblock %}\n{% block user %}{{ scene }}{% endblock %}",
            "t:2: block user does not use 'instruction'",
        ),
        (
            "{% block system %}\n{{ skilz }}{% endblock %}",
            r"t:2: unknown variable 'skilz' \(did you mean 'skills'\?\)",
        ),
        ("\n{% include 'other' %}", "t:2: uses another template"),
    ],
)
def test_a_wrong_template_is_refused_at_once_with_its_line(text, error):
    with pytest.raises(TemplateError, match=f"^prompt template {error}"):
        PromptTemplate(text, "t")


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("skills.kinds", "no attribute 'kinds'"),
        ("1 / 0", "division by zero"),
        ("skills.__class__", "unsafe"),
        ("''.__class__.__mro__", "unsafe"),
        ("skills.skills.append(1)", "no attribute 'append'"),
    ],
)
def test_a_fault_while_rendering_names_block_and_line(expression, error):
    template = PromptTemplate(
        "{% block system %}{% endblock %}\n{% block user %}{{ instruction }}\n{{ "
        + expression
        + " }}{% endblock %}",
        "t",
    )
    with pytest.raises(TemplateError, match=f"^prompt template t:3: block user: .*{error}"):
        template.user(CRAWLER, "", "")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(TemplateError, match="missing.jinja2: no such file"):
        PromptTemplate.from_file(tmp_path / "missing.jinja2")
    bad = tmp_path / "bad.jinja2"
    bad.write_bytes(b"\n\xff")
    with pytest.raises(TemplateError, match="bad.jinja2:2: is not UTF-8"):
        PromptTemplate.from_file(bad)


def test_resolution_parameter_then_model_then_default(tmp_path, monkeypatch):
    default = PromptTemplate.default()
    assert PromptTemplate.resolve("", "").text == default.text
    assert PromptTemplate.resolve("", "organisation/model").text == default.text
    model, own = tmp_path / "model", tmp_path / "own.jinja2"
    model.mkdir()
    assert PromptTemplate.resolve("", str(model)).text == default.text
    (model / "prompt.jinja2").write_text(SIMPLE)
    assert PromptTemplate.resolve("", str(model)).text == SIMPLE
    own.write_text(SIMPLE + "\n")
    assert PromptTemplate.resolve(str(own), str(model)).text == SIMPLE + "\n"
    with pytest.raises(TemplateError, match="nowhere"):
        PromptTemplate.resolve(str(tmp_path / "nowhere"), str(model))
    monkeypatch.chdir(model)  # the folder one stands in is not the model's
    assert PromptTemplate.resolve("", "").text == default.text


@pytest.mark.parametrize("skills", [TELLO, INDY7, CRAWLER, BLIND], ids=lambda skills: skills.kind)
def test_the_default_names_every_skill_and_its_limits(skills):
    system = PromptTemplate.default().system(skills)
    for skill in skills.skills:
        assert skill.signature in system
        assert skill.description in system
    assert skills.description in system
    user = PromptTemplate.default().user(skills, "[cat x:0.5]", "find the cat")
    assert user == "\nScene: [cat x:0.5]\nInstruction: find the cat\nPlan:"


@pytest.mark.parametrize("skills", [TELLO, INDY7, CRAWLER, BLIND], ids=lambda skills: skills.kind)
def test_every_example_is_a_plan_that_the_robot_accepts(skills):
    shown = examples(skills)
    assert shown
    for example in shown:
        checker = PlanChecker(skills)
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


def test_share_of_a_checkout_and_of_an_install_space(tmp_path, monkeypatch):
    assert share("package.xml").is_file()
    package = tmp_path / "lib" / "python3.11" / "site-packages" / "timely_llm"
    folder = tmp_path / "share" / "timely_llm"
    package.mkdir(parents=True)
    monkeypatch.setattr(timely_llm.paths, "_PACKAGE", package)
    with pytest.raises(FileNotFoundError, match="share/timely_llm"):
        share("config")
    folder.mkdir(parents=True)
    assert share("config", "prompts") == folder / Path("config/prompts")
    assert data("tasks.json") == package / "data" / "tasks.json"


def test_published_data_lies_in_the_package():
    assert data("lrtrace_tasks.json").is_file()
