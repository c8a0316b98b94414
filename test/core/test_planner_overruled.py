"""What the grammar made of a model's wish: never another value, never another skill."""

from __future__ import annotations

import pytest
from planner_cases import sim

from timely_llm.core.outputs import OVERRULED
from timely_llm.protocols.engine import Output, StepResult


def run_with(plan: str, overruled_at: int) -> tuple[str, str, list[str]]:
    """The goal's code and words, and what moved, where the token that follows ``overruled_at``
    characters of the plan is not the one that the model would have chosen."""
    run = sim(plans={"a": plan})
    step, written = run.engine.step, [""]

    def watched(*arguments, **named) -> StepResult:
        result = step(*arguments, **named)
        for name, output in list(result.outputs.items()):
            if name in run.goals:
                before = len(written[0])
                written[0] += output.text
                if before <= overruled_at < len(written[0]):
                    result.outputs[name] = Output(
                        output.text, output.tokens, output.finish, overruled=True
                    )
        return result

    run.engine.step = watched
    goal = run.goal("r1", "a", at=1.0)
    run.finish()
    result = run.result(goal)
    return result.error_code.name, result.error_msg, run.motions("r1")


@pytest.mark.parametrize("at", [2, 3, 4])  # g o ( 2 )
def test_inside_a_name_or_a_value_the_plan_is_refused(at):
    code, words, moved = run_with("go(2);say('hi')", at)
    assert (code, words, moved) == ("INVALID_PLAN", OVERRULED, [])


def test_between_statements_it_is_not():
    code, words, moved = run_with("go(2);say('hi')", 6)
    assert (code, words) == ("NONE", "") and len(moved) == 2


def test_what_ran_before_is_stopped():
    code, words, moved = run_with("go(2);go(9)", 9)
    assert (code, words) == ("INVALID_PLAN", OVERRULED) and len(moved) == 1
