"""High-level skills: how they are read, how long they last, what they do when they are called."""

import pytest
from plan_language import SEGMENTS, TELLO
from plan_runs import run
from segment_reference import segments

from robot_adapters.executor.interpreter import Fault, Replan, Returned
from timely_llm.language.loader import read_skill_set
from timely_llm.language.parser import PlanError, parse
from timely_llm.language.skills import SkillSet
from timely_llm.validation.reader import FileError

BASE = """\
kind: rover
bounds: {max_steps: 60, max_statements: 12}
skills:
  - {name: go, arguments: [{name: cm, type: int, unit: cm, minimum: 10, maximum: 500}],
     duration: {polynomial: [1, 0.01], of: cm}}
  - {name: tn, duration: {uniform: [2, 3]}}
  - {name: see, arguments: [{name: thing, type: str, maximum: 20}], returns: bool,
     duration: {constant: 0.01}}
  - {name: gap, returns: int, duration: {constant: 0.02}}
  - {name: again, role: replan, duration: {constant: 0}}
"""


def made(*skills: str) -> SkillSet:
    return read_skill_set(BASE + "".join(f"  - {{{skill}}}\n" for skill in skills), "r.yaml")


SEEK = (
    "name: seek, arguments: [{name: thing, type: str, maximum: 20}], returns: bool, "
    'definition: "4{?see($1){->True}tn}->False"'
)
REACH = (
    "name: reach, arguments: [{name: thing, type: str, maximum: 9}, "
    "{name: cm, type: int, minimum: 20, maximum: 200}], "
    'definition: "?seek($1){_1=$2/2;go(_1);go($2)}"'
)

REFUSED = {
    'name: a, definition: "a"': "comes to call itself: a -> a",
    'name: a, definition: "go(50);b"}\n  - {name: b, definition: "?see(\'x\'){a}"': (
        "comes to call itself: a -> b -> a"
    ),
    'name: a, definition: "go(50);fly(3)"': "character 7: 'fly' is not a skill of rover",
    'name: a, definition: "go(5)"': "character 0: go: cm is 5 cm: must be 10 to 500 cm",
    'name: a, definition: "go(50"': "character 5: the plan is cut off: ',' or ')' is missing",
    'name: a, definition: "go(50)!"': "character 6: unexpected '!': ';' must stand here",
    'name: a, definition: "go($1)"': "character 3: '$1': a takes no argument",
    'name: a, arguments: [{name: x, type: int, minimum: 10, maximum: 20}], definition: "go($2)"': (
        "character 3: '$2': must be $1 to $1"
    ),
    'name: a, arguments: [{name: x, type: int, minimum: 10, maximum: 20}], definition: "tn"': (
        "does not use $1, x"
    ),
    'name: a, arguments: [{name: x, type: int, minimum: 1, maximum: 20}], definition: "go($1)"': (
        "character 0: x is int 1 to 20, but go takes int 10 to 500 cm"
    ),
    'name: a, arguments: [{name: x, type: str, maximum: 30}], definition: "see($1)"': (
        "character 0: x is str of 1 to 30 characters, but see takes str of 1 to 20 characters"
    ),
    "name: a, returns: bool, definition: \"?see('x'){->True}\"": "must end with a return",
    'name: a, returns: bool, definition: "3{->True}"': "must end with a return",
    'name: a, definition: "tn", duration: {constant: 0.01}': (
        "lasts up to 3 s, but its duration says 0.01 s"
    ),
    'name: a, definition: "20{20{20{go(500)}}}"}\n  - {name: b, definition: "20{20{a}}"': (
        "b: lasts up to 1.92e+07 s: at most 86400 s"
    ),
    'name: a, role: replan, definition: "again"': "a replan has no definition",
    "name: a": "'duration' is missing",
}


@pytest.mark.parametrize("skill", REFUSED)
def test_what_cannot_be_is_refused_when_it_is_read(skill):
    with pytest.raises(FileError) as caught:
        made(skill)
    reason = REFUSED[skill].removeprefix("b: ")
    assert reason in caught.value.reason
    assert caught.value.line == BASE.count("\n") + (2 if REFUSED[skill].startswith("b: ") else 1)


DURATIONS = {
    "go(100)": (2, 2),
    "go(100);tn": (4, 5),
    "3{tn}": (6, 9),
    "?see('x'){tn}": (0.01, 3.01),
    "?see('x')|see('y'){tn}": (0.01, 3.02),
    "?see('x'){->1}tn": (0.01, 3.01),
    "?see('x'){again}tn": (0.01, 3.01),
    "4{?see('x'){->1}tn}": (0.01, 12.04),
    "2{->1}": (0, 0),
    "tn;again;tn": (2, 3),
    "_1=gap;go(_1*2)": (1.12, 6.02),
}


@pytest.mark.parametrize("text", DURATIONS)
def test_a_definition_lasts_as_long_as_its_ways(text):
    duration = made(f'name: a, definition: "{text}"')["a"].duration
    assert (duration.least, duration.most) == pytest.approx(DURATIONS[text])


def test_a_declared_duration_is_the_one_that_counts():
    skill = made('name: a, definition: "tn", duration: {constant: 2.5}')["a"]
    assert skill.expected_duration() == 2.5
    assert TELLO["s"].duration.model == "choice"


def test_the_scans_of_the_drone_take_the_published_times():
    """A step is a turn and a look: that is where 1.5275 and 1.5675 s come from."""
    for name, look in (("s", "iv"), ("sa", "p")):
        step = TELLO["tc"].expected_duration([45]) + TELLO[look].expected_duration(["x"])
        assert TELLO[name].duration.coefficients == pytest.approx((step, 8))
        assert TELLO[name].definition


def test_a_call_of_a_defined_skill_ends_a_segment():
    plan, cut = SEGMENTS[0]
    assert segments(plan, TELLO) == cut
    rover = made(SEEK, REACH, 'name: nap, definition: "gap"')
    assert segments("reach('a',50);nap;seek('b');gap()", rover) == [
        "reach('a',50)", ";nap;seek('b')", ";gap()",
    ]  # fmt: skip


def test_calls_are_checked_by_what_the_skill_declares():
    rover = made(SEEK, REACH)
    with pytest.raises(PlanError, match="reach: cm is 300: must be 20 to 200"):
        parse("reach('cup',300)", rover)
    with pytest.raises(PlanError, match="reach: thing has 10 characters"):
        parse("reach('0123456789',30)", rover)


ANSWERS = {"see": [False, True, True], "gap": 7}
RUNS = {
    "reach('cup',60);tn": [
        "see(cup)", "tn()", "see(cup)", "go(30)", "go(60)", "tn()", Returned(),
    ],
    "_1='x';reach('cup',60);->_1": [
        "see(cup)", "tn()", "see(cup)", "go(30)", "go(60)", Returned("x"),
    ],
    "?seek('a')&seek('b'){tn}": [
        "see(a)", "tn()", "see(a)", "see(b)", "tn()", Returned(),
    ],
    "->seek('a')": ["see(a)", "tn()", "see(a)", Returned(True)],
    "seek('a');->gap": ["see(a)", "tn()", "see(a)", "gap()", Returned(7)],
    "2{seek('a');_1=5};->_1": ["see(a)", "tn()", "see(a)", "see(a)", Returned(5)],
}  # fmt: skip


@pytest.mark.parametrize("plan", RUNS)
def test_a_definition_runs_in_the_place_of_its_call(plan):
    rover = made(REACH, SEEK)  # which one comes first does not matter
    for pieces in (plan, list(plan)):
        answers = {name: v[:] if isinstance(v, list) else v for name, v in ANSWERS.items()}
        assert [entry for entry in run(pieces, rover, answers) if entry != "dry"] == RUNS[plan]


def test_variables_and_values_stay_inside():
    rover = made('name: a, definition: "_1=3;_2=4;->_1"', 'name: b, definition: "tn;->_9"')
    assert run("_2=1;a;->_2", rover) == [Returned(1)]
    unset = "plan, character 5: b, character 5 of its definition: variable _9 has no value yet"
    assert run("_9=1;b", rover) == ["tn()", Fault(unset, 5)]


def test_a_return_out_of_loops_leaves_nothing_behind():
    rover = made('name: a, returns: int, definition: "3{2{_1=1+gap*2;?_1>0{->_1+gap}}}->0"')
    assert run("->3*a+a", rover, {"gap": 5}) == ["gap()"] * 4 + [Returned(64)]


def test_a_fault_inside_says_where_it_is_in_both_texts():
    rover = made(
        'name: half, definition: "tn;_1=gap/2;go(_1)"', 'name: twice, definition: "half;half"'
    )
    where = "plan, character 3: half, character 12 of its definition: go: cm is 3.5 cm: must be"
    [first, gap, fault] = run("tn;twice", rover, {"gap": 7})[1:]
    assert (first, gap) == ("tn()", "gap()")
    assert fault.error.startswith(where)
    assert fault.position == 3


def test_a_replan_inside_ends_the_plan():
    rover = made('name: a, definition: "tn;again;tn"')
    assert run("2{a}", rover) == ["tn()", Replan()]


def test_steps_are_counted_inside():
    rover = made('name: a, definition: "20{gap}"')
    over = "plan, character 2: a, character 0 of its definition: the plan takes more than max_steps"
    *calls, fault = run("9{a}", rover, {"gap": 1})
    assert calls == ["gap()"] * 28  # two passes and calls, 20 passes and calls, and so on: 60 steps
    assert fault == Fault(over + ", 60", 2)
