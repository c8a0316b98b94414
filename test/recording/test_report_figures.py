"""The figures of a recording's page: each state at its time."""

from __future__ import annotations

import pytest

from timely_llm.recording import report_figures as figures


def test_the_timeline_has_each_state_at_its_time(shown):
    recording, goals = shown
    figure = figures.timeline(recording, goals)
    bars = {bar.name.strip(): bar for bar in figure.data if bar.type == "bar"}
    assert {"generating", "waiting", "suspended", "executing"} <= {n.split()[0] for n in bars}
    executing = sum(sum(bar.x) for bar in figure.data if bar.type == "bar" and "exec" in bar.name)
    assert executing == pytest.approx(
        sum(max(call.ended - call.begun, 0.001) for goal in goals for call in goal.calls)
    )
    waited = sum(bars["waiting"].x)
    assert waited == pytest.approx(
        sum(span.end - span.start for goal in goals for span in figures.waits(goal))
    )
    assert 0 < figures.busy_share(goals) < 1


def test_waiting_on_the_timeline_is_the_planner_s_waiting(shown):
    for goal in shown[1]:
        drawn = sum(span.end - span.start for span in figures.waits(goal))
        assert drawn == pytest.approx(goal.result.waiting_time, abs=0.02)
