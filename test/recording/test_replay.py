"""A bag of topics alone is enough: what happened, and what would have under another policy."""

from __future__ import annotations

from statistics import fmean

import pytest
from bag_cases import POLICIES, recorded
from fleet_sim import FleetSim

from timely_llm import policies
from timely_llm.protocols.messages import ErrorCode, WhenBusy
from timely_llm.protocols.utility import Urgency
from timely_llm.recording.replay import replay, what_happened


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
