"""What policies are shown of a plan: its numbers, state by state."""

from dataclasses import replace

import pytest
from fleet_sim import FleetSim
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_cases import ENGINE, SKILLS, drawn

from timely_llm.core.planner import Planner
from timely_llm.core.request import Request, State
from timely_llm.core.views import view_of
from timely_llm.estimation.segment_length import SegmentLength
from timely_llm.policies import View
from timely_llm.protocols.messages import PlanGoal, WhenBusy
from timely_llm.protocols.utility import PRESETS, Urgency
from timely_llm.simulation.loop import Setting, simulated

PINNED = 100


def show(state: State, **fields) -> View:
    """A plan of 130 prompt tokens that arrived at 10."""
    utility = PRESETS[Urgency.NORMAL]
    plan = Request("a" * 32, 7, PlanGoal("r1", "go"), utility, 10.0, state)
    plan.prompt_tokens, plan.uncached = 130, 30
    for name, value in fields.items():
        setattr(plan, name, value)
    return view_of(plan, SegmentLength(4.0, 9.0), PINNED, 0.008)


def test_waiting():
    view = show(State.WAITING)
    assert (view.id, view.number, view.segment, view.urgency) == ("a" * 32, 7, 0, 3)
    assert (view.arrival, view.origin, view.due, view.network) == (10.0, 10.0, 11.0, 0.008)
    assert (view.uncached, view.kv_tokens) == (30, 0)
    assert (view.tokens_left, view.worst_tokens_left) == (4.0, 9.0)
    assert (view.running, view.mid_segment) == (False, False)


@pytest.mark.parametrize(("written", "left", "worst"), [(1, 3.0, 8.0), (4, 1.0, 5.0), (99, 1, 1)])
def test_at_least_one_token_is_left_of_a_segment(written, left, worst):
    view = show(State.RUNNING, begun=True, uncached=0, tokens=written, segment_tokens=written)
    assert (view.tokens_left, view.worst_tokens_left) == (left, worst)
    assert (view.running, view.mid_segment) == (True, True)
    assert view.kv_tokens == 30 + written


def test_suspended_between_segments():
    fields = {"begun": True, "uncached": 0, "tokens": 5, "segments": ["go(1)"]}
    view = show(State.SUSPENDED, **fields)
    assert (view.segment, view.running, view.mid_segment) == (1, False, False)
    assert view.utility == PRESETS[Urgency.NORMAL].continuation()
    assert (view.origin, view.due) == (0.0, 0.0)  # the horizon's end


def test_every_field_is_in_its_place():
    """A view is made by position; no two of these values are alike."""
    goal = PlanGoal("r1", "go", urgency=Urgency.URGENT, ttft=0.3, tpot=0.05)
    fields = {"goal": goal, "begun": True, "uncached": 11, "tokens": 6, "segment_tokens": 2}
    fields |= {"first_token": 10.4, "predicted": 40.0, "asked": 9.0}
    view = show(State.RUNNING, **fields)
    assert view == View(
        id="a" * 32,
        number=7,
        segment=0,
        arrival=9.0,
        origin=9.0,
        due=10.0,
        utility=PRESETS[Urgency.NORMAL],
        urgency=Urgency.URGENT,
        tokens_left=2.0,
        worst_tokens_left=7.0,
        uncached=11,
        kv_tokens=25,
        running=True,
        mid_segment=True,
        network=0.008,
        ttft=0.3,
        tpot=0.05,
        written=6,
        first_token=10.4,
        predicted=34.0,
    )


def test_evicted():
    view = show(State.EVICTED, begun=True, uncached=35, tokens=5, segments=["go(1)"])
    assert (view.uncached, view.kv_tokens) == (35, 0)


def test_blocks_are_held_even_if_the_fixed_prompt_was_computed_meanwhile():
    """It has computed 20 of its 130 tokens itself; it can be told to give them up."""
    assert show(State.RUNNING, begun=True, uncached=110).kv_tokens == 1
    assert show(State.WAITING, uncached=130).kv_tokens == 0


def test_a_prediction_of_nothing_is_a_prediction():
    assert show(State.RUNNING, begun=True, predicted=0.0).predicted == 1.0
    assert show(State.RUNNING, begun=True, predicted=-1.0).predicted == -1.0


# ---- views that are kept ------------------------------------------------------------------------


def checked(planner: Planner) -> list[int]:
    """Hold every view that ``planner`` shows its policy against one made again; returns how many
    there were, choice by choice."""
    policy, seen = planner.policy, []

    def choose(now, views, state):
        held = planner.state
        assert views == [
            view_of(
                held.requests[plan_id],
                writing.robot.lengths,
                held.prefixes.cached(writing.robot.prefix),
                held.config.network,
            )
            for plan_id, writing in held.generating.items()
        ]
        seen.append(len(views))
        return policy.choose(now, views, state)

    planner.policy = replace(policy, choose=choose)
    return seen


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(("timely", "edf", "isrtf", "vllm")),
    st.sampled_from((None, 400)),
)
def test_kept_views_are_what_they_would_be_anew(seed, policy, kv_tokens):
    setting = Setting(policy, ENGINE, 3, kv_tokens=kv_tokens, skills=SKILLS)
    replay = simulated(drawn(seed), setting)
    seen = checked(replay.planner)
    replay.run()
    assert max(seen) > 1


def test_kept_views_while_goals_are_canceled_and_preempted_and_robots_come_late():
    plans = {"long": "go(2);go(3);go(1)", "short": "go(1)"}
    sim = FleetSim(plans, max_batch=2)
    seen = checked(sim.planner)
    for i in range(3):
        sim.add_robot(f"r{i}", at=0.3 * i)
    first = sim.goal("r0", "long", at=0.5)
    sim.goal("r0", "short", at=0.62, when_busy=WhenBusy.PREEMPT, urgency=Urgency.URGENT)
    second = sim.goal("r1", "long", at=0.6)
    sim.goal("r2", "long", at=0.61)
    sim.cancel(second, at=0.9)
    sim.restart_robot("r2", at=1.4)
    sim.finish()
    assert sim.result(first).error_code.name == "PREEMPTED"
    assert len(seen) > 20
