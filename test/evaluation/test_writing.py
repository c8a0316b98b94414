"""Plans as an engine writes them. The simulated engine stands in for a model."""

import pytest
from plan_language import TELLO

from timely_llm.engine.config import EngineConfig
from timely_llm.engine.factory import build
from timely_llm.estimation.presets import PACES
from timely_llm.evaluation.writing import Task, Writer
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.messages import ErrorCode


def written(*plans: str, max_tokens: int = 50, padding: str = ""):
    texts = {f"task {number}": plan for number, plan in enumerate(plans)}

    def script(request):
        plan = next(plan for name, plan in texts.items() if name in (request.user or ""))
        return [plan[i : i + 3] for i in range(0, len(plan), 3)]

    engine = build(EngineConfig("scripted", 2, script=script, pace=next(iter(PACES))))
    tasks = [Task(TELLO, "[]", name + padding) for name in texts]
    found = dict(Writer(engine, PromptTemplate.default("short"), max_tokens, int).write(tasks))
    assert engine.step(()).kv_blocks_used == 0
    return [found[number] for number in range(len(plans))]


def test_each_plan_is_cut_as_a_planner_cuts_it():
    one, two, three = written("mf(100);tp();mf(50)", "->True", "l('a');")
    assert (one.text, one.segments, one.whole) == (
        "mf(100);tp();mf(50)",
        ["mf(100)", ";tp();mf(50)", ""],
        True,
    )
    assert (two.segments, two.whole, two.code) == (["->True"], True, ErrorCode.NONE)
    assert three.segments == ["l('a');"]


@pytest.mark.parametrize(
    ("plan", "code", "words", "segments"),
    [
        ("mf(100);mf(1500);tp()", ErrorCode.INVALID_PLAN, "1500 cm: must be 20 to", ["mf(100)"]),
        ("l('a');" * 40, ErrorCode.PLAN_TRUNCATED, "50 tokens", []),
    ],
)
def test_what_is_wrong_ends_the_plan_and_what_was_sent_stays(plan, code, words, segments):
    (found,) = written(plan)
    assert (found.code, found.segments, found.whole) == (code, segments, False)
    assert words in found.error


def test_an_instruction_that_is_too_long_ends_alone():
    (found,) = written("mf(100)", padding=" please" * 20_000)
    assert (found.code, found.segments, found.whole) == (ErrorCode.INVALID_GOAL, [], False)
    assert "tokens" in found.error
