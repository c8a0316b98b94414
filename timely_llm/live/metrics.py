"""The figures of a board in Prometheus' text form. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import Metric

from timely_llm.live.board import FleetBoard
from timely_llm.live.view import robot_state

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "timely_llm_"
_STATES = ("alive", "stopped", "silent")


def exposition(board: FleetBoard, now: float) -> bytes:
    """All metrics at ``now``, s; counters count from the planner's start."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(board, now))
    return generate_latest(registry)


class _Collector:
    def __init__(self, board: FleetBoard, now: float) -> None:
        self.board, self.now = board, now

    def collect(self) -> Iterator[Metric]:
        yield from _of_status(self.board, self.now)
        yield from _of_robots(self.board, self.now)
        yield from _of_plans(self.board)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, words, value=value)


def _counter(name: str, words: str, value: float) -> Metric:
    return CounterMetricFamily(_PREFIX + name, words, value=value)


def _of_status(board: FleetBoard, now: float) -> Iterator[Metric]:
    status = board.status
    if status is None:
        return
    labels = {"policy": status.policy, "model": status.model, "engine": status.engine}
    yield InfoMetricFamily(_PREFIX + "planner", "What serves the plans.", value=labels)
    yield _gauge("heartbeat_age_seconds", "Since the planner's status.", board.silent(now) or 0.0)
    plans = GaugeMetricFamily(_PREFIX + "plans", "Live plans by what they do.", labels=["state"])
    for state in ("waiting", "running", "suspended", "executing"):
        plans.add_metric([state], getattr(status, state))
    yield plans
    yield _gauge("kv_blocks_used", "KV cache blocks in use.", status.kv_blocks_used)
    yield _gauge("kv_blocks", "KV cache blocks there are.", status.kv_blocks_total)
    yield _gauge(
        "step_time_seconds", "Engine step, mean of the last 100.", status.step_time
    )  # fmt: skip
    yield _gauge(
        "step_overhead_seconds", "Our own share of a step, mean of the last 100.", status.overhead
    )
    yield _counter(
        "prompt_tokens_recomputed", "Prompt tokens computed again on resume.",
        status.prompt_tokens_recomputed,
    )  # fmt: skip


def _of_robots(board: FleetBoard, now: float) -> Iterator[Metric]:
    robots = GaugeMetricFamily(_PREFIX + "robots", "Robots by state.", labels=["state"])
    tracks = board.robots.values()
    found = [robot_state(track.info.alive, track.info.stopped) for track in tracks]
    for state in _STATES:
        robots.add_metric([state], found.count(state))
    yield robots
    horizon = GaugeMetricFamily(
        _PREFIX + "robot_horizon_seconds", "Until the robot runs out of work.", labels=["robot"]
    )
    for track in tracks:
        left = 0.0 if track.dry_at is None else max(0.0, track.dry_at - now)
        horizon.add_metric([track.info.robot_id], left)
    yield horizon


def _of_plans(board: FleetBoard) -> Iterator[Metric]:
    tally = board.tally
    yield _counter("segments", "Segments sent to robots.", tally.segments)
    yield _counter("generated_tokens", "Tokens of the segments sent.", tally.tokens)
    results = CounterMetricFamily(
        _PREFIX + "results", "Plans that ended.", labels=["urgency", "code"]
    )
    for (urgency, code), count in sorted(tally.results.items()):
        results.add_metric([urgency, code], count)
    yield results
    # A utility may be negative: not a counter.
    yield _gauge("utility_sum", "Utility of all plans that ended.", tally.utility)
    for name, words, histogram in (
        ("response", "From the goal to its first segment.", tally.response),
        ("waiting", "A robot stood still for want of its plan.", tally.waiting),
    ):
        yield HistogramMetricFamily(
            f"{_PREFIX}{name}_seconds", words, histogram.buckets(), histogram.total
        )
