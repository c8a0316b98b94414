"""Which segments a robot takes: each rule by itself, and what holds for any stream of segments."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_adapters.executor.delivery import Delivery, Ignore, Reject, Take
from timely_llm.protocols.messages import NO_PLAN, ExecutionState, Segment, SegmentCommand

A, B = "a" * 32, "b" * 32
SESSION = 7
RUN, REPLACE, CANCEL = SegmentCommand.RUN, SegmentCommand.REPLACE, SegmentCommand.CANCEL


def segment(plan: str, index: int, command=RUN, last=False, session=SESSION) -> Segment:
    return Segment(session, plan, index, command, "d(1)", (), last)


class Robot:
    """A delivery with the plan in progress that its verdicts make."""

    def __init__(self) -> None:
        self.delivery = Delivery()
        self.current: str | None = None

    def send(self, *args, refusal: str = "", waits: bool = False, **fields):
        given = segment(*args, **fields)
        verdict = self.delivery.judge(given, SESSION, self.current, refusal, waits)
        if isinstance(verdict, Take):
            if given.command is CANCEL:
                if given.plan_id == self.current:
                    self.end(ExecutionState.ABORTED)
            elif verdict.begins:
                if self.current not in (None, given.plan_id):
                    self.end(ExecutionState.ABORTED)
                self.current = given.plan_id
        return verdict

    def end(self, state: ExecutionState) -> None:
        self.delivery.over(self.current, state)
        self.current = None


@pytest.fixture
def robot() -> Robot:
    return Robot()


def test_a_canceled_plan_is_not_planned_anew(robot: Robot) -> None:
    """The cancel came behind the failure, and what replaces it behind the cancel."""
    robot.send(A, 0)
    robot.end(ExecutionState.FAILED)
    assert robot.send(A, 0, CANCEL) == Take()
    assert robot.send(A, 1, REPLACE) == Ignore()


def test_indices_count_up(robot: Robot) -> None:
    assert robot.send(A, 0) == Take(begins=True)
    assert robot.send(A, 1) == Take()
    assert robot.send(A, 2, last=True) == Take()


def test_gaps_repeats_and_what_follows_the_last(robot: Robot) -> None:
    assert robot.send(A, 1) == Reject("gap: segment 1 of an unknown plan, but 0 was expected")
    robot.send(A, 0)
    assert robot.send(A, 2) == Reject("gap: segment 2, but 1 was expected")
    assert robot.send(A, 0) == Reject("repeat: segment 0 was received already")
    robot.send(A, 1, last=True)
    assert robot.send(A, 2) == Reject("segment 2 behind the last one, 1")
    assert robot.send(A, 1) == Reject("repeat: segment 1 was received already")


def test_a_gap_does_not_end_the_plan(robot: Robot) -> None:
    robot.send(A, 0)
    robot.send(A, 2)
    assert robot.send(A, 1) == Take()


def test_another_session_is_a_stranger(robot: Robot) -> None:
    words = "session 8: this robot has session 7"
    assert robot.send(A, 0, session=8) == Reject(words)
    assert robot.send(A, 0, CANCEL, session=8) == Reject(words)


def test_who_is_nobodys_robot_says_nothing() -> None:
    assert Delivery().judge(segment(A, 0), None, None, "") == Ignore()


def test_no_plan_is_no_plan(robot: Robot) -> None:
    assert robot.send(NO_PLAN, 0) == Reject("plan_id is zero")


def test_one_plan_at_a_time_unless_it_is_replaced(robot: Robot) -> None:
    robot.send(A, 0)
    assert robot.send(B, 0) == Reject(f"busy with plan {A}")
    assert robot.send(B, 1) == Ignore()  # in flight behind the refused one
    assert robot.send("c" * 32, 0, REPLACE) == Take(begins=True)
    assert robot.current == "c" * 32
    assert robot.send(A, 1) == Ignore()


@pytest.mark.parametrize("state", [s for s in ExecutionState if s is not ExecutionState.IDLE])
def test_a_plan_that_is_over_stays_over(robot: Robot, state: ExecutionState) -> None:
    robot.send(A, 0)
    robot.end(state)
    assert robot.send(A, 0) == Ignore()
    assert robot.send(A, 1) == Ignore()


def test_a_goal_is_planned_anew_under_higher_indices(robot: Robot) -> None:
    robot.send(A, 0)
    robot.end(ExecutionState.REPLAN_REQUESTED)
    assert robot.send(A, 1) == Ignore()  # in flight
    assert robot.send(A, 1, REPLACE) == Reject("repeat: segment 1 of a replan, 2 was expected")
    assert robot.send(A, 2, REPLACE) == Take(begins=True)
    assert robot.send(A, 3) == Take()
    robot.end(ExecutionState.PLAN_RETURNED)
    assert robot.send(A, 4, REPLACE) == Ignore()


def test_a_plan_that_waits_for_text_may_be_planned_again(robot: Robot) -> None:
    """The rest of it was refused by the planner's check; in the middle of a call it may not."""
    robot.send(A, 0)
    words = "a plan in progress cannot be planned again"
    assert robot.send(A, 1, REPLACE) == Reject(words)
    assert robot.send(A, 1, REPLACE, waits=True) == Take(begins=True)
    assert robot.send(A, 1, REPLACE, waits=True) == Reject("repeat: segment 1 was received already")
    assert robot.send(A, 2) == Take()


def test_a_cancel_belongs_to_no_index_and_is_always_answered(robot: Robot) -> None:
    robot.send(A, 0)
    robot.send(A, 1)
    assert robot.send(A, 0, CANCEL) == Take()
    assert robot.current is None
    assert robot.send(A, 0, CANCEL) == Take()
    assert robot.send(A, 2) == Ignore()


def test_a_cancel_that_overtakes_its_plan_keeps_it_from_beginning(robot: Robot) -> None:
    assert robot.send(A, 0, CANCEL) == Take()
    assert robot.send(A, 0) == Ignore()


def test_a_refusal_holds_for_plans_in_progress_and_to_come(robot: Robot) -> None:
    robot.send(A, 0)
    assert robot.send(A, 1, refusal="stopped") == Ignore()
    assert robot.send(B, 0, refusal="stopped") == Reject("stopped")
    assert robot.send(B, 0) == Ignore()  # and for good: half of it was refused
    assert robot.send(A, 0, CANCEL, refusal="stopped") == Take()


def test_memory_is_bounded(robot: Robot) -> None:
    for number in range(3 * 256):
        robot.send(f"{number:032x}", 0, CANCEL)
    assert len(robot.delivery._over) == 256


def over(robot: Robot, count: int) -> list[str]:
    """Plans that were canceled before their first segment came."""
    plans = [f"{number:032x}" for number in range(1, count + 1)]
    for plan in plans:
        robot.send(plan, 0, CANCEL)
    return plans


def test_the_oldest_plan_is_forgotten_first(robot: Robot) -> None:
    plans = over(robot, 257)
    assert robot.send(plans[-1], 0) == Ignore()
    assert robot.send(plans[1], 0) == Ignore()
    assert robot.send(plans[0], 0) == Take(begins=True)


def test_a_plan_that_is_over_again_is_the_newest(robot: Robot) -> None:
    robot.send(A, 0)
    robot.end(ExecutionState.FAILED)
    plans = over(robot, 255)
    robot.send(A, 1, REPLACE)
    robot.end(ExecutionState.FAILED)
    robot.send(B, 0, CANCEL)
    assert robot.send(A, 2) == Ignore()
    assert robot.send(plans[0], 0) == Take(begins=True)


def test_a_plan_in_progress_takes_no_place_of_those_that_are_over(robot: Robot) -> None:
    plans = over(robot, 255)
    robot.send(A, 0)
    robot.end(ExecutionState.FAILED)
    robot.send(A, 1, REPLACE)
    robot.send(B, 0, CANCEL)
    assert robot.send(plans[0], 0) == Ignore()


def test_a_plan_of_which_nothing_came_is_not_complete(robot: Robot) -> None:
    assert robot.send(A, 0, last=True) == Take(begins=True)
    robot.end(ExecutionState.FAILED)
    assert robot.send(A, 1, REPLACE) == Take(begins=True)
    assert robot.send(A, 2) == Take()


def test_a_cancel_of_the_plan_in_progress_leaves_its_end_to_the_robot() -> None:
    delivery = Delivery()
    delivery.judge(segment(A, 0), SESSION, None, "")
    assert delivery.judge(segment(A, 0, CANCEL), SESSION, A, "") == Take()
    assert delivery.judge(segment(A, 1), SESSION, A, "") == Take()


SEGMENTS = st.builds(
    segment,
    st.sampled_from([A, B, "c" * 32]),
    st.integers(0, 4),
    st.sampled_from([RUN, RUN, RUN, REPLACE, CANCEL]),
    st.booleans(),
    st.sampled_from([SESSION, SESSION, SESSION, 8]),
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.one_of(SEGMENTS, st.sampled_from(list(ExecutionState))), max_size=40),
    st.booleans(),
)
def test_nothing_is_taken_twice_or_out_of_order(stream: list, stopped: bool) -> None:
    robot = Robot()
    taken: dict[str, list[int]] = {}
    for given_ in stream:
        if isinstance(given_, ExecutionState):
            if robot.current is not None:
                robot.end(given_)
            continue
        current = robot.current
        verdict = robot.send(
            given_.plan_id, given_.index, given_.command, given_.last, given_.session,
            refusal="stopped" if stopped else "",
        )  # fmt: skip
        if not isinstance(verdict, Take) or given_.command is CANCEL:
            continue
        assert not stopped and given_.session == SESSION
        indices = taken.setdefault(given_.plan_id, [])
        if verdict.begins:
            assert current != given_.plan_id
            assert current is None or given_.command is REPLACE
            assert not indices or given_.command is REPLACE and given_.index > indices[-1]
        else:
            assert current == given_.plan_id
            assert given_.index == indices[-1] + 1
        indices.append(given_.index)
