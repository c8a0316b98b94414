"""The report of a replay: what happened against what would have."""

from __future__ import annotations

import pytest

from timely_llm.recording.compare import Replayed, as_recorded, report_json, row_of
from timely_llm.recording.replay import replay, what_happened


def test_the_report_compares_with_what_happened(bags):
    _, recording, trace, costs = bags["vllm"]
    happened = as_recorded(recording, what_happened(trace))
    run = replay(recording, trace, costs, "timely")
    report = report_json(recording, trace, costs, [happened, Replayed("timely", "sim", 8, run)])
    was, now = report["results"]
    assert (was["engine"], was["policy"], now["engine"]) == ("recorded", "vllm", "sim")
    assert was["difference"]["response_mean_s"] == {"difference": 0.0, "share": 0.0}
    assert now["difference"]["response_mean_s"]["difference"] == pytest.approx(
        now["response_s"]["mean"] - was["response_s"]["mean"]
    )
    assert now["difference"]["response_mean_s"]["share"] < -0.5
    assert now["utility_mean"] > was["utility_mean"]
    assert was["n"] == now["n"] == len(report["per_goal"]) == len(trace.known)
    assert was == {**row_of(trace, happened), "difference": was["difference"]}
    assert [one["why"] for one in report["left_out"]] == [why for _, why in trace.left_out]
