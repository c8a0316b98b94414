"""The simulator: small runs worked out by hand, and what holds of every run."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_cases import ENGINE, GO, SKILLS, UTILITY, drawn, run, task, trace

from timely_llm import policies
from timely_llm.protocols.messages import PlanEventType
from timely_llm.simulation.loop import Setting, UnknownKind, simulate
from timely_llm.simulation.trace import Arrival, Trace

SEGMENTED = [name for name in policies.names() if policies.get(name).streams]


def times(result, kind: PlanEventType) -> list[tuple[str, float]]:
    return [(e.plan_id, round(e.stamp, 6)) for e in result.timeline if e.type is kind]


def test_one_plan_by_hand():
    """10 prompt tokens in 10 ms give the first token, each further one takes 20 ms: the segments
    are cut at 70 and 170 ms. The robot gets them 8 ms later and goes for 2 and 3 s."""
    result = run(trace((0.0, task())))
    (goal,) = result.outcomes
    assert times(result, PlanEventType.SEGMENT) == [("0", 0.07), ("0", 0.17)]
    assert goal.response_s == pytest.approx(0.078)
    assert goal.first_token_s == pytest.approx(0.010)
    assert goal.tpot_s == pytest.approx(0.02)
    assert goal.tokens == 9
    assert goal.execution_s == pytest.approx(5.0)
    assert goal.completed_at == pytest.approx(0.078 + 5.0 + 0.008)
    assert goal.waiting_s == pytest.approx(0.086)
    assert goal.utility == UTILITY(goal.response_s)
    assert (goal.met, goal.slo_met, goal.refused) == (True, True, False)
    assert (result.steps, result.cut_at) == (9, 60.0)
    assert result.busy_s == pytest.approx(0.17)


def test_a_whole_plan_is_sent_at_its_end():
    (goal,) = run(trace((0.0, task())), "vllm").outcomes
    assert goal.response_s == pytest.approx(0.178)


def test_durations_are_the_trace_s():
    (goal,) = run(trace((0.0, task()), durations=(0.04, 1.5))).outcomes
    # The first call ends at 118 ms; the second segment is there at 178 ms.
    assert goal.execution_s == pytest.approx(1.54)
    assert goal.completed_at == pytest.approx(0.178 + 1.5 + 0.008)


def test_two_plans_share_the_engine():
    """Batch of 1: the second plan waits for the first to be written. Batch of 2: both prompts are
    computed in one step of 20 ms, then each step takes 30 ms."""
    both = trace((0.0, task()), (0.0, task()))
    alone = run(both, max_batch=1)
    assert [round(goal.response_s, 6) for goal in alone.outcomes] == [0.078, 0.248]
    shared = run(both, max_batch=2)
    assert [round(goal.response_s, 6) for goal in shared.outcomes] == [0.118, 0.118]


def test_a_goal_that_comes_during_a_step_waits_for_its_end():
    result = run(trace((0.0, task()), (0.035, task())), max_batch=2)
    # Steps end at 10, 30, 50 ms; then a decode beside the prompt: 20 + 10 ms.
    assert times(result, PlanEventType.STARTED) == [("0", 0.0), ("1", 0.05)]
    assert result.outcomes[1].first_token_s == pytest.approx(0.08 - 0.035)


def test_a_robot_has_one_plan_at_a_time_and_the_clock_starts_when_it_is_free():
    two = Trace("one robot", tuple(Arrival(0.0, "robot", task()) for _ in range(2)))
    first, second = run(two, max_batch=2).outcomes
    assert second.response_s == pytest.approx(first.response_s)
    assert second.completed_at == pytest.approx(2 * first.completed_at)


def test_a_fixed_prompt_is_in_the_cache_before_the_first_goal():
    result = run(trace((0.0, replace(task(), system_tokens=40))))
    # Whole blocks are shared: 36 of 40 tokens, for the last one has to be computed.
    assert result.outcomes[0].first_token_s == pytest.approx(0.014)
    assert result.steps == 9


def test_texts_are_read_as_their_kind_says():
    text = "One two. Three four five six."
    sentences, whole = run(trace((0.0, task(text, "reader")), (0.0, task(text, "text")))).outcomes
    assert sentences.execution_s == pytest.approx(6 * 0.2)  # 300 words a minute
    assert whole.execution_s == 0
    assert sentences.response_s < 0.2 < whole.response_s


def test_what_deciding_and_segmenting_cost():
    """1 ms behind the arrival; behind the first segment 1 ms and half of 10 ms."""
    result = run(trace((0.0, task())), decision_overhead=0.001, plan_overhead=0.010)
    assert times(result, PlanEventType.SEGMENT) == [("0", 0.071), ("0", 0.177)]
    native = run(trace((0.0, task())), "vllm_stream", decision_overhead=0.1, plan_overhead=0.1)
    assert times(native, PlanEventType.SEGMENT) == [("0", 0.07), ("0", 0.17)]


def test_handing_a_goal_to_the_engine_takes_its_time():
    """3 ms before the first step, whatever the policy; the second goal comes in a decode step,
    which ends at 53 ms, and its prompt is computed from 56 ms on."""
    engine = replace(ENGINE, submit=0.003)
    for policy in ("edf", "vllm_stream"):
        result = run(trace((0.0, task())), policy, engine=engine)
        assert times(result, PlanEventType.SEGMENT) == [("0", 0.073), ("0", 0.173)]
    two = run(trace((0.0, task()), (0.035, task())), "fcfs", 2, engine=engine)
    assert two.outcomes[1].first_token_s == pytest.approx(0.056 + 0.030 - 0.035)


def test_blocks_run_out_and_somebody_is_evicted():
    """19 tokens each, 5 blocks of 4: 8 blocks do not hold two plans to their ends."""
    both = trace((0.0, task()), (0.0, task()))
    result = run(both, max_batch=2, kv_tokens=32, policy="vllm_stream")
    assert [plan_id for plan_id, _ in times(result, PlanEventType.EVICTED)] == ["1"]
    assert all(goal.completed_at is not None for goal in result.outcomes)
    assert result.outcomes[1].tpot_s > result.outcomes[0].tpot_s
    assert not times(run(both, max_batch=2, kv_tokens=40), PlanEventType.EVICTED)


def test_a_plan_larger_than_the_cache_is_a_goal_that_failed():
    result = run(trace((0.0, task()), (0.0, task(GO, prompt_tokens=2))), kv_tokens=12)
    first, second = result.outcomes
    assert first.response_s is None and first.error_code.name == "INVALID_GOAL"
    assert first.utility == UTILITY(60.0)
    assert second.completed_at is not None


def test_conditions_are_true_and_loops_are_run():
    plan = "?find('cat'){2{go(1)};->True}go(9)"
    (goal,) = run(trace((0.0, task(plan)), durations=(0.5, 1.0, 9.0))).outcomes
    assert goal.execution_s == pytest.approx(0.5 + 2 * 1.0)


@pytest.mark.parametrize(
    ("arrivals", "words"),
    [
        ((), "no arrivals"),
        ([(0.0, task("go(2"))], "cut off"),
        ([(0.0, task("fly(2)"))], "'fly' is not a skill of walker"),
        ([(0.0, replace(task(), tokens=()))], "no tokens"),
    ],
)
def test_a_trace_that_cannot_be_run_is_refused_before_anything_runs(arrivals, words):
    with pytest.raises(ValueError, match=words):
        run(trace(*arrivals))


def test_other_faults_name_what_is_wrong():
    with pytest.raises(ValueError, match="1 durations for the 2 calls"):
        run(trace((0.0, task()), durations=(1.0,)))
    with pytest.raises(ValueError, match="negative"):
        run(trace((0.0, task()), durations=(1.0, -1.0)))
    with pytest.raises(UnknownKind, match="'swimmer': unknown"):
        run(trace((0.0, task(kind="swimmer"))))
    with pytest.raises(policies.UnknownPolicy, match="did you mean 'timely'"):
        run(trace((0.0, task())), "timly")
    with pytest.raises(ValueError, match="network is -1"):
        Setting("edf", ENGINE, network=-1)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(policies.names()), st.integers(1, 6))
def test_every_goal_is_accounted_for_and_the_same_run_gives_the_same_bytes(seed, policy, batch):
    """Enough time and room: each plan comes to its end, whatever the policy."""
    what = drawn(seed)
    first = run(what, policy, batch, cut=600.0)
    assert len(first.outcomes) == len(what.arrivals)
    assert [goal.arrival for goal in first.outcomes] == [a.at for a in what.arrivals]
    for goal, arrival in zip(first.outcomes, what.arrivals, strict=True):
        assert goal.completed_at is not None
        assert goal.tokens == len(arrival.task.tokens)
        assert goal.utility == arrival.task.utility(goal.response_s)
        assert goal.waiting_s >= 0
    assert repr(run(what, policy, batch, cut=600.0)) == repr(first)


def test_events_are_kept_on_demand_and_change_nothing():
    what = drawn(5)
    observed = run(what, "timely", 3)
    tokens_to_boundary = simulate(what, Setting("timely", ENGINE, 3, skills=SKILLS))
    assert tokens_to_boundary.timeline == () and observed.timeline
    assert tokens_to_boundary == replace(observed, timeline=())
