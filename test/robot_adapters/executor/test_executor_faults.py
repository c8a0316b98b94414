"""What goes wrong in a plan: calls that fail, bounds, endless plans, answers that are nonsense."""

from __future__ import annotations

from typing import Any

import pytest
from executor_rig import REPLACE, A, B, Desk
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("_1=5*2;go(_1)", "FAILED: plan, character 7: go: m is 10 m: must be 1 to 9 m"),
        ("_1=tick();_2=_1/0;", "FAILED: plan, character 15: 7 / 0: division by zero"),
        ("_1=look()+1;", "FAILED: plan, character 9: True + 1: both sides must be numbers"),
    ],
)
def test_what_is_wrong_on_evaluation_fails_before_it_moves(desk, text, end) -> None:
    desk.send(0, text)
    desk.run(1.5)
    assert end in desk.told()
    assert desk.robot.log[-1].endswith("halt")
    assert not any("go" in line for line in desk.robot.log)


def test_a_call_that_must_not_be_done_from_here_is_not_started(desk: Desk) -> None:
    desk.robot.refusals["go"] = "a wall is in the way"
    desk.send(0, "go(1);look();", last=True)
    assert desk.told() == ["RECEIVED", "FAILED go(1): go: a wall is in the way", "IDLE"]
    assert desk.robot.log[1:] == ["0 halt"]


def test_a_failed_call_ends_the_plan_and_its_segments_are_ignored(desk: Desk) -> None:
    desk.robot.errors["go"] = "motor"
    desk.send(0, "go(1)")
    desk.run(1.0)
    desk.send(1, ";go(2)")
    desk.send(0, "look();", last=True, plan=B)
    desk.run(3.0)
    assert desk.told() == [
        "RECEIVED", "STARTED go(1)", "FAILED go(1): go: motor", "IDLE",
        "RECEIVED", "STARTED look()", "SUCCEEDED look() True", "PLAN_RETURNED", "IDLE",
    ]  # fmt: skip


def test_a_call_that_never_ends_fails_in_time(desk: Desk) -> None:
    desk.robot.durations["go"] = 1000.0
    desk.send(0, "go(3)")
    desk.run(20.0)
    assert "FAILED go(3): go: not done after 10 s" in desk.told()  # 2 x 3 + 4
    assert desk.robot.log[1:] == ["0 start go(3)", "10 halt"]


ENDLESS = {
    "9{9{tick();}}": "FAILED: plan, character 2: the plan takes more than max_steps, 60",
    "9{9{9{_1=1}}}": "FAILED: plan, character 6: the plan takes more than max_steps, 60",
    "9{spin}": (
        "FAILED spin(): plan, character 2: spin, character 0 of its definition: "
        "the plan takes more than max_steps, 60"
    ),
    "9{go(5)}": "FAILED go(5): go: the plan would travel further than max_travel, 10 m",
    "19{look()}": "FAILED look(): look: the plan would take longer than max_time, 100 s",
}


@pytest.mark.parametrize("text", ENDLESS)
def test_a_plan_whose_loop_never_ends_is_stopped_and_the_robot_goes_on(desk: Desk, text) -> None:
    desk.robot.durations = {"look": 5.6, "tick": 0.0}
    desk.send(0, text, last=True)
    desk.run(200.0)
    told = desk.told()
    assert told[-2:] == [ENDLESS[text], "IDLE"]
    assert desk.robot.log[-1].endswith("halt")
    desk.send(0, "go(1)", last=True, plan=B)
    desk.run(210.0)
    assert desk.told()[-3:] == ["SUCCEEDED go(1)", "PLAN_RETURNED", "IDLE"]


def test_a_text_that_does_not_parse_fails_behind_the_call_in_progress(desk: Desk) -> None:
    desk.send(0, "go(2)")
    desk.send(1, ";)")
    desk.run(3.0)
    told = desk.told()
    assert told[-3] == "SUCCEEDED go(2)"
    assert told[-2].startswith("FAILED: ")


@pytest.mark.parametrize("method", ["check", "start", "poll"])
def test_an_adapter_that_raises_fails_the_call_and_nothing_else(desk: Desk, method) -> None:
    desk.robot.raises = {method, "halt"}
    desk.send(0, "go(1)")
    desk.run(0.6)
    undone = "the robot did not confirm the halt: adapter: halt is broken"
    assert f"FAILED go(1): go: adapter: {method} is broken; {undone}" in desk.told()
    desk.robot.raises = set()
    desk.run(0.9)
    desk.send(0, "go(1);", last=True, plan=B)
    desk.run(3.0)
    assert desk.told()[-2] == "PLAN_RETURNED"


def test_an_adapter_that_cannot_say_when_is_asked_again(desk: Desk) -> None:
    desk.robot.raises = {"next_poll"}
    desk.send(0, "go(1);", last=True)
    desk.run(2.0)
    assert "PLAN_RETURNED" in desk.told()


def test_replan(desk: Desk) -> None:
    desk.send(0, "go(1);again();")
    desk.run(1.5)
    assert desk.told()[-2:] == ["REPLAN_REQUESTED", "IDLE"]
    desk.send(1, "look();", command=REPLACE, last=True)
    desk.run(3.0)
    assert desk.told()[-2:] == ["PLAN_RETURNED", "IDLE"]


def test_a_plan_that_refuses_is_over_and_says_why(desk: Desk) -> None:
    desk.send(0, "go(1);?look(){refuse('a wall');go(2)}", last=True)
    desk.run(4.0)
    assert desk.told()[-3:] == ["SUCCEEDED look() True", "REFUSED: a wall", "IDLE"]
    assert "start go(2)" not in " ".join(desk.robot.log)


# ---- probes --------------------------------------------------------------------------------------


def test_without_a_model_the_robot_answers_probes(desk: Desk) -> None:
    desk.send(0, "_1=ask('what is edible');->_1", last=True)
    desk.run(1.0)
    assert desk.told()[-2] == "PLAN_RETURNED an apple"


def test_a_probe_goes_to_the_model() -> None:
    questions: list = []
    desk = Desk(ask=questions.append)
    desk.send(0, "_1=ask('what is edible');->_1", last=True)
    desk.run(2.0)
    (question,) = questions
    assert (question.text, question.scene, question.timeout) == ("what is edible", "[apple]", 10.0)
    desk.take(desk.executor.on_answer(A, 99, "wrong call", "", desk.now))
    desk.take(desk.executor.on_answer(A, question.call_number, "True", "", desk.now))
    assert desk.told()[-3:] == ["SUCCEEDED ask(what is edible) True", "PLAN_RETURNED True", "IDLE"]
    desk.take(desk.executor.on_answer(A, question.call_number, "late", "", desk.now))
    assert desk.told() == []
    assert desk.robot.log[1:] == []  # the robot itself did nothing


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ("the model failed", "FAILED ask(x): ask: the model failed"),
        ("", "FAILED ask(x): ask: no answer"),
        (None, "FAILED ask(x): ask: not done after 10 s"),
    ],
)
def test_a_probe_without_answer_fails(answer, end) -> None:
    desk = Desk(ask=lambda question: None)
    desk.send(0, "_1=ask('x');")
    if answer is not None:
        desk.take(desk.executor.on_answer(A, 0, None, answer, 1.0))
    desk.run(30.0)
    assert end in desk.told()


def test_a_model_that_cannot_be_asked_fails_the_call() -> None:
    def ask(question: Any) -> None:
        raise RuntimeError("no service")

    desk = Desk(ask=ask)
    desk.send(0, "_1=ask('x');")
    assert "FAILED ask(x): ask: adapter: no service" in desk.told()


NONSENSE = {
    "": "m is '': must be a number",
    "maybe?": "m is 'maybe?': must be a number",
    "mf(500)": "must be a number",
    "'); go(9); ('": "must be a number",
    "\x00\x1b[2J": "must be a number",
    "nan": "must be a number",
    "1e999": "must be a number",
    "9" * 300: "99999999999999999999...: must be within 1e+09",
    "-5": "m is -5 m: must be 1 to 9 m",
    "4.5": "must be a whole number",
    "True": "m is True: must be a number",
    "x" * 1001: "1001 characters: must be at most 1000",
}


@pytest.mark.parametrize("answer", NONSENSE, ids=range(len(NONSENSE)))
def test_a_probe_that_is_answered_with_nonsense_moves_nothing(answer) -> None:
    desk = Desk(ask=lambda question: None)
    desk.send(0, "_1=ask('how far?');go(_1)", last=True)
    desk.take(desk.executor.on_answer(A, 0, answer, "", 1.0))
    told = desk.told()
    assert told[-2].startswith("FAILED: plan, character ")
    assert NONSENSE[answer] in told[-2]
    assert desk.robot.log[1:] == ["1 halt"]
    desk.send(0, "go(1)", last=True, plan=B)
    assert desk.told()[-1] == "STARTED go(1)"


@given(st.text(max_size=30) | st.integers(-20, 20).map(str))
def test_whatever_a_probe_is_answered_only_a_sound_motion_begins(answer) -> None:
    desk = Desk(ask=lambda question: None)
    desk.send(0, "_1=ask('how far?');?_1!=False&_1>0{go(_1)}", last=True)
    desk.take(desk.executor.on_answer(A, 0, answer, "", 1.0))
    desk.run(20.0)
    moved = [line for line in desk.robot.log if "start" in line]
    assert moved == [f"1 start go({n})" for n in range(1, 10) if answer.strip() == str(n)]
    assert desk.told()[-2].partition(":")[0] in ("FAILED", "PLAN_RETURNED", "PLAN_RETURNED False")


def test_an_answer_that_comes_after_the_goal_was_planned_anew_is_ignored() -> None:
    """Its question failed the plan; the next plan asks another one."""
    questions: list[Any] = []
    desk = Desk(ask=questions.append)
    desk.send(0, "_1=ask('is the way free?');?_1==True{go(9)}", last=True)
    desk.run(20.0)
    assert any(line.startswith("FAILED ask") for line in desk.told())
    desk.send(1, "_1=ask('shall I go on?');?_1==True{go(9)}", last=True, command=REPLACE)
    first, second = questions
    answered = desk.executor.on_answer
    desk.take(answered(first.plan_id, first.call_number, "True", "", desk.now))
    assert not any("start go" in line for line in desk.robot.log)
    desk.take(answered(second.plan_id, second.call_number, "True", "", desk.now))
    assert desk.robot.log[-1] == "20 start go(9)"
