"""Who is let into a batch: TimelyLLM's section 4.4, and KV memory."""

from policy_cases import state, view

from timely_llm import policies
from timely_llm.policies import View
from timely_llm.policies.batch import admits, fill, most_urgent


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
