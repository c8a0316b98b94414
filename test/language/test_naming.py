"""Plans in words and in short names mean the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_language import PUBLISHED, ROVER, TELLO

from timely_llm.language.naming import in_words, renamed
from timely_llm.language.parser import PlanError, parse
from timely_llm.language.segmenter import PlanSegmenter


@pytest.mark.parametrize("number", range(11))
def test_a_plan_in_words_is_the_same_plan(number):
    plan, skills = PUBLISHED[number]
    words = renamed(plan, in_words(skills))
    assert renamed(words, skills) == plan
    assert [(call.name, call.values) for call in parse(words, skills)] == [
        (call.name, call.values) for call in parse(plan, skills)
    ]


def test_strings_spaces_and_strangers_stay_as_they_are():
    plan = "_1 = od( 'mf(1)' );mf(_1);xx(2)"
    assert renamed(plan, in_words(TELLO)) == ("_1 = object_dis( 'mf(1)' );move_forward(_1);xx(2)")
    with pytest.raises(PlanError):
        renamed("mf('", TELLO)


@given(st.integers(1, 9))
def test_a_robot_gets_the_same_calls_in_pieces_of_any_size(size):
    plan = "?scan('cat')==True{goto('cat');take_picture()}move_forward(100)"
    segmenter, calls = PlanSegmenter(TELLO), []
    pieces = [plan[i : i + size] for i in range(0, len(plan), size)]
    for i, piece in enumerate(pieces, 1):
        for segment in segmenter.feed(piece, i == len(pieces)):
            calls += [call.name for call in segment.calls]
    assert calls == ["s", "g", "tp", "mf"]


def test_both_names_lead_to_a_skill_of_either_set():
    worded = in_words(ROVER)
    assert worded.names == ("drive", "steer", "spray", "battery", "ask_model", "new_plan")
    assert worded["dv"] is worded["drive"] and worded["dv"].name == "drive"
