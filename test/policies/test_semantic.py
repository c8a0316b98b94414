"""Semantic scheduling: batches, evictions and keep-or-recompute, worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import STATES, state, view, views

from timely_llm.policies import View
from timely_llm.policies.semantic import choose, remaining_time, tokens_to_keep


def writing(number: int, urgency: int, rest: float, **fields) -> View:
    """Its prompt is computed, and it was in the last batch."""
    known = {"kv_tokens": 100, "worst_tokens_left": 1.0, "running": True, "predicted": rest}
    return view(number, urgency=urgency, **(known | fields))


def prompt(number: int, urgency: int, rest: float = 10.0, **fields) -> View:
    known = {"uncached": 50, "worst_tokens_left": 1.0, "predicted": rest}
    return view(number, urgency=urgency, **(known | fields))


def suspended(number: int, urgency: int, rest: float, **fields) -> View:
    return writing(number, urgency, rest, **({"running": False} | fields))


# Who goes first.


def test_remaining_time_by_hand():
    """100 tokens at 20 ms and 50 prompt tokens at 0.1 ms; unasked, the segment's tokens."""
    assert remaining_time(prompt(1, 3, 100.0), state()) == pytest.approx(2.005)
    assert remaining_time(view(1), state()) == pytest.approx(0.08)


def test_urgency_goes_first_then_the_shortest_rest_then_the_number():
    some = [
        writing(1, 3, 5.0),
        writing(2, 1, 90.0),
        writing(3, 2, 30.0),
        writing(4, 2, 20.0),
        writing(5, 2, 20.0),
    ]
    assert choose(0.0, some, state(4)).run == ("p2", "p4", "p5", "p3")


def test_an_urgent_prompt_takes_the_place_of_one_that_runs():
    some = [writing(1, 3, 5.0), prompt(2, 1, 90.0)]
    assert choose(0.0, some, state(1)).run == ("p2",)
    assert choose(0.0, some, state(1)).hold == ("p1",)


# Stages.


def test_prompts_wait_while_the_best_one_decodes():
    """There is room for four; those that are suspended between segments may join."""
    some = [writing(1, 1, 50.0), prompt(2, 2), prompt(3, 3), suspended(4, 3, 9.0)]
    assert choose(0.0, some, state(4)).run == ("p1", "p4")


def test_all_are_merged_where_the_best_one_s_prompt_is_to_be_computed():
    some = [writing(1, 2, 50.0), prompt(2, 1), prompt(3, 3), suspended(4, 3, 9.0)]
    assert choose(0.0, some, state(4)).run == ("p2", "p1", "p4", "p3")


def test_a_prompt_in_part_computed_is_ongoing_and_goes_on():
    some = [writing(1, 1, 50.0), prompt(2, 2, kv_tokens=20, running=True), prompt(3, 2)]
    assert choose(0.0, some, state(4)).run == ("p1", "p2")


def test_only_as_many_as_a_batch_holds_come_off_the_heap():
    """Algorithm 2 takes the two best that wait, which are prompts, and pushes them back: the one
    behind them, which could decode, is not looked at."""
    some = [writing(1, 1, 50.0), prompt(2, 2), prompt(3, 2), suspended(4, 3, 9.0)]
    assert choose(0.0, some, state(2)).run == ("p1",)
    assert choose(0.0, some, state(3)).run == ("p1", "p4")


# Eviction.


def test_the_least_urgent_with_the_longest_rest_is_evicted_first_and_no_more_than_needed():
    """The prompt needs 51 tokens; 20 are free. p3's 100 are enough."""
    some = [
        prompt(1, 1),
        suspended(2, 4, 10.0),
        suspended(3, 4, 80.0),
        suspended(4, 3, 99.0),
    ]
    decision = choose(0.0, some, state(1, free=20))
    assert (decision.run, decision.evict, decision.hold) == (("p1",), ("p3",), ("p2", "p4"))
    decision = choose(0.0, [v._replace(kv_tokens=20) for v in some[1:]] + some[:1], state(1, 20))
    assert (decision.evict, decision.hold) == (("p2", "p3"), ("p4",))
    assert choose(0.0, some, state(1, free=51)).evict == ()


def test_nobody_evicts_a_better_one():
    some = [suspended(1, 1, 10.0), prompt(2, 2), writing(3, 1, 5.0)]
    decision = choose(0.0, some, state(3, free=20))
    assert (decision.run, decision.evict) == (("p3", "p1"), ())


def test_one_that_runs_gives_way_to_a_more_urgent_one():
    some = [prompt(1, 1), prompt(2, 2), writing(3, 3, 10.0)]
    decision = choose(0.0, some, state(3, free=60))
    assert (decision.run, decision.evict, decision.hold) == (("p1", "p2"), ("p3",), ())


def test_behind_one_that_lacks_memory_nobody_begins():
    """p2 needs 551 tokens and gets the 100 of p4 at best; p3 would fit."""
    some = [prompt(1, 1), prompt(2, 2, uncached=550), prompt(3, 3), writing(4, 1, 1.0)]
    decision = choose(0.0, some, state(4, free=200))
    assert decision.run == ("p4",)  # the best one decodes: no prompts
    some[3] = writing(4, 2, 1.0)
    assert choose(0.0, some, state(4, free=200)).run == ("p1", "p4")


# Keep or recompute.


@pytest.mark.parametrize(("rest", "evict"), [(4.0, ()), (6.0, ("p3",))])
def test_in_one_level_the_victim_keeps_what_takes_longer_to_compute_than_the_wait(rest, evict):
    """1,000 tokens take 0.1 s to compute again. Who runs ends in 4 or in 6 steps of 20 ms."""
    some = [
        writing(1, 2, rest),
        suspended(2, 2, 20.0, kv_tokens=1, worst_tokens_left=60.0),
        suspended(3, 2, 300.0, kv_tokens=1000),
    ]
    decision = choose(0.0, some, state(2, free=10))
    assert decision.evict == evict
    assert decision.run == (("p1", "p2") if evict else ("p1",))


def test_across_levels_cost_does_not_count():
    some = [
        writing(1, 2, 1.0),
        suspended(2, 2, 20.0, kv_tokens=1, worst_tokens_left=60.0),
        suspended(3, 3, 300.0, kv_tokens=10_000),
    ]
    assert choose(0.0, some, state(2, free=10)).evict == ("p3",)


# The paper's own coefficients, Qwen1.5-4B on an A100 (appendix B).

SQUARE, LINEAR = 1.466e-9, 1.052e-4  # prefill
PER_TOKEN, STEP = 5.913e-9, 1.196e-2  # decoding
LOAD = 1e-4


def prefill(tokens: int) -> float:
    return SQUARE * tokens**2 + LINEAR * tokens


def decode_behind(prompt_tokens: int):
    """Eq. 4: the time to decode the first n tokens behind a prompt."""
    return lambda n: PER_TOKEN * (n**2 / 2 + prompt_tokens * n + n / 2) + STEP * n


def test_eq_3_the_right_way_round():
    """Loading at 0.1 ms a token beats computing at 0.1052 ms and more; with saving at the same
    speed beside it, only from (2e-4 - 1.052e-4)/1.466e-9 = 64,666 tokens on."""
    assert tokens_to_keep(100, LOAD * 100, prefill) == 100
    for tokens, kept in ((1000, 0), (64_600, 0), (64_700, 64_700)):
        assert tokens_to_keep(tokens, 2 * LOAD * tokens, prefill) == kept


@pytest.mark.parametrize("load", [1e-5, 1e-4, 1.06e-4, 2e-4, 1e-2, 2e-2])
@pytest.mark.parametrize("recompute", [prefill, decode_behind(40)])
def test_keeping_all_or_nothing_costs_least(load, recompute):
    """Every number of tokens tried: what is kept is loaded, what comes behind is computed."""
    tokens = 300
    costs = [load * k + recompute(tokens) - recompute(k) for k in range(tokens + 1)]
    assert costs[tokens_to_keep(tokens, load * tokens, recompute)] == pytest.approx(min(costs))


def eq_5(kept: int, decoded: int, n: int, load: float, gamma_1: float, gamma_2: float) -> float:
    x = decoded - kept
    return load * kept + gamma_1 * (x**2 / 2 + n * x + x / 2) + gamma_2 * x


def printed_eq_6(n: int, load: float, gamma_1: float, gamma_2: float) -> float:
    return max(0.0, (load - gamma_1 * n - (gamma_1 + 2 * gamma_2) / 2) / (2 * gamma_1))


def corrected_eq_6(decoded: int, n: int, load: float, gamma_1: float, gamma_2: float) -> float:
    x = (load - gamma_1 * n - (gamma_1 + 2 * gamma_2) / 2) / gamma_1
    return max(0.0, min(decoded, decoded - x))


@pytest.mark.parametrize(
    ("coefficients", "decoded", "n"),
    [
        ((LOAD, PER_TOKEN, STEP), 100, 40),  # the paper's own: keep all
        ((0.5, 0.01, 0.1), 30, 20),  # keep 10.5: the least is at 10 and 11
        ((2.0, 0.01, 0.1), 30, 20),  # loading is too slow: keep none
    ],
)
def test_eq_6_as_the_docstring_has_it_minimises_eq_5_and_the_printed_one_does_not(
    coefficients, decoded, n
):
    costs = [eq_5(kept, decoded, n, *coefficients) for kept in range(decoded + 1)]
    assert costs[int(corrected_eq_6(decoded, n, *coefficients))] == pytest.approx(min(costs))
    if coefficients[0] == LOAD:
        assert printed_eq_6(n, *coefficients) == 0  # and saves nothing
        assert costs[0] > 100 * min(costs)


# What holds for all.


@given(some=views(), engine=STATES, now=st.floats(0, 150))
def test_who_runs_is_no_less_urgent_than_who_gives_way(some, engine, now):
    decision = choose(now, some, engine)
    known = {one.id: one for one in some}
    if decision.evict:
        urgency = [known[name].urgency for name in decision.run]
        assert min(urgency) <= min(known[name].urgency for name in decision.evict)


@given(some=views(), engine=STATES, now=st.floats(0, 150))
def test_no_prompt_begins_beside_a_better_one_that_decodes(some, engine, now):
    decision = choose(now, some, engine)
    known = {one.id: one for one in some}
    first = known[decision.run[0]] if decision.run else None
    if first is not None and not first.uncached and first.kv_tokens:
        begin = [name for name in decision.run if known[name].uncached and not known[name].running]
        assert begin == []
