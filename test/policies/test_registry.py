"""Policies: the rules that hold for all of them, and each one's own order."""

import importlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import LATENCY, STATES, state, view, views

from timely_llm import policies
from timely_llm.estimation.step_time import LatencyEstimate, StepLatency
from timely_llm.policies import UnknownPolicy
from timely_llm.policies.timely import priority
from timely_llm.protocols.utility import TimeUtility

SEGMENTED = ("edf", "fcfs", "timely", "timely_artifact")
PREEMPTING = ("isrtf", "semantic", "slice")
BASELINES = ("vllm", "vllm_priority", "vllm_stream")


@pytest.fixture(scope="module", params=policies.names())
def policy(request):
    return policies.get(request.param)


# What holds for every policy.


@given(now=st.floats(0, 150), some=views(), engine=STATES, seed=st.randoms())
def test_every_decision_is_sound(policy, now, some, engine, seed):
    decision = policy.choose(now, some, engine)
    known = {one.id: one for one in some}
    assert len(decision.run) <= engine.max_batch
    assert len(set(decision.run)) == len(decision.run)
    assert set(decision.run) <= set(known)
    assert bool(decision.run) == bool(some)  # an engine with work never stands still
    assert not set(decision.hold) & set(decision.run)
    assert len(set(decision.hold)) == len(decision.hold)
    assert set(decision.hold) <= {one.id for one in some if one.kv_tokens}
    assert decision.evict == () or policy.name == "semantic"
    assert not set(decision.evict) & {*decision.run, *decision.hold}
    assert len(set(decision.evict)) == len(decision.evict)
    assert set(decision.evict) <= {one.id for one in some if one.kv_tokens}
    shuffled = list(some)
    seed.shuffle(shuffled)
    assert policy.choose(now, shuffled, engine) == decision


@given(now=st.floats(0, 150), some=views(), engine=STATES)
def test_in_segments_nobody_is_interrupted_inside_one(now, some, engine):
    writing = [one.id for one in some if one.running and one.mid_segment]
    for name in SEGMENTED:
        decision = policies.get(name).choose(now, some, engine)
        if len(writing) <= engine.max_batch:
            assert set(writing) <= set(decision.run)


@given(now=st.floats(0, 150), some=views(), engine=STATES)
def test_everyone_who_holds_blocks_and_does_not_run_can_give_them_up(now, some, engine):
    for name in SEGMENTED + PREEMPTING:
        decision = policies.get(name).choose(now, some, engine)
        holding = {one.id for one in some if one.kv_tokens}
        if decision.valid_until is None:  # else blocks suffice
            assert set(decision.hold) == holding - {*decision.run, *decision.evict}


@given(some=views(), count=st.integers(1, 6), engine=STATES, seed=st.randoms())
def test_of_equals_the_lower_number_goes_first(policy, some, count, engine, seed):
    like = (some or [view(1)])[0]._replace(uncached=0, worst_tokens_left=1.0)
    same = [like._replace(id=f"p{n}", number=n) for n in range(1, count + 1)]
    seed.shuffle(same)
    engine = engine._replace(kv_tokens_free=3000, latency=lambda batch, prefill, kv: 0.0)
    run = policy.choose(0.0, same, engine).run
    assert run == tuple(f"p{n}" for n in range(1, len(run) + 1))


WISHED = st.one_of(st.floats(0, 1e6), st.sampled_from([0.0, 5e-324, 1e6]))
EXTREME = st.one_of(st.floats(0, 1e300), st.sampled_from([0.0, 5e-324, 1e300]))


@given(
    now=st.floats(0, 1e9),
    due=st.floats(-1e300, 1e300),
    utility=st.builds(
        TimeUtility, WISHED, WISHED.map(lambda x: -x), WISHED.map(lambda x: x or 1.0)
    ),
    tokens=EXTREME,
    target=EXTREME,
    step=st.sampled_from([0.0, 5e-324, 1e-9, 0.02, 1e9]),
    steps=st.integers(0, 10**18),
)
def test_no_number_breaks_a_policy(policy, now, due, utility, tokens, target, step, steps):
    one = view(1, due=due, origin=due, utility=utility, tokens_left=tokens, uncached=7)
    some = [
        one._replace(worst_tokens_left=tokens, predicted=tokens, ttft=target, tpot=target),
        view(2),
        view(3, utility=utility, kv_tokens=10**12, written=10**12, first_token=now),
    ]
    engine = state(2, latency=StepLatency((step,), per_prefill_token=step), steps=steps)
    assert len(policy.choose(now, some, engine).run) in (1, 2)
    assert not math.isnan(priority(one, now, engine))


# The registry.


def test_policies_by_name():
    assert {*SEGMENTED, *PREEMPTING, *BASELINES} <= set(policies.names())
    assert policies.names() == sorted(policies.names())
    for name in BASELINES:
        assert policies.get(name).native
        assert policies.get(name).priority is (name == "vllm_priority")
    for name in ("isrtf", "semantic"):
        assert policies.get(name).predicts
    assert not policies.get("vllm").streams and policies.get("vllm").native
    assert policies.get("vllm_stream").streams and policies.get("vllm_stream").native
    assert policies.get("timely").streams and not policies.get("timely").native


def test_an_unknown_policy_names_the_nearest():
    with pytest.raises(UnknownPolicy, match=r"policy 'timley' is unknown; did you mean 'timely'\?"):
        policies.get("timley")


def test_every_policy_module_registers():
    for name in SEGMENTED + PREEMPTING:
        module = importlib.import_module(f"timely_llm.policies.{name}")
        assert policies.get(name).choose is module.choose


# Views are what the planner makes of learned step times, too.


@given(now=st.floats(0, 150), some=views())
def test_decisions_with_learned_step_times_are_sound(policy, now, some):
    estimate = LatencyEstimate(LATENCY)
    for batch, duration in ((1, 0.0), (2, 0.5), (3, 0.01)):
        estimate.observe(batch, 0, 100, duration)
    decision = policy.choose(now, some, state(latency=estimate))
    assert len(decision.run) <= 4
    assert bool(decision.run) == bool(some)
