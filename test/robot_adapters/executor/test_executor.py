"""The robot's side of a plan on virtual time, as exact logs: plans, delivery, whatever comes."""

from __future__ import annotations

import pytest
from executor_rig import CANCEL, REPLACE, RUN, STOP, A, B, Desk, State
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_adapters.executor.executor import ReportWriter
from timely_llm.protocols.messages import NO_PLAN


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_plan_from_the_first_segment_to_the_end(desk: Desk) -> None:
    desk.send(0, "go(2)")
    assert desk.told() == ["RECEIVED", "STARTED go(2)"]
    desk.run(1.0)
    desk.send(1, ";?look()")
    assert desk.told() == ["RECEIVED"]
    desk.run(2.9)
    desk.send(2, "==True{go(3)}->'ok'", last=True)
    desk.run(7.0)
    assert desk.told() == [
        "SUCCEEDED go(2)",
        "STARTED look()",
        "RECEIVED",
        "SUCCEEDED look() True",
        "STARTED go(3)",
        "SUCCEEDED go(3)",
        "PLAN_RETURNED ok",
        "IDLE",
    ]
    assert desk.robot.log == ["0 resume", "0 start go(2)", "2 start look()", "3 start go(3)"]


def test_sequence_segment_and_call_numbers(desk: Desk) -> None:
    desk.send(0, "2{tick();go(1)")
    desk.send(1, "};tick();", last=True)
    desk.run(5.0)
    starts = [r for r in desk.reports if r.state is State.STARTED]
    assert [(r.call.name, r.segment, r.call_number) for r in starts] == [
        ("tick", 0, 0), ("go", 0, 1), ("tick", 0, 2), ("go", 0, 3), ("tick", 1, 4),
    ]  # fmt: skip
    sequence = [r.sequence for r in desk.reports]
    assert sequence == list(range(1, len(sequence) + 1))
    assert {r.session for r in desk.reports} == {1}


def test_times_of_the_reports(desk: Desk) -> None:
    desk.robot.durations["go"] = 2.5
    desk.send(0, "go(2)")
    desk.send(1, ";go(4)")
    desk.run(0.6)
    running = desk.reports[-1]
    assert (running.state, running.stamp) == (State.RUNNING, pytest.approx(0.5))
    assert (running.elapsed, running.skill_remaining) == (pytest.approx(0.5), pytest.approx(2.0))
    assert running.total_remaining == pytest.approx(6.0)
    desk.run(2.5)
    done = [r for r in desk.reports if r.state is State.SUCCEEDED][0]
    assert (done.elapsed, done.skill_remaining, done.total_remaining) == (2.5, 0.0, 4.0)
    received = [r for r in desk.reports if r.state is State.RECEIVED]
    assert [r.total_remaining for r in received] == [2.0, 6.5]


def test_a_robot_that_runs_dry_says_so_at_once_and_again(desk: Desk) -> None:
    desk.send(0, "go(1)")
    desk.run(1.0)
    assert desk.reports[-1].state is State.IDLE
    assert desk.reports[-1].plan_id == A
    desk.run(2.2)
    assert [r.stamp for r in desk.reports if r.state is State.IDLE] == [1.0, 1.5, 2.0]
    assert [r.stamp for r in desk.reports if r.state is State.RUNNING] == [0.5]


def test_a_tick_in_between_says_nothing_new(desk: Desk) -> None:
    desk.send(0, "go(1)")
    assert desk.executor.tick(0.1) == []
    desk.run(1.0)
    assert desk.executor.tick(1.1) == []


def test_an_idle_robot_beats_too(desk: Desk) -> None:
    desk.run(1.6)
    assert [(r.state, r.plan_id, r.stamp) for r in desk.reports] == [
        (State.IDLE, NO_PLAN, stamp) for stamp in (0.5, 1.0, 1.5)
    ]


def test_a_value_ends_a_plan_early_and_what_follows_is_ignored(desk: Desk) -> None:
    desk.send(0, "go(1)")
    desk.send(1, ";->3;go(2)")
    desk.run(3.0)
    desk.send(2, ";go(3)", last=True)
    assert desk.told()[-2:] == ["PLAN_RETURNED 3", "IDLE"]
    assert desk.robot.log[1:] == ["0 start go(1)"]


# ---- definitions ---------------------------------------------------------------------------------


def test_a_call_with_a_definition_is_told_as_one_call(desk: Desk) -> None:
    desk.robot.values["look"] = False
    desk.send(0, "go(1);?seek(2)")
    desk.send(1, "{go(9)};go(3)", last=True)
    desk.run(11.0)
    reports = [r for r in desk.reports if r.state in (State.STARTED, State.SUCCEEDED)]
    seen = [(r.call.name, r.call_number, r.segment, r.elapsed) for r in reports]
    assert seen == [
        ("go", 0, 0, 0), ("go", 0, 0, 1),
        ("seek", 1, 0, 0), ("seek", 1, 0, 6),
        ("go", 2, 1, 0), ("go", 2, 1, 3),
    ]  # fmt: skip
    assert desk.robot.log[1:] == [
        "0 start go(1)", "1 start look()", "2 start go(2)", "4 start look()", "5 start go(2)",
        "7 start go(3)",
    ]  # fmt: skip
    assert "SUCCEEDED seek(2) False" in desk.told()


def test_what_is_left_of_a_definition(desk: Desk) -> None:
    """1.5 s are expected; then what the robot says of the call in it is all that is known."""
    desk.robot.values["look"] = False
    desk.send(0, "?seek(2)")
    desk.send(1, "{go(9)}go(3)", last=True)
    desk.run(6.2)
    running = [r for r in desk.reports if r.state is State.RUNNING]
    assert {r.call.name for r in running} == {"seek"}
    told = [(r.elapsed, r.skill_remaining, r.total_remaining) for r in running]
    assert told == [
        (0.0, 1.5, 1.5), (0.5, 1.0, 13.0),
        (1.0, 2.0, 14.0), (1.5, 1.5, 13.5), (2.0, 1.0, 13.0), (2.5, 0.5, 12.5),
        (3.0, 1.0, 13.0), (3.5, 0.5, 12.5),
        (4.0, 2.0, 14.0), (4.5, 1.5, 13.5), (5.0, 1.0, 13.0), (5.5, 0.5, 12.5),
    ]  # fmt: skip


def test_what_fails_in_a_definition_is_told_with_its_call(desk: Desk) -> None:
    desk.robot.values["look"], desk.robot.errors["go"] = False, "motor"
    desk.send(0, "seek(2)", last=True)
    desk.run(5.0)
    (failed,) = [r for r in desk.reports if r.state is State.FAILED]
    assert (failed.call.name, failed.error, failed.elapsed) == ("seek", "go: motor", 3)
    assert desk.told()[-2:] == ["FAILED seek(2): go: motor", "IDLE"]


def test_a_stop_in_a_definition_halts_it(desk: Desk) -> None:
    desk.robot.values["look"] = False
    desk.send(0, "seek(2)", last=True)
    desk.run(2.0)
    desk.take(desk.executor.on_stop(desk.now))
    desk.run(9.0)
    assert desk.robot.log[1:] == ["0 start look()", "1 start go(2)", "2 halt"]
    assert "ABORTED seek(2): stopped" in desk.told()


# ---- delivery ------------------------------------------------------------------------------------


def test_gap_repeat_foreign_session_and_busy_are_refused_in_words(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.told()
    desk.send(2, ";go(1)")
    desk.send(0, "go(5)")
    desk.send(1, ";", session=9)
    desk.send(0, "go(1)", plan=B)
    assert desk.told() == [
        "REJECTED: gap: segment 2, but 1 was expected",
        "REJECTED: repeat: segment 0 was received already",
        "REJECTED: session 9: this robot has session 1",
        f"REJECTED: busy with plan {A}",
    ]
    assert desk.robot.log[1:] == ["0 start go(5)"]


def test_a_cancel_halts_and_is_answered_whenever_it_comes(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.run(1.25)
    desk.told()
    desk.send(0, command=CANCEL)
    aborted = desk.reports[0]
    assert (aborted.elapsed, aborted.call.name) == (1.25, "go")
    assert desk.told() == ["ABORTED go(5): canceled", "IDLE"]
    desk.send(0, command=CANCEL)
    desk.send(0, command=CANCEL, plan=B)
    desk.send(0, "go(1)", plan=B)
    assert desk.told() == ["ABORTED: canceled: it is not being carried out"]
    assert desk.robot.log[1:] == ["0 start go(5)", "1.25 halt"]


def test_a_replacement_halts_the_old_plan_first(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.run(1.0)
    desk.told()
    desk.send(0, "look()", plan=B, command=REPLACE)
    assert desk.told() == ["ABORTED go(5): replaced", "RECEIVED", "STARTED look()"]
    assert desk.robot.log[-2:] == ["1 halt", "1 start look()"]


def test_a_robot_without_session_is_silent(desk: Desk) -> None:
    desk = Desk(registered=False)
    desk.send(0, "go(1)")
    desk.take(desk.executor.tick(1.0))
    desk.take(desk.executor.on_stop(1.0))
    desk.take(desk.executor.on_rearm(1.0))
    assert desk.executor.needs_registration
    assert desk.executor.next_wake(1.0) is None
    assert desk.told() == []


# ---- whatever comes ------------------------------------------------------------------------------

TEXTS = st.sampled_from(
    ["go(1)", ";go(2)", ";look()", ";", "2{go(1)", "}", "->True", ")", "go(99)"]
)
INPUTS = st.one_of(
    st.tuples(
        st.just("send"), st.integers(0, 3), TEXTS, st.booleans(), st.sampled_from([A, B]),
        st.sampled_from([RUN, RUN, RUN, REPLACE, CANCEL, STOP]), st.sampled_from([1, 1, 1, 2]),
    ),
    st.tuples(st.just("run"), st.floats(0.1, 4.0), st.booleans()),
    st.tuples(st.sampled_from(["stop", "rearm", "register"])),
    st.tuples(st.just("alive"), st.sampled_from(["p", "p", "q"])),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(INPUTS, max_size=25))
def test_whatever_comes_no_motion_is_done_twice_or_while_stopped(inputs: list) -> None:
    desk, session = Desk(), 1
    for kind, *rest in inputs:
        match kind:
            case "send":
                index, text, last, plan, command, of_session = rest
                desk.send(index, text, last, plan, command=command, session=of_session)
            case "run":
                desk.run(desk.now + rest[0], alive=rest[1])
            case "stop":
                desk.take(desk.executor.on_stop(desk.now))
            case "rearm":
                desk.take(desk.executor.on_rearm(desk.now))
            case "register":
                session += 1
                desk.take(desk.executor.new_session(session, desk.now, "p"))
            case "alive":
                desk.alive(rest[0])
        if desk.executor.stopped:
            assert desk.robot.call is None
    sequence = [r.sequence for r in desk.reports]
    assert sequence == list(range(1, len(sequence) + 1))
    open_plans: dict[tuple, int] = {}
    for report in desk.reports:
        key = (report.session, report.plan_id)
        if report.state is State.STARTED:  # calls count up within one run of a plan
            assert report.call_number == open_plans.get(key, -1) + 1
            open_plans[key] = report.call_number
        if report.state in (State.FAILED, State.ABORTED, State.PLAN_RETURNED):
            open_plans.pop(key, None)
    starts = sum(" start " in line for line in desk.robot.log)
    assert starts == sum(r.state is State.STARTED for r in desk.reports)


def test_a_robot_without_a_session_says_0():
    reports = ReportWriter()
    reports.add(State.IDLE, 1.0, NO_PLAN)
    reports.session = 7
    reports.add(State.IDLE, 2.0, NO_PLAN)
    assert [(report.session, report.sequence) for report in reports.flush()] == [(0, 0), (7, 1)]
    assert reports.flush() == []
