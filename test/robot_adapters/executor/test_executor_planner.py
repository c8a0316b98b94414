"""A robot that is stopped, and one whose planner is gone."""

from __future__ import annotations

import pytest
from executor_rig import CANCEL, STOP, B, C, Desk

from timely_llm.protocols.messages import NO_PLAN


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_stop_is_latched_and_told_until_rearm(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.run(1.0)
    desk.told()
    desk.take(desk.executor.on_stop(desk.now))
    desk.send(0, "go(1)", plan=B)
    desk.send(1, ";go(1)")
    desk.run(2.0)
    assert desk.told() == ["ABORTED go(5): stopped", "IDLE: stopped", "REJECTED: stopped",
                           "IDLE: stopped"]  # fmt: skip
    desk.take(desk.executor.on_rearm(desk.now))
    desk.send(0, "go(1)", plan=C)
    assert desk.told() == ["IDLE", "RECEIVED", "STARTED go(1)"]
    assert desk.robot.log[1:] == ["0 start go(5)", "1 halt", "2 start go(1)"]


def test_the_planners_stop_holds_whoever_sends_it(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.send(0, plan=NO_PLAN, command=STOP, session=99)
    assert desk.told()[-2:] == ["ABORTED go(5): stopped", "IDLE: stopped"]
    assert desk.executor.stopped


def test_a_stop_survives_a_new_session(desk: Desk) -> None:
    desk.take(desk.executor.on_stop(desk.now))
    desk.take(desk.executor.new_session(2, desk.now, "q"))
    assert desk.told()[-1] == "IDLE: stopped"


# ---- the planner ---------------------------------------------------------------------------------


def test_a_silent_planner_ends_the_plan_behind_the_current_call(desk: Desk) -> None:
    desk.send(0, "go(5);go(1);go(1);")
    desk.run(10.0, alive=False)
    assert desk.told() == [
        "RECEIVED", "STARTED go(5)", "SUCCEEDED go(5)", "ABORTED: planner lost",
        "IDLE: planner lost",
    ]  # fmt: skip
    assert desk.robot.log[1:] == ["0 start go(5)", "5 hold"]
    assert desk.executor.needs_registration
    assert desk.executor.next_wake(desk.now) is None  # nobody's robot any more
    desk.take(desk.executor.new_session(2, desk.now, "p"))
    assert desk.robot.log[-1] == "10 resume"
    assert not desk.executor.needs_registration


def test_a_second_planner_is_none_of_the_robot_s_while_its_own_is_heard(desk: Desk) -> None:
    desk.send(0, "go(2);go(1);", last=True)
    for now in (0.5, 1.0, 1.5, 2.0, 2.5, 3.5):
        desk.run(now)
        desk.alive("q")
    assert not desk.executor.lost
    assert "PLAN_RETURNED" in desk.told()


def test_a_new_planner_ends_the_plan_behind_the_current_call(desk: Desk) -> None:
    """Its own is silent by then, for half as long as it takes to be lost without another one."""
    desk.send(0, "go(3);go(1);")
    desk.run(0.5)
    desk.run(2.0, alive=False)
    desk.alive("q")
    desk.run(4.0, alive=False)
    assert desk.told()[-3:] == ["SUCCEEDED go(3)", "ABORTED: planner lost", "IDLE: planner lost"]
    assert desk.robot.log[1:] == ["0 start go(3)", "3 hold"]


def test_between_two_calls_a_lost_planner_ends_the_plan_at_once(desk: Desk) -> None:
    desk.send(0, "go(1)")
    desk.run(1.0)
    desk.run(9.0, alive=False)
    assert desk.robot.log[1:] == ["0 start go(1)", "4 hold"]


def test_segments_of_a_lost_planner_begin_nothing(desk: Desk) -> None:
    desk.run(5.0, alive=False)
    desk.told()
    desk.send(0, "go(1)")
    assert desk.told() == ["REJECTED: planner lost"]


def test_a_planner_that_is_lost_stays_lost_until_registration(desk: Desk) -> None:
    desk.run(5.0, alive=False)
    desk.alive("p")
    assert desk.executor.needs_registration
    assert desk.robot.log[1:] == ["3 hold"]


@pytest.mark.parametrize("end", ["fails", "never ends", "is canceled", "asks the planner"])
def test_whatever_becomes_of_the_call_of_a_lost_planner_the_robot_holds(end: str) -> None:
    """Else a drone hovers for ever."""
    desk = Desk(ask=lambda question: None)
    if end == "fails":
        desk.robot.errors["go"] = "motor stop"
    if end == "never ends":
        desk.robot.durations["go"] = 1e9
    desk.send(0, "_1=ask('is the door open?')" if end == "asks the planner" else "go(5)", last=True)
    desk.run(4.0, alive=False)
    if end == "is canceled":
        desk.send(0, command=CANCEL)
    desk.run(60.0, alive=False)
    assert desk.robot.log[-1].endswith(" hold")
    assert desk.executor.needs_registration


def test_a_stop_without_planner_halts_and_holds(desk: Desk) -> None:
    desk.send(0, "go(9)")
    desk.run(5.0, alive=False)
    desk.take(desk.executor.on_stop(desk.now))
    assert desk.robot.log[1:] == ["0 start go(9)", "5 halt", "5 hold"]
    assert desk.told()[-2:] == ["ABORTED go(9): stopped", "IDLE: stopped"]


def test_registering_again_ends_what_was_going_on(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.told()
    desk.take(desk.executor.new_session(2, 1.0, "p"))
    assert desk.told() == ["ABORTED go(5): registered again", "IDLE"]
    desk.send(1, ";go(1)")
    assert desk.told() == ["REJECTED: session 1: this robot has session 2"]


def test_the_end_of_the_node_halts(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.told()
    desk.take(desk.executor.shutdown(1.0))
    assert desk.told() == ["ABORTED go(5): the robot node ends", "IDLE"]
    assert desk.robot.log[2:] == ["1 halt", "1 close"]


def test_nothing_moves_after_the_end_of_the_node(desk: Desk) -> None:
    """Segments, answers and sessions may still come while the planner is told goodbye."""
    desk.take(desk.executor.shutdown(1.0))
    desk.told(), desk.robot.log.clear()
    desk.send(0, "go(5)")
    assert desk.told() == ["REJECTED: the robot node ends"]
    for late in (
        desk.executor.tick(1.1),
        desk.executor.on_stop(1.2),
        desk.executor.on_rearm(1.3),
        desk.executor.new_session(9, 1.4),
    ):
        assert late == []
    desk.send(0, "go(5)", plan=B)
    assert desk.robot.log == []


# ---- the planner's list of robots ----------------------------------------------------------------


def listed(desk: Desk, session: int, alive: bool = True, instance: str = "p") -> None:
    desk.take(desk.executor.on_listed(instance, session, alive, desk.now))


@pytest.mark.parametrize("session", [0, 2])
def test_a_session_that_the_planner_has_ended_ends_the_plan(desk: Desk, session: int) -> None:
    desk.send(0, "go(5);go(1);")
    listed(desk, 1)
    desk.run(1.0)
    listed(desk, session)
    words = "the planner has ended the session"
    assert desk.told()[-2:] == [f"ABORTED go(5): {words}", "IDLE: planner lost"]
    assert desk.robot.log[1:] == ["0 start go(5)", "1 halt", "1 hold"]
    assert desk.executor.needs_registration
    listed(desk, session)
    assert desk.told() == []


def test_a_planner_that_does_not_hear_the_robot_is_lost(desk: Desk) -> None:
    desk.send(0, "go(5);go(1);")
    listed(desk, 1)
    desk.run(1.0)
    listed(desk, 1, alive=False)
    desk.run(9.0)  # its heartbeat goes on
    assert desk.told()[-2:] == ["ABORTED: planner lost", "IDLE: planner lost"]
    assert desk.robot.log[1:] == ["0 start go(5)", "5 hold"]
    assert desk.executor.needs_registration


def test_a_robot_that_was_lost_for_a_moment_goes_on(desk: Desk) -> None:
    listed(desk, 1)
    listed(desk, 1, alive=False)
    desk.run(2.0)
    listed(desk, 1)
    desk.run(20.0)
    assert not desk.executor.needs_registration


@pytest.mark.parametrize(("session", "instance"), [(0, "p"), (0, "q"), (7, "q")])
def test_a_list_from_before_or_of_another_planner_says_nothing(
    desk: Desk, session: int, instance: str
) -> None:
    listed(desk, session, instance=instance)
    desk.run(9.0)
    assert not desk.executor.needs_registration


def test_a_list_that_came_before_the_session_was_opened_counts(desk: Desk) -> None:
    listed(desk, 2, instance="q")
    desk.take(desk.executor.new_session(2, desk.now, "q"))
    listed(desk, 0, instance="q")
    assert desk.executor.needs_registration


def test_a_new_session_is_listed_in_time(desk: Desk) -> None:
    listed(desk, 1)
    listed(desk, 0)
    desk.take(desk.executor.new_session(3, desk.now, "p"))
    listed(desk, 0)  # from before
    desk.run(9.0)
    assert not desk.executor.needs_registration
