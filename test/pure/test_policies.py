"""Policies: the rules that hold for all of them, and each one's own order."""

import importlib
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import LATENCY, STATES, state, view, views

from timely_llm import policies
from timely_llm.latency_estimate import LatencyEstimate
from timely_llm.policies import UnknownPolicy, View
from timely_llm.policies.batch import admits, fill, most_urgent, worst_time
from timely_llm.policies.timely import PATIENCE, positive, priority
from timely_llm.policies.timely_artifact import lateness
from timely_llm.policies.timely_artifact import priority as artifact
from timely_llm.step_latency import StepLatency
from timely_llm.utility import PRESETS, TimeUtility, Urgency

SEGMENTED = ("edf", "fcfs", "timely", "timely_artifact")
FAIR = ("edf", "fcfs", "timely")  # the papers of the others promise nothing to the late
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
        if decision.stands is None:  # else blocks suffice
            assert set(decision.hold) == holding - {*decision.run, *decision.evict}


@given(some=views(), count=st.integers(1, 6), engine=STATES, seed=st.randoms())
def test_of_equals_the_lower_number_goes_first(policy, some, count, engine, seed):
    like = (some or [view(1)])[0]._replace(uncached=0, worst_tokens_left=1.0)
    same = [like._replace(id=f"p{n}", number=n) for n in range(1, count + 1)]
    seed.shuffle(same)
    engine = engine._replace(kv_tokens_free=3000, latency=lambda batch, prefill, kv: 0.0)
    run = policy.choose(0.0, same, engine).run
    assert run == tuple(f"p{n}" for n in range(1, len(run) + 1))


EXTREME = st.one_of(st.floats(0, 1e300), st.sampled_from([0.0, 5e-324, 1e300]))


@given(
    now=st.floats(0, 1e9),
    due=st.floats(-1e300, 1e300),
    utility=st.builds(
        TimeUtility, EXTREME, EXTREME.map(lambda x: -x), EXTREME.map(lambda x: x or 1.0)
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
    engine = state(2, latency=StepLatency(base=step, per_prefill_token=step), steps=steps)
    assert len(policy.choose(now, some, engine).run) in (1, 2)
    assert not math.isnan(priority(one, now, engine))


# The registry.


def test_policies_by_name():
    assert {*SEGMENTED, *PREEMPTING, *BASELINES} <= set(policies.names())
    assert policies.names() == sorted(policies.names())
    for name in BASELINES:
        assert policies.get(name).untouched
        assert policies.get(name).priority is (name == "vllm_priority")
    for name in ("isrtf", "semantic"):
        assert policies.get(name).predicts
    assert not policies.get("vllm").streams and policies.get("vllm").untouched
    assert policies.get("vllm_stream").streams and policies.get("vllm_stream").untouched
    assert policies.get("timely").streams and not policies.get("timely").untouched


def test_an_unknown_policy_names_the_nearest():
    with pytest.raises(UnknownPolicy, match=r"policy 'timley' is unknown; did you mean 'timely'\?"):
        policies.get("timley")


def test_every_policy_module_registers():
    for name in SEGMENTED + PREEMPTING:
        module = importlib.import_module(f"timely_llm.policies.{name}")
        assert policies.get(name).choose is module.choose


# Orders.


def test_fcfs_goes_by_arrival_then_number():
    some = [view(3, arrival=1.0), view(1, arrival=2.0), view(2, arrival=1.0, due=0.0)]
    assert policies.get("fcfs").choose(0.0, some, state(2)).run == ("p2", "p3")


def test_edf_goes_by_due_time_then_number():
    some = [view(1, due=5.0), view(2, due=3.0), view(3, due=3.0), view(4, due=-1.0)]
    assert policies.get("edf").choose(0.0, some, state(3)).run == ("p4", "p2", "p3")


@given(now=st.floats(0, 150), some=views(), engine=STATES)
def test_edf_never_leaves_an_earlier_one_for_a_later_one(now, some, engine):
    """Of those that begin a segment now, none is due later than one that was left out."""
    run = policies.get("edf").choose(now, some, engine).run
    begin = [v for v in some if v.id in run and not (v.running and v.mid_segment)]
    out = [v for v in some if v.id not in run]
    latest = max(((v.due, v.number) for v in begin), default=(-math.inf, 0))
    assert all((v.due, v.number) > latest for v in out)


@pytest.mark.parametrize("name", ["vllm", "vllm_stream"])
def test_the_baselines_keep_whom_they_have_and_take_the_others_in_order(name):
    some = [view(1), view(2), view(3, running=True), view(4, running=True)]
    assert policies.get(name).choose(0.0, some, state(3)).run == ("p3", "p4", "p1")
    assert policies.get(name).choose(0.0, some, state(3)).hold == ()


def test_the_baseline_by_priority_keeps_whom_it_has_and_takes_the_most_urgent():
    """vLLM lets nobody who waits displace one that runs."""
    some = [
        view(1, urgency=3),
        view(2, urgency=1),
        view(3, urgency=1),
        view(4, urgency=4, running=True),
        view(5, urgency=2, running=True),
    ]
    choose = policies.get("vllm_priority").choose
    assert choose(0.0, some, state(4)).run == ("p5", "p4", "p2", "p3")
    assert choose(0.0, some, state(2)).run == ("p5", "p4")


# The rule of TimelyLLM's published code.


def test_artifact_of_one_in_time_by_hand():
    """4 tokens in 0.08 s: at the robot at 0.09, 0.91 s early."""
    assert lateness(view(1), 0.0, state()) == pytest.approx(-0.91)
    assert artifact(view(1), 0.0, state()) == pytest.approx(math.exp(-0.91))


def test_artifact_of_a_late_one_by_hand():
    """At the robot at 1.29: 0.29 s late at -2/s."""
    assert artifact(view(1), 1.2, state()) == pytest.approx(1 - 2 * 0.29)
    prompt = view(1, uncached=100)  # 0.01 s more
    assert artifact(prompt, 1.2, state()) == pytest.approx(1 - 2 * 0.30)


def test_the_artifact_does_not_ask_how_long_a_segment_takes_but_eq_4_does():
    """Both are due with their delivery; one takes five times as long."""
    flat = TimeUtility(0.0, 0.0, 1.0)
    short = view(2, due=0.09, utility=flat)
    long = view(1, due=0.41, utility=flat, tokens_left=20.0)
    assert artifact(short, 0.0, state()) == pytest.approx(artifact(long, 0.0, state()))
    assert priority(short, 0.0, state()) == pytest.approx(5 * priority(long, 0.0, state()))


def test_whom_the_artifact_drops_goes_last_the_longest_overdue_first():
    choose = policies.get("timely_artifact").choose
    dropped = [view(1, due=-2.0), view(2, due=-3.0), view(3, due=0.0)]
    assert all(artifact(one, 0.3, state()) <= 0 for one in dropped[:2])
    assert artifact(dropped[2], 0.3, state()) == pytest.approx(1 - 2 * 0.39)
    assert choose(0.3, dropped, state(2)).run == ("p3", "p2")
    assert choose(0.3, dropped, state(4)).run == ("p3", "p2", "p1")


# Eq. 4.


def test_priority_of_a_first_segment_by_hand():
    """4 tokens in 0.08 s: at the robot at 0.09, 0.91 s before it is due, utility still 1."""
    assert priority(view(1), 0.0, state()) == pytest.approx(1.0 / (0.08 * (0.91 + 0.02)))


def test_priority_of_a_late_first_segment_by_hand():
    """At the robot at 1.29: utility 1 - 2 * 0.29, no slack left but the one step."""
    assert priority(view(1), 1.2, state()) == pytest.approx(0.42 / (0.08 * 0.02))


def test_priority_of_a_continuation_counts_waiting_from_the_horizon():
    """The robot runs dry at 3; at the robot at 3.09: 0.09 s of waiting, ERT 0."""
    utility = PRESETS[Urgency.NORMAL].continuation()
    one = view(1, segment=2, origin=3.0, due=3.0, utility=utility)
    assert priority(one, 3.0, state()) == pytest.approx((1 - 2 * 0.09) / (0.08 * 0.02))
    assert priority(one, 2.0, state()) == pytest.approx(1.0 / (0.08 * (0.91 + 0.02)))


def test_uncached_prompt_counts_as_generation_time():
    assert priority(view(1, uncached=100), 0.0, state()) == pytest.approx(1 / (0.09 * 0.92))
    assert worst_time(view(1, uncached=100), state(), 3) == pytest.approx(10 * 0.024 + 0.01)


NOW = st.floats(0, 20)
TOKENS = st.floats(1, 50)


@given(NOW, TOKENS, st.floats(-20, 20), st.floats(0, 20), st.floats(0.05, 10))
def test_priority_never_rises_with_slack(now, tokens, due, later, beta):
    flat = TimeUtility(0.0, 0.0, beta)  # the same utility, whenever it comes
    near = view(1, due=due, tokens_left=tokens, utility=flat)
    far = near._replace(due=due + later)
    assert priority(far, now, state()) <= priority(near, now, state())


@given(NOW, TOKENS, st.floats(-20, 20), st.floats(0.001, 10), st.floats(0, 10))
def test_priority_never_falls_with_utility(now, tokens, due, beta, more):
    less = view(1, due=due, tokens_left=tokens, utility=TimeUtility(0.0, -1.0, beta))
    worth = less._replace(utility=TimeUtility(0.0, -1.0, beta + more))
    assert priority(worth, now, state()) >= priority(less, now, state()) > 0


@given(NOW, TOKENS, st.floats(1, 5))
def test_priority_falls_with_the_length_of_the_segment(now, tokens, factor):
    flat = TimeUtility(0.0, 0.0, 1.0)
    short = view(1, due=-1.0, tokens_left=tokens, utility=flat)
    assert priority(short._replace(tokens_left=tokens * factor), now, state()) <= priority(
        short, now, state()
    )


def test_priority_is_continuous_where_slack_ends():
    flat = TimeUtility(0.0, 0.0, 1.0)
    at = 0.09  # delivery of a view at 0
    values = [priority(view(1, due=at + d, utility=flat), 0.0, state()) for d in (-1e-9, 0, 1e-9)]
    assert values[0] == values[1] == pytest.approx(values[2], rel=1e-6)


@given(st.floats(-1e6, 100), st.floats(0, 100))
def test_utility_below_zero_still_ranks(utility, more):
    assert 0 < positive(utility) <= positive(utility + more)


def test_the_urgent_goal_goes_first_but_not_for_ever():
    urgent = view(1, utility=PRESETS[Urgency.URGENT], due=0.2)
    normal = view(2)
    choose = policies.get("timely").choose
    assert choose(0.0, [urgent, normal], state(1)).run == ("p1",)
    # Far past its cutoff, it no longer is worth more than the other in time.
    assert choose(0.9, [urgent, normal], state(1)).run == ("p2",)


def test_among_two_continuations_the_robot_that_runs_dry_first_is_served_first():
    utility = PRESETS[Urgency.NORMAL].continuation()
    far = view(1, segment=1, origin=9.0, due=9.0, utility=utility)
    near = view(2, segment=1, origin=2.0, due=2.0, utility=utility)
    assert policies.get("timely").choose(0.0, [far, near], state(1)).run == ("p2",)


# Admission.


def lets_in(batch: list[View], extra: View) -> bool:
    return admits(most_urgent(batch, 0.0, state()), len(batch), extra, 0.0, state())


def test_admission_keeps_the_most_urgent_one_in_time():
    """10 more tokens: 0.20 s alone, 0.22 s with a second one, and 0.01 s of network."""
    extra = view(2, due=9.0)
    for due, admitted in [(0.235, True), (0.225, False), (0.215, False)]:
        running = view(1, due=due, running=True, mid_segment=True)
        assert lets_in([running], extra) is admitted


def test_admission_counts_the_prompt_computed_beside():
    running = view(1, due=0.235, running=True, mid_segment=True)
    assert lets_in([running], view(2, uncached=40))
    assert not lets_in([running], view(2, uncached=60))


def test_one_that_cannot_be_saved_has_no_veto():
    for due in (-5.0, 0.2):
        running = view(1, due=due, running=True, mid_segment=True)
        assert lets_in([running], view(2, uncached=1000))


def test_the_most_urgent_is_the_first_due_of_those_that_will_be_in_time():
    """In a batch of 3 the longest segment takes 0.24 s."""
    some = [view(1, due=5.0), view(2, due=0.3), view(3, due=0.2)]
    for order in (some, some[::-1]):
        assert most_urgent(order, 0.0, state()).number == 2
    assert most_urgent([view(2, due=4.0), view(1, due=4.0)], 0.0, state()).number == 1
    assert most_urgent([view(1, due=0.0)], 0.0, state()) is None
    assert most_urgent([], 0.0, state()) is None


def test_the_veto_is_the_most_urgent_s_and_holds_in_a_decision():
    running = view(1, due=0.225, running=True, mid_segment=True)
    lost = view(2, due=0.0, running=True, mid_segment=True)
    extra = view(3, due=9.0)
    choose = policies.get("timely").choose
    assert choose(0.0, [running, extra], state()).run == ("p1",)
    assert choose(0.0, [lost, extra], state()).run == ("p2", "p3")
    assert choose(0.0, [running, extra], state()).hold == ()


def test_one_that_has_just_been_let_in_has_the_veto_at_once():
    first, extra = view(1, due=0.225), view(2, due=9.0)
    assert fill([first, extra], 0.0, state()).run == ("p1",)
    assert fill([first, extra], 0.0, state(), admission=False).run == ("p1", "p2")


def test_edf_and_fcfs_know_no_veto():
    running = view(1, due=0.225, running=True, mid_segment=True)
    for name in ("edf", "fcfs"):
        assert policies.get(name).choose(0.0, [running, view(2)], state()).run == ("p1", "p2")


def test_who_lacks_memory_waits_and_lets_nobody_behind_it_begin():
    running = view(1, running=True, mid_segment=True, kv_tokens=50)
    large = view(2, uncached=500)
    small = view(3)
    assert fill([running, large, small], 0.0, state(free=400)).run == ("p1",)
    assert fill([running, large, small], 0.0, state(free=600)).run == ("p1", "p2", "p3")


def test_blocks_of_the_worse_ranked_can_be_had():
    running = view(1, running=True, mid_segment=True)
    large = view(2, uncached=300)
    idle = view(3, kv_tokens=200)
    decision = fill([running, large, idle], 0.0, state(max_batch=2, free=150))
    assert (decision.run, decision.hold) == (("p1", "p2"), ("p3",))
    # Those of the better ranked cannot.
    decision = fill([idle._replace(mid_segment=True, running=True), large], 0.0, state(free=150))
    assert decision.run == ("p3",)


def test_what_one_needs_is_not_left_for_the_next():
    assert fill([view(1), view(2), view(3)], 0.0, state(free=25)).run == ("p1", "p2")


def test_nobody_can_have_its_own_blocks_twice():
    running = view(1, running=True, mid_segment=True)
    idle = view(2, kv_tokens=200)
    assert fill([running, idle], 0.0, state(free=15)).run == ("p1",)
    assert fill([running, idle], 0.0, state(free=20)).run == ("p1", "p2")


def test_the_first_one_runs_whatever_memory_says():
    """Or nothing would ever move; the engine evicts by ``hold``."""
    assert fill([view(1, uncached=9000)], 0.0, state(free=0)).run == ("p1",)


def test_hold_names_the_least_urgent_first():
    some = [view(n, kv_tokens=10, segment=1, due=float(n)) for n in (1, 2, 3, 4)]
    decision = policies.get("edf").choose(0.0, some, state(1))
    assert (decision.run, decision.hold) == (("p1",), ("p4", "p3", "p2"))


# Nobody starves.


def waits(name: str, victim: View, make, memory: int = 100_000, seconds: float = 60.0) -> float:
    """Time until ``victim`` runs, while ``make(number, now)`` keeps the engine (of batch 2) full
    with goals of one segment, 4 tokens each; infinite if it never runs."""
    choose, now, number = policies.get(name).choose, 0.0, 100
    rng, left, crowd = random.Random(1), {}, []
    while now < seconds:
        while len(crowd) < 6:
            number += 1
            crowd.append(make(number, now))
            left[f"p{number}"] = rng.randint(3, 5)
        held = sum(one.kv_tokens for one in crowd)
        run = choose(now, [victim, *crowd], state(2, free=memory - held)).run
        if victim.id in run:
            return now
        now += LATENCY(len(run))
        for index, one in enumerate(crowd):
            if one.id in run:
                left[one.id] -= 1
                crowd[index] = one._replace(running=True, mid_segment=True, kv_tokens=60)
            else:
                crowd[index] = one._replace(running=False)
        crowd = [one for one in crowd if left[one.id]]
    return math.inf


def urgent(number: int, now: float) -> View:
    utility = PRESETS[Urgency.URGENT]
    return view(number, arrival=now, origin=now, due=now + 0.2, utility=utility)


@pytest.mark.parametrize("name", FAIR)
def test_a_background_goal_is_served_under_a_flood_of_urgent_ones(name):
    utility = PRESETS[Urgency.BACKGROUND]
    victim = view(1, utility=utility, due=10.0)
    assert waits(name, victim, urgent) <= 10.0 + PATIENCE + 0.5


def test_the_flood_does_keep_the_background_goal_waiting():
    """Or the test above would show nothing."""
    victim = view(1, utility=PRESETS[Urgency.BACKGROUND], due=10.0)
    assert waits("timely", victim, urgent) > 1.0


@pytest.mark.parametrize("name", FAIR)
def test_a_goal_that_needs_much_memory_is_served_under_a_flood_of_small_ones(name):
    victim = view(1, due=1.0, uncached=900)
    assert waits(name, victim, urgent, memory=1000) <= 1.0 + PATIENCE + 0.5


def test_nobody_has_a_veto_against_one_that_is_long_overdue():
    now = 20.0
    running = view(1, due=now + 0.225, running=True, mid_segment=True)
    choose = policies.get("timely").choose
    for due, run in [(now - PATIENCE + 0.1, ("p1",)), (now - PATIENCE - 0.1, ("p1", "p2"))]:
        assert choose(now, [running, view(2, due=due, uncached=100)], state()).run == run


# Views are what the planner makes of learned step times, too.


@given(now=st.floats(0, 150), some=views())
def test_decisions_with_learned_step_times_are_sound(policy, now, some):
    estimate = LatencyEstimate(LATENCY)
    for batch, duration in ((1, 0.0), (2, 0.5), (3, 0.01)):
        estimate.observe(batch, 0, 100, duration)
    decision = policy.choose(now, some, state(latency=estimate))
    assert len(decision.run) <= 4
    assert bool(decision.run) == bool(some)
