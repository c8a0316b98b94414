"""The robot node as a process of its own over real DDS: plans, refusals, limits, stops.

A fake planner in this process (see ``fake_planner.py``) stands in for the planner; one robot serves
the whole file. What ends a node or its planner is in ``test_robot_node_faults.py``.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from fake_planner import FAST, FakePlanner, instance_of

from timely_llm.protocols.messages import NO_PLAN, ExecutionState, SegmentCommand

State = ExecutionState


@pytest.fixture(scope="module")
def serving(start_for_module) -> Iterator[FakePlanner]:
    planner = FakePlanner()
    start_for_module("robot", **FAST)
    planner.registered()
    yield planner
    planner.die()


@pytest.fixture
def planner(serving: FakePlanner) -> FakePlanner:
    """A planner with a drone that has nothing to do."""
    serving.send(NO_PLAN, 0, "", command=SegmentCommand.STOP)
    serving.trigger("/r1/robot_adapter/rearm")
    start = len(serving.reports)
    serving.report(State.IDLE, start, plan_id=NO_PLAN, error="")
    del serving.reports[1:]
    return serving


@pytest.fixture
def plan() -> str:
    """The id of a plan that the robot has never heard of."""
    return secrets.token_hex(16)


@pytest.fixture
def other() -> str:
    return secrets.token_hex(16)


@pytest.fixture
def third() -> str:
    return secrets.token_hex(16)


def test_registration_says_who_and_where(planner: FakePlanner) -> None:
    request = planner.requests[0]
    assert (request.robot_id, request.kind, request.skill_set) == ("r1", "tello", "")
    assert request.robot_namespace == "/r1"
    assert instance_of(request) != "0" * 32
    first = planner.reports[0]
    assert (first.state, first.plan_id, first.session) == (State.IDLE, NO_PLAN, 1)


def test_a_plan_runs_as_it_streams_in(planner: FakePlanner, plan: str) -> None:
    planner.send(plan, 0, "d(0.2)")
    planner.report(State.IDLE, plan_id=plan)  # dry: the rest has not come
    planner.send(plan, 1, ";?iv('unicorn')==True{d(60)")
    planner.send(plan, 2, "}_1=0.1;d(_1);->'done'", last=True)
    over = planner.report(State.PLAN_RETURNED, plan_id=plan)
    assert over.value == "done"
    assert planner.calls(State.SUCCEEDED) == ["d(0.2)", "iv(unicorn)", "d(0.1)"]
    sequence = [report.sequence for report in planner.reports[1:]]
    assert sequence == list(range(sequence[0], sequence[0] + len(sequence)))
    assert [r.segment for r in planner.reports if r.state is State.RECEIVED] == [0, 1, 2]
    assert [r.call_number for r in planner.reports if r.state is State.STARTED] == [0, 1, 2]


def test_progress_is_told_in_heartbeats(planner: FakePlanner, plan: str) -> None:
    planner.send(plan, 0, "d(0.5);d(0.3);", last=True)
    planner.report(State.PLAN_RETURNED)
    running = [r for r in planner.reports if r.state is State.RUNNING and r.call_number == 0]
    assert len(running) > 3
    for before, after in zip(running, running[1:], strict=False):
        assert before.skill_remaining > after.skill_remaining
        assert after.total_remaining == pytest.approx(after.skill_remaining + 0.3)


def test_a_gap_is_refused_and_nothing_of_it_runs(planner: FakePlanner, plan: str) -> None:
    planner.send(plan, 0, "d(0.1)")
    planner.send(plan, 2, ";d(0.3)")
    refused = planner.report(State.REJECTED, segment=2)
    assert refused.error == "gap: segment 2, but 1 was expected"
    planner.send(plan, 1, ";d(0.2);", last=True)
    planner.report(State.PLAN_RETURNED)
    assert planner.calls() == ["d(0.1)", "d(0.2)"]


def test_a_repeat_is_refused_and_nothing_runs_twice(
    planner: FakePlanner, plan: str, other: str
) -> None:
    planner.send(plan, 0, "d(0.1)")
    planner.send(plan, 0, "d(0.1)")
    assert "repeat" in planner.report(State.REJECTED, segment=0).error
    planner.send(plan, 1, ";", last=True)
    planner.report(State.PLAN_RETURNED)
    planner.send(plan, 0, "d(0.1)")  # of a plan that is over
    planner.send(other, 0, "d(0.2);", last=True)
    planner.report(State.PLAN_RETURNED, plan_id=other)
    assert planner.calls() == ["d(0.1)", "d(0.2)"]


def test_another_sessions_segments_are_refused(planner: FakePlanner, plan: str) -> None:
    planner.send(plan, 0, "d(0.1)", session=77)
    refused = planner.report(State.REJECTED, plan_id=plan)
    assert refused.error == "session 77: this robot has session 1"
    assert planner.calls() == []


def test_a_second_plan_is_refused_while_one_runs_but_replaces_it_on_demand(
    planner: FakePlanner, plan: str, other: str, third: str
) -> None:
    planner.send(plan, 0, "d(60)")
    planner.send(other, 0, "d(0.1)")
    assert planner.report(State.REJECTED, plan_id=other).error == f"busy with plan {plan}"
    planner.send(third, 0, "d(0.1);", last=True, command=SegmentCommand.REPLACE)
    assert planner.report(State.ABORTED, plan_id=plan).error == "replaced"
    planner.report(State.PLAN_RETURNED, plan_id=third)


def test_a_cancel_halts(planner: FakePlanner, plan: str, other: str) -> None:
    planner.send(plan, 0, "d(60)")
    planner.report(State.STARTED)
    planner.send(plan, 0, "", command=SegmentCommand.CANCEL)
    assert planner.report(State.ABORTED, plan_id=plan).error == "canceled"
    planner.send(plan, 1, ";d(0.1)")
    planner.send(other, 0, "d(0.2);", last=True)
    planner.report(State.PLAN_RETURNED, plan_id=other)
    assert planner.calls() == ["d(60)", "d(0.2)"]


def test_an_evaluated_argument_outside_its_limits_never_moves(
    planner: FakePlanner, plan: str
) -> None:
    planner.send(plan, 0, "_1=700;mf(_1)")
    failed = planner.report(State.FAILED)
    assert failed.error == "plan, character 7: mf: distance is 700 cm: must be 20 to 500 cm"
    assert planner.calls() == []


def test_the_geofence_is_not_left(planner: FakePlanner, plan: str) -> None:
    planner.send(plan, 0, "mu(500)")
    failed = planner.report(State.FAILED)
    assert failed.error == "mu: z would be 6.00 m: geofence is 0.2 to 3 m"
    assert (failed.call.name, failed.call.evaluated) == ("mu", ("500",))
    assert planner.calls() == []


def test_a_stop_is_latched_until_rearm(
    planner: FakePlanner, plan: str, other: str, third: str
) -> None:
    planner.send(plan, 0, "d(60)")
    planner.report(State.STARTED)
    assert planner.trigger("/r1/robot_adapter/stop").success
    assert planner.report(State.ABORTED, plan_id=plan).error == "stopped"
    planner.report(State.IDLE, error="stopped", plan_id=NO_PLAN)
    planner.send(other, 0, "d(0.1)")
    assert planner.report(State.REJECTED, plan_id=other).error == "stopped"
    start = len(planner.reports)
    planner.trigger("/r1/robot_adapter/rearm")
    planner.report(State.IDLE, start, error="")
    planner.send(third, 0, "d(0.1);", last=True)
    planner.report(State.PLAN_RETURNED)
    assert planner.calls() == ["d(60)", "d(0.1)"]


def test_the_planner_may_stop_it_too(planner: FakePlanner) -> None:
    planner.send(NO_PLAN, 0, "", command=SegmentCommand.STOP)
    planner.report(State.IDLE, error="stopped")
