"""The calls of an arm as a state machine: exact requests in virtual time, and random histories."""

import pytest
from arm_bench import HOME, OK, THERE, Bench, data, moving
from hypothesis import given
from hypothesis import strategies as st

from robot_adapters.indy7.answers import Nonsense, look_of, numbers, refusal
from robot_adapters.indy7.arm import (
    LOOK_BUSY,
    STOP_AGAIN,
    JointMove,
    Line,
    MoveTo,
    Operate,
    Sense,
    Then,
)


def test_a_move_is_over_when_the_arm_has_moved_and_stands_where_it_should():
    bench = moving()
    assert bench.arm.error is None
    bench.stand(joints=THERE)
    assert bench.arm.error == "" and bench.methods == ["movej"]


def test_data_of_the_last_move_are_no_arrival():
    bench = Bench()
    bench.begin(JointMove(THERE))
    bench.answer("movej")
    bench.look(LOOK_BUSY)  # stands still, "target reached": that of before
    assert bench.arm.error is None


def test_a_look_from_before_the_answer_does_not_count():
    bench = Bench()
    bench.begin(JointMove(THERE))
    bench.tick(LOOK_BUSY)  # a look is on its way
    bench.answer("movej")
    bench.answer("look", data(joints=THERE))
    assert bench.arm.error is None
    bench.stand(joints=THERE)
    assert bench.arm.error == ""


def test_steps_follow_one_another_each_when_the_last_is_done():
    noted = []
    bench = Bench()
    bench.begin(MoveTo(THERE), Operate("set_do", {}, 0.5), Sense(3, True, "empty"),
                Then(lambda: noted.append("held")), Line(HOME))  # fmt: skip
    bench.answer("inverse_kin", {"jpos": list(THERE), "response": OK})
    bench.answer("movej")
    bench.stand(joints=THERE)
    bench.answer("set_do")
    bench.tick(0.4)
    assert bench.methods == ["inverse_kin", "movej", "set_do"]
    bench.tick(0.2)
    assert noted == []
    bench.answer("get_di", {"signals": [{"address": 3, "state": 1}]})
    assert noted == ["held"]
    bench.answer("movel")
    bench.stand()
    assert bench.arm.error == ""
    assert bench.methods == ["inverse_kin", "movej", "set_do", "get_di", "movel"]


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ({"code": "-1", "msg": "no"}, "", "movej is refused: no (code -1)"),
        ({"code": 7}, "", "movej is refused: no reason given (code 7)"),
        ({"code": "x"}, "", "movej: the answer has no code"),
        (None, "no answer within 1 s", "movej: no answer within 1 s"),
    ],
)
def test_what_the_controller_says_against_a_move_ends_the_job(answer, error, words):
    bench = Bench()
    bench.begin(JointMove(THERE))
    bench.answer("movej", answer, error)
    assert bench.arm.error == words
    assert bench.methods.count("movej") == 1 and "stop_motion" in bench.methods


def test_joints_that_make_no_sense_move_nothing():
    bench = Bench()
    bench.begin(MoveTo(THERE))
    bench.answer("inverse_kin", {"jpos": [0.0] * 5, "response": OK})
    assert bench.arm.error.startswith("inverse_kin: jpos: not six numbers")
    assert "movej" not in bench.methods


def test_an_arm_that_stands_short_of_its_target_is_no_success():
    bench = moving()
    for _ in range(3):
        assert bench.arm.error is None
        bench.look(LOOK_BUSY, joints=(5.0, *HOME[1:]), reached=True)
    assert bench.arm.error == "the arm stands still, but not where it should"


def test_trouble_ends_the_job_in_the_controllers_words():
    bench = moving()
    bench.look(LOOK_BUSY, op_state=8, reached=False, words="joint 2")
    assert bench.arm.error == "the controller is in collision: joint 2"
    assert bench.arm.trouble(bench.now) == bench.arm.error


def test_silence_ends_the_job_and_is_answered_with_stops():
    bench = moving(link_timeout=1.0)
    for _ in range(12):
        bench.tick(0.1)
    assert bench.arm.error.startswith("link lost: nothing heard from the controller for 1.")
    assert bench.methods.count("stop_motion") == 1
    bench.tick(STOP_AGAIN)
    assert bench.methods.count("stop_motion") == 2 and bench.methods.count("movej") == 1


def test_a_stop_is_said_at_once_and_again_until_the_arm_stands_still():
    bench = moving()
    bench.arm.stop(bench.now)
    bench.collect()
    assert bench.methods == ["movej", "stop_motion"]
    bench.answer("stop_motion")
    bench.look(LOOK_BUSY, op_state=6, moving=True, reached=False)  # it did not help
    bench.tick(STOP_AGAIN)
    assert bench.methods == ["movej", "stop_motion", "stop_motion"]
    bench.answer("stop_motion")
    bench.stand(joints=(6.0, *HOME[1:]), reached=False)
    assert not bench.arm.busy
    bench.tick(10 * STOP_AGAIN)
    assert bench.methods == ["movej", "stop_motion", "stop_motion"]


def test_a_stop_that_may_have_overtaken_a_move_is_said_behind_it():
    bench = Bench()
    bench.begin(JointMove(THERE))
    bench.arm.stop(bench.now)
    bench.collect()
    bench.answer("stop_motion")
    bench.look(LOOK_BUSY)
    assert bench.arm.busy
    bench.answer("movej")
    assert bench.methods == ["movej", "stop_motion", "stop_motion"]
    bench.answer("stop_motion")
    bench.look(LOOK_BUSY)
    assert not bench.arm.busy


def test_a_stop_from_before_a_moves_answer_does_not_count_however_late_it_is_answered():
    bench = Bench()
    bench.begin(JointMove(THERE))
    bench.arm.stop(bench.now)
    bench.collect()
    bench.answer("movej")
    bench.answer("stop_motion")  # the first one
    bench.look(LOOK_BUSY)
    assert bench.arm.busy
    bench.answer("stop_motion")
    bench.look(LOOK_BUSY)
    assert not bench.arm.busy


def test_nothing_begins_before_a_stop_is_confirmed():
    bench = moving()
    bench.arm.stop(bench.now)
    bench.begin(Line(HOME))
    bench.look(LOOK_BUSY, joints=THERE)  # it seems to stand still
    assert "movel" not in bench.methods
    bench.answer("stop_motion")
    bench.look(LOOK_BUSY, joints=THERE)
    assert bench.methods == ["movej", "stop_motion", "movel"]


def test_behind_a_move_that_was_not_answered_the_next_waits_until_it_cannot_come_any_more():
    bench = Bench(late=5.0)
    bench.begin(JointMove(THERE))
    bench.answer("movej", None, "no answer")
    bench.answer("stop_motion")
    bench.look(LOOK_BUSY)
    bench.begin(Line(HOME))
    for _ in range(20):
        bench.look(0.2)
    assert "movel" not in bench.methods and bench.arm.error is None
    for _ in range(10):
        bench.look(0.2)
    assert bench.methods == ["movej", "stop_motion", "movel"]


def test_a_move_that_comes_late_is_stopped():
    bench = Bench(late=5.0)
    bench.begin(JointMove(THERE))
    bench.answer("movej", None, "no answer")
    bench.answer("stop_motion")
    bench.look(LOOK_BUSY)
    assert not bench.arm.busy
    bench.look(1.0, op_state=6, moving=True, reached=False)
    assert bench.methods == ["movej", "stop_motion", "stop_motion"]


def test_a_job_waits_for_a_standstill_but_not_for_ever():
    bench = Bench(settle_timeout=3.0)
    bench.arm.begin(lambda look: [JointMove(THERE)], bench.now)
    bench.collect()
    while bench.arm.error is None:
        bench.look(LOOK_BUSY, op_state=6, moving=True, reached=False)
    assert bench.arm.error == "the arm does not come to a standstill"
    assert "movej" not in bench.methods


def test_recovery_is_asked_for_once_and_only_where_there_is_something_to_recover_from():
    bench = Bench()
    assert bench.arm.recover(bench.now) == "nothing to recover from: the controller is idle"
    bench.look(op_state=2, words="limit")
    assert bench.arm.recover(bench.now) == ""
    assert bench.arm.recover(bench.now) == "is recovering already"
    bench.collect()
    bench.answer("recover", {"code": "-1", "msg": "not now"})
    assert bench.arm.recovery == "recover is refused: not now (code -1)"


@pytest.mark.parametrize("values", [[0.0] * 5, [0.0] * 7, [float("nan")] * 6, "abcdef", None])
def test_six_finite_numbers_or_nonsense(values):
    with pytest.raises(Nonsense):
        numbers({"q": values}, "q", 720.0)


def test_data_without_what_must_be_there_are_nonsense():
    with pytest.raises(Nonsense, match="make no sense"):
        look_of({"robot": {}, "motion": {}})
    assert refusal("movej", {"response": {"code": "0"}}) == ""


ANSWERS = st.sampled_from(["yes", "no", "nothing"])
EVENTS = st.one_of(
    st.tuples(st.just("tick"), st.floats(0.01, 3.0)),
    st.tuples(st.just("answer"), ANSWERS),
    st.tuples(st.just("look"), st.booleans()),
    st.tuples(st.just("stop"), st.none()),
    st.tuples(st.just("begin"), st.none()),
)


@given(st.lists(EVENTS, max_size=40))
def test_whatever_happens_no_motion_is_sent_twice_and_none_while_the_arm_is_stopping(events):
    bench, begun = Bench(), 0
    for kind, value in events:
        before = len(bench.asked)
        stopping = bench.arm._stopping
        if kind == "tick":
            bench.tick(value)
        elif kind == "stop":
            bench.arm.stop(bench.now)
            bench.collect()
        elif kind == "begin" and bench.arm.error is not None:
            begun += 1
            bench.arm.begin(lambda look: [JointMove(THERE)], bench.now)
            bench.collect()
        elif kind == "look":
            bench.look(0.3, moving=value, op_state=6 if value else 5)
        elif kind == "answer" and (others := [r for r in bench.open if r.method != "look"]):
            answer = {"yes": OK, "no": {"code": 1}, "nothing": None}[value]
            bench.answer(others[0].method, answer, "" if answer else "no answer")
        sent = [method for _, method in bench.asked[before:]]
        if "movej" in sent:
            assert not bench.arm._stopping and (kind == "look" or not stopping)
        assert bench.methods.count("movej") <= begun
        assert sum(r.method == "look" for r in bench.open) <= 1
        assert sum(r.method == "stop_motion" for r in bench.open) <= 3
