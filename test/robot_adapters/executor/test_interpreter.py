"""Plans run as they stream in: exact logs, and what stops them."""

from dataclasses import replace

import pytest
from plan_language import PUBLISHED, ROVER, SEGMENTS, TELLO
from plan_runs import run

from robot_adapters.executor.interpreter import (
    Fault,
    Interpreter,
    NeedText,
    Replan,
    Returned,
    StartCall,
    apply,
    typed,
)
from timely_llm.protocols.messages import SkillCall

# ---- published plans -------------------------------------------------------------------------

ALL_TRUE = {
    0: ["iv(cat)", "g(cat)", Returned(False)],
    1: ["iv(keys)", "iv(wallet)", "l(Yes)", Returned(True)],
    2: ["mu(40)", "iv(book)", "tp()", Returned(True)],
    3: ["md(40)", "iv(toy)", "g(toy)", Returned(False)],
    4: ["iv(scissors)", "g(scissors)", Returned(False)],
    5: ["mr(50)", "mf(50)", Returned()],
    6: ["mu(50)", "ml(50)", Returned()],
    7: ["d(3)", "mf(50)", Returned()],
    8: ["sc(red box)", "gt(red box)", "pi(red box)", "sc(blue box)", "gt(blue box)", "dr()",
        "sc(green box)", "gt(green box)", "pi(green box)", "sc(red box)", "gt(red box)", "dr()",
        Returned()],
    9: ["sc(pencil)", "gt(pencil)", "pi(pencil)", "sc(pen holder)", "dr()", "sc(eraser)",
        "gt(eraser)", "pi(eraser)", "sc(pencil)", "gt(pencil)", "d(0.1)", "dr()", "sc(notebook)",
        "gt(notebook)", "pi(notebook)", "sc(desk)", "gt(desk)", "dr()", Returned()],
    10: ["sc(apple)", "gt(apple)", "pi(apple)", "sc(carrot)", "gt(carrot)", "dr()", "sc(tomato)",
         "gt(tomato)", "pi(tomato)", "sc(cucumber)", "gt(cucumber)", "dr()", "sc(orange)",
         "gt(orange)", "pi(orange)", "sc(lemon)", "gt(lemon)", "dr()", Returned()],
}  # fmt: skip
ALL_FALSE = {
    0: ["iv(cat)", "tc(45)"] * 8 + [Returned(False)],
    1: ["iv(keys)", "l(No)", Returned(False)],
    2: ["mu(40)", "iv(book)", Returned(False)],
    3: ["md(40)", "iv(toy)", Returned(False)],
    4: ["iv(scissors)", "tc(45)"] * 8 + [Returned(False)],
    8: ["sc(red box)", Returned()],
    9: ["sc(pencil)", "sc(eraser)", "sc(notebook)", Returned()],
    10: ["sc(apple)", "sc(tomato)", "sc(orange)", Returned()],
}
NOTHING = {"iv": False, "s": False, "sc": False}


@pytest.mark.parametrize("number", range(11))
def test_published_plans_run(number):
    plan, skills = PUBLISHED[number]
    segments = SEGMENTS[number][1]
    for pieces in ([plan], segments, list(plan)):
        for ahead in (0, 1, 100):
            calls = [e for e in run(pieces, skills, None, ahead) if e != "dry"]
            assert calls == ALL_TRUE[number]
            calls = [e for e in run(pieces, skills, NOTHING, ahead) if e != "dry"]
            assert calls == ALL_FALSE.get(number, ALL_TRUE[number])


def test_the_robot_starts_what_is_written_and_waits_where_it_runs_out():
    segments = SEGMENTS[0][1]
    assert run(segments) == ["iv(cat)", "dry", "g(cat)", "dry", Returned(False)]
    # The end of the block is not there yet, so what follows a false condition is not known.
    around = ["iv(cat)", "tc(45)"] * 8
    assert run(segments, answers=NOTHING) == [*around, "dry", "dry", Returned(False)]
    assert run(SEGMENTS[5][1]) == ["mr(50)", "dry", "mf(50)", "dry", Returned()]


def test_calls_carry_what_the_planner_needs_to_know():
    interpreter = Interpreter(TELLO)
    interpreter.feed("_1=od('cat');2{mf(_1*2)", 0)
    interpreter.feed(";d(0.5)", 1)
    assert interpreter.advance() == StartCall(SkillCall("od", ("'cat'",), ("cat",), 0.001), 0, 0)
    interpreter.complete(100)
    forward = SkillCall("mf", ("_1*2",), ("200",), TELLO["mf"].expected_duration([200]))
    assert interpreter.advance() == StartCall(forward, 0, 1)
    interpreter.complete(None)
    assert interpreter.advance() == StartCall(SkillCall("d", ("0.5",), ("0.5",), 0.5), 1, 2)
    interpreter.complete(None)
    assert interpreter.advance() == NeedText()
    interpreter.feed("}", 2, last=True)
    assert interpreter.advance() == StartCall(forward, 0, 3)  # written in segment 0, run again
    interpreter.complete(None)
    assert interpreter.advance() == StartCall(SkillCall("d", ("0.5",), ("0.5",), 0.5), 1, 4)
    interpreter.complete(None)
    assert interpreter.advance() == Returned()


# ---- the language ----------------------------------------------------------------------------

RUNS = {
    # conditions: left to right, no more than needed
    "?iv('a')&iv('no')&iv('b'){tp()}": ["iv(a)", "iv(no)", Returned()],
    "?iv('a')|iv('no'){tp()}": ["iv(a)", "tp()", Returned()],
    "?iv('no')|iv('a'){tp()}": ["iv(no)", "iv(a)", "tp()", Returned()],
    "?iv('a')|iv('b')&iv('no'){tp()}": ["iv(a)", "iv(no)", Returned()],
    "?iv('no')&iv('b')|iv('a'){tp()}": ["iv(no)", "iv(a)", "tp()", Returned()],
    "?iv('no')==False{tp()}": ["iv(no)", "tp()", Returned()],
    "?iv('no')!=True->{tp()}": ["iv(no)", "tp()", Returned()],
    "?ox('a')<0.5&ox('a')>=0.25{tp()}": ["ox(a)", "ox(a)", "tp()", Returned()],
    "?od('a')<=99{tp()}->od('a')": ["od(a)", "od(a)", Returned(100)],
    # texts of robot and model as values
    "?sa('thing')!=False{g('x')}": ["p(thing)", "g(x)", Returned()],
    "?sa('none'){g('x')}->'no'": ["p(none)", "tc(45)"] * 8 + [Returned("no")],
    "_1=sa('thing');?_1=='cup'{g(_1)}": ["p(thing)", "g(cup)", Returned()],
    "_1=p('how many?');?_1>2{mf(_1*20)}": ["p(how many?)", "mf(60)", Returned()],
    "?p('open?')==True{tp()}": ["p(open?)", "tp()", Returned()],
    "?3=='3'{tp()}->'a'": [Returned("a")],
    # variables and arithmetic
    "_1=2+3*4-10/5;->_1": [Returned(12.0)],
    "_1=2*-3;->-_1": [Returned(6)],
    "_1=1;_1=_1+1;?_1==2{->'two'}": [Returned("two")],
    "_1='a';->_1": [Returned("a")],
    "_1=True;?_1{->'yes'}": [Returned("yes")],
    "mf(od('a')-50)": ["od(a)", "mf(50)", Returned()],
    "mf(od('a')/2)": ["od(a)", "mf(50)", Returned()],
    # loops
    "3{mf(50)}": ["mf(50)"] * 3 + [Returned()],
    "2{mf(50);2{mf(60)}}": ["mf(50)", "mf(60)", "mf(60)"] * 2 + [Returned()],
    "2{2{mf(50)": ["mf(50)"] * 4 + [Returned()],
    "5{mf(50);?iv('a'){->'here'}}": ["mf(50)", "iv(a)", Returned("here")],
    "_1=0;3{_1=_1+1;?_1>1{mf(_1*20)}}": ["mf(40)", "mf(60)", Returned()],
    # ends
    "->False;mf(50)": [Returned(False)],
    "mf(50);rp();mf(60)": ["mf(50)", Replan()],
    "?iv('no'){mf(50);mf(60)": ["iv(no)", Returned()],
    "move_forward(50);take_picture()": ["mf(50)", "tp()", Returned()],
    # calls without parentheses
    "mf(50);tp;2{tp}->True": ["mf(50)", "tp()", "tp()", "tp()", Returned(True)],
    "tp;rp;tp": ["tp()", Replan()],
}
ANSWERS = {
    "iv(no)": False, "ox": 0.25, "od": 100, "p(thing)": "cup", "p(none)": "False",
    "p(how many?)": "3", "p(open?)": "True",
}  # fmt: skip


@pytest.mark.parametrize("plan", RUNS)
def test_run(plan):
    assert run(plan, answers=ANSWERS) == RUNS[plan]
    calls = [entry for entry in run(list(plan), answers=ANSWERS) if entry != "dry"]
    assert calls == RUNS[plan]


def at(error: str, position: int) -> Fault:
    return Fault(f"plan, character {position}: {error}", position)


FAULTS = {
    "_1=500;mf(_1)": ["mf(500)", Returned()],
    "_1=501;mf(_1)": [at("mf: distance is 501 cm: must be 20 to 500 cm", 7)],
    "mf(50);mf(od('a')/3)": [
        "mf(50)", "od(a)", at("mf: distance is 33.333333333333336 cm: must be a whole number", 7)],
    "_1='x';mf(_1)": [at("mf: distance is 'x': must be a number", 7)],
    "_1=iv('a');mf(_1)": ["iv(a)", at("mf: distance is True: must be a number", 11)],
    "2{tp();_1=300;_2=_1*2;mf(_2)}": [
        "tp()", at("mf: distance is 600 cm: must be 20 to 500 cm", 22)],
    "g(_1)": [at("variable _1 has no value yet", 2)],
    "->3/0": [at("3 / 0: division by zero", 3)],
    "->'a'+1": [at("'a' + 1: both sides must be numbers", 5)],
    "->True+1": [at("True + 1: both sides must be numbers", 6)],
    "->-'a'": [at("0 - 'a': both sides must be numbers", 2)],
    "?sa('thing')<3{tp()}": ["p(thing)", at("'cup' < 3: both sides must be numbers", 12)],
    "_1=9999;20{_1=_1*9999}": [at("99980001 * 9999: beyond 1e+09", 16)],
    "20{20{20{_1=1}}}": [at("the plan takes more than max_steps, 500", 6)],
    "?iv('gone'){tp()}": ["iv(gone)", at("iv returned no value", 1)],
    # a text with a fault moves nothing, wherever the fault is
    "mf(50);mf(5)": [Fault(
        "plan, character 7: mf: distance is 5 cm: must be 20 to 500 cm", 7)],
    "mf(50);mf(5": [Fault(
        "plan, character 11: the plan is cut off: ',' or ')' is missing", 11)],
    "": [Fault("plan, character 0: the plan is cut off: a statement is missing", 0)],
}  # fmt: skip


@pytest.mark.parametrize("plan", FAULTS)
def test_fault(plan):
    assert run(plan, answers=ANSWERS | {"iv(gone)": None}) == FAULTS[plan]


def test_a_fault_in_later_text_stops_the_plan_there():
    assert run(["mf(50)", ";mf(5)"]) == [
        "mf(50)",
        "dry",
        Fault("plan, character 7: mf: distance is 5 cm: must be 20 to 500 cm", 7),
    ]
    interpreter = Interpreter(TELLO)
    interpreter.feed("mf(50)", 0)
    interpreter.advance()
    interpreter.feed(";fly(1);mf(60)", 1)
    interpreter.complete(None)
    assert interpreter.advance() == Fault("plan, character 7: 'fly' is not a skill of tello", 7)
    assert interpreter.held_duration() == 0


def test_of_two_faults_the_first_is_told():
    interpreter = Interpreter(TELLO)
    interpreter.feed("fly(1);", 0)
    first = interpreter.advance()
    assert first == Fault("plan, character 0: 'fly' is not a skill of tello", 0)
    interpreter.feed("swim(1);", 1)
    assert interpreter.advance() == first


def test_loop_passes_and_calls_are_steps():
    few = replace(TELLO, bounds=replace(TELLO.bounds, max_steps=6))
    assert run("3{tp()}", few) == ["tp()"] * 3 + [Returned()]
    over = at("the plan takes more than max_steps, 6", 0)
    assert run("4{tp()}", few) == ["tp()"] * 3 + [over]
    assert run("tp();" * 7, few) == ["tp()"] * 6 + [at("the plan takes more than max_steps, 6", 30)]


def test_replies_of_another_kind_of_robot():
    answers = {"bt": [40, 9], "sp": True, "am": "False"}
    plan = "2{?bt()>10{sp('A1')};st(-5,0.5)};?am('done?'){np()};dv(-2)"
    assert run(plan, ROVER, answers) == [
        "bt()", "sp(A1)", "st(-5,0.5)", "bt()", "st(-5,0.5)", "am(done?)", "dv(-2)", Returned()
    ]  # fmt: skip
    assert run("np()", ROVER) == [Replan()]


def test_values_of_robots():
    assert [typed(t) for t in ("True", " False", "12", "-1.5", "1e5", "cat", "")] == [
        True, False, 12, -1.5, "1e5", "cat", "",
    ]  # fmt: skip
    assert [typed("12345678901"), typed("3.14159265358979")] == [12345678901, 3.14159265358979]
    assert apply("==", 1, 1.0) is True
    assert apply("!=", "a", 1) is True
    assert apply("==", "cat", True) is True
    assert apply("==", "", False) is True
    assert apply("==", 0, False) is True


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [(True, 5, True), (5, True, True), (False, 5, False), (5, False, False), (True, "no", True),
     ("", True, False), (1, "1", False), ("a", "a", True), (2, 2.0, True)],
)  # fmt: skip
def test_a_comparison_with_a_truth_compares_truths(left, right, equal):
    assert apply("==", left, right) is equal
    assert apply("!=", left, right) is not equal


@pytest.mark.parametrize("code", ["0012345", "4006381333931", "True", "1.50"])
def test_a_skill_that_returns_text_returns_just_that_text(code):
    """A barcode is no number, whatever it looks like."""
    reader = replace(TELLO["od"], name="rc", arguments=(), returns="str")
    interpreter = Interpreter(replace(TELLO, skills=(reader,)))
    interpreter.feed("_1=rc();->_1", 0, last=True)
    assert isinstance(interpreter.advance(), StartCall)
    interpreter.complete(code)
    assert interpreter.advance() == Returned(code)
