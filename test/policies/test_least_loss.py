"""least_loss: small cases by hand, its loss against a plain sum, and that nobody starves."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import LATENCY, STATES, state, view, views

from timely_llm import policies
from timely_llm.estimation.step_time import StepLatency
from timely_llm.policies import View
from timely_llm.policies.least_loss import (
    CONTINUATION,
    HEAD,
    LOOK_AHEAD,
    PATIENCE,
    SHARE,
    _loss,
    choose,
)
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency

# No further sequence costs anything; a prompt token takes 1 ms.
FREE = StepLatency((0.02,), per_prefill_token=1e-3)
NORMAL = PRESETS[Urgency.NORMAL]
URGENT = PRESETS[Urgency.URGENT]


def exactly(number: int, tokens: float, **fields) -> View:
    """A goal whose segment surely has ``tokens`` tokens."""
    return view(number, tokens_left=tokens, worst_tokens_left=tokens, **fields)


def continuation(number: int, due: float, **fields) -> View:
    fields = {"segment": 1, "origin": due, "due": due, "kv_tokens": 40} | fields
    return view(number, utility=NORMAL.continuation(), **fields)


# The order.


def test_of_two_late_ones_the_one_that_loses_more_a_second_of_service_goes_first():
    """2/s in 0.08 s of service are 25; 6.67/s in 0.40 s are 16.7, in 0.20 s 33.3."""
    short = exactly(1, 4, due=-1.0)
    for tokens, first in ((20, "p1"), (10, "p2")):
        urgent = exactly(2, tokens, due=-1.0, utility=URGENT)
        assert choose(0.0, [short, urgent], state(1)).run == (first,)


def test_one_in_time_yields_to_one_that_is_late():
    late, early = exactly(1, 4, due=-1.0), exactly(2, 4, due=30.0, utility=URGENT)
    assert choose(0.0, [late, early], state(1)).run == ("p1",)


def test_of_equals_in_time_the_first_due_goes_first():
    some = [exactly(1, 4, due=3.0), exactly(2, 4, due=2.0), exactly(3, 4, due=2.0)]
    assert choose(0.0, some, state(1)).run == ("p2",)


def test_a_standing_robot_weighs_less_than_a_goal_without_an_answer():
    waits = continuation(1, -1.0, tokens_left=4.0, worst_tokens_left=4.0)
    first = exactly(2, 4 / CONTINUATION - 1, due=-1.0)
    assert choose(0.0, [waits, first], state(1)).run == ("p2",)
    longer = exactly(2, 4 / CONTINUATION + 1, due=-1.0)
    assert choose(0.0, [waits, longer], state(1)).run == ("p1",)


def test_inside_its_segment_one_makes_way_for_a_more_pressing_one():
    writing = exactly(1, 2, due=0.9, running=True, mid_segment=True, kv_tokens=30)
    urgent = exactly(2, 4, due=0.1, utility=URGENT)
    decision = choose(0.0, [writing, urgent], state(1))
    assert (decision.run, decision.hold) == (("p2",), ("p1",))


# How many at once.


def test_all_at_once_where_the_last_prompt_still_leaves_everybody_in_time():
    """Prompts of 0.1 s and 3 more tokens of 0.02 s: both at 0.26 s, and later one by one."""
    some = [exactly(n, 4, uncached=100, due=0.28) for n in (1, 2)]
    assert choose(0.0, some, state(latency=FREE)).run == ("p1",)  # prompts one by one
    assert choose(0.1, [some[0]._replace(uncached=0, tokens_left=3.0), some[1]], state()).run == (
        "p2",
    )


def test_one_at_a_time_where_a_second_prompt_would_make_the_first_one_late():
    """Alone it is there at 0.17 s, with the other at 0.27 s. The other has time."""
    urgent = exactly(1, 3, due=0.20, utility=URGENT, kv_tokens=100, running=True, mid_segment=True)
    other = exactly(2, 4, uncached=100, due=1.0)
    assert choose(0.1, [urgent, other], state(latency=FREE)).run == ("p1",)
    # With time to spare, its prompt is computed first and both are decoded together.
    assert choose(0.1, [urgent._replace(due=0.5), other], state(latency=FREE)).run == ("p2",)


def test_a_batch_that_slows_its_members_beyond_what_it_saves_is_not_made():
    """As on SLICE's engine: two take twice as long as one, so that nothing is won."""
    linear = StepLatency((0.02,), per_sequence=0.02)
    some = [exactly(n, 4, due=-1.0) for n in (1, 2, 3)]
    assert choose(0.0, some, state(latency=linear)).run == ("p1",)
    assert choose(0.0, some, state(latency=FREE)).run == ("p1", "p2", "p3")


def test_a_prompt_gives_the_first_token():
    """Any prompts of a step take 0.02 s. Both together: 0.04 s, then 3 tokens in steps of 0.03 s,
    and 0.01 s to the robot. One token more, and the urgent one would be late."""

    def latency(batch: int, prefill: int, kv: int) -> float:
        return (0.01 + 0.01 * batch if batch else 0.0) + (0.02 if prefill else 0.0)

    other = exactly(2, 4, uncached=50)
    for due, run in ((0.145, ("p1", "p2")), (0.115, ("p1",))):
        urgent = exactly(1, 4, uncached=50, due=due, utility=URGENT)
        assert choose(0.0, [urgent, other], state(latency=latency)).run == run


@given(
    goals=st.lists(
        st.tuples(st.floats(0, 10), st.floats(0, 9), st.floats(-2, 2), st.floats(0, 0.5)),
        min_size=1,
        max_size=12,
    ),
    size=st.integers(1, 12),
    pressure=st.floats(0, 5),
)
def test_the_loss_is_the_weighted_tardiness_of_turns(goals, size, pressure):
    steps = [0.0] + [0.02 + 0.003 * n for n in range(12)]
    loss = end = 0.0
    for first in range(0, len(goals), size):
        turn = goals[first : first + size]
        start = end + sum(prompt for *_, prompt in turn)
        done = [start + tokens * steps[len(turn)] for _, tokens, _, _ in turn]
        pairs = zip(turn, done, strict=True)
        loss += sum(weight * max(0.0, at - slack) for (weight, _, slack, _), at in pairs)
        end = max(done)
    found = _loss(
        [goal[:3] for goal in goals],
        [goal[3] for goal in goals],
        size,
        steps,
        pressure,
        math.inf,
    )
    assert found == pytest.approx(loss + pressure * end)
    # Cut short, it is still above the limit.
    limit = found / 2
    cut = _loss([g[:3] for g in goals], [g[3] for g in goals], size, steps, pressure, limit)
    assert cut == pytest.approx(found) or limit <= cut <= found + 1e-9


# The step.


def test_prompts_go_beside_tokens_where_the_engine_hides_them():
    def hides(batch: int, prefill: int, kv: int) -> float:
        return 0.02 if batch + prefill else 0.0

    ready = exactly(1, 3, kv_tokens=50, running=True, mid_segment=True)
    fresh = [exactly(n, 4, uncached=50) for n in (2, 3)]
    assert set(choose(0.0, [ready, *fresh], state(latency=hides)).run) == {"p1", "p2", "p3"}


def test_whoever_is_ready_rides_along_where_it_costs_nothing():
    """The late one is in a turn of its own; a robot that stands still soon may come along."""
    urgent = exactly(1, 1, due=0.05, utility=URGENT, kv_tokens=50)
    soon = continuation(2, 0.9, tokens_left=15.0, worst_tokens_left=15.0)
    fresh = exactly(3, 4, uncached=100)
    cheap = StepLatency((0.02,), per_sequence=0.0003, per_prefill_token=1e-3)
    assert set(choose(0.0, [urgent, soon, fresh], state(latency=cheap)).run) == {"p1", "p2"}


def test_idle_steps_write_ahead_for_robots_that_are_busy_for_long():
    some = [continuation(n, 9.0 - n) for n in (1, 2, 3)]
    decision = choose(0.0, some, state(latency=FREE))
    assert decision.run == ("p1", "p2", "p3")
    assert decision.valid_until == pytest.approx(6.0 - 0.01 - LOOK_AHEAD)  # then one of them counts
    assert choose(decision.valid_until + 1e-6, some, state(latency=FREE)).run == ("p3",)
    # A step of 3 would be longer than two single ones: whoever comes now would wait for it.
    slow = StepLatency((0.02,), per_sequence=0.012)
    assert choose(0.0, some, state(latency=slow)).run == ("p3", "p2")


def test_who_is_alone_goes_on_until_something_happens():
    alone = exactly(1, 4, due=0.2, kv_tokens=40, running=True, mid_segment=True)
    assert choose(0.0, [alone], state()).valid_until == math.inf
    assert choose(0.0, [alone, exactly(2, 4)], state()).valid_until is None


def test_work_ahead_waits_while_anybody_is_to_be_served():
    ahead, fresh = continuation(1, LOOK_AHEAD + 0.1), exactly(2, 4, uncached=30)
    assert choose(0.0, [ahead, fresh], state(latency=FREE)).run == ("p2",)


def test_nobody_in_the_run_set_gives_its_blocks_to_another_one_in_it():
    """Both want 10 tokens more, and both hold 200."""
    some = [exactly(n, 10, due=-1.0, kv_tokens=200, running=True) for n in (1, 2)]
    assert choose(0.0, some, state(2, free=20, latency=FREE)).run == ("p1", "p2")
    decision = choose(0.0, some, state(2, free=19, latency=FREE))
    assert (decision.run, decision.hold) == (("p1",), ("p2",))


# What holds for any views.


@given(now=st.floats(0, 150), some=views(), engine=STATES, factor=st.sampled_from([0.25, 4.0]))
def test_the_unit_of_utility_does_not_matter(now, some, engine, factor):
    """Nor does beta: what a goal is worth in time is not at stake any more than another's."""
    scaled = [
        one._replace(utility=TimeUtility(one.utility.ert, one.utility.alpha * factor, 7.0))
        for one in some
    ]
    assert choose(now, scaled, engine) == choose(now, some, engine)


@given(now=st.floats(0, 150), some=views(), engine=STATES)
def test_everyone_else_keeps_its_blocks_by_rank(now, some, engine):
    decision = choose(now, some, engine)
    assert set(decision.hold) == {v.id for v in some if v.kv_tokens} - set(decision.run)


@given(count=st.integers(HEAD + 1, 3 * HEAD), seed=st.randoms(use_true_random=False))
def test_of_more_than_it_plans_for_the_most_pressing_are_served(count, seed):
    some = [exactly(n, 4, due=-seed.random()) for n in range(count)]
    some[seed.randrange(count)] = chosen = exactly(count, 4, utility=URGENT, due=-1.0)
    assert choose(0.0, some, state(4)).run[0] == chosen.id


@given(count=st.integers(1, 3 * HEAD), batch=st.integers(1, 2 * HEAD), seed=st.integers(0, 99))
def test_with_more_than_it_plans_for_everyone_is_somewhere_once(count, batch, seed):
    rng = random.Random(seed)
    some = [exactly(n, 4, due=rng.uniform(-9, 2), kv_tokens=30) for n in range(count)]
    decision = choose(0.0, some, state(batch, latency=FREE, steps=seed))
    assert sorted(decision.run + decision.hold) == sorted(one.id for one in some)


# Nobody starves.


def served_after(victims: list[View], tokens: int, crowd_of, seconds: float = 40.0) -> list[int]:
    """Steps behind the moment at which the first victim is PATIENCE s late, until each victim's
    segment of ``tokens`` tokens is written, on an engine that ``crowd_of(number, now)`` keeps full
    with goals of one segment."""
    now, number, steps, since = 0.0, 100, 0, None
    rng, crowd = random.Random(1), {}
    left = {one.id: tokens for one in victims}
    waiting, found = {one.id: one for one in victims}, []
    while waiting and now < seconds:
        while len(crowd) < 6:
            number += 1
            crowd[f"p{number}"] = [crowd_of(number, now), rng.randint(3, 5)]
        some = [*waiting.values(), *(one for one, _ in crowd.values())]
        if since is None and now > min(one.due for one in victims) - 0.01 + PATIENCE:
            since = steps
        run = choose(now, some, state(2, steps=steps)).run
        steps += 1
        now += LATENCY(len(run))
        for name in run:
            if name in crowd:
                one, rest = crowd.pop(name)
                if rest > 1:
                    begun = one._replace(running=True, mid_segment=True, kv_tokens=60, uncached=0)
                    crowd[name] = [begun, rest - 1]
                continue
            left[name] -= 1
            waiting[name] = waiting[name]._replace(kv_tokens=60, uncached=0, mid_segment=True)
            if not left[name]:
                del waiting[name]
                found.append(steps - since if since is not None else 0)
    return found


def flood(number: int, now: float) -> View:
    """Urgent goals that are late when they come: nobody else is ever worth more."""
    return view(number, arrival=now, origin=now, due=now - 0.1, utility=URGENT, tokens_left=2.0)


@pytest.mark.parametrize("utility", [PRESETS[Urgency.BACKGROUND], TimeUtility(0.0, 0.0, 1.0)])
@pytest.mark.parametrize("segment", [0, 1])
def test_the_overdue_are_served_within_the_bound_one_after_the_other(utility, segment):
    """Of n goals behind PATIENCE, each of T tokens, the k-th is done after k T SHARE steps."""
    tokens, count = 6, 3
    victims = [view(n, due=1.0, utility=utility, segment=segment) for n in range(count)]
    found = served_after(victims, tokens, flood)
    assert len(found) == count
    for k, steps in enumerate(found, 1):
        assert steps <= k * tokens * SHARE + 1


def test_before_that_the_flood_keeps_them_waiting():
    """Or the test above would show nothing."""
    victim = view(1, due=1.0, utility=PRESETS[Urgency.BACKGROUND])
    assert served_after([victim], 1, flood, seconds=1.0 + PATIENCE - 0.1) == []


def test_the_overdue_get_no_more_than_their_share():
    overdue = exactly(1, 4, due=-PATIENCE - 1, utility=PRESETS[Urgency.BACKGROUND])
    urgent = exactly(2, 4, due=-0.1, utility=URGENT)
    for steps in range(2 * SHARE):
        run = choose(0.0, [overdue, urgent], state(1, steps=steps)).run
        assert run == (("p1",) if steps % SHARE == 0 else ("p2",))


def test_between_its_steps_the_longest_overdue_is_the_last_to_lose_its_blocks():
    overdue = exactly(1, 4, due=-9.0, kv_tokens=50, utility=PRESETS[Urgency.BACKGROUND])
    others = [exactly(n, 4, due=-0.1, kv_tokens=50, utility=URGENT) for n in (2, 3)]
    decision = choose(0.0, [overdue, *others], state(1, steps=1))
    assert (decision.run, decision.hold) == (("p2",), ("p3", "p1"))


def test_it_is_known_by_its_name_and_streams():
    policy = policies.get("least_loss")
    assert policy.choose is choose
    assert policy.streams and not policy.native
