"""How long a robot is busy with the text it holds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_language import INDY7, TELLO, Writer

from robot_adapters.executor.interpreter import (
    Closed,
    Fault,
    Interpreter,
    NeedText,
    Opened,
    Returned,
    StartCall,
)
from timely_llm.language.parser import parse
from timely_llm.protocols.messages import SkillCall

#: The drone with scans of its own.
NATIVE = replace(
    TELLO, skills=tuple(replace(skill, definition="", body=()) for skill in TELLO.skills)
)


def held(plan: str, skills=TELLO) -> float:
    interpreter = Interpreter(skills)
    interpreter.feed(plan, 0)
    return interpreter.held_duration()


def test_held_duration_takes_conditions_as_true_and_stops_at_a_return():
    forward = TELLO["mf"].expected_duration([50])
    assert held("mf(50)") == pytest.approx(forward)
    assert held("mf(50);mf(5") == pytest.approx(forward)
    assert held("?iv('a'){mf(50)}mf(50)") == pytest.approx(2 * forward)
    assert held("?s('a')&s('b'){mf(50)}") == pytest.approx(2 * 1.5275 + forward)
    assert held("?s('a')|s('b'){mf(50)}") == pytest.approx(1.5275 + forward)
    assert held("?s('a')|s('b')") == pytest.approx(1.5275)
    assert held("3{mf(50);2{d(0.5)}}") == pytest.approx(3 * (forward + 1))
    assert held("3{mf(50);d(1)") == pytest.approx(forward + 1)
    assert held("mf(50);->True;mf(50)") == pytest.approx(forward)
    assert held("mf(50);rp();mf(50)") == pytest.approx(forward)
    assert held("mf(_1)") == pytest.approx(TELLO["mf"].expected_duration([20]))
    assert held("iv('a');tp()") == 0
    assert held("20{20{20{d(1)}}}") < 500


def test_what_a_false_condition_skips_is_not_held():
    interpreter = Interpreter(NATIVE)
    interpreter.feed("?s('a')&iv('b'){mf(500)", 0)
    assert isinstance(interpreter.advance(), StartCall)
    assert interpreter.held_duration() == pytest.approx(TELLO["mf"].expected_duration([500]))
    interpreter.complete(False)
    assert interpreter.held_duration() == 0  # s decides for both terms
    assert interpreter.advance() == NeedText()
    interpreter.feed(";mf(400)", 1)
    assert interpreter.held_duration() == 0
    interpreter.feed("}d(2)", 2)
    assert interpreter.held_duration() == 2


def test_a_plan_that_is_over_holds_nothing():
    interpreter = Interpreter(NATIVE)
    interpreter.feed("?s('a'){mf(500)}", 0)
    interpreter.advance()
    interpreter.complete(None)  # a skill that owes a value
    assert interpreter.held_duration() == 0
    assert interpreter.advance() == Fault("plan, character 1: s returned no value", 1)


def test_a_definition_is_held_as_declared_until_it_is_called():
    forward = TELLO["mf"].expected_duration([100])
    interpreter = Interpreter(TELLO)
    interpreter.feed("2{s('a');d(1)}mf(100)", 0, last=True)
    assert interpreter.held_duration() == pytest.approx(2 * 1.5275 + 2 + forward)
    seen = []
    for value in (False, None, True):
        while not isinstance(step := interpreter.advance(), StartCall):
            assert step == Opened(SkillCall("s", ("'a'",), ("a",), 1.5275), 0)
        seen.append((step.call.name, interpreter.held_duration()))
        interpreter.complete(value)
    rest = 1 + 1.5275 + 1 + forward  # beyond the scan
    assert seen == [(name, pytest.approx(rest)) for name in ("iv", "tc", "iv")]
    assert interpreter.advance() == Closed(True)
    assert interpreter.held_duration() == pytest.approx(rest)
    assert interpreter.advance().call.name == "d"
    assert interpreter.held_duration() == pytest.approx(rest - 1)


def test_held_duration_falls_as_the_plan_goes_on():
    interpreter = Interpreter(INDY7)
    interpreter.feed("2{dr();d(1)}", 0, last=True)
    seen = [interpreter.held_duration()]
    while isinstance(interpreter.advance(), StartCall):
        seen.append(interpreter.held_duration())
        interpreter.complete(None)
    assert seen == pytest.approx([8, 5, 4, 1, 0])


@st.composite
def foreseeable(draw, depth: int = 2) -> list:
    """A plan of literal calls, loops and conditions that ``iv`` decides."""
    calls = st.sampled_from([("mf", 50), ("tu", 90), ("d", 0.5), ("s", "a"), ("tp",), ("iv", "b")])
    block = []
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(["call", "loop", "if"] if depth else ["call"]))
        if kind == "call":
            name, *values = draw(calls)
            block.append(("call", name, [[("value", value)] for value in values]))
        elif kind == "loop":
            block.append(("loop", draw(st.integers(1, 3)), draw(foreseeable(depth - 1))))
        else:
            joints = draw(st.lists(st.sampled_from("&|"), max_size=2))
            names = [draw(st.sampled_from(["iv", "s"])) for _ in range(len(joints) + 1)]
            terms = [([("call", name, [[("value", "x")]])], "", []) for name in names]
            block.append(("if", terms, joints, draw(foreseeable(depth - 1))))
    return block


@given(foreseeable())
def test_held_duration_is_what_is_left_if_all_conditions_are_true(tree):
    text = Writer(lambda choices: 0).plan(tree)
    parse(text, TELLO)
    interpreter, seen, durations = Interpreter(NATIVE), [], []
    interpreter.feed(text, 0, last=True)
    while isinstance(step := interpreter.advance(), StartCall):
        skill = TELLO[step.call.name]
        seen.append(interpreter.held_duration())
        durations.append(step.call.expected_duration if skill.timed else 0.0)
        interpreter.complete(None if skill.returns == "none" else True)
    assert step == Returned()
    assert seen == pytest.approx([sum(durations[i + 1 :]) for i in range(len(durations))])
