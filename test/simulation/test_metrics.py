"""A run's figures: small rows worked out by hand."""

import math

import pytest
from sim_cases import UTILITY, run, task, trace

from timely_llm.estimation.presets import EngineModel
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.utility import TimeUtility, Urgency
from timely_llm.simulation.metrics import maximum_utility, mean_rows, percentile, row

URGENT = {"urgency": Urgency.URGENT, "utility": TimeUtility(0.05, -10.0, 2.0)}
KEYS = [
    *("engine", "workload", "policy", "load", "seed", "n", "utility_mean", "utility_clipped_mean"),
    *("utility_urgent_mean", "utility_normal_mean", "met_urgent", "met_normal", "response_s"),
    *("waiting_s", "dropped", "refused", "slo_attainment", "bound"),
]


def figures(what, **fields) -> dict:
    labels = {"engine": "test", "policy": "fcfs", "load": 1.0, "seed": 0}
    return row(what, run(what, **fields), **labels)


def test_a_row_has_the_keys_of_the_report_in_their_order():
    assert list(figures(trace((0.0, task())))) == KEYS


def test_by_hand():
    """Batch of 1: responses after 78 ms (normal) and 248 ms (urgent, 198 ms too late)."""
    one = figures(trace((0.0, task()), (0.0, task(**URGENT))))
    assert (one["n"], one["dropped"], one["refused"], one["bound"]) == (2, 0, 0, None)
    urgent = 2.0 - 10.0 * (0.248 - 0.05)
    assert one["utility_urgent_mean"] == pytest.approx(urgent)
    assert one["utility_normal_mean"] == 1.0
    assert one["utility_mean"] == pytest.approx((1.0 + urgent) / 2)
    assert (one["met_urgent"], one["met_normal"], one["slo_attainment"]) == (0.0, 1.0, 0.5)
    assert one["response_s"]["mean"] == pytest.approx((0.078 + 0.248) / 2)
    assert one["response_s"]["p50"] == pytest.approx((0.078 + 0.248) / 2)
    assert one["response_s"]["p99"] == pytest.approx(0.078 + 0.99 * 0.17)
    assert one["waiting_s"]["mean"] == pytest.approx((0.086 + 0.256) / 2)


def test_a_goal_that_was_never_served_stays_in_n():
    slow = EngineModel("slow", StepLatency((10.0,)), kv_tokens=4000)
    what = trace((0.0, task()))
    one = figures(what, engine=slow, cut=20.0)
    assert (one["n"], one["dropped"]) == (1, 1)
    assert one["utility_mean"] == UTILITY(20.0) == -37.0
    assert one["utility_clipped_mean"] == 0.0
    assert one["response_s"] == {"mean": None, "p50": None, "p99": None}
    assert (one["utility_urgent_mean"], one["met_urgent"]) == (None, None)


@pytest.mark.parametrize(
    ("ttft", "tpot", "kept"),
    [(0.011, 0.021, 1.0), (0.009, 0.021, 0.0), (0.011, 0.019, 0.0), (0.0, 0.021, 1.0)],
)
def test_targets_are_the_goal_s_own(ttft, tpot, kept):
    """Alone the first token comes after 10 ms, each further one after 20."""
    assert figures(trace((0.0, task(ttft=ttft, tpot=tpot))))["slo_attainment"] == kept


def test_means_of_rows():
    first = figures(trace((0.0, task())))
    second = figures(trace((0.0, task()), (0.0, task()))) | {"seed": 1}
    both = mean_rows([first, second])
    assert (both["n"], both["seed"], both["engine"]) == (3, None, "test")
    assert both["response_s"]["mean"] == pytest.approx((0.078 + 0.163) / 2)
    assert both["utility_urgent_mean"] is None
    assert mean_rows([first]) == first
    with pytest.raises(ValueError, match="no rows"):
        mean_rows([])


def test_the_most_that_a_goal_can_be_worth():
    assert maximum_utility(trace((0.0, task()), (0.0, task(**URGENT)))) == 1.5


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 2.5), (0.99, 3.97), (1.0, 4.0)])
def test_percentiles_are_interpolated(share, value):
    assert percentile([1.0, 2.0, 3.0, 4.0], share) == pytest.approx(value)
    assert math.isclose(percentile([7.0], share), 7.0)
