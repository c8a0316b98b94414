"""A bag of topics alone is enough: what happened, and what would have under another policy."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import bag_cases
import pytest
from bag_cases import START, busy_fleet
from fleet_sim import NETWORK, STEP, FleetSim

from timely_llm import policies
from timely_llm.protocols.messages import ErrorCode, OnFailure, WhenBusy
from timely_llm.protocols.utility import Urgency
from timely_llm.recording import bag
from timely_llm.recording.compare import Replayed, as_recorded, report_json, row_of
from timely_llm.recording.costs import costs_of, engine_of
from timely_llm.recording.goals import goals_of
from timely_llm.recording.replay import replay, what_happened
from timely_llm.recording.report import page
from timely_llm.recording.trace import NothingToReplay, trace_of

POLICIES = ("timely", "vllm", "least_loss", "edf")
ENDS = (ErrorCode.CANCELED, ErrorCode.PREEMPTED, ErrorCode.SKILL_FAILED)


def recorded(sim: FleetSim, folder: Path, policy: str = "timely", **options):
    """The recording of what happened in ``sim``, its trace and its costs."""
    recording = bag.read(bag_cases.record(sim, folder, bag_cases.config(policy), **options))
    goals = goals_of(recording)
    return recording, trace_of(recording, goals), costs_of(goals)


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    """The same goals, recorded under several policies; robots have clocks of their own."""
    folder = tmp_path_factory.mktemp("bags")
    return {
        policy: (
            sim := busy_fleet(policy),
            *recorded(sim, folder / policy, policy, robots_clock=1e6),
        )
        for policy in POLICIES
    }


def figures(outcomes):
    return [(o.response_s, o.waiting_s, o.execution_s, o.error_code) for o in outcomes]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_happened_is_what_the_planner_said(bags, policy):
    sim, _, trace, _ = bags[policy]
    happened = what_happened(trace)
    assert len(happened) == len(trace.known)
    for known, one in zip(trace.known, happened, strict=True):
        result = sim.result(known.goal.plan_id)
        assert one.waiting_s == result.waiting_time
        assert one.error_code is result.error_code
        assert one.utility == result.utility


@pytest.mark.parametrize("policy", POLICIES)
def test_its_own_policy_gives_what_was_recorded(bags, policy):
    _, recording, trace, costs = bags[policy]
    happened = what_happened(trace)
    run = replay(recording, trace, costs, policy)
    for known, was, now in zip(trace.known, happened, run.outcomes, strict=True):
        name = known.goal.goal.instruction
        assert now.error_code is was.error_code, name
        assert now.response_s == pytest.approx(was.response_s, abs=5e-3), name
        assert now.waiting_s == pytest.approx(was.waiting_s, abs=5e-3), name
        assert now.execution_s == pytest.approx(was.execution_s, abs=2e-2), name
    for figure in ("response_s", "waiting_s"):
        before = fmean(getattr(o, figure) for o in happened)
        after = fmean(getattr(o, figure) for o in run.outcomes)
        assert after == pytest.approx(before, rel=0.05)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_bag_foretells_another_policy(bags, policy):
    """Recorded under vllm, where every plan is sent whole: what the other policies really gave."""
    _, recording, trace, costs = bags["vllm"]
    run = replay(recording, trace, costs, policy)
    happened = {k.goal.plan_id: o for k, o in zip(
        bags[policy][2].known, what_happened(bags[policy][2]), strict=True
    )}  # fmt: skip
    replayed = {k.goal.plan_id: o for k, o in zip(trace.known, run.outcomes, strict=True)}
    both = sorted(happened.keys() & replayed.keys())
    assert len(both) >= 8
    for figure in ("response_s", "waiting_s"):
        before = fmean(getattr(happened[name], figure) for name in both)
        after = fmean(getattr(replayed[name], figure) for name in both)
        assert after == pytest.approx(before, rel=0.05)


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


def test_what_is_left_out_has_its_reason(bags):
    _, _, trace, _ = bags["timely"]
    ((goal, why),) = trace.left_out
    assert (goal.goal.instruction, goal.code) == ("walk", ErrorCode.CANCELED)
    assert why == "it ended with CANCELED before anything was written"
    codes = {known.goal.code for known in trace.known}
    assert codes == {ErrorCode.NONE, *ENDS}


def test_a_goal_that_ended_before_its_first_segment_still_loads_the_engine(tmp_path):
    sim = FleetSim(
        {"long": "->'abcdefghijklmnopqrstuvwxy z';", "walk": "go(2)"}, "fcfs", max_batch=1
    )
    for name in ("r0", "r1"):
        sim.add_robot(name)
    sim.cancel(sim.goal("r0", "long", 1.0), 1.08)
    sim.goal("r1", "walk", 1.01)
    recording, trace, costs = recorded(sim.finish(), tmp_path / "bag", "fcfs")
    ghost = trace.known[0]
    assert ghost.goal.segments == () and ghost.goal.result.generated_tokens > 0
    run = replay(recording, trace, costs, "fcfs", max_batch=1)
    assert run.outcomes[0].response_s is None
    assert run.outcomes[0].error_code is ErrorCode.CANCELED
    was = what_happened(trace)[1]
    assert run.outcomes[1].response_s == pytest.approx(was.response_s, abs=0.021)  # one step


def test_a_robot_that_waits_keeps_waiting_for_what_it_waited_for(tmp_path):
    """An urgent goal halts the other one, under whatever policy."""
    sim = FleetSim({"stop": "go(4);go(4)", "walk": "go(2)"}, "timely")
    sim.add_robot("r0")
    sim.goal("r0", "stop", 1.0)
    sim.goal("r0", "walk", 3.0, urgency=Urgency.CRITICAL, when_busy=WhenBusy.PREEMPT)
    recording, trace, costs = recorded(sim.finish(), tmp_path / "bag")
    for policy in ("timely", "vllm_stream", "edf"):
        first, second = replay(recording, trace, costs, policy).outcomes
        assert (first.error_code, second.error_code) == (ErrorCode.PREEMPTED, ErrorCode.NONE)
        assert first.execution_s == pytest.approx(2.0, abs=0.1)


def test_a_plan_that_failed_while_it_was_written_ends_under_every_policy(tmp_path):
    """What was written of it is known: policies that send whole plans send that."""
    sim = FleetSim({"fail": "go(0.1);" + "go(3);" * 8, "walk": "go(2)"}, "timely")
    sim.add_robot("r0", faults={"go(0.1)": "broken"})
    sim.goal("r0", "fail", 1.0)
    sim.goal("r0", "walk", 2.0)
    recording, trace, costs = recorded(sim.finish(), tmp_path / "bag")
    assert not trace.known[0].goal.complete
    for policy in policies.names():
        first, second = replay(recording, trace, costs, policy).outcomes
        assert (first.error_code, second.error_code) == (ErrorCode.SKILL_FAILED, ErrorCode.NONE)


def test_every_policy_can_be_replayed(bags):
    _, recording, trace, costs = bags["timely"]
    for policy in policies.names():
        run = replay(recording, trace, costs, policy, max_batch=2)
        assert [o.error_code for o in run.outcomes] == [k.goal.code for k in trace.known], policy


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


def test_the_trace_s_clock_begins_with_the_first_goal(bags):
    _, _, trace, _ = bags["timely"]
    assert trace.trace.arrivals[0].at == 0.0
    assert trace.origin == pytest.approx(START + 1.0, abs=1e-6)
    ends = [known.ends_at for known in trace.known if known.ends_at is not None]
    assert ends == [pytest.approx(11.0, abs=0.05)]
