"""The state of a fleet in Prometheus' text form. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from timely_llm.live.fleet_state import FleetState, Histogram
from timely_llm.live.view import robot_state

_PREFIX = "timely_llm_"
_STATES = ("alive", "stopped", "silent")


def exposition(fleet: FleetState, now: float) -> bytes:
    """All metrics at ``now``, s; counters count from the planner's start."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(fleet, now))
    return generate_latest(registry)


class _Collector(Collector):
    def __init__(self, fleet: FleetState, now: float) -> None:
        self.fleet, self.now = fleet, now

    def collect(self) -> Iterator[Metric]:
        yield from _of_status(self.fleet, self.now)
        yield from _of_robots(self.fleet, self.now)
        yield from _of_plans(self.fleet)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, words, value=value)


def _counter(name: str, words: str, value: float) -> Metric:
    return CounterMetricFamily(_PREFIX + name, words, value=value)


def _of_status(fleet: FleetState, now: float) -> Iterator[Metric]:
    status = fleet.status
    if status is None:
        return
    labels = {"policy": status.policy, "model": status.model, "engine": status.engine}
    yield InfoMetricFamily(_PREFIX + "planner", "What serves the plans.", value=labels)
    yield _gauge("heartbeat_age_seconds", "Since the planner's status.", fleet.silent(now))
    plans = GaugeMetricFamily(_PREFIX + "plans", "Live plans by what they do.", labels=["state"])
    for state in ("waiting", "running", "suspended", "executing"):
        plans.add_metric([state], getattr(status, state))
    yield plans
    yield _gauge("kv_blocks_used", "KV cache blocks in use.", status.kv_blocks_used)
    yield _gauge("kv_blocks", "KV cache blocks there are.", status.kv_blocks_total)
    yield _gauge("step_time_seconds", "Engine step, mean of the last 100.", status.step_time)
    words = "Our own share of a step, mean of the last 100."
    yield _gauge("step_overhead_seconds", words, status.overhead)
    words = "Prompt tokens computed again on resume."
    yield _counter("prompt_tokens_recomputed", words, status.prompt_tokens_recomputed)


def _of_robots(fleet: FleetState, now: float) -> Iterator[Metric]:
    robots = GaugeMetricFamily(_PREFIX + "robots", "Robots by state.", labels=["state"])
    tracks = fleet.robots.values()
    found = [robot_state(track.info.alive, track.info.stopped) for track in tracks]
    for state in _STATES:
        robots.add_metric([state], found.count(state))
    yield robots
    horizon = GaugeMetricFamily(
        _PREFIX + "robot_horizon_seconds", "Until the robot runs out of work.", labels=["robot"]
    )
    for track in tracks:
        horizon.add_metric([track.info.robot_id], track.left(now) or 0.0)
    yield horizon


def _of_plans(fleet: FleetState) -> Iterator[Metric]:
    counters = fleet.counters
    yield _counter("segments", "Segments sent to robots.", counters.segments)
    yield _counter("generated_tokens", "Tokens of the segments sent.", counters.tokens)
    results = CounterMetricFamily(
        _PREFIX + "results", "Plans that ended.", labels=["urgency", "code"]
    )
    for (urgency, code), count in sorted(counters.results.items()):
        results.add_metric([urgency, code], count)
    yield results
    # A utility may be negative: not a counter.
    yield _gauge("utility_sum", "Utility of all plans that ended.", counters.utility)
    yield _histogram("response", "From the goal to its first segment.", counters.response)
    yield _histogram("waiting", "A robot stood still for want of its plan.", counters.waiting)


def _histogram(name: str, words: str, histogram: Histogram) -> Metric:
    bounds = (*map(str, histogram.bounds), "+Inf")
    counts = map(float, accumulate(histogram.counts))
    buckets = list(zip(bounds, counts, strict=True))
    return HistogramMetricFamily(f"{_PREFIX}{name}_seconds", words, buckets, histogram.total)
