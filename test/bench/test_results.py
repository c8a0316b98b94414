"""What the runs of a bench say together: means, leads, intervals, and the report."""

import json
import math

import pytest

from timely_llm.bench.config import GridPoint
from timely_llm.bench.results import Measured, interval, kept_runs, report_json, summaries


def spread(mean):
    return {"mean": mean, "p50": mean, "p99": 2 * mean}


def row(point, utility, response=0.5):
    """A row of the report with the keys that the issue names."""
    return {
        "engine": point.engine,
        "workload": point.workload,
        "policy": point.policy,
        "load": point.load,
        "seed": point.seed,
        "n": 10,
        "utility_mean": utility,
        "utility_clipped_mean": max(0.0, utility),
        "utility_urgent_mean": utility,
        "utility_normal_mean": utility,
        "met_urgent": 0.5,
        "met_normal": 1.0,
        "response_s": spread(response),
        "waiting_s": spread(response),
        "dropped": 0,
        "refused": 0,
        "slo_attainment": 0.5,
        "bound": None,
    }


def measured(policy, utility, seed=0, batch=8, load=1.0):
    point = GridPoint("e", "w", load, policy, batch, seed)
    return Measured(point, row(point, utility), (), 1.4)


def test_seeds_are_averaged_and_the_lead_is_over_the_best_other():
    runs = [
        *(measured("edf", u, seed) for seed, u in enumerate((1.0, 1.2))),
        *(measured("timely", u, seed) for seed, u in enumerate((1.14, 1.34))),
        *(measured("vllm", u, seed) for seed, u in enumerate((0.2, 0.4))),
    ]
    edf, timely, vllm = summaries(runs)
    assert edf.utility == pytest.approx(1.1)
    assert edf.row["utility_mean"] == pytest.approx(1.1)
    assert timely.lead == pytest.approx(0.1)  # 0.14 of 1.4
    assert timely.lead_error == pytest.approx(0.0, abs=1e-9)  # the same on every trace
    assert edf.lead == pytest.approx(-0.1)
    assert vllm.lead == pytest.approx(-0.94 / 1.4)


def test_an_interrupted_bench_compares_on_the_seeds_that_both_have():
    """Seed 1 is worth less to everybody; of the three policies not all were run on it."""
    runs = [measured("timely", 0.9, 0), measured("timely", 0.4, 1), measured("timely", 0.9, 2)]
    runs += [measured("vllm", 0.2, 1), measured("vllm", 0.76, 2), measured("edf", 0.9, 3)]
    timely, vllm, edf = summaries(runs)
    assert timely.seeds == (0, 1, 2) and vllm.seeds == (1, 2)
    assert timely.lead == pytest.approx(0.17 / 1.4)
    assert vllm.lead == pytest.approx(-0.17 / 1.4)
    assert timely.lead_error == pytest.approx(12.706 * 0.03 / 1.4)
    assert edf.lead is None and edf.lead_error is None


def test_the_best_batch_size_is_best_on_the_same_seeds():
    runs = [measured("edf", 0.9, 0, batch=4), measured("edf", 0.1, 1, batch=4)]
    runs += [measured("edf", 0.8, 0, batch=8)]
    (only,) = summaries(runs, best=True)
    assert only.point.max_batch == 4


def test_only_the_best_batch_size_of_each_policy_is_kept():
    runs = [
        *(measured("edf", u, batch=b) for b, u in ((2, 0.9), (4, 1.1), (8, 1.1))),
        *(measured("vllm", u, batch=b) for b, u in ((2, 0.3), (4, 0.1), (8, 0.2))),
        measured("edf", 0.5, batch=8, load=3.0),
    ]
    found = summaries(runs, best=True)
    assert [(s.point.policy, s.point.load, s.point.max_batch) for s in found] == [
        ("edf", 1.0, 4),
        ("vllm", 1.0, 2),
        ("edf", 3.0, 8),
    ]
    assert found[0].lead == pytest.approx(0.8 / 1.4)
    assert [m.point for m in kept_runs(found, runs)] == [s.point for s in found]
    assert len(summaries(runs)) == len(runs)


def test_one_policy_alone_leads_nobody():
    (only,) = summaries([measured("edf", 1.0)])
    assert only.lead is None and only.lead_error is None


@pytest.mark.parametrize(
    ("values", "mean", "error"),
    [((2.0,), 2.0, None), ((1.0, 3.0), 2.0, 12.706), ((1.0, 2.0, 3.0), 2.0, 4.303 / math.sqrt(3))],
)
def test_interval(values, mean, error):
    assert interval(values)[0] == mean
    assert interval(values)[1] == (None if error is None else pytest.approx(error))


def test_the_report_is_json_with_the_issue_s_keys():
    runs = [measured("edf", 1.0 / 3), measured("vllm", math.nan)]
    report = json.loads(json.dumps(report_json(runs, False, {"cut_s": 60.0}), allow_nan=False))
    assert list(report) == ["results", "settings"]
    assert list(report["results"][0]) == [*runs[0].row, "max_batch"]
    assert report["results"][0]["utility_mean"] == 0.333333
    assert report["results"][1]["utility_mean"] is None
    assert report_json(runs, True, {})["partial"] is True
