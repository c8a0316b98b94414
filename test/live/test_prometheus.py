"""The state of a fleet as Prometheus reads it."""

from __future__ import annotations

import pytest
from fleets import busy
from prometheus_client.parser import text_string_to_metric_families

from timely_llm.live.prometheus import exposition


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
