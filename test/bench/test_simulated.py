"""Simulated runs: what a time scale means."""

from timely_llm.bench import simulated
from timely_llm.bench.config import Conditions, GridPoint, TimeScale, engine_of


def test_on_an_engine_twice_as_fast_a_workload_of_half_the_times_is_the_same(monkeypatch):
    point = GridPoint("rtx4090-llama3-8b", "wid2", 6.0, "timely", 8, 0)
    slow = simulated.measure(point, Conditions()).row
    engine = engine_of(point.engine)
    fast = simulated.stretched(engine, 2.0)
    assert fast.latency(3, 10, 100) == engine.latency(3, 10, 100) / 2
    monkeypatch.setattr(simulated, "engine_of", lambda name: fast)
    assert simulated.scale_of("fast", TimeScale(auto=True)) == 0.5
    assert simulated.measure(point, Conditions(time_scale=0.5)).row == slow
