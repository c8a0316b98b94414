"""Recorded goals as a trace: its clock, and what is left out for which reason."""

from __future__ import annotations

import bag_cases
import pytest
from bag_cases import START, recorded
from fleet_sim import FleetSim

from timely_llm.protocols.messages import ErrorCode, OnFailure
from timely_llm.recording import bag
from timely_llm.recording.goals import goals_of
from timely_llm.recording.recorded_trace import NothingToReplay, trace_of
from timely_llm.recording.replay import replay
from timely_llm.recording.report import page

ENDS = (ErrorCode.CANCELED, ErrorCode.PREEMPTED, ErrorCode.SKILL_FAILED)


def test_what_is_left_out_has_its_reason(bags):
    _, _, trace, _ = bags["timely"]
    ((goal, why),) = trace.left_out
    assert (goal.goal.instruction, goal.code) == ("walk", ErrorCode.CANCELED)
    assert why == "it ended with CANCELED before anything was written"
    codes = {known.goal.code for known in trace.known}
    assert codes == {ErrorCode.NONE, *ENDS}


def test_without_robots_there_is_nothing_to_replay(tmp_path):
    sim = FleetSim({"walk": "go(2)"})
    sim.add_robot("r0")
    sim.goal("r0", "walk", 1.0)
    folder = bag_cases.record(sim.finish(), tmp_path / "bag", without=("robots",))
    recording = bag.read(folder)
    with pytest.raises(NothingToReplay, match="no skill set of robot 'r0'"):
        trace_of(recording, goals_of(recording))


def test_a_goal_that_had_not_ended_is_left_out(tmp_path):
    sim = FleetSim({"walk": "go(2)"})
    sim.add_robot("r0")
    sim.goal("r0", "walk", 1.0)
    recording = bag.read(bag_cases.record(sim.run(2.0), tmp_path / "bag"))
    (goal,) = goals_of(recording)
    assert goal.result is None and goal.text == "go(2)"
    with pytest.raises(NothingToReplay, match="the recording ends before the goal does"):
        trace_of(recording, goals_of(recording))


def test_a_goal_that_was_planned_again_is_shown_but_not_replayed(tmp_path):
    sim = FleetSim({"fail": "go(2);go(5)", "walk": "go(3)", "fail+1": "go(1)"})
    sim.add_robot("r0", faults={"go(5)": "blocked"})
    sim.goal("r0", "fail", 1.0, on_failure=OnFailure.REPLAN, max_replans=1)
    sim.goal("r0", "walk", 1.5)
    recording, trace, costs = recorded(sim.finish(), tmp_path / "bag")
    ((goal, why),) = trace.left_out
    assert (goal.goal.instruction, why) == ("fail", "it was planned again")
    assert "go(2)" in goal.text and goal.calls
    (walk,) = replay(recording, trace, costs, "timely").outcomes
    assert walk.error_code is ErrorCode.NONE
    assert "fail" in page(recording, goals_of(recording))


def test_the_trace_s_clock_begins_with_the_first_goal(bags):
    _, _, trace, _ = bags["timely"]
    assert trace.trace.arrivals[0].at == 0.0
    assert trace.origin == pytest.approx(START + 1.0, abs=1e-6)
    ends = [known.ends_at for known in trace.known if known.ends_at is not None]
    assert ends == [pytest.approx(11.0, abs=0.05)]
