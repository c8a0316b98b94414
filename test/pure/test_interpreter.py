"""Plans run as they stream in: exact logs, and the same run as a reference that walks a tree."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_language import CUTS, INDY7, PUBLISHED, ROVER, SEGMENTS, TELLO, Writer, plans, split

from robot_adapters.minispec import Fault, Interpreter, NeedText, Replan, Returned, StartCall
from robot_adapters.values import apply, typed
from timely_llm.messages import SkillCall
from timely_llm.minispec import parse
from timely_llm.skills import value_text


def run(plan, skills=TELLO, answers=None, ahead: int = 0) -> list:
    """Names and evaluated arguments of the calls, a "dry" for each wait, and the outcome.

    ``plan`` is a text or a list of segments, ``answers`` maps ``name(arguments)`` or a name to what
    the robot returns; ``ahead`` segments are there before the robot begins.
    """
    segments = [plan] if isinstance(plan, str) else list(plan)
    interpreter, log, fed = Interpreter(skills), [], 0
    answers = {"iv": True, "s": True, "sc": True} | (answers or {})
    while True:
        if fed < min(ahead + 1, len(segments)):
            interpreter.feed(segments[fed], fed, fed == len(segments) - 1)
            fed += 1
            continue
        match interpreter.advance():
            case StartCall(call, segment, number):
                assert number == sum("(" in entry for entry in log if isinstance(entry, str))
                assert segment < fed
                log.append(f"{call.name}({','.join(call.evaluated)})")
                value = answers.get(log[-1], answers.get(call.name))
                interpreter.complete(value.pop(0) if isinstance(value, list) else value)
            case NeedText():
                assert fed < len(segments)
                log.append("dry")
                ahead = fed
            case over:
                assert interpreter.advance() is over
                return [*log, over]


# ---- published plans -------------------------------------------------------------------------

ALL_TRUE = {
    0: ["s(cat)", "g(cat)", Returned(False)],
    1: ["iv(keys)", "iv(wallet)", "l(Yes)", Returned(True)],
    2: ["mu(40)", "iv(book)", "tp()", Returned(True)],
    3: ["md(40)", "iv(toy)", "g(toy)", Returned(False)],
    4: ["s(scissors)", "g(scissors)", Returned(False)],
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
    0: ["s(cat)", Returned(False)],
    1: ["iv(keys)", "l(No)", Returned(False)],
    2: ["mu(40)", "iv(book)", Returned(False)],
    3: ["md(40)", "iv(toy)", Returned(False)],
    4: ["s(scissors)", Returned(False)],
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
    assert run(segments) == ["s(cat)", "dry", "g(cat)", "dry", Returned(False)]
    # The end of the block is not there yet, so what follows a false condition is not known.
    assert run(segments, answers=NOTHING) == ["s(cat)", "dry", "dry", Returned(False)]
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
    "?sa('thing')!=False{g('x')}": ["sa(thing)", "g(x)", Returned()],
    "?sa('none'){g('x')}->'no'": ["sa(none)", Returned("no")],
    "_1=sa('thing');?_1=='cup'{g(_1)}": ["sa(thing)", "g(cup)", Returned()],
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
}
ANSWERS = {
    "iv(no)": False, "ox": 0.25, "od": 100, "sa(thing)": "cup", "sa(none)": "False",
    "p(how many?)": "3", "p(open?)": "True",
}  # fmt: skip


@pytest.mark.parametrize("plan", RUNS)
def test_run(plan):
    assert run(plan, answers=ANSWERS) == RUNS[plan]
    calls = [entry for entry in run(list(plan), answers=ANSWERS) if entry != "dry"]
    assert calls == RUNS[plan]


FAULTS = {
    "_1=500;mf(_1)": ["mf(500)", Returned()],
    "_1=501;mf(_1)": [Fault("mf: distance is 501 cm: must be 20 to 500 cm", 7)],
    "mf(50);mf(od('a')/3)": [
        "mf(50)", "od(a)", Fault("mf: distance is 33.33333333 cm: must be a whole number", 7)],
    "_1='x';mf(_1)": [Fault("mf: distance is 'x': must be a number", 7)],
    "_1=iv('a');mf(_1)": ["iv(a)", Fault("mf: distance is True: must be a number", 11)],
    "2{tp();_1=300;_2=_1*2;mf(_2)}": ["tp()", Fault(
        "mf: distance is 600 cm: must be 20 to 500 cm", 22)],
    "g(_1)": [Fault("variable _1 has no value yet", 2)],
    "->3/0": [Fault("3 / 0: division by zero", 3)],
    "->'a'+1": [Fault("'a' + 1: both sides must be numbers", 5)],
    "->True+1": [Fault("True + 1: both sides must be numbers", 6)],
    "->-'a'": [Fault("0 - 'a': both sides must be numbers", 2)],
    "?sa('thing')<3{tp()}": ["sa(thing)", Fault("'cup' < 3: both sides must be numbers", 12)],
    "_1=9999;20{_1=_1*9999}": [Fault("99980001 * 9999: beyond 1e+09", 16)],
    "20{20{20{_1=1}}}": [Fault("the plan takes more than max_steps, 500", 6)],
    "?iv('gone'){tp()}": ["iv(gone)", Fault("iv returned no value", 1)],
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


def test_loop_passes_and_calls_are_steps():
    few = replace(TELLO, bounds=replace(TELLO.bounds, max_steps=6))
    assert run("3{tp()}", few) == ["tp()"] * 3 + [Returned()]
    over = Fault("the plan takes more than max_steps, 6", 0)
    assert run("4{tp()}", few) == ["tp()"] * 3 + [over]
    assert run("tp();" * 7, few) == ["tp()"] * 6 + [replace(over, position=30)]


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
    assert apply("==", 1, 1.0) is True
    assert apply("!=", "a", 1) is True
    assert apply("==", "cat", True) is True
    assert apply("==", "", False) is True
    assert apply("==", 0, False) is True


# ---- what is held ----------------------------------------------------------------------------


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
    interpreter = Interpreter(TELLO)
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
    interpreter = Interpreter(TELLO)
    interpreter.feed("?s('a'){mf(500)}", 0)
    interpreter.advance()
    interpreter.complete(None)  # a skill that owes a value
    assert interpreter.held_duration() == 0
    assert interpreter.advance() == Fault("s returned no value", 1)


def test_held_duration_falls_as_the_plan_goes_on():
    interpreter = Interpreter(INDY7)
    interpreter.feed("2{dr();d(1)}", 0, last=True)
    seen = [interpreter.held_duration()]
    while isinstance(interpreter.advance(), StartCall):
        seen.append(interpreter.held_duration())
        interpreter.complete(None)
    assert seen == pytest.approx([8, 5, 4, 1, 0])


# ---- against the reference -------------------------------------------------------------------


class RefFault(Exception):
    """The reference stops here."""


class Ended(Exception):
    """The plan ended by itself."""


class Reference:
    """Walks a tree (``plan_language``) and carries out what it means."""

    def __init__(self, answers: list[int]) -> None:
        self.answers, self.calls, self.variables, self.steps = answers, [], {}, 0

    def run(self, tree: list):
        try:
            self.block(tree)
        except Ended as end:
            return end.args
        except RefFault:
            return ("fault",)
        return ("returned", None)

    def step(self) -> None:
        self.steps += 1
        if self.steps > TELLO.bounds.max_steps:
            raise RefFault

    def block(self, block: list) -> None:
        for kind, *parts in block:
            if kind == "call":
                self.operand((kind, *parts))
            elif kind == "set":
                value = self.chain(parts[1])
                self.step()
                self.variables[parts[0]] = value
            elif kind == "return":
                raise Ended("returned", self.chain(parts[0]))
            elif kind == "loop":
                for _ in range(parts[0]):
                    self.step()
                    self.block(parts[1])
            elif self.condition(*parts[:2]):
                self.block(parts[2])

    def condition(self, terms: list, joints: list) -> bool:
        result = self.term(terms[0])
        for joint, term in zip(joints, terms[1:], strict=True):
            if result == (joint == "&"):
                result = self.term(term)
        return result

    def term(self, term: tuple) -> bool:
        left, symbol = self.chain(term[0]), term[1]
        if not symbol:
            return bool(left)
        right = self.chain(term[2])
        if symbol in ("==", "!="):
            if bool in (type(left), type(right)):
                left, right = bool(left), bool(right)
            return (left == right) == (symbol == "==")
        self.numbers(left, right)
        return {"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right}[
            symbol
        ]

    def chain(self, chain: list):
        """Products first, in the order of the text."""
        values, symbols = [], []
        for part in chain:
            if isinstance(part, str):
                if part in "+-" and len(values) == 2:
                    values = [self.number(values[0], symbols.pop(0), values[1])]
                symbols.append(part)
                continue
            values.append(self.operand(part))
            if symbols and symbols[-1] in "*/":
                right, left = values.pop(), values.pop()
                values.append(self.number(left, symbols.pop(), right))
        if len(values) == 2:
            return self.number(values[0], symbols[0], values[1])
        return values[0]

    def numbers(self, *values) -> None:
        if any(type(value) not in (int, float) for value in values):
            raise RefFault

    def number(self, left, symbol, right):
        self.numbers(left, right)
        if symbol == "/" and right == 0:
            raise RefFault
        if symbol == "/":
            value = left / right
        elif symbol == "*":
            value = left * right
        else:
            value = left + right if symbol == "+" else left - right
        if abs(value) > 1e9:
            raise RefFault
        return value

    def operand(self, operand: tuple):
        kind, value = operand[:2]
        if kind == "value":
            return value
        if kind == "variable":
            if value not in self.variables:
                raise RefFault
            return self.variables[value]
        if kind == "minus":
            inner = self.operand(value)
            self.numbers(inner)
            return -inner
        return self.call(TELLO[value], [self.chain(chain) for chain in operand[2]])

    def call(self, skill, values: list):
        self.step()
        for argument, value in zip(skill.arguments, values, strict=True):
            if argument.type == "str":
                if not 1 <= len(value_text(value)) <= argument.maximum:
                    raise RefFault
            elif type(value) not in (int, float) or not (
                argument.minimum <= value <= argument.maximum
                and (argument.type == "float" or value == int(value))
            ):
                raise RefFault
        if skill.name == "rp":
            raise Ended("replan")
        evaluated = [
            value_text(int(v) if a.type == "int" else float(v) if a.type == "float" else v)
            for a, v in zip(skill.arguments, values, strict=True)
        ]
        self.calls.append((skill.name, tuple(evaluated)))
        return answer(skill.returns, self.answers, len(self.calls))


def answer(returns: str, answers: list[int], number: int):
    """What the robot says to its ``number``-th call, the same in both runs."""
    seed = answers[number % len(answers)]
    return {
        "none": None,
        "bool": seed % 2 == 0,
        "int": seed,
        "float": seed / 8,
        "str": ["cat", True, False, 7, 2.5][seed % 5],
    }[returns]


def shown(value):
    return (type(value), value)


@given(plans(), CUTS, st.lists(st.integers(0, 200), min_size=1, max_size=6), st.integers(0, 5))
def test_plans_run_like_the_reference_however_they_stream_in(plan, cuts, answers, ahead):
    tree, text = plan
    reference = Reference(answers)
    expected = reference.run(tree)
    pieces = split(text, cuts)
    interpreter, calls, fed = Interpreter(TELLO), [], 0
    while True:
        while fed < len(pieces) and fed <= ahead:
            interpreter.feed(pieces[fed], fed, fed == len(pieces) - 1)
            fed += 1
        assert interpreter.held_duration() >= 0
        step = interpreter.advance()
        if isinstance(step, StartCall):
            calls.append((step.call.name, step.call.evaluated))
            value = answer(TELLO[step.call.name].returns, answers, len(calls))
            text_value = TELLO[step.call.name].returns == "str"
            interpreter.complete(value_text(value) if text_value else value)
            ahead += calls[-1][0] == "mf"  # at times text comes while the robot moves
        elif isinstance(step, NeedText):
            ahead = fed
        else:
            break
    assert calls == reference.calls
    if isinstance(step, Fault):
        assert expected == ("fault",), step
        assert 0 <= step.position <= len(text)
    elif isinstance(step, Replan):
        assert expected == ("replan",)
    else:
        assert (expected[0], shown(expected[1])) == ("returned", shown(step.value))


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
    interpreter, seen, durations = Interpreter(TELLO), [], []
    interpreter.feed(text, 0, last=True)
    while isinstance(step := interpreter.advance(), StartCall):
        skill = TELLO[step.call.name]
        seen.append(interpreter.held_duration())
        durations.append(step.call.expected_duration if skill.timed else 0.0)
        interpreter.complete(None if skill.returns == "none" else True)
    assert step == Returned()
    assert seen == pytest.approx([sum(durations[i + 1 :]) for i in range(len(durations))])
