"""First come, first served, in segments."""

from policy_cases import state, view

from timely_llm import policies


def test_fcfs_goes_by_arrival_then_number():
    some = [view(3, arrival=1.0), view(1, arrival=2.0), view(2, arrival=1.0, due=0.0)]
    assert policies.get("fcfs").choose(0.0, some, state(2)).run == ("p2", "p3")
