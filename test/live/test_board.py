"""What a board makes of messages, and what is shown of it: exact, on a clock of the test's own."""

from __future__ import annotations

import json

import pytest
from boards import P1, P2, P3, P4, ROBOTS, STATUS, accepted, busy, ended, event, reports, segment
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from timely_llm.live.board import KEPT, MISSED, FleetBoard
from timely_llm.live.metrics import exposition
from timely_llm.live.view import detail, view
from timely_llm.protocols.messages import (
    NO_PLAN,
    ErrorCode,
    Execution,
    ExecutionState,
    PlanEvent,
    PlanEventType,
    PlanGoal,
    PlannerStatus,
    PlanResult,
)


def plan_of(board: FleetBoard, robot: str, now: float) -> dict:
    return next(r for r in view(board, now)["robots"] if r["id"] == robot)["plan"]


def states(plan: dict) -> list[tuple[str, str]]:
    return [(segment["text"], segment["state"]) for segment in plan["segments"]]


def test_an_empty_board_says_that_nothing_was_heard() -> None:
    shown = view(FleetBoard(), 5.0)
    assert shown["planner"] == {"state": "unheard"}
    assert (shown["robots"], shown["queue"], shown["results"]) == ([], [], [])
    assert shown["totals"]["response_s"] is None


def test_the_picture_of_a_busy_fleet() -> None:
    shown = view(busy(), 10.0)
    assert shown["planner"] == {
        "state": "running", "silent_s": 0.0, "policy": "least_loss", "model": "tiny_planner",
        "engine": "simulated 1", "pace": "rtx4090-llama3-8b",
    }  # fmt: skip
    assert shown["engine"] == {
        "waiting": 1, "running": 1, "suspended": 0, "executing": 0, "kv_used": 30,
        "kv_total": 1000, "kv_share": 0.03, "step_ms": 21.5, "overhead_ms": 0.7,
        "tokens_per_s": 3.0, "recomputed": 0,
    }  # fmt: skip
    robots = {robot["id"]: robot for robot in shown["robots"]}
    assert [robot["state"] for robot in shown["robots"]] == ["alive", "stopped", "silent"]
    drone = robots["drone_1"]
    assert (drone["horizon_s"], drone["queued"]) == (3.0, 1)
    assert robots["arm_1"]["horizon_s"] is None
    assert states(drone["plan"]) == [
        ("tc(90)", "done"), (";?s('cat')", "running"), ("==True{g('cat')}", "sent"),
    ]  # fmt: skip
    assert (drone["plan"]["call"], drone["plan"]["tokens"]) == ("s(cat)", 15)
    # From the goal (6.0) to the start of the first call that was heard of (8.0).
    assert (drone["plan"]["waiting_s"], drone["plan"]["waits"]) == (2.0, False)
    assert shown["queue"] == [
        {"plan_id": P4, "robot": "drone_1", "urgency": "low", "instruction": "Land",
         "state": "queued", "age_s": 0.5},
    ]  # fmt: skip
    assert [(r["plan_id"], r["code"], r["words"]) for r in shown["results"]] == [
        (P3, "NONE", ""), (P2, "SKILL_FAILED", "mf(9): out of range"),
    ]  # fmt: skip
    assert shown["totals"] == {
        "plans": 2, "succeeded": 1, "utility": 0.75, "response_s": 0.375, "waiting_s": 0.47,
    }  # fmt: skip
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_the_detail_of_a_plan() -> None:
    board = busy()
    shown = detail(board, P2, 10.0)
    assert (shown["robot"], shown["state"], shown["over"]) == ("drone_2", "skill_failed", True)
    assert shown["result"]["words"] == "mf(9): out of range"
    assert "result" not in detail(board, P1, 10.0)
    assert detail(board, NO_PLAN, 10.0) is None


def test_a_robot_waits_from_the_end_of_a_call_to_the_next() -> None:
    board = busy()
    reports(board, P1, "drone_1", ExecutionState.SUCCEEDED, 10.0, segment=1)
    plan = plan_of(board, "drone_1", 10.5)
    assert (plan["waiting_s"], plan["waits"], plan["call"]) == (2.5, True, "")
    assert states(plan)[1] == (";?s('cat')", "done")
    reports(board, P1, "drone_1", ExecutionState.STARTED, 11.0, segment=2)
    assert plan_of(board, "drone_1", 20.0)["waiting_s"] == 3.0


def test_a_robot_with_nothing_to_do_has_no_horizon() -> None:
    board = busy()
    reports(board, NO_PLAN, "drone_1", ExecutionState.IDLE, 10.0, total_remaining=0.0)
    assert view(board, 10.0)["robots"][0]["horizon_s"] is None


def test_a_robots_own_words_stay_until_it_reports_again() -> None:
    board = busy()
    reports(board, NO_PLAN, "drone_2", ExecutionState.IDLE, 10.0, error="stopped")
    assert view(board, 10.0)["robots"][1]["error"] == "stopped"
    reports(board, NO_PLAN, "drone_2", ExecutionState.IDLE, 10.0)
    assert view(board, 10.0)["robots"][1]["error"] == ""


def test_a_plan_that_began_before_we_listened_is_shown_from_there() -> None:
    board = FleetBoard()
    board.follow_robots(ROBOTS)
    segment(board, P1, "drone_1", 3, "mf(10)", 1.0)
    reports(board, P1, "drone_1", ExecutionState.RUNNING, 1.0, segment=3)
    plan = plan_of(board, "drone_1", 1.0)
    assert plan["instruction"] == MISSED
    assert states(plan) == [(MISSED, "done")] * 3 + [("mf(10)", "running")]


def test_of_a_segment_that_comes_again_the_last_one_counts() -> None:
    board = busy()
    segment(board, P1, "drone_1", 1, ";mu(20)", 10.0)
    assert [text for text, _ in states(plan_of(board, "drone_1", 10.0))] == ["tc(90)", ";mu(20)"]


def test_a_replan_goes_on_counting_and_the_old_plan_is_seen_to_have_failed() -> None:
    board = busy()
    result = PlanResult(P1, ErrorCode.SKILL_FAILED, "s: nothing there")
    replanned = event(P1, "drone_1", PlanEventType.REPLANNED, segment=3, result=result)
    board.follow_event(replanned, 10.0)
    plan = plan_of(board, "drone_1", 10.5)
    assert (plan["state"], plan["failures"]) == ("replanning", ["s: nothing there"])
    assert (plan["waits"], plan["call"], plan["over"]) == (True, "", False)
    segment(board, P1, "drone_1", 3, "mu(20)", 11.0)
    segment(board, P1, "drone_1", 4, ";l()", 11.0)
    reports(board, P1, "drone_1", ExecutionState.STARTED, 12.0, segment=3)
    shown = [state for _, state in states(plan_of(board, "drone_1", 12.0))]
    assert shown == ["done", "failed", "dropped", "running", "sent"]
    assert detail(board, P1, 12.0)["failures"] == ["s: nothing there"]


def test_the_segment_that_a_plan_failed_in_is_marked() -> None:
    board = busy()
    failed = PlanResult(P1, ErrorCode.SKILL_FAILED, "s: nothing there")
    ended(board, failed, "drone_1", 10.0)
    shown = states(detail(board, P1, 10.0))
    assert [state for _, state in shown] == ["done", "failed", "sent"]
    assert plan_of(board, "drone_1", 10.0)["plan_id"] == P4  # that is what it does next


def test_another_planner_ends_the_plans_of_the_old_one() -> None:
    board = busy()
    board.follow_status(PlannerStatus(instance="cd" * 16), 11.0)
    shown = view(board, 11.0)
    assert shown["queue"] == []
    assert {r["plan_id"]: r["code"] for r in shown["results"]} == {
        P1: "PLANNER_INACTIVE", P4: "PLANNER_INACTIVE", P2: "SKILL_FAILED", P3: "NONE",
    }  # fmt: skip


def test_a_late_event_of_a_plan_that_is_over_changes_nothing() -> None:
    board = busy()
    before = view(board, 10.0)
    board.follow_event(event(P2, "drone_2", PlanEventType.SUSPENDED), 10.0)
    assert view(board, 10.0) == before


def test_a_silent_planner_is_said_to_be_silent() -> None:
    assert view(busy(), 12.7)["planner"]["state"] == "running"
    assert view(busy(), 13.8)["planner"]["silent_s"] == 4.0


def test_tokens_per_second_are_those_of_the_last_five() -> None:
    board = busy()  # 5 tokens at 7, 8 and 9 s
    assert [board.tokens_per_second(now) for now in (9.0, 12.0, 13.5, 14.0)] == [3.0, 2.0, 1.0, 0.0]


def test_a_board_stays_small() -> None:
    board = FleetBoard()
    for number in range(3 * KEPT):
        plan_id = f"{number:032x}"
        accepted(board, plan_id, "drone_1", "Go", float(number))
        ended(board, PlanResult(plan_id), "drone_1", float(number))
    assert (len(board.live), len(board.over)) == (0, KEPT)
    assert board.tally.plans == 3 * KEPT


WITH_RESULT = (
    *(PlanEventType.REFUSED, PlanEventType.RETURNED, PlanEventType.ENDED),
    PlanEventType.REPLANNED,
)
IDS = st.sampled_from((P1, P2, P3))
NAMES = st.sampled_from(("drone_1", "arm_1", "nobody"))
ACTS = st.one_of(
    st.builds(
        lambda plan_id, robot, kind, index, text, code: PlanEvent(
            plan_id, robot, kind, segment=index, text=text, tokens=index,
            goal=PlanGoal(robot, text) if kind is PlanEventType.ACCEPTED else None,
            result=PlanResult(plan_id, code) if kind in WITH_RESULT else None,
        ),
        IDS, NAMES, st.sampled_from(PlanEventType), st.integers(0, 5), st.text(max_size=3),
        st.sampled_from(ErrorCode),
    ),
    st.tuples(
        NAMES,
        st.builds(
            Execution, st.just(1), st.just(1), st.one_of(IDS, st.just(NO_PLAN)),
            st.sampled_from(ExecutionState), st.integers(0, 5), total_remaining=st.floats(0, 9),
        ),
    ),
    st.sampled_from((STATUS, PlannerStatus(instance="ef" * 16))),
    st.sampled_from((ROBOTS, ROBOTS[:1], ())),
)  # fmt: skip


@given(st.lists(ACTS, max_size=30))
def test_whatever_comes_in_whatever_order_can_be_shown(acts: list) -> None:
    """Each plan is on the board once, and everything shown is plain JSON."""
    board = FleetBoard()
    for number, act in enumerate(acts):
        now = number / 4
        if isinstance(act, PlanEvent):
            board.follow_event(act, now)
        elif isinstance(act, PlannerStatus):
            board.follow_status(act, now)
        elif act and isinstance(act[-1], Execution):
            board.follow_execution(*act, now)
        else:
            board.follow_robots(act)
        over = [entry.plan.plan_id for entry in board.over]
        assert len({*over, *board.live}) == len(over) + len(board.live)
        shown = view(board, now)
        assert json.loads(json.dumps(shown, allow_nan=False)) == shown
        assert all(entry.plan.waiting(now) >= 0 for entry in board.live.values())
        exposition(board, now)


def test_metrics_are_what_prometheus_reads() -> None:
    text = exposition(busy(), 10.0).decode()
    samples = {
        (sample.name.removeprefix("timely_llm_"), *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["plans", "running"] == 1
    assert samples["kv_blocks_used",] == 30
    assert samples["step_time_seconds",] == pytest.approx(0.0215)
    assert samples["robots", "stopped"] == samples["robots", "silent"] == 1
    assert samples["robot_horizon_seconds", "drone_1"] == 3.0
    assert samples["results_total", "SKILL_FAILED", "urgent"] == 1
    assert samples["results_total", "NONE", "normal"] == 1
    assert samples["generated_tokens_total",] == 25
    assert samples["response_seconds_bucket", "0.5"] == 2
    assert samples["response_seconds_bucket", "0.2"] == 0
    assert samples["response_seconds_bucket", "30.0"] == samples["response_seconds_count",] == 2
    assert samples["response_seconds_sum",] == 0.75
    assert samples["utility_sum",] == 0.75
