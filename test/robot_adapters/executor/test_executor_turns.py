"""A plan of very many steps that take no time does not keep a robot from stopping."""

from __future__ import annotations

from dataclasses import replace

import pytest
from executor_rig import Desk, Scripted, State

from robot_adapters.executor.interpreter import Interpreter, NeedText, Paused
from timely_llm.language import instructions as code

BOUNDS = replace(Scripted.skills.bounds, max_steps=100_000, max_nesting=8)
MANY = replace(Scripted.skills, bounds=BOUNDS)


@pytest.fixture
def desk(monkeypatch) -> Desk:
    monkeypatch.setattr(Scripted, "skills", MANY)
    desk = Desk()
    desk.robot.durations["tick"] = 0.0
    return desk


ENDLESS = ("9{9{9{9{9{tick();}}}}}", "9{9{9{9{9{_1=1;}}}}}", "9{9{9{spin}}}")


@pytest.mark.parametrize("text", ENDLESS)
def test_a_stop_finds_its_turn_among_steps_that_take_no_time(desk: Desk, text: str) -> None:
    desk.send(0, text, last=True)
    for _ in range(3):
        assert len(desk.reports) < 200
        assert desk.executor.next_wake(desk.now) == desk.now  # it goes on at once
        desk.reports.clear()
        desk.take(desk.executor.tick(desk.now))
    desk.take(desk.executor.on_stop(desk.now))
    assert desk.told()[-1] == "IDLE: stopped"
    assert desk.executor.next_wake(desk.now) > desk.now


def test_a_plan_in_many_turns_does_every_step_once(desk: Desk) -> None:
    desk.send(0, "9{9{9{tick();}}};->'done'", last=True)
    desk.run(0.0)
    states = [report.state for report in desk.reports]
    assert states.count(State.SUCCEEDED) == states.count(State.STARTED) == 9**3
    assert desk.reports[-2].value == "done"


def test_the_interpreter_pauses_where_it_is_told_to() -> None:
    interpreter = Interpreter(MANY)
    interpreter.feed("9{_1=1;}", 0)
    pauses = 0
    while (step := interpreter.advance(4)) == Paused():
        pauses += 1
    assert step == NeedText() and pauses > 3


def test_what_is_held_is_looked_at_once_however_often_it_is_to_be_done(monkeypatch) -> None:
    """A loop in loops: 9^4 calls."""
    looked = []
    timed = MANY["go"].__class__.expected_duration
    monkeypatch.setattr(
        MANY["go"].__class__,
        "expected_duration",
        lambda self, values: looked.append(1) or timed(self, values),
    )
    interpreter = Interpreter(MANY)
    interpreter.feed("9{9{9{9{go(1);}}}}look();go(2);", 0, last=True)
    assert interpreter.held_duration() == pytest.approx(9**4 + 1 + 2)
    assert len(looked) < 50


@pytest.mark.parametrize("limit", [*range(1, 40), 700, 7381, 7382, 7383])
def test_a_look_ahead_within_few_steps_is_that_of_one_by_one(limit: int) -> None:
    skills = replace(MANY, bounds=replace(MANY.bounds, max_steps=limit))
    for text in ("9{9{go(1);look();}go(2);9{go(3);}}go(4);", "3{go(1);2{look();->True}}go(2);"):
        interpreter = Interpreter(skills)
        interpreter.feed(text, 0, last=True)
        assert interpreter.held_duration() == one_by_one(interpreter._plan.program, limit)


def one_by_one(program: list, steps: int) -> float:
    """As it was done first: every pass of every loop by itself."""
    total, loops, place = 0.0, [], 0
    while place < len(program) and steps > 0:
        instruction = program[place]
        place += 1
        match instruction:
            case code.Invoke(skill=skill, call=call):
                total += skill.expected_duration(call.values) if skill.timed else 0.0
                steps -= 1
            case code.Return():
                break
            case code.Repeat(count=count):
                loops.append(count)
            case code.Again(start=start):
                steps -= 1
                loops[-1] -= 1
                if loops[-1]:
                    place = start
                else:
                    loops.pop()
    return total
