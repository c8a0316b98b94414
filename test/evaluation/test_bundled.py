"""The judged instructions that come with the package: each can be done, and none was trained."""

import re
from collections import Counter

import pytest

from robot_adapters.perception import plain_name
from timely_llm.evaluation.flight import robot
from timely_llm.evaluation.instructions import FAMILIES, HALVES, bundled, kinds, spread
from timely_llm.evaluation.trial import try_out
from timely_llm.evaluation.worlds import names_in
from timely_llm.evaluation.writing import Written
from timely_llm.language.naming import renamed
from timely_llm.language.parser import PlanError
from timely_llm.language.segmenter import PlanSegmenter
from timely_llm.prompts.examples import examples
from timely_llm.protocols.messages import ErrorCode

SETS = kinds()
BOTH = [each for half in HALVES for each in bundled(half)]


def written(plan: str, kind: str) -> Written:
    found = Written(text=renamed(plan, SETS[kind]))
    try:
        for segment in PlanSegmenter(SETS[kind]).feed(found.text, True):
            found.segments.append(segment.text)
            found.whole = segment.last
    except PlanError as error:
        found.code, found.error = ErrorCode.INVALID_PLAN, str(error)
    return found


@pytest.mark.parametrize("half", HALVES)
def test_each_has_a_plan_that_does_it(half):
    for each in bundled(half):
        row, result = try_out(each, SETS[each.kind], written(each.plan, each.kind))
        assert result.verdict == "done", (each.instruction, row)


def test_doing_nothing_is_no_answer():
    idle = [try_out(each, SETS[each.kind], written("->0", each.kind))[1] for each in BOTH]
    done = Counter(result.family for result in idle if result.verdict == "done")
    assert sum(done.values()) < 0.1 * len(BOTH), done
    assert not any(result.verdict == "harmful" for result in idle)


def test_the_robot_sees_the_scene_that_its_prompt_tells():
    for each in BOTH:
        adapter, sees = robot(SETS[each.kind], each.scene, each.unseen)
        assert sees, each.instruction
        seen, told = (sorted(map(plain_name, names_in(t))) for t in (adapter.observe(), each.scene))
        assert seen == told, each.instruction


def test_there_are_enough_of_each_kind_and_family():
    assert len(BOTH) >= 300
    assert len({each.instruction.lower() for each in BOTH}) == len(BOTH)
    for half in HALVES:
        assert {each.family for each in bundled(half)} == set(FAMILIES)
        assert {each.kind for each in bundled(half)} == {"tello", "indy7", "rover"}


def test_a_part_of_them_has_all_families():
    part = spread(BOTH, 60)
    assert len(part) == 60 and {each.family for each in part} == set(FAMILIES)


def plain(text: str) -> str:
    """Without numbers, case and signs."""
    return " ".join(re.sub(r"[^a-z ]", " ", text.lower()).split())


def test_no_instruction_is_one_of_the_prompts():
    shown = {plain(each.instruction) for skills in SETS.values() for each in examples(skills)}
    assert not [each.instruction for each in BOTH if plain(each.instruction) in shown]
