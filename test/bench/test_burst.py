"""One burst of a trace: which it is, and what its goals did when."""

from dataclasses import replace

import pytest

from timely_llm.bench.burst import burst_of, timelines
from timely_llm.bench.config import Conditions, GridPoint
from timely_llm.bench.simulated import setting_of
from timely_llm.simulation.workloads import published as workloads

ENGINE = "rtx4090-llama3-8b"


def test_the_burst_has_urgent_and_other_goals_that_can_be_told_apart():
    trace = workloads.make("wid2")
    burst = burst_of(trace)
    tasks = [trace.arrivals[i].task for i in burst]
    assert 4 <= len(burst) <= 8
    assert trace.arrivals[burst.stop - 1].at - trace.arrivals[burst.start].at < 0.01
    assert len({task.urgency for task in tasks}) == 2
    assert burst_of(workloads.make("wid2", load=10.0), 10.0) == burst
    few = replace(trace, arrivals=trace.arrivals[:3])
    assert burst_of(few) == range(3)


def test_timelines_say_when_each_goal_was_written_and_executed():
    trace = workloads.make("wid2")
    burst = burst_of(trace)
    point = GridPoint(ENGINE, "wid2", 1.0, "timely", 6, 0)
    found = timelines(trace, setting_of(point, Conditions()), burst)
    assert [goal.number for goal in found] == list(burst)
    for goal in found:
        arrival = trace.arrivals[goal.number]
        assert goal.arrival == arrival.at and goal.due == arrival.at + arrival.task.utility.ert
        assert goal.writing[0].start >= goal.arrival
        for spans in (goal.writing, goal.executing):
            assert all(a.end <= b.start for a, b in zip(spans, spans[1:], strict=False))
        assert goal.first == pytest.approx(goal.executing[0].start)
        durations = [span.end - span.start for span in goal.executing]
        assert durations == pytest.approx(list(arrival.durations[: len(durations)]))
