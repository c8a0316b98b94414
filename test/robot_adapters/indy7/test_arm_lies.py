"""A controller whose answers lack something, cannot be, come twice, or say that it stands still."""

import math

import pytest
from arm_bench import HOME, OK, THERE, Bench, data, moving
from hypothesis import given
from hypothesis import strategies as st

from robot_adapters.indy7.answers import Nonsense, look_of, refusal, signals_of
from robot_adapters.indy7.arm import LOOK_BUSY, STOP_AGAIN, JointMove, Line, MoveTo, Operate, Sense

HUGE = 10**400


def told(part, **fields):
    """Data of an arm that stands still, but for these fields; None: the field is not there."""
    found = data()
    found[part] = {k: v for k, v in (found[part] | fields).items() if v is not None}
    return found


NONSENSE = [
    None, [], "ok", 5, {}, {"robot": None, "motion": None}, {"robot": [], "motion": "x"},
    {"robot": data()["robot"]}, data() | {"violation": 5},
    *(told("robot", op_state=value) for value in ("idle", math.inf, math.nan, None, [], 5.5, True)),
    *(told("robot", q=value) for value in ([math.nan] * 6, [HUGE] * 6, ["9" * 401] * 6, [1e6] * 6)),
    *(told("robot", p=value) for value in ([0.0] * 5, [None] * 6, [1e300] * 6, {}, None)),
    *(told("motion", is_in_motion=value) for value in (None, "false", 0)),
    *(told("motion", is_target_reached=value) for value in (None, "true", 1)),
    *(told("motion", motion_queue_size=value) for value in (math.inf, -1, "x", HUGE)),
]  # fmt: skip


@pytest.mark.parametrize("answer", NONSENSE, ids=lambda answer: str(answer)[:40])
def test_data_that_cannot_be_are_told_and_moves_nothing(answer):
    with pytest.raises(Nonsense):
        look_of(answer)


def test_a_controller_that_talks_nonsense_is_lost_and_stopped():
    bench = moving(link_timeout=1.0)
    looks = 0
    while bench.arm.error is None:
        bench.tick(LOOK_BUSY)
        bench.answer("look", told("robot", q=[math.nan] * 6))
        looks += 1
        assert looks < 100
    assert bench.arm.error.startswith("the controller's data make no sense: q: ")
    assert "stop_motion" in bench.methods
    bench.answer("stop_motion")
    bench.stand()
    assert not bench.arm.busy and bench.arm.trouble(bench.now) == ""


@pytest.mark.parametrize(
    "answer",
    [{}, {"response": {}}, {"code": "inf"}, {"code": True}, [], "x", {"code": math.inf},
     {"code": HUGE}, {"response": 5}],
)  # fmt: skip
def test_an_answer_without_a_code_is_no_yes(answer):
    assert refusal("movej", answer) != ""
    bench = Bench()
    bench.begin(JointMove(THERE))
    bench.answer("movej", answer)
    assert bench.arm.error.startswith("movej")
    assert bench.methods == ["movej", "stop_motion"]
    bench.answer("stop_motion", answer)
    bench.look(LOOK_BUSY)
    bench.look(STOP_AGAIN)
    assert bench.arm.busy and bench.methods.count("stop_motion") == 2


@pytest.mark.parametrize(
    "jpos", [None, "abcdef", [HUGE] * 6, ["NaN"] * 6, [1e5] * 6, [None] * 6, 7]
)
def test_joints_that_cannot_be_move_nothing(jpos):
    bench = Bench()
    bench.begin(MoveTo(THERE))
    bench.answer("inverse_kin", {"jpos": jpos})
    assert bench.arm.error.startswith("inverse_kin: ")
    assert "movej" not in bench.methods


def test_joints_that_lead_elsewhere_are_no_arrival():
    bench = Bench()
    bench.begin(MoveTo(THERE))
    bench.answer("inverse_kin", {"jpos": list(HOME)})
    bench.answer("movej")
    for _ in range(60):
        bench.look(LOOK_BUSY)
    assert bench.arm.error


@pytest.mark.parametrize(
    "signals",
    [None, 5, [5], [{}], [{"address": 3}], [{"address": "x", "state": 1}], [{"address": math.inf}],
     [{"address": 3, "state": math.nan}], [{"address": 3, "state": 1}, {"address": 3, "state": 0}]],
)  # fmt: skip
def test_signals_that_cannot_be_show_nothing(signals):
    with pytest.raises(Nonsense):
        signals_of({"signals": signals})
    bench = Bench()
    bench.begin(Sense(3, True, "empty"))
    bench.answer("get_di", {"signals": signals})
    assert bench.arm.error.startswith("get_di: ")


def test_an_answer_that_comes_twice_is_no_news():
    bench = Bench()
    bench.begin(JointMove(THERE), Line(HOME))
    number = next(request.number for request in bench.open if request.method == "movej")
    bench.answer("movej")
    for _ in range(3):
        bench.arm.on_answer(number, OK, "", bench.now)
        bench.collect()
    assert bench.methods == ["movej"]


def going(bench, step):
    """A look at an arm that says it stands still while it moves."""
    bench.look(LOOK_BUSY, joints=(5.0 + 0.1 * step, *HOME[1:]))


def test_a_stop_is_said_again_while_the_joints_move_whatever_is_said():
    bench = moving()
    bench.arm.stop(bench.now)
    bench.collect()
    for step in range(1, 31):
        if any(request.method == "stop_motion" for request in bench.open):
            bench.answer("stop_motion")
        going(bench, step)
        assert bench.arm.busy
    assert bench.methods.count("stop_motion") >= 3
    bench.stand(joints=(8.0, *HOME[1:]))
    assert not bench.arm.busy


def test_nothing_begins_while_the_joints_move_whatever_is_said():
    bench = Bench()
    bench.arm.begin(lambda look: [JointMove(THERE)], bench.now)
    for step in range(1, 20):
        going(bench, step)
    assert bench.methods == []
    going(bench, 19)
    assert bench.methods == ["movej"]


def test_an_arm_that_moves_is_stopped_where_it_says_that_it_does_not():
    bench = Bench()
    for step in (1, 2):
        going(bench, step)
    bench.arm.drop(bench.now)
    bench.collect()
    assert bench.methods == ["stop_motion"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
    | st.sampled_from([HUGE, "9" * 401, "NaN"]),
    lambda inner: st.lists(inner, max_size=6)
    | st.dictionaries(
        st.sampled_from(["robot", "motion", "violation", "response", "code", "msg", "jpos", "q",
                         "p", "op_state", "signals", "address", "state", "is_in_motion"]),
        inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@given(st.lists(VALUES, max_size=12))
def test_whatever_a_controller_answers_no_motion_is_sent_twice(answers):
    bench = Bench()
    steps = [MoveTo(THERE), Operate("set_do", {}, 0.1), Sense(3, True, "empty"), Line(HOME)]
    bench.arm.begin(lambda look: list(steps), bench.now)
    for answer in answers:
        bench.tick(0.1)
        if bench.open:
            bench.answer(bench.open[0].method, answer)
        bench.look(0.3)
        assert bench.methods.count("movej") <= 1 and bench.methods.count("movel") <= 1
        assert sum(request.method == "look" for request in bench.open) <= 1
