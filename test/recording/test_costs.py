"""Costs measured from a recording are those of the world that it was recorded in."""

from __future__ import annotations

import pytest
from fleet_sim import NETWORK, STEP

from timely_llm.recording.costs import engine_of


def test_costs_are_those_of_the_recorded_world(bags):
    _, recording, _, costs = bags["timely"]
    assert costs.forward == pytest.approx(NETWORK, abs=1e-5)
    assert costs.back == pytest.approx(NETWORK, abs=1e-5)
    assert costs.gap == pytest.approx(0.0, abs=1e-6)
    assert costs.steps == pytest.approx({1: 0.02, 2: 0.03, 3: 0.04}, abs=1e-6)
    assert costs.prefill == pytest.approx(STEP.per_prefill_token, rel=0.01)
    engine = engine_of(recording, costs, 8)
    assert [engine.latency(size, 0, 0) for size in (1, 2, 5)] == pytest.approx(
        [0.02, 0.03, 0.06], rel=1e-3
    )
    assert (engine.block_size, engine.kv_tokens) == (4, 4 * 4096)
