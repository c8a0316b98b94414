"""When a robot asks to be registered, and what it makes of the answers."""

from __future__ import annotations

import pytest

from robot_adapters.registration import ASK_AGAIN, GRANT_TIMEOUT, PERIOD, Grant, Registration
from timely_llm.protocols.messages import ErrorCode


@pytest.fixture
def registration() -> Registration:
    return Registration(patience=15.0)


def test_it_looks_for_a_planner_at_once_and_then_from_time_to_time(registration) -> None:
    assert registration.due(0.0)
    registration.nobody(0.0)
    assert not registration.due(PERIOD / 2)
    assert registration.next_wake() == PERIOD
    assert registration.due(PERIOD)


def test_an_unanswered_ask_is_repeated(registration) -> None:
    registration.asked(1.0)
    assert not registration.due(1.0 + ASK_AGAIN - 0.1)
    assert registration.due(1.0 + ASK_AGAIN)


def test_another_planner_than_before_is_asked_at_once(registration) -> None:
    """The request before may have gone to the one that has died."""
    registration.heard("dead", 0.5)
    registration.asked(1.0)
    registration.heard("dead", 1.5)
    assert not registration.due(1.5)
    registration.heard("new", 3.0)
    assert registration.due(3.0)
    registration.asked(3.0)
    registration.heard("new", 3.2)
    assert not registration.due(3.0 + ASK_AGAIN - 0.1)


def test_the_first_planner_that_is_heard_is_the_one_that_was_asked(registration) -> None:
    """To ask it again would end the session that it is about to give."""
    registration.asked(1.0)
    registration.heard("one", 1.5)
    assert not registration.due(1.0 + ASK_AGAIN - 0.1)


def test_a_crowd_of_planners_that_nobody_knows_is_not_asked_without_end(registration) -> None:
    registration.heard("true", 0.0)
    registration.asked(1.0)
    for number in range(100):
        registration.heard(f"forged {number}", 1.0 + number / 1000)
        assert not registration.due(1.0 + number / 1000)
    assert registration.due(1.0 + PERIOD)


def test_two_planners_that_are_heard_in_turns_are_asked_no_more_often(registration) -> None:
    for planner in ("one", "two"):
        registration.heard(planner, 0.0)
    registration.asked(1.0)
    for turn in range(6):
        registration.heard("one" if turn % 2 else "two", 1.0 + turn / 2)
        assert not registration.due(1.0 + turn / 2)


def test_only_the_answer_to_the_latest_request_counts(registration) -> None:
    first, second, third = (registration.asked(now) for now in (1.0, 2.0, 3.0))
    assert registration.is_news(second)
    assert not registration.is_news(first)
    assert not registration.is_news(second)
    assert registration.is_news(third)


def test_of_several_grants_the_planner_s_latest_counts_whatever_was_asked_first(registration):
    """A planner that was busy took the third request before the second."""
    registration.granted(1, 4, "p", 1.0)
    registration.granted(2, 6, "p", 1.1)
    registration.granted(3, 5, "p", 1.2)
    assert registration.grant.session == 6
    registration.opened()
    registration.granted(3, 5, "p", 1.3)
    assert registration.grant is None
    assert not registration.is_news(2)
    registration.granted(4, 1, "another planner", 2.0)
    assert registration.grant.session == 1


def test_a_grant_is_waited_with_until_it_is_opened(registration) -> None:
    registration.asked(1.0)
    registration.granted(1, 7, "p", 1.5)
    assert registration.grant == Grant(7, "p", 1.5)
    assert not registration.due(2.0)
    registration.opened()
    assert registration.grant is None
    assert registration.due(2.0)  # whenever the session is lost


def test_a_grant_whose_planner_never_appears_lapses(registration) -> None:
    registration.granted(1, 7, "p", 1.5)
    assert registration.next_wake() == 1.5 + GRANT_TIMEOUT
    assert registration.due(1.5 + GRANT_TIMEOUT)
    assert registration.grant is None


def test_a_taken_id_is_asked_for_until_patience_is_over(registration) -> None:
    assert not registration.refused(ErrorCode.ROBOT_EXISTS, 10.0)
    assert not registration.due(10.0)
    assert registration.due(10.0 + PERIOD)
    assert not registration.refused(ErrorCode.ROBOT_EXISTS, 24.9)
    assert registration.refused(ErrorCode.ROBOT_EXISTS, 25.0)


def test_patience_begins_anew_behind_a_session(registration) -> None:
    registration.refused(ErrorCode.ROBOT_EXISTS, 10.0)
    registration.granted(1, 7, "p", 12.0)
    registration.opened()
    assert not registration.refused(ErrorCode.ROBOT_EXISTS, 30.0)


def test_a_planner_that_is_not_active_is_waited_for_without_end(registration) -> None:
    for now in range(0, 1000, 10):
        assert not registration.refused(ErrorCode.PLANNER_INACTIVE, float(now))


@pytest.mark.parametrize(
    "code", set(ErrorCode) - {ErrorCode.NONE, ErrorCode.ROBOT_EXISTS, ErrorCode.PLANNER_INACTIVE}
)
def test_any_other_refusal_is_final(registration, code) -> None:
    assert registration.refused(code, 0.0)
