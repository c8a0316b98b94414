"""Plans flown on virtual time: what was done, and how it ended."""

import pytest
from plan_language import INDY7, TELLO

from timely_llm.evaluation.flight import call_in_words, fly, robot
from timely_llm.protocols.messages import ErrorCode

SCENE = "[apple x:0.4 y:0.5 width:0.1 height:0.2]"


def flown(segments, whole=True, skills=TELLO, scene=SCENE):
    return fly(segments, whole, skills, robot(skills, scene)[0])


def calls_of(flight, skills=TELLO):
    return tuple(call_in_words(call, skills) for call in flight.calls)


def test_calls_are_in_long_names_with_the_values_they_were_done_with():
    flight = flown(["_1=50;2{mf(_1*2)", "}?iv('apple'){g('apple')", "}->3"])
    assert flight.code is ErrorCode.NONE and flight.value == "3"
    assert calls_of(flight) == (
        "move_forward(100)",
        "move_forward(100)",
        "is_visible('apple')",
    )
    assert flight.end.x == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("segments", "whole", "code", "error", "calls"),
    [
        (["refuse('no wings')"], True, ErrorCode.REFUSED, "no wings", ()),
        (["g('pear')"], True, ErrorCode.SKILL_FAILED, "'pear'", ()),
        (["mf(100)", ";rp();"], True, ErrorCode.SKILL_FAILED, "asked", ("move_forward(100)",)),
        (["mf(100)"], False, None, "", ("move_forward(100)",)),
        ([], False, None, "", ()),
        (["500{500{_1=1}}"], True, ErrorCode.SKILL_FAILED, "a loop", ()),
    ],
)
def test_how_a_plan_ends(segments, whole, code, error, calls):
    flight = flown(segments, whole)
    assert (flight.code, calls_of(flight)) == (code, calls)
    assert error in flight.error


def test_a_robot_stands_in_its_own_world_where_there_is_no_scene_to_see():
    for scene, sees in (("", False), ("apples everywhere", False), (SCENE, True)):
        assert robot(TELLO, scene)[1] is sees
    assert robot(INDY7, "")[0].observe() != "[]"
