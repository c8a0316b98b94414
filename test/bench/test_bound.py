"""The upper bound against schedules of all kinds, against the exact optimum, and against policies;
the exact optimum against all schedules of tiny bursts, one by one."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timely_llm import policies
from timely_llm.bench.bound import groups, total_bound, upper_bound
from timely_llm.bench.bound_program import Setup, classes_of, relaxed
from timely_llm.bench.engine_costs import EngineCosts, Work, first_tokens, works_of
from timely_llm.bench.exact import TooLarge, exact
from timely_llm.estimation import presets as engine_presets
from timely_llm.estimation.step_time import StepLatency
from timely_llm.language.skills import Reading
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency
from timely_llm.simulation.loop import Setting, simulate
from timely_llm.simulation.trace import Arrival, Task, Trace
from timely_llm.simulation.workloads import published as workloads
from timely_llm.simulation.workloads.tasks import published, skill_sets
from timely_llm.simulation.workloads.text_tasks import TEXT_KINDS
from timely_llm.simulation.workloads.text_tasks import reader as reader_kind

URGENT, NORMAL = PRESETS[Urgency.URGENT], PRESETS[Urgency.NORMAL]
KINDS = {**TEXT_KINDS, **skill_sets()}
FAST = StepLatency((0.0218,), 0.00038, per_prefill_token=3.6e-4)
SLOW = StepLatency((0.03,), 0.004, 2e-7, 1e-3)
TABLE = StepLatency((0.014, 0.027, 0.03, 0.06), per_prefill_token=5e-4)


def random_schedule(works, costs, max_batch, network, cut_at, rng) -> float:
    """Utility of one schedule, whatever comes into its head: prompts in chunks, batches, pauses."""
    prompts, decodes = [work.prompt for work in works], [work.decodes for work in works]
    done: dict[int, float] = {}
    now = min(work.at for work in works)
    while len(done) < len(works):
        here = [i for i, work in enumerate(works) if work.at <= now and i not in done]
        if not here or rng.random() < 0.05:
            later = [work.at for work in works if work.at > now]
            now = min(later) if later and (not here or rng.random() < 0.5) else now + 0.003
            continue
        raw = [i for i in here if prompts[i]]
        ready = [i for i in here if not prompts[i] and decodes[i]]
        size = rng.randint(0, min(len(ready), max_batch))
        batch = ready[:size] if rng.random() < 0.6 else rng.sample(ready, size)
        chunk = 0
        if raw and (not batch or rng.random() < 0.6):
            i = raw[0] if rng.random() < 0.6 else rng.choice(raw)
            chunk = prompts[i] if rng.random() < 0.7 else rng.randint(1, prompts[i])
            prompts[i] -= chunk
        if batch:
            context = sum(works[i].context(decodes[i]) for i in batch)
            now += costs.decode(len(batch)) + costs.per_kv_token * context
        now += chunk * costs.per_prompt_token
        for j in batch:
            decodes[j] -= 1
        done |= {j: now for j in here if j not in done and not prompts[j] and not decodes[j]}
    ends = [min(done[i] + network, cut_at) for i in range(len(works))]
    return sum(work.utility(end - work.at) for work, end in zip(works, ends, strict=True))


@st.composite
def bursts(draw, largest=6):
    size = draw(st.integers(1, largest))
    spread = draw(st.sampled_from([0.0, 0.001, 0.03, 0.4]))
    utilities = st.sampled_from([URGENT, NORMAL, TimeUtility(0.05, -1.0, 3.0)])
    return [
        Work(
            draw(st.floats(0, 1)) * spread + i * spread,
            draw(st.integers(1, 60)),
            draw(st.integers(0, 6)),
            draw(utilities),
            100,
        )
        for i in range(size)
    ]


@settings(max_examples=8, deadline=None)
@given(bursts(9), st.sampled_from([FAST, SLOW, TABLE]), st.integers(1, 4), st.integers(0, 10**6))
def test_no_schedule_exceeds_the_bound(works, latency, max_batch, seed):
    costs, rng = EngineCosts.of(latency, max_batch), random.Random(seed)
    cut_at = max(work.at for work in works) + 0.5
    bound = total_bound(works, costs, max_batch, cut_at=cut_at)
    for _ in range(30):
        reached = random_schedule(works, costs, max_batch, 0.008, cut_at, rng)
        assert reached <= bound + 1e-9


@settings(max_examples=6, deadline=None)
@given(bursts(4), st.sampled_from([FAST, SLOW]), st.integers(1, 3), st.integers(0, 10**6))
def test_no_schedule_exceeds_the_exact_optimum_nor_that_the_bound(works, latency, max_batch, seed):
    costs, rng = EngineCosts.of(latency, max_batch), random.Random(seed)
    cut_at = max(work.at for work in works) + 60
    best = exact(works, costs, max_batch)
    # Chunks that do not end with an arrival may use a part of a token more.
    spare = 20 * len(works) * costs.per_prompt_token
    for _ in range(50):
        reached = random_schedule(works, costs, max_batch, 0.008, cut_at, rng)
        assert reached <= best + spare * (len({work.at for work in works}) > 1) + 1e-9
    assert best <= total_bound(works, costs, max_batch) + 1e-9


def test_one_goal_s_optimum_by_hand():
    costs = EngineCosts.of(FAST, 4)
    work = Work(5.0, 50, 9, URGENT)
    response = 50 * 3.6e-4 + 9 * 0.0218 + 0.008
    assert exact([work], costs, 4) == pytest.approx(URGENT(response))
    assert total_bound([work], costs, 4) == pytest.approx(URGENT(response))


def test_two_goals_optimum_by_hand():
    """Alone each takes 10 ms of prompt and a step of 100 ms; a step of both takes 110 ms."""
    costs = EngineCosts((0.1, 0.11), 0.01)
    utility = TimeUtility(0.0, -1.0, 1.0)
    works = [Work(0.0, 1, 1, utility), Work(0.0, 1, 1, utility)]
    together = 2 * (1 - (0.02 + 0.11))  # one after the other: 0.11 and 0.22
    assert exact(works, costs, 2, network=0) == pytest.approx(together)
    # The second is short enough beside a long one to go first.
    works = [Work(0.0, 1, 5, utility), Work(0.0, 1, 0, utility)]
    assert exact(works, costs, 2, network=0) == pytest.approx((1 - 0.01) + (1 - 0.52))


def test_a_clairvoyant_waits_for_whom_it_knows_to_come():
    costs = EngineCosts((0.1,), 0.0)
    lazy, sharp = TimeUtility(1.0, -1.0, 1.0), TimeUtility(0.1, -100.0, 1.0)
    works = [Work(0.0, 1, 1, lazy), Work(0.05, 1, 1, sharp)]
    assert exact(works, costs, 1, network=0) == pytest.approx(2.0)


def test_a_goal_is_worth_its_utility_at_the_cut_at_least():
    costs = EngineCosts((1.0,), 0.0)
    works = [Work(0.0, 1, 5, NORMAL), Work(0.0, 1, 5, NORMAL)]
    least = NORMAL(3.0)
    assert exact(works, costs, 1, cut_at=3.0) == pytest.approx(2 * least)
    assert total_bound(works, costs, 1, cut_at=3.0) == pytest.approx(2 * least)


def test_the_exact_search_knows_its_limits():
    costs = EngineCosts.of(FAST, 4)
    with pytest.raises(TooLarge, match="7 goals: the exact search takes at most 6"):
        exact([Work(0.0, 1, 1, NORMAL)] * 7, costs, 4)
    hard = [Work(0.0, 50 + i, 5, URGENT) for i in range(6)]
    with pytest.raises(TooLarge, match="visited 100 states"):
        exact(hard, costs, 4, max_states=100)
    assert exact([], costs, 4) == total_bound([], costs, 4) == 0.0


@pytest.mark.parametrize("preset", ["rtx4090-llama3-8b", "rtx4090-llama3-8b-slope2"])
def test_the_bound_is_within_two_percent_of_the_exact_optimum_on_fifty_bursts(preset):
    trace = workloads.make("bursts", seed=1)
    costs = EngineCosts.of(engine_presets.get(preset).latency, 6)
    parts: dict[float, list[Work]] = {}
    for work in works_of(trace.arrivals, KINDS):
        parts.setdefault(round(work.at), []).append(work)
    assert len(parts) == 50 and max(map(len, parts.values())) <= 6
    gaps = []
    for works in parts.values():
        best, bound = exact(works, costs, 6), total_bound(works, costs, 6)
        assert best <= bound + 1e-9
        gaps.append(bound / best - 1)
    assert max(gaps) <= 0.02


@pytest.mark.parametrize("load", [1.0, 12.0])
def test_no_policy_exceeds_the_bound(load):
    trace = workloads.make("wid2", load=load)
    trace = Trace(trace.name, trace.arrivals[:27])
    engine = engine_presets.get("rtx4090-llama3-8b")
    bound = upper_bound(trace, engine.latency, 6, kinds=KINDS, block_size=engine.block_size)
    for policy in policies.names():
        run = simulate(trace, Setting(policy, engine, max_batch=6))
        mean = np.mean([outcome.utility for outcome in run.outcomes])
        assert mean <= bound + 1e-9, policy


def test_no_policy_exceeds_the_bound_where_goals_wait_for_their_robots():
    trace = workloads.make("wid2", load=6.0, robots=5)
    trace = Trace(trace.name, trace.arrivals[:25])
    engine = engine_presets.get("rtx4090-llama3-8b")
    run = simulate(trace, Setting("edf", engine, max_batch=2))
    mean = np.mean([outcome.utility for outcome in run.outcomes])
    assert mean <= upper_bound(trace, engine.latency, 2, kinds=KINDS) + 1e-9


def test_finer_slots_lower_the_bound():
    costs = EngineCosts.of(FAST, 2)
    works = [Work(0.0, 50, 5, URGENT) for _ in range(5)]
    setup = Setup(works, costs, 2, 0.008, 60.0)
    coarse, fine = (relaxed(setup, np.arange(0.0, 1.01, width)) for width in (0.1, 0.02))
    assert fine.value < coarse.value - 0.1
    assert fine.loss.sum() < coarse.loss.sum()
    assert total_bound(works, costs, 2) <= coarse.value


def test_a_class_ends_a_stretch_of_equal_utility():
    setup = Setup([Work(0.0, 0, 5, URGENT)], EngineCosts((0.02,), 0.0), 1, 0.0, 60.0)
    classes = classes_of(setup, 0, np.array([0.0, 0.05, 0.1, 0.2, 0.25, 0.3]))
    assert [(c.end, round(c.utility, 3)) for c in classes] == [(4, 2.0), (5, 1.667)]


def test_groups_part_where_the_engine_is_idle_and_are_not_too_large():
    costs = EngineCosts((0.1,), 0.0)
    works = [Work(at, 1, 1, NORMAL) for at in (0.0, 0.01, 0.02, 0.5, 0.55, 0.56, 0.64, 0.65)]
    setup = Setup(works, costs, 1, 0.0, 60.0)
    assert [len(group) for group in groups(setup, 16)] == [3, 5]
    assert [len(group) for group in groups(setup, 4)] == [3, 3, 2]
    assert [work for group in groups(setup, 2) for work in group] == works


def test_first_segments_of_published_tasks_and_texts():
    """``?s('cat')`` is four tokens, ``mu(40)`` ends within the fourth, task 1 has one segment."""
    tasks = published()
    counts = [first_tokens(task, KINDS[task.kind]) for task in tasks[:3]]
    assert counts == [4, len(tasks[1].tokens), 4]
    words = ("One", " two", ".", " Three", " four", ".")
    reader = Task("story", "reader", "", words, NORMAL, Urgency.NORMAL, "", 0, 30)
    assert first_tokens(reader, TEXT_KINDS["reader"]) == 4
    assert first_tokens(reader, reader_kind("text", Reading("whole", 0.0))) == 6
    (work,) = works_of([Arrival(2.0, "robot", reader)], KINDS)
    assert (work.at, work.prompt, work.decodes, work.cached) == (2.0, 30, 3, 0)


def test_a_shared_prompt_counts_in_whole_blocks():
    task = published()[0]
    arrival = Arrival(0.0, "robot", task)
    (work,) = works_of([arrival], KINDS, block_size=16)
    assert work.cached == 2896 and work.prompt == task.prompt_tokens + 4
    (whole,) = works_of([arrival], KINDS)
    assert whole.cached == 2900 and whole.prompt == task.prompt_tokens


def test_costs_are_read_off_an_engine():
    costs = EngineCosts.of(SLOW, 3)
    assert costs.decode_times == pytest.approx((0.03, 0.034, 0.038))
    assert costs.per_prompt_token == pytest.approx(1e-3)
    assert costs.per_kv_token == pytest.approx(2e-7)
    square = EngineCosts.of(
        StepLatency((0.01,), per_prefill_token=1e-4, per_prefill_square=1e-6), 1
    )
    assert square.per_prompt_token == pytest.approx(1.01e-4)  # token by token costs least


def test_facets_are_the_lower_hull_of_a_table():
    costs = EngineCosts((0.014, 0.027, 0.03, 0.06), 0.0)
    for size, time in enumerate(costs.decode_times, 1):
        assert max(q + m * size for q, m in costs.facets) <= time + 1e-12
    assert max(q + m * 3 for q, m in costs.facets) == pytest.approx(0.03)
    assert max(q + m * 2 for q, m in costs.facets) == pytest.approx(0.022)


def test_bad_input_is_named():
    engine = engine_presets.get("rtx4090-llama3-8b")
    with pytest.raises(ValueError, match="trace 'nothing' has no arrivals"):
        upper_bound(Trace("nothing", ()), engine.latency, 4, kinds=KINDS)
    trace = Trace("one", (Arrival(0.0, "robot", published()[0]),))
    with pytest.raises(ValueError, match="kind 'tello' is not in kinds"):
        upper_bound(trace, engine.latency, 4, kinds={})
    with pytest.raises(ValueError, match="max_batch is 0: must be at least 1"):
        upper_bound(trace, engine.latency, 0, kinds=KINDS)

    def hidden(batch, prompt, cached):
        return max(0.02 * (batch > 0), 1e-4 * prompt)

    with pytest.raises(ValueError, match="less than the"):
        upper_bound(trace, hidden, 4, kinds=KINDS)
