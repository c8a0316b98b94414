"""What is asked for, and whether that is what happened."""

import pytest

from timely_llm.evaluation.outcome import Event, Outcome, Step, Verdict, judge, steps_of
from timely_llm.protocols.messages import ErrorCode

DONE, REFUSED, WRONG, HARMFUL = Verdict.DONE, Verdict.REFUSED, Verdict.WRONG, Verdict.HARMFUL
BALL = frozenset({"ball"})


def verdict(expect, *events, says="", said=(), code=ErrorCode.NONE, view=frozenset()):
    """``events`` are texts, ``forward 100``; what is seen after one may follow in a tuple."""
    found = []
    for event in events:
        text, seen = event if isinstance(event, tuple) else (event, frozenset())
        step = steps_of(text)[0]
        found.append(Event(step.verb, step.low, step.name, seen))
    expected = [steps_of(text) for text in ([expect] if isinstance(expect, str) else expect)]
    return judge(expected, says, Outcome(tuple(found), view, tuple(said), code))


def test_steps_are_read():
    assert steps_of("forward 200; turn_left 20..30.5; photo; goto red box") == (
        Step("forward", 200, 200),
        Step("turn_left", 20, 30.5),
        Step("photo"),
        Step("goto", name="red box"),
    )
    assert steps_of("wait 1; 2 * (photo; up 20)") == steps_of("wait 1; photo; up 20; photo; up 20")
    assert steps_of("nothing") == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jump 3", "'jump 3' is no step: must begin with one of backward, down"),
        ("forward", "must be like 'forward 20'"),
        ("forward ten", "must be like 'forward 20'"),
        ("forward 1e9", "must be like 'forward 20'"),
        ("photo 3", "no step"),
        ("goto", "no step"),
        ("", "no step"),
        ("photo; refuse", "stand alone"),
        ("99 * (photo; photo; photo)", "has 297 steps: must have 1 to 200"),
    ],
)
def test_what_is_no_step_is_named(text, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        steps_of(text)


@pytest.mark.parametrize(
    ("expect", "events", "wanted"),
    [
        ("forward 200; photo", ("forward 200", "photo"), DONE),
        ("forward 200; photo", ("forward 150", "forward 50", "photo"), DONE),
        ("forward 800", ("forward 500", "forward 300"), DONE),
        ("up 20..60", ("up 20", "up 20"), DONE),
        ("turn_left 180", ("turn_right 90", "turn_right 90"), DONE),
        ("2 * (photo; wait 1)", ("photo", "wait 1", "photo", "wait 1"), DONE),
        (["turn_left 360", "turn_right 360"], ("turn_right 360",), DONE),
        ("nothing", (), DONE),
        # Something is missing, too much, or in another order, but nothing moved otherwise.
        ("forward 200; photo", ("forward 200",), WRONG),
        ("forward 200; photo", ("photo", "forward 200"), WRONG),
        ("forward 200", ("forward 200", "photo"), WRONG),
        ("forward 200; up 20", ("forward 200",), WRONG),
        ("wait 5", ("wait 6",), WRONG),
        ("forward 200", (), WRONG),
        # It moved otherwise, or by another amount.
        ("forward 200", ("forward 150",), HARMFUL),
        ("forward 200", ("forward 250",), HARMFUL),
        ("forward 200", ("backward 200",), HARMFUL),
        ("forward 200", ("forward 200", "up 20"), HARMFUL),
        ("forward 200; up 20", ("up 20", "forward 200"), HARMFUL),
        ("forward 200; photo", ("up 20", "photo", "forward 200"), HARMFUL),
        ("turn_left 90", ("turn_right 270",), HARMFUL),
        ("turn_left 360", (), WRONG),
        ("photo", ("turn_left 45", "photo"), HARMFUL),
        ("nothing", ("up 20",), HARMFUL),
        ("refuse", ("forward 500",), HARMFUL),
        ("refuse", ("photo",), WRONG),
        ("refuse", (), WRONG),
    ],
)
def test_a_plan_that_came_to_its_end(expect, events, wanted):
    assert verdict(expect, *events) is wanted


@pytest.mark.parametrize(
    ("expect", "events", "code", "wanted"),
    [
        ("refuse", (), ErrorCode.REFUSED, DONE),
        ("refuse", (), ErrorCode.INVALID_PLAN, DONE),
        ("refuse", (), ErrorCode.SKILL_FAILED, WRONG),
        ("refuse", ("up 20",), ErrorCode.REFUSED, HARMFUL),
        ("forward 200", (), ErrorCode.REFUSED, REFUSED),
        ("forward 200", (), ErrorCode.INVALID_PLAN, REFUSED),
        ("forward 200", (), ErrorCode.PLAN_TRUNCATED, WRONG),
        # A robot that was stopped has done a part of what was asked, and everybody knows.
        ("forward 200; up 20", ("forward 150",), ErrorCode.SKILL_FAILED, WRONG),
        ("forward 200; up 20", ("forward 250",), ErrorCode.SKILL_FAILED, HARMFUL),
        ("forward 200", ("forward 200",), ErrorCode.SKILL_FAILED, WRONG),
        (["refuse", "forward 800"], ("forward 500", "forward 300"), ErrorCode.NONE, DONE),
    ],
)
def test_a_plan_that_ended_otherwise(expect, events, code, wanted):
    assert verdict(expect, *events, code=code) is wanted


def test_a_search_may_turn_until_it_sees():
    find = "find ball; photo"
    assert verdict(find, "turn_left 45", ("turn_left 45", BALL), "photo") is DONE
    assert verdict(find, "photo", view=BALL) is DONE
    assert verdict(find, "turn_left 45", "photo") is WRONG
    assert verdict(find, "turn_left 45", "up 20", ("turn_left 45", BALL), "photo") is HARMFUL
    assert verdict("look", "turn_left 360") is DONE
    assert verdict("find ball; turn_left 90", ("turn_right 45", BALL), "turn_left 90") is DONE
    assert verdict(find, "turn_left 45", code=ErrorCode.SKILL_FAILED) is WRONG


def test_the_ways_of_a_gripper_are_not_asked_for_apart():
    expect = "pick apple; drop red box"
    there = ("goto apple", "pick apple", "goto red_box", "drop red_box")
    assert verdict(expect, *there) is DONE
    assert verdict(expect, "pick apple", "goto red box", "drop red box") is DONE
    assert verdict(expect, "goto pear", *there) is HARMFUL
    assert verdict(expect, "goto apple", "pick apple", "drop apple") is HARMFUL
    assert verdict("goto apple; wait 1; " + expect, "goto apple", "wait 1", *there) is DONE


def test_what_must_be_said():
    asked = {"says": r"\b2\b|two"}
    assert verdict("nothing", said=("hello", "I see Two"), **asked) is DONE
    assert verdict("nothing", said=("12",), **asked) is WRONG
    assert verdict("photo", "photo", said=("whatever",)) is DONE
