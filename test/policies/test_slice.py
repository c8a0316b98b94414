"""SLICE: periods, selection and columns worked out by hand, and its Table II."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import STATES, state, view, views

from timely_llm.estimation.step_time import StepLatency
from timely_llm.policies import View
from timely_llm.policies.slice import (
    DEFAULT_TPOT,
    MAX_RATE,
    PERIOD,
    choose,
    missed,
    period,
    rank,
    rate,
    select,
    utility_rate,
)
from timely_llm.protocols.utility import TimeUtility

CHATGLM = (14, 27, 38, 50, 60, 72, 83, 125, 126, 123, 124, 125, 126, 123, 124)  # ms, Figure 1a
QUICK = StepLatency((0.001,))


def chatglm(batch: int, prefill_tokens: int, kv_tokens: int) -> float:
    return CHATGLM[batch - 1] / 1000 if batch else 1e-4 * prefill_tokens


def task(number: int, tpot: float, worth: float = 1.0, **fields) -> View:
    """One that is being written: its prompt is computed."""
    utility = TimeUtility(1.0, -1.0, worth)
    known = {"kv_tokens": 30, "written": 5, "first_token": 0.1, "running": True}
    return view(number, tpot=tpot, utility=utility, **(known | fields))


def numbers(ids: tuple[str, ...]) -> list[int]:
    return [int(name[1:]) for name in ids]


# Rates and utility rates.


@pytest.mark.parametrize(
    ("tpot", "tokens"),
    [(0.1, 10), (0.12, 9), (0.25, 4), (0.05, 20), (1.0, 1), (3.0, 1), (1e-9, 1000)],
)
def test_the_rate_is_rounded_up(tpot, tokens):
    assert rate(task(1, tpot)) == tokens <= MAX_RATE


def test_without_a_target_it_counts_as_a_real_time_task():
    assert rate(task(1, 0.0)) == 20
    assert utility_rate(task(1, 0.0, worth=3.0)) == pytest.approx(3 * DEFAULT_TPOT)


def test_the_utility_rate_is_utility_by_target():
    """Eq. 6: worth 1 at 4 tokens/s gives more for a token than worth 2 at 10 tokens/s."""
    slow, quick = task(2, 0.25, worth=1.0), task(1, 0.1, worth=2.0)
    assert (utility_rate(slow), utility_rate(quick)) == (pytest.approx(0.25), pytest.approx(0.2))
    assert [v.number for v in rank([quick, slow], 0.0)] == [2, 1]
    assert [v.number for v in rank([slow, quick._replace(utility=TimeUtility(1, -1, 100))], 0)] == [
        1,
        2,
    ]


# Eq. 7.


def test_the_period_of_figure_4_by_hand():
    """One step with all four, one with three, two with two, two alone."""
    times = [0.01, 0.02, 0.04, 0.08]
    assert period([6, 4, 2, 1], times) == pytest.approx(0.08 + 0.04 + 2 * 0.02 + 2 * 0.01)


def test_the_period_of_table_2_by_hand():
    """Rates 10 10 10, 9 9 9 9, 4 4: four steps with nine, five with seven, one with three."""
    rates = [10] * 3 + [9] * 4 + [4] * 2
    by_hand = 4 * 0.126 + 5 * 0.083 + 1 * 0.038
    assert period(rates, [chatglm(b, 0, 0) for b in range(1, 10)]) == pytest.approx(by_hand)
    assert by_hand == pytest.approx(0.957)


# Selection.


def table_2() -> list[View]:
    targets = [0.1] * 3 + [0.12] * 4 + [0.25] * 2
    return [task(n, tpot) for n, tpot in enumerate(targets, 1)]


def test_all_nine_tasks_of_table_2_are_selected_and_a_tenth_is_not():
    engine = state(15, latency=chatglm)
    assert len(select(rank(table_2(), 0.0), engine)) == 9
    ten = [*table_2(), task(10, 0.1)]  # 4 x 123 + 5 x 125 + 1 x 50 = 1167 ms
    assert [v.number for v in select(rank(ten, 0.0), engine)] == [8, 9, 4, 5, 6, 7, 1, 2, 3]


def test_every_task_of_table_2_meets_its_target():
    """A period has ten steps; its figures are the paper's A 94 and B 107 ms."""
    some, engine = table_2(), state(15, latency=chatglm)
    tokens, time = Counter(), 0.0
    for step in range(1000):
        run = choose(0.0, some, engine._replace(steps=step)).run
        tokens.update(numbers(run))
        time += chatglm(len(run), 0, 0)
    measured = {v.number: time / tokens[v.number] for v in some}
    assert all(measured[v.number] <= v.tpot for v in some)
    assert measured[1] == pytest.approx(0.0957)
    assert measured[4] == pytest.approx(0.957 / 9)
    assert measured[8] == pytest.approx(0.957 / 4)


def test_a_period_of_exactly_1_s_is_too_long():
    """Ten steps of 0.1 s."""
    engine = state(latency=lambda batch, prefill, kv: 0.1)
    assert len(select([task(1, 0.25), task(2, 0.1)], engine)) == 1
    assert len(select([task(1, 0.25), task(2, 0.12)], engine)) == 2


def test_behind_one_that_does_not_fit_nobody_is_tried():
    engine = state(latency=lambda batch, prefill, kv: 0.02 * batch)
    some = [task(1, 0.05, 10.0), task(2, 0.02, 20.0), task(3, 1.0, 0.1)]
    assert [v.number for v in rank(some, 0.0)] == [1, 2, 3]
    assert [v.number for v in select(some, engine)] == [1]


def test_one_that_fits_in_no_period_runs_all_the_same():
    engine = state(latency=lambda batch, prefill, kv: 0.3)
    assert choose(0.0, [task(1, 0.05)], engine).run == ("p1",)


def test_a_batch_is_not_exceeded():
    engine = state(2, latency=QUICK)
    assert len(select([task(n, 0.1) for n in range(5)], engine)) == 2


def test_the_context_of_a_batch_counts():
    """0.1 ms for each token: 1,000 each; two at 4/s take 4 x 0.2 s, three 4 x 0.3 s."""
    engine = state(latency=lambda batch, prefill, kv: 1e-4 * kv)
    assert len(select([task(n, 0.25, kv_tokens=1000) for n in range(3)], engine)) == 2


# TTFT.


def test_one_that_missed_its_first_token_goes_behind_all_that_can_meet_theirs():
    """Eq. 2 with its sign put right."""
    late = task(1, 0.1, worth=100.0, ttft=0.25, arrival=0.0, first_token=0.3)
    in_time = task(2, 0.1, ttft=0.25, arrival=0.0, first_token=0.2)
    waits = task(3, 0.1, ttft=1.0, arrival=4.5, first_token=-1.0, written=0)
    assert [missed(v, 5.0) for v in (late, in_time, waits)] == [True, False, False]
    assert missed(waits, 5.6)
    assert [v.number for v in rank([late, waits, in_time], 5.0)] == [2, 3, 1]


def test_a_real_time_task_counts_until_its_time_budget_is_over():
    """However late its first token came: section VI-A scores it by its deadline alone."""
    begun = {"ttft": 0.25, "arrival": 0.0, "first_token": 0.4}
    real_time = task(1, 0.05, worth=100.0, time_budget=1.5, **begun)
    other = task(2, 0.1, **begun)
    assert [missed(v, 1.4) for v in (real_time, other)] == [False, True]
    assert missed(real_time, 1.6)
    waits = task(3, 0.05, time_budget=1.5, arrival=1.0, first_token=-1.0, written=0)
    assert not missed(waits, 2.4) and missed(waits, 2.6)


def test_prompts_are_computed_at_once_the_nearest_ttft_first():
    """Column 15 of 20: only who has 20 tokens/s is in it."""
    fresh = {"kv_tokens": 0, "uncached": 30, "written": 0, "first_token": -1.0, "running": False}
    some = [
        task(1, 0.05),
        task(2, 0.25),
        task(3, 0.25, **fresh),
        task(4, 0.25, ttft=1.0, **fresh),
        task(5, 0.05, ttft=0.5, **fresh),
    ]
    assert choose(0.0, some, state(8, latency=QUICK, steps=35)).run == ("p1", "p5", "p4", "p3")


# Columns.


def test_the_columns_of_figure_4():
    some = [task(0, 1 / 6), task(1, 1 / 4), task(2, 1 / 2), task(3, 1.0)]
    engine = state(latency=QUICK)
    columns = [
        sorted(numbers(choose(0.0, some, engine._replace(steps=step)).run)) for step in range(8)
    ]
    assert columns == [[0, 1, 2, 3], [0, 1, 2], [0, 1], [0, 1], [0], [0], [0, 1, 2, 3], [0, 1, 2]]


def test_who_is_not_in_the_column_keeps_its_blocks_longest():
    """Three fit in a period; of the two others, the one that is worth less gives up first."""
    engine = state(3, latency=QUICK, steps=3)
    some = [task(n, 0.25, worth=10.0 - n) for n in range(4)] + [task(4, 0.05, worth=100.0)]
    decision = choose(0.0, some, engine)
    assert (decision.run, decision.hold) == (("p4", "p0", "p1"), ("p3", "p2"))
    decision = choose(0.0, some, engine._replace(steps=4))
    assert (decision.run, decision.hold) == (("p4",), ("p3", "p2", "p1", "p0"))


@given(some=views(), engine=STATES, now=st.floats(0, 150))
def test_a_selection_fits_in_a_period_or_is_one(some, engine, now):
    selected = select(rank(some, now), engine)
    rows = sorted(selected, key=lambda v: (-rate(v), v.number))
    context, times = 0, []
    for size, row in enumerate(rows, 1):
        context += row.kv_tokens
        times.append(engine.latency(size, 0, context))
    assert len(selected) <= 1 or period([rate(v) for v in rows], times) < PERIOD
    assert bool(selected) == bool(some)


@given(some=views(), engine=STATES, steps=st.integers(0, 10_000))
def test_each_turn_of_the_columns_gives_everyone_its_tokens(some, engine, steps):
    """As long as nothing changes and memory suffices, wherever the turn begins."""
    some = [v._replace(uncached=0, kv_tokens=1, worst_tokens_left=1.0) for v in some]
    selected = select(rank(some, 0.0), engine)
    turn = max(map(rate, selected), default=0)
    engine = engine._replace(kv_tokens_free=3000)
    tokens = Counter()
    for step in range(steps, steps + turn):
        tokens.update(choose(0.0, some, engine._replace(steps=step)).run)
    assert tokens == {v.id: rate(v) for v in selected}
