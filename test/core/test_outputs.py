"""What an engine writes, read: a plan that the model itself finds unlikely does not move."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from planner_cases import config, sim

from timely_llm.core.outputs import Reader
from timely_llm.language.segmenter import PlanSegmenter
from timely_llm.protocols.engine import Output, StepResult
from timely_llm.protocols.messages import ErrorCode, OnFailure


def run_with(plan: str, logprobs, min_logprob: float | None, **goal):
    """The goal's code and words, and what moved; ``logprobs`` are of the plan's tokens, the last
    for all that follow."""
    run = sim(plans={"a": plan}, config=config(min_logprob=min_logprob))
    step, count = run.engine.step, [0]

    def watched(*arguments, **named) -> StepResult:
        result = step(*arguments, **named)
        for name, output in list(result.outputs.items()):
            if name in run.goals and output.tokens:
                known = logprobs[min(count[0], len(logprobs) - 1)]
                result.outputs[name] = replace(output, logprob=known)
                count[0] += output.tokens
        return result

    run.engine.step = watched
    plan_id = run.goal("r1", "a", at=1.0, **goal)
    run.finish()
    result = run.result(plan_id)
    return result.error_code.name, result.error_msg, run.motions("r1")


@pytest.mark.parametrize(
    ("logprobs", "least", "code", "moves"),
    [
        ([-0.1], -0.2, "NONE", 3),
        ([-0.3], -0.2, "REFUSED", 0),
        ([-0.3], None, "NONE", 3),
        ([None], -0.2, "NONE", 3),  # an engine that does not know it
        ([-0.2], -0.2, "NONE", 3),
        ([-math.inf, 0.0], -5.0, "REFUSED", 0),
        ([0.0] * 4 + [-9.0], -5.0, "NONE", 3),  # doubt that comes after it has begun to move
    ],
)
def test_a_plan_in_doubt_moves_nothing(logprobs, least, code, moves):
    found, words, moved = run_with("go(2);go(1);say('hi')", logprobs, least)
    assert (found, len(moved)) == (code, moves)
    if code == "REFUSED":
        assert "in doubt" in words and f"at least {least:.3f}" in words


def test_words_alone_need_no_certainty():
    assert run_with("say('hi')", [-3.0], -0.2)[0] == "NONE"


def test_doubt_is_no_failure_to_plan_again_after():
    code, _, moved = run_with("go(2)", [-3.0], -0.2, on_failure=OnFailure.REPLAN)
    assert (code, moved) == ("REFUSED", [])


def test_the_mean_is_that_of_the_tokens_before_the_motion():
    from plan_language import TELLO

    reader = Reader(PlanSegmenter(TELLO), TELLO, 100, -0.5)
    assert reader.take(Output("mf(", 1, logprob=-0.9)).code is ErrorCode.NONE
    assert not reader.moves
    taken = reader.take(Output("50);", 1, logprob=-0.05))
    assert taken.code is ErrorCode.NONE and reader.moves
    assert [segment.text for segment in taken.segments] == ["mf(50)"]
    assert reader.mean_logprob == pytest.approx(-0.475)
