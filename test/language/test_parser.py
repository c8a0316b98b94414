"""The plan language as written: what is legal, where a fault is, when a call is known."""

import math
import re
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_language import CUTS, INDY7, PUBLISHED, ROOT, ROVER, TELLO, plans, split
from plan_runs import run

from timely_llm.language.parser import Call, Parser, PlanError, parse
from timely_llm.language.skills import Bounds

_PIECES = """mf(50) mf( 5 0 . _1 = == ? { } ; -> - ' cat & | s('cat') iv('a') 3{ , ) ( True + * !
    < od('a') $ l(' _ rp() \""""
PIECES = st.sampled_from([*_PIECES.split(), " ", "\n"])


def outcome(pieces: list[str], skills=TELLO) -> tuple[list[Call], int | None]:
    """The calls, and where the fault is."""
    checker, calls = Parser(skills), []
    try:
        for piece in pieces:
            calls += checker.feed(piece)
        calls += checker.finish()
    except PlanError as error:
        return calls, error.position
    return calls, None


def fault(plan: str, skills=TELLO) -> str:
    with pytest.raises(PlanError) as caught:
        parse(plan, skills)
    assert str(caught.value) == f"plan, character {caught.value.position}: {caught.value.reason}"
    return f"{caught.value.position} {caught.value.reason}"


@pytest.mark.parametrize("number", range(11))
def test_published_plans_pass(number):
    plan, skills = PUBLISHED[number]
    calls = parse(plan, skills)
    assert len(calls) == plan.count("(")
    assert all(plan[call.start : call.end].startswith(f"{call.name}(") for call in calls)
    assert [call.end for call in calls] == [i + 1 for i, c in enumerate(plan) if c == ")"]
    assert outcome(list(plan), skills) == (calls, None)


def test_a_call_is_known_at_its_parenthesis():
    checker = Parser(TELLO)
    assert checker.feed("?s('cat'") == []
    assert checker.feed(")") == [Call("s", ("'cat'",), ("cat",), 1, 9)]
    assert checker.feed("==True{move_forward(1") == []
    assert checker.feed("00") == []
    assert checker.feed(")}->Fal") == [Call("mf", ("100",), (100,), 16, 33)]
    assert checker.feed("se") == []
    checker.finish()


def test_values_are_literals_only():
    calls = parse("_1=od( \"a\" );mf(_1 + 10);tu(90);d(2.5);iv('True');g(_1)", TELLO)
    assert [(call.name, call.arguments, call.values) for call in calls] == [
        ("od", ('"a"',), ("a",)),
        ("mf", ("_1+10",), (None,)),
        ("tu", ("90",), (90,)),
        ("d", ("2.5",), (2.5,)),
        ("iv", ("'True'",), ("True",)),
        ("g", ("_1",), (None,)),
    ]
    assert parse("st(-5,0.5);dv(-2)", ROVER)[0].values == (-5, 0.5)
    nested = parse("mf(od('a')-ox('b'))", TELLO)
    assert [call.name for call in nested] == ["od", "ox", "mf"]


LEGAL = [
    "mf(50)",
    "mf(50);",
    " mf( 50 )\n;\tmf(60) ; ",
    "?iv('a'){mf(50)}mf(60)",
    "?iv('a')->{mf(50);};mf(60)",
    "?iv('a')==True&_1>3|'x'!=_2{mf(50)",
    "20{20{20{_9=1}}}",
    "?_1{->_1;mf(50)}",
    "->-5",
    "->'text'",
    "_1=-_2*3/4-od('a')",
    "_1=9999",
    """l("it's")""",
    "l('a;b}{)(?->')",
    "l('é')",
    "mf(od('a')+od('b'))",
    "p(p(p(p('a'))))",
    "g(3)",
    "g(True)",
    "tp",
    "tp;",
    "?iv('a'){tp}tp;take_picture",
    "rp",
    "refuse('no')",
    """mf(50);?iv('a'){refuse("it's there")}refuse( 'not there' );""",
]


@pytest.mark.parametrize("plan", LEGAL)
def test_legal(plan):
    parse(plan, TELLO)


FAULTS = {
    # cut off in the middle
    "": "0 the plan is cut off: a statement is missing",
    "mf(50": "5 the plan is cut off: ',' or ')' is missing",
    "mf": "2 the plan is cut off: '(' right after mf is missing",
    "_1": "2 the plan is cut off: '=' is missing",
    "_1=3*": "5 the plan is cut off: a value is missing",
    "->": "2 the plan is cut off: a value is missing",
    "?iv('a')": "8 the plan is cut off: a comparison, '&', '|' or '{' is missing",
    "?iv('a'){": "9 the plan is cut off: a statement is missing",
    "3": "1 the plan is cut off: '{' after the number of passes is missing",
    "l('a": "2 the plan is cut off inside a string",
    # statements
    "mf(50);}": "7 unexpected '}': a statement must stand here",
    "mf(50)}": "6 unexpected '}': ';' must stand here",
    "mf(50);;": "7 unexpected ';': a statement must stand here",
    "mf(50)mf(60)": "6 unexpected 'mf': ';' must stand here",
    "?iv('a'){}": "9 unexpected '}': a statement must stand here",
    "'a'": "0 unexpected \"'a'\": a statement must stand here",
    "?iv('a')->mf(50)": "10 unexpected 'mf': a comparison, '&', '|' or '{' must stand here",
    "?_1<2<3{tp()}": "5 unexpected '<': a comparison, '&', '|' or '{' must stand here",
    "(mf(50))": "0 unexpected '(': a statement must stand here",
    "_1=(3)": "3 unexpected '(': a value must stand here",
    "_1=!3": "3 unexpected '!': a value must stand here",
    # words
    "mf(50)$": "6 unexpected character '$'",
    "l('a\nb')": "2 a string holds a line break or a control character",
    "é()": "0 unexpected character 'é'",
    "_1=5.": "3 '5.' is no number: must be digits, with a point between them or none",
    "mf(1e3)": "3 '1e3' is no number: must be digits, with a point between them or none",
    "mf (50)": "3 unexpected '(': '(' right after mf must stand here",
    "tp ()": "3 unexpected '(': '(' right after tp must stand here",
    "mf;": "2 unexpected ';': '(' right after mf must stand here",
    "tp 5": "3 unexpected '5': ';' must stand here",
    "_1=tp": "3 tp returns nothing, but its value is used",
    "g($1)": "2 '$1': arguments stand only in definitions of skills",
    "$1=3": "0 unexpected '$1': a statement must stand here",
    # calls
    "fly(50)": "0 'fly' is not a skill of tello",
    "move_foward(50)": "0 'move_foward' is not a skill of tello: did you mean 'move_forward'?",
    "True(3)": "0 'True' is not a skill of tello",
    "mf()": "0 mf: 0 arguments given, takes 1 (distance)",
    "mf(50,60)": "0 mf: 2 arguments given, takes 1 (distance)",
    "mf(50,)": "6 unexpected ')': a value must stand here",
    "tp(3)": "0 tp: 1 arguments given, takes none",
    "mf(50);mf(19)": "7 mf: distance is 19 cm: must be 20 to 500 cm",
    "mf(501)": "0 mf: distance is 501 cm: must be 20 to 500 cm",
    "mf(-50)": "0 mf: distance is -50 cm: must be 20 to 500 cm",
    "mf(50.5)": "0 mf: distance is 50.5 cm: must be a whole number",
    "mf('50')": "0 mf: distance is '50': must be a number",
    "mf(True)": "0 mf: distance is True: must be a number",
    "d(0.05)": "0 d: seconds is 0.05 s: must be 0.1 to 60 s",
    "l('')": "0 l: text has 0 characters: must have 1 to 60 characters",
    f"g('{'x' * 33}')": "0 g: object has 33 characters: must have 1 to 32 characters",
    "_1=mf(50)": "3 mf returns nothing, but its value is used",
    "?g('a'){tp()}": "1 g returns nothing, but its value is used",
    "p(p(p(p(p('a')))))": "8 calls are nested deeper than 4",
    "refuse": "6 the plan is cut off: '(' after refuse is missing",
    "refuse()": "7 refuse takes the reason, a text in quotes",
    "refuse(' ')": "7 refuse takes the reason, a text in quotes",
    "refuse(_1)": "7 refuse takes the reason, a text in quotes",
    "refuse('a','b')": "10 unexpected ',': ')' must stand here",
    "_1=refuse('a')": "3 'refuse' is not a skill of tello",
    # bounds
    f"l('{'x' * 61}')": "2 a string is longer than 60 characters",
    "0{tp()}": "0 a loop of 0 passes: must be a whole number 1 to 20",
    "21{tp()}": "0 a loop of 21 passes: must be a whole number 1 to 20",
    "1.5{tp()}": "0 a loop of 1.5 passes: must be a whole number 1 to 20",
    "2{2{2{2{tp()}}}}": "6 blocks are nested deeper than max_nesting, 3",
    "_0=1": "0 variable '_0': must be _1 to _9",
    "_12=1": "0 variable '_12': must be _1 to _9",
    "_=1": "0 variable '_': must be _1 to _9",
    "_1=10000": "3 10000 is more than max_number, 9999",
    "tp();" * 25: "120 the plan has more than max_statements, 24",
    "?iv('a')" + "&iv('b')" * 24: "192 the plan has more than max_statements, 24",
    "tp();" + " " * 2000: "2000 the plan is longer than max_plan_chars, 2000",
    "a" * 41: f"0 '{'a' * 40}'... is longer than 40 characters",
}


@pytest.mark.parametrize("plan", FAULTS)
def test_fault(plan):
    assert fault(plan) == FAULTS[plan]


def test_bounds_are_those_of_the_skill_set():
    assert fault("_4=1", ROVER) == "0 variable '_4': must be _1 to _3"
    assert fault("6{bt()}", ROVER) == "0 a loop of 6 passes: must be a whole number 1 to 5"
    assert fault("sp('D1')", ROVER) == "0 sp: tag is 'D1': must match [A-C][0-9]{1,2}(x|yy)?"
    assert fault("st(0,1.5)", ROVER) == "0 st: speed is 1.5 deg/s: must be 0.5 to 1 deg/s"
    flat = replace(TELLO, bounds=replace(TELLO.bounds, max_nesting=0))
    assert fault("?iv('a'){tp()}", flat) == "0 blocks are nested deeper than max_nesting, 0"


def test_a_fault_stays():
    checker = Parser(TELLO)
    with pytest.raises(PlanError):
        checker.feed("mf(5)")
    for again in (lambda: checker.feed(";mf(50)"), checker.finish):
        with pytest.raises(PlanError, match="distance is 5 cm"):
            again()


def test_nothing_comes_behind_the_end():
    checker = Parser(TELLO)
    checker.feed("mf(50)")
    checker.finish()
    with pytest.raises(PlanError, match="has already ended"):
        checker.feed(";mf(50)")


def test_which_prefixes_are_whole_plans():
    plan = "mu(40);?iv('book')==True{tp();->True}->False;"
    whole = [n for n in range(len(plan) + 1) if outcome([plan[:n]])[1] is None]
    names = [plan[:n] for n in whole]
    assert names == [
        "mu(40)",
        "mu(40);",
        "mu(40);?iv('book')==True{tp",
        "mu(40);?iv('book')==True{tp()",
        "mu(40);?iv('book')==True{tp();",
        "mu(40);?iv('book')==True{tp();->True",
        "mu(40);?iv('book')==True{tp();->True}",
        "mu(40);?iv('book')==True{tp();->True}->False",
        "mu(40);?iv('book')==True{tp();->True}->False;",
    ]


@given(st.lists(PIECES, max_size=25).map("".join), CUTS)
def test_any_split_gives_the_same_calls_and_the_same_fault(text, cuts):
    calls, position = outcome(list(text))
    for pieces in ([text], split(text, cuts)):
        known, at = outcome(pieces)
        assert at == position
        # The text with the fault gives no calls, as nothing of it is to run.
        assert known == (calls if position is None else calls[: len(known)])


@given(plans(), CUTS)
def test_plans_pass_however_they_are_written_and_split(plan, cuts):
    text = plan[1]
    calls = parse(text, TELLO)
    assert outcome(split(text, cuts)) == (calls, None)
    assert outcome(list(text)) == (calls, None)
    assert all(text[call.start : call.end][-1] in ")pen" for call in calls)


@given(plans())
def test_a_plan_that_is_cut_off_is_never_taken_for_more_than_it_is(plan):
    """Each prefix has the same calls as far as it goes, whether it ends well or not."""
    text = plan[1]
    calls = parse(text, TELLO)
    for end in range(len(text)):
        known, position = outcome([text[:end]])
        whole = end if text[:end].endswith(")") else end - 1  # a name that ends here may go on
        assert [call for call in known if call.end <= whole] == [
            call for call in calls if call.end <= whole
        ]
        assert len([call for call in known if call.end > whole]) <= 1
        assert position is None or position <= end


def test_a_call_without_parentheses_is_known_at_what_follows():
    checker = Parser(INDY7)
    assert checker.feed("pi('a');dr") == [Call("pi", ("'a'",), ("a",), 0, 7)]
    assert checker.feed(";") == [Call("dr", (), (), 8, 10)]
    assert checker.feed("drop") == []
    assert checker.finish() == [Call("dr", (), (), 11, 15)]
    assert [call.start for call in parse("?bt>5{bt}np", ROVER)] == [1, 6, 9]


def test_limits_of_the_arm():
    assert fault("pi('apple')mf(50)", INDY7).startswith("11 unexpected 'mf'")
    assert fault("mf(50)", INDY7) == "0 'mf' is not a skill of indy7"


def test_examples_of_the_reference_are_legal():
    text = (ROOT / "docs" / "language.md").read_text()
    examples = re.findall(r"```minispec\n(.*?)```", text, re.DOTALL)
    for plan in "".join(examples).splitlines():
        parse(plan, TELLO)
    for call in (
        "mf(100)",
        "_1=od('cat')",
        "?iv('cat')->{g('cat')}",
        "3{mf(50);tc(90)}",
        "->'done'",
    ):
        assert f"`{call}`" in text
        parse(call, TELLO)
    for plan, error in re.findall(r"^\| `(.+?)` \| `(plan, character .+)` \|$", text, re.MULTILINE):
        assert run(plan)[-1].error == error
    for name, value in asdict(Bounds()).items():
        default = "none" if value in (None, math.inf) else f"{value:g}"
        assert re.search(rf"\| `{name}` \| {default}\b", text), name
