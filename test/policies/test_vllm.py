"""What vLLM's own schedulers do, as the simulated engine is told."""

import pytest
from policy_cases import state, view

from timely_llm import policies


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
