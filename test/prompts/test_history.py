"""What a model is told of plans that have failed: by the default template, by the bundled model's,
and by a template that knows of no replans."""

import pytest

from timely_llm.language.loader import load_skill_set
from timely_llm.paths import data, share
from timely_llm.prompts.history import Attempt, Done
from timely_llm.prompts.template import PromptTemplate, TemplateError

TELLO = load_skill_set(share("config", "skills", "tello.yaml"))
BUNDLED = PromptTemplate.from_file(share("models", "tiny_planner", "prompt.jinja2"))
FIRST = Attempt(
    "mf(100);?s('cat')==True{mf(50)};",
    (Done("mf(100)"), Done("s('cat')", "True")),
    "mf(50)",
    "a wall is in the way",
)
SECOND = Attempt("mu(50);mf(50);", (), "mu(50)", "the battery is low")
PLAIN = (
    "{% block system %}{% endblock %}{% block user %}{{ scene }}|{{ instruction }}{% endblock %}"
)


def test_the_bundled_model_is_asked_as_it_was_trained_and_as_the_paper_asks():
    """Tasks T5 to T7 of LRTrace are such instructions; they were trained without a tag too."""
    published = {
        "mf,100": ("mf(50)", "a aerial robot is approaching me"),
        "ml,100": ("ml(50)", "a dog is attempting to catch me"),
    }
    text = data("lrtrace_tasks.json").read_text(encoding="utf-8")
    for plan, (call, failure) in published.items():
        task = (
            f"You provided me with plan {plan}, but I encountered a failure because {failure}. "
            f"Execution history: {call}"
        )
        assert f'"[E] {task}"' in text
        attempt = Attempt(plan, (Done(call),), "", failure)
        scene = "[cat_1 x:0.5 y:0.4]"
        asked = BUNDLED.replan(TELLO, scene, "[A] Find the cat", [FIRST, attempt])
        assert asked == BUNDLED.user(TELLO, scene, task)


def test_nothing_done_is_told_as_none():
    asked = BUNDLED.replan(TELLO, "[]", "go", [SECOND])
    assert "plan mu(50);mf(50), but" in asked
    assert asked.rstrip().endswith("because the battery is low. execution history: none")


def test_the_default_tells_of_every_plan_with_the_values_that_were_returned():
    asked = PromptTemplate.default().replan(TELLO, "", "[A] Find the cat", [FIRST, SECOND])
    assert asked == (
        "Scene: []\n"
        "Instruction: [A] Find the cat\n"
        "Plan 1, which failed: mf(100);?s('cat')==True{mf(50)};\n"
        "Execution history: mf(100); s('cat') -> True; then mf(50) failed\n"
        "Failure: a wall is in the way\n"
        "Plan 2, which failed: mu(50);mf(50);\n"
        "Execution history: none; then mu(50) failed\n"
        "Failure: the battery is low\n"
        "Write the plan for what is left to do from here.\n"
        "Plan:"
    )


def test_a_template_without_the_block_is_told_behind_the_instruction():
    asked = PromptTemplate(PLAIN).replan(TELLO, "here", "find it", [FIRST, SECOND])
    assert asked == (
        "here|find it You provided me with plan mu(50);mf(50), but I encountered a failure "
        "because the battery is low. Execution history: none"
    )


@pytest.mark.parametrize("block", ["system", "user", "probe"])
def test_attempts_are_for_replans_alone(block):
    text = PLAIN + "{% block probe %}{% endblock %}"
    text = text.replace(f"block {block} %}}", f"block {block} %}}{{{{ attempts }}}}")
    with pytest.raises(TemplateError, match=f"block {block} uses 'attempts', which only block re"):
        PromptTemplate(text)
