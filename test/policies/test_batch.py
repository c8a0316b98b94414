"""Who is let into a batch: TimelyLLM's section 4.4, and KV memory."""

import math

import pytest
from policy_cases import state, view

from timely_llm import policies
from timely_llm.policies import Decision, View
from timely_llm.policies.batch import (
    admits,
    fill,
    kv_needed,
    most_urgent,
    preempting,
    prefill_time,
    settled,
    tokens_to_end,
    worst_time,
)


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


def test_times_and_tokens_by_hand():
    """0.02 s a step, 0.002 s for each further one in it, 0.0001 s for a token of a prompt."""
    prompt = view(1, uncached=50)
    assert prefill_time(view(1), state()) == 0.0
    assert prefill_time(prompt, state()) == pytest.approx(0.005)
    assert worst_time(view(1), state(), 1) == pytest.approx(0.20)
    assert worst_time(prompt, state(), 3) == pytest.approx(0.24 + 0.005)
    assert kv_needed(prompt) == 60
    assert kv_needed(view(1, worst_tokens_left=10.6)) == 11
    assert kv_needed(view(1, worst_tokens_left=math.inf)) == 1_000_000_000
    assert tokens_to_end(view(1)) == 4.0
    assert tokens_to_end(view(1, predicted=0.0)) == 0.0
    assert tokens_to_end(view(1, predicted=9.0)) == 9.0


def test_the_veto_counts_the_way_to_the_robot_to_the_last():
    """10 tokens in 0.25 s steps and 0.5 s of network: at the robot at 3 s, and none later."""
    engine = state(latency=lambda batch, prefill, kv: 0.25)
    for due, found in [(3.0, True), (2.99, False)]:
        one = view(1, due=due, network=0.5)
        assert (most_urgent([one], 0.0, engine) is one) is found
        assert (most_urgent([one], 0.5, engine) is one) is (found and due > 3.4)
    running = view(1, due=3.25, network=0.5)
    assert admits(running, 1, view(2, uncached=9), 0.0, engine)
    assert not admits(running, 1, view(2, uncached=9), 0.01, engine)


STAYS = {"running": True, "mid_segment": True, "kv_tokens": 30}


def test_where_all_places_are_taken_nobody_needs_a_rank():
    """Each may come to need its 10 tokens and one block of 128 more."""
    some = [view(3), view(2, **STAYS), view(1, **STAYS)]
    kept = Decision(run=("p1", "p2"), valid_until=math.inf, kv_floor=276)
    assert settled(some, state(2, free=276)) == kept
    assert settled(some, state(2, free=275)) is None
    assert settled(some, state(3)) is None
    assert settled(some, state(1)) is None
    assert settled(some[1:], state(9)) == kept
    assert settled(some[1:], state(2)) == kept


@pytest.mark.parametrize("lacks", [{"running": False}, {"mid_segment": False}, {"uncached": 1}])
def test_where_one_may_have_to_give_way_ranks_are_asked_for(lacks):
    some = [view(1, **STAYS), view(2, **STAYS | lacks)]
    assert settled(some, state(2)) is None
    assert settled(some, state(2), stays=lambda one: True) is None or "uncached" not in lacks


def test_nobody_is_there():
    assert settled([], state()) == Decision(valid_until=math.inf)


def test_the_first_overdue_ones_need_no_admission():
    """A batch of two is in time for the one that has the veto, a batch of three is not."""
    running = view(1, due=0.235, running=True, mid_segment=True)
    some = [view(2, due=-1.0), view(3, due=-1.0), running]
    for overdue, run in [(0, ("p1", "p2")), (1, ("p1", "p2")), (2, ("p1", "p2", "p3"))]:
        assert fill(some, 0.0, state(), overdue=overdue).run == run


def test_memory_is_taken_to_the_last_token():
    """20 are free and 30 held by one that ranks last: 10 for the first, 40 for the second."""
    first, second, last = view(1), view(2, uncached=30), view(3, kv_tokens=30)
    for choose in (lambda views, engine: fill(views, 0.0, engine), preempting):
        decision = choose([first, second, last], state(2, free=20))
        assert (decision.run, decision.hold) == (("p1", "p2"), ("p3",))
        decision = choose([first, second, last], state(2, free=19))
        assert decision.run[0] == "p1" and "p2" not in decision.run


def test_after_one_that_lacks_memory_only_those_go_on_that_hold_blocks():
    large, small = view(2, uncached=100), view(3)
    holds = view(4, kv_tokens=5, worst_tokens_left=5.0)
    decision = preempting([view(1), large, small, holds], state(free=20))
    assert (decision.run, decision.hold) == (("p1", "p4"), ())
    assert preempting([view(1), small, holds], state(free=25)).run == ("p1", "p3", "p4")


def test_of_those_after_the_ranked_blocks_are_taken_and_nothing_is_computed():
    after = [view(3, kv_tokens=20), view(4, kv_tokens=10)]
    decision = preempting([view(1), view(2, uncached=30)], state(free=20), after)
    assert (decision.run, decision.hold) == (("p1", "p2"), ("p4", "p3"))
    decision = preempting([view(1), view(2, uncached=31)], state(free=20), after)
    assert (decision.run, decision.hold) == (("p1",), ("p4", "p3"))


def test_a_full_batch_is_full_in_every_way_of_filling_it():
    some = [view(number) for number in range(1, 6)]
    assert len(fill(some, 0.0, state(4)).run) == 4
    assert len(preempting(some, state(4)).run) == 4
    inside = [one._replace(running=True, mid_segment=True) for one in some]
    assert fill(inside, 0.0, state(3)).run == ("p1", "p2", "p3")
