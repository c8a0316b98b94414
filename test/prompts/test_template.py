"""Prompt templates: what the blocks see, what is refused and where, the default for any robot."""

import pytest
from prompt_kinds import BLIND, CRAWLER

from timely_llm.language.loader import load_skill_set
from timely_llm.language.naming import in_words
from timely_llm.paths import share
from timely_llm.prompts.template import PromptTemplate, TemplateError

TELLO = load_skill_set(share("config", "skills", "tello.yaml"))
INDY7 = load_skill_set(share("config", "skills", "indy7.yaml"))
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


NESTED = {
    "parentheses": "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "lists": "{{ " + "[" * 150 + "]" * 150 + " }}",
    "signs": "{{ " + "-" * 3000 + "1 }}",
    "attributes": "{{ skills" + ".kind" * 3000 + " }}",
    "filters": "{{ 1" + "|upper" * 3000 + " }}",
    "sums": "{{ 1" + "+1" * 5000 + " }}",
    "conditions": "{% if 1 %}" * 500 + "{% endif %}" * 500,
    "loops": "{% for a in [1] %}" * 25 + "{% endfor %}" * 25,
    "a macro in itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "digits": "{{ " + "9" * 5000 + " }}",
    "a power": "{{ 9 ** 9 ** 9 }}",
    "a long text": "{{ 'x' * 9999999999 }}",
    "a range": "{% for a in range(9999999999) %}{% endfor %}",
}


@pytest.mark.parametrize("inside", NESTED.values(), ids=NESTED)
def test_what_cannot_be_compiled_or_rendered_is_refused(inside):
    """Nested too deeply, or a few characters that take all memory."""
    text = f"{{% block system %}}{inside}{{% endblock %}}{{% block user %}}{{{{ instruction }}}}"
    with pytest.raises(TemplateError, match="prompt template t"):
        PromptTemplate(text + "{% endblock %}", "t").system(TELLO)


def test_numbers_may_be_multiplied():
    text = "{% block system %}{{ 3 * 1.5 }}{% endblock %}{% block user %}{{ instruction }}"
    assert PromptTemplate(text + "{% endblock %}").system(TELLO) == "4.5"


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
    for skill in in_words(skills).skills:
        assert skill.signature in system
        assert skill.description in system
    assert skills.description in system
    user = PromptTemplate.default().user(skills, "[cat x:0.5]", "find the cat")
    assert user == "Scene: [cat x:0.5]\nInstruction: find the cat\nPlan:"
