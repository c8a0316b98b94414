"""Workloads against what the papers publish, their determinism, and what load and seed touch."""

import json
import random
import statistics
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.language.parser import PlanError, parse
from timely_llm.protocols.utility import TimeUtility, Urgency
from timely_llm.simulation.workloads import arrivals, text_tasks
from timely_llm.simulation.workloads import published as workloads
from timely_llm.simulation.workloads.composition import compose, split
from timely_llm.simulation.workloads.published import make, names, scale
from timely_llm.simulation.workloads.tasks import cut, published, skill_sets

DATA = Path(__file__).parents[3] / "timely_llm" / "data"
WID2 = json.loads((DATA / "lrtrace_wid2.json").read_text())
TASKS = json.loads((DATA / "lrtrace_tasks.json").read_text())["tasks"]


def gaps(trace):
    return [b - a for a, b in pairwise([0.0, *(arrival.at for arrival in trace.arrivals)])]


def without_times(trace):
    return replace(trace, arrivals=tuple(replace(each, at=0.0) for each in trace.arrivals))


# The published tasks


def test_the_tasks_are_the_published_ones():
    assert [task.plan for task in published()] == [entry["plan"] for entry in TASKS]
    assert [task.instruction for task in published()] == [entry["task"] for entry in TASKS]
    assert [task.kind for task in published()] == ["tello"] * 8 + ["indy7"] * 3
    urgent = [task.urgency is Urgency.URGENT for task in published()]
    assert urgent == [False] * 5 + [True] * 3 + [False] * 3


def test_a_task_has_as_many_tokens_as_its_time_alone_holds_steps():
    counts = [len(task.tokens) for task in published()]
    assert counts == [14, 11, 21, 15, 16, 14, 8, 8, 55, 81, 77]
    alone = [entry["plan_time_s_llama3_8b_4090_alone"] for entry in TASKS]
    assert all(abs(n * 0.0218 - t) <= 0.0109 for n, t in zip(counts, alone, strict=True))


def test_the_time_utilities_are_those_of_the_paper():
    normal, urgent = TimeUtility(1.0, -2.0, 1.0), TimeUtility(0.2, -6.6667, 2.0)
    assert [task.utility for task in published()] == [normal] * 5 + [urgent] * 3 + [normal] * 3


@given(st.text(min_size=1), st.integers(1, 200))
def test_a_cut_text_is_whole_and_has_the_tokens_asked_for(text, count):
    tokens = cut(text, count)
    assert "".join(tokens) == text
    assert len(tokens) == min(count, len(text)) and all(tokens)


def test_a_cut_follows_the_words_of_llama_3():
    assert cut("mu(50);ml(50);", 8) == ("mu", "(", "50", ");", "ml", "(", "50", ");")
    assert cut("mu(50);ml(50);", 7) == ("mu(", "50", ");", "ml", "(", "50", ");")
    with pytest.raises(ValueError, match="no tokens"):
        cut("", 1)
    with pytest.raises(ValueError, match="count is 0"):
        cut("a", 0)


# WID1 to WID3


def test_wid2_is_the_published_file():
    trace = make("wid2", seed=7)
    wanted = [
        (at + 0.001 * i, TASKS[task]["plan"], TASKS[task]["task"])
        for at, ids in zip(WID2["event_time_s"], WID2["event_tasks"], strict=True)
        for i, task in enumerate(ids)
    ]
    found = [(each.at, each.task.plan, each.task.instruction) for each in trace.arrivals]
    assert found == sorted(wanted, key=lambda each: each[0])
    assert len(found) == 532
    best = sum(each.task.utility.beta for each in trace.arrivals) / len(trace.arrivals)
    assert round(best, 3) == 1.397


def test_wid2_seeds_differ_in_true_durations_alone():
    one, two = make("wid2", 1), make("wid2", 2)
    assert one.arrivals != two.arrivals
    none = [replace(each, durations=()) for each in one.arrivals]
    assert none == [replace(each, durations=()) for each in two.arrivals]


@pytest.mark.parametrize(
    ("name", "kind", "most", "rate", "time"),
    [("wid1", "tello", 8, 0.25, 260.0), ("wid3", "indy7", 8, 0.1, 900.0)],
)
def test_drawn_events_are_those_of_table_3(name, kind, most, rate, time):
    events, sizes, tasks = [], Counter(), Counter()
    for seed in range(40):
        trace = make(name, seed)
        parts = split(trace, 0.0011)
        events.append(len(parts))
        sizes.update(len(part.arrivals) for part in parts)
        tasks.update(each.task.name for each in trace.arrivals)
        assert trace.arrivals[-1].at < time + most * 0.001
        assert {each.task.kind for each in trace.arrivals} == {kind}
    assert statistics.mean(events) == pytest.approx(rate * time, rel=0.08)  # 3 standard errors: 6%
    assert max(sizes) <= 2 * most  # two events may touch
    assert min(sizes[n] for n in range(1, most + 1)) > 100 * max(
        sizes[n] for n in range(most + 1, 2 * most + 1)
    )
    assert len(tasks) == (8 if kind == "tello" else 3)
    assert max(tasks.values()) < 1.25 * min(tasks.values())


def test_true_durations_are_from_the_published_distributions():
    seen = {}
    for name in ("wid2", "wid3"):
        for each in make(name, 5).arrivals:
            calls = parse(each.task.plan, skill_sets()[each.task.kind])
            for call, time in zip(calls, each.durations, strict=True):
                seen.setdefault((each.task.kind, call.name, call.arguments), set()).add(time)
    assert seen["tello", "mr", ("50",)] == {0.0072 * 50 + 1.8144}
    assert seen["tello", "d", ("3",)] == {3.0}
    assert seen["tello", "s", ("'cat'",)] == {1.5275 * k for k in range(1, 9)}
    assert seen["tello", "iv", ("'keys'",)] == {0.001}
    for (kind, call, _), times in seen.items():
        low, high = {"sc": (1, 3), "gt": (0.8, 5.5), "pi": (3, 4.2), "dr": (3, 4.2)}.get(
            call, (0, 100)
        )
        assert all(low <= time <= high for time in times)
        assert kind == "tello" or call == "d" or len(times) > 50


# What holds for all


@pytest.mark.parametrize("name", names())
def test_the_same_arguments_give_the_same_trace(name):
    assert make(name, 3, 2.5) == make(name, 3, 2.5)


@pytest.mark.parametrize("name", sorted({*names()} - {"slice_table2"}))
def test_another_seed_gives_another_trace(name):
    assert make(name, 3).arrivals != make(name, 4).arrivals


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("load", [0.25, 3, 12.0])
def test_load_divides_inter_arrival_times_and_touches_nothing_else(name, load):
    plain, loaded = make(name, 1), make(name, 1, load)
    assert without_times(loaded) == without_times(plain)
    assert gaps(loaded) == pytest.approx([gap / load for gap in gaps(plain)], abs=1e-9)
    assert loaded == scale(plain, load)


@pytest.mark.parametrize("load", [0, -1, float("inf"), float("nan")])
def test_a_load_must_be_above_0_and_finite(load):
    with pytest.raises(ValueError, match="load is"):
        make("wid2", load=load)


@pytest.mark.parametrize("name", names())
def test_arrivals_are_in_order_and_each_on_its_own_robot(name):
    trace = make(name, 2)
    times = [each.at for each in trace.arrivals]
    assert times == sorted(times) and times[0] >= 0
    assert len({each.robot_id for each in trace.arrivals}) == len(times)
    assert trace.source


@pytest.mark.parametrize("name", names())
def test_robots_can_be_shared_in_turn(name):
    shared = make(name, 2, robots=4)
    robots = [each.robot_id for each in shared.arrivals]
    assert len(set(robots)) == 4
    assert robots == [robots[i % 4] for i in range(len(robots))]
    own = make(name, 2)
    assert [replace(each, robot_id="") for each in shared.arrivals] == [
        replace(each, robot_id="") for each in own.arrivals
    ]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: make("wid22"), "workload 'wid22' is unknown: did you mean 'wid2'?"),
        (lambda: make("slice", rat=2), "option of slice 'rat' is unknown: did you mean 'rate'?"),
        (lambda: make("slice_table2", rate=2), "option of slice_table2 'rate' is unknown"),
        (lambda: make("wid2", robots=0), "robots is 0: must be at least 1"),
        (lambda: make("wid1", rate=-0.1), "rate is -0.1/s: must be finite and above 0"),
        (lambda: make("wid1", max_tasks=0), "max_tasks is 0: must be at least 1"),
        (lambda: make("wid3", time=1e-3), "workload wid3 with seed 0 has no task"),
        (lambda: make("wid3", time=0.0), "time is 0 s: must be finite and above 0"),
        (lambda: make("slice", count=0), "count is 0: must be at least 1"),
        (lambda: make("slice", real_time=7), "real_time is 7: must be 0 to 1"),
        (lambda: make("semantic", gap=0), "gap is 0 s: must be finite and above 0"),
        (lambda: make("elis", model="lam70"), "model 'lam70' is unknown"),
        (lambda: make("chat", words=0), "words is 0: must be at least 1"),
        (lambda: make("bursts", max_tasks=1), "max_tasks is 1: must be at least 2"),
    ],
)
def test_what_cannot_be_made_is_refused_by_name(call, text):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value).startswith(text)


# Other papers


def test_slice_mixes_seven_real_time_tasks_with_three_others():
    found = [each for seed in range(20) for each in make("slice", seed).arrivals]
    share = sum(each.task.name == "control" for each in found) / len(found)
    assert share == pytest.approx(0.7, abs=0.02)
    targets = {each.task.name: each.task.tpot for each in found}
    assert targets == {"control": 1 / 20, "voice": 1 / 8, "question": 1 / 10}
    assert all(each.durations == () for each in found)
    tokens = statistics.mean(len(each.task.tokens) for each in found)
    assert tokens == pytest.approx(0.7 * 20 + 0.3 * 250, rel=0.05)


def test_a_real_time_task_of_slice_can_end_in_time():
    for each in make("slice", 1).arrivals:
        task = each.task
        if task.name == "control":
            assert task.ttft + task.tpot * len(task.tokens) <= task.utility.ert == 1.5


@pytest.mark.parametrize("rate", [0.1, 1, 7])
def test_slice_arrives_at_its_rate(rate):
    trace = make("slice", 0, rate=rate, count=2000)
    assert len(trace.arrivals) / trace.arrivals[-1].at == pytest.approx(rate, rel=0.06)


def test_slice_table_2_has_its_nine_tasks_at_once():
    trace = make("slice_table2")
    targets = [each.task.tpot for each in trace.arrivals]
    assert targets == [0.1] * 3 + [0.12] * 4 + [0.25] * 2
    assert {each.at for each in trace.arrivals} == {0.0}


def test_semantic_spikes_come_every_gap_with_at_most_so_many():
    trace = make("semantic", 1)
    at_once = Counter(round(each.at, 6) for each in trace.arrivals)
    assert sorted(at_once) == [round(0.1 * i, 6) for i in range(len(at_once))]
    assert max(at_once.values()) <= 100 and len(trace.arrivals) == 1000
    assert {each.task.urgency for each in trace.arrivals} == set(Urgency) - {Urgency.UNSPECIFIED}
    lengths = {len(each.task.tokens) for each in trace.arrivals}
    assert lengths == set(range(1, 51))


def test_elis_has_the_lengths_and_gaps_of_the_paper():
    found = [make("elis", seed) for seed in range(30)]
    lengths = [len(each.task.tokens) for trace in found for each in trace.arrivals]
    assert statistics.mean(lengths) == pytest.approx(176, rel=0.03)
    assert statistics.stdev(lengths) == pytest.approx(140, rel=0.04)
    times = [gap for trace in found for gap in gaps(trace)]
    assert statistics.mean(times) == pytest.approx(8.6102 / 4, rel=0.03)
    spread = statistics.variance(times) / statistics.mean(times) ** 2
    assert spread == pytest.approx(1 / 0.73, rel=0.06)


def test_a_story_is_read_at_300_words_a_minute_whatever_its_segments():
    sentences, paragraphs = make("chat", 3), make("chat_paragraphs", 3)
    for one, other in zip(sentences.arrivals, paragraphs.arrivals, strict=True):
        assert (one.at, one.task.tokens) == (other.at, other.task.tokens)
        words = len(one.task.plan.split())
        assert 400 <= words < 424
        assert sum(one.durations) == pytest.approx(words / 5)
        assert sum(other.durations) == pytest.approx(words / 5)
        assert len(one.durations) == one.task.plan.count(".")
        assert len(other.durations) == one.task.plan.count("\n\n") + 1
        assert one.task.tokens == other.task.tokens
    assert {each.task.kind for each in sentences.arrivals} == {"reader"}


def test_bursts_are_small_and_apart():
    trace = make("bursts", 4)
    parts = split(trace, 60.0)
    assert len(parts) == 50 and {len(part.arrivals) for part in parts} == {2, 3, 4, 5, 6}
    assert all(part.arrivals[0].at == 0 and part.arrivals[-1].at < 0.01 for part in parts)
    assert max(sum(each.durations) for each in trace.arrivals) < 60
    assert sum((part.arrivals for part in parts), ())[5].task == trace.arrivals[5].task


# Arrivals and composition


@given(st.integers(0, 2**32), st.floats(0.01, 100))
def test_poisson_times_grow_and_end(seed, rate):
    counted = arrivals.poisson(rate, random.Random(seed), count=20)
    assert len(counted) == 20 and counted == sorted(counted) and counted[0] > 0
    until = arrivals.poisson(rate, random.Random(seed), until=counted[9])
    assert until == counted[:9]


def test_gamma_gaps_are_those_of_the_log():
    times = arrivals.gamma(20_000, random.Random(1))
    found = [b - a for a, b in pairwise([0.0, *times])]
    assert statistics.mean(found) == pytest.approx(0.73 * 10.41, rel=0.03)
    assert statistics.variance(found) == pytest.approx(0.73 * 10.41**2, rel=0.08)


def test_tasks_are_composed_by_hand():
    cat, dog = published()[0], published()[6]
    trace = compose("mine", [(5.0, [cat]), (1.0, [dog, cat])], seed=2)
    assert [(each.at, each.task) for each in trace.arrivals] == [(1.0, dog), (1.001, cat), (5, cat)]
    assert [each.robot_id for each in trace.arrivals] == ["tello_0", "tello_1", "tello_2"]
    assert [len(each.durations) for each in trace.arrivals] == [2, 2, 2]
    with pytest.raises(PlanError):
        compose("mine", [(0.0, [replace(cat, tokens=("?s(",))])])


def test_every_workload_and_constant_is_documented():
    text = (DATA.parents[1] / "docs" / "evaluation.md").read_text()
    assert all(f"`{name}`" in text for name in names())
    assert all(maker.__doc__ for maker in workloads.WORKLOADS.values())
    assert all(f"`{kind}`" in text for kind in text_tasks.TEXT_KINDS)
