"""Nobody waits for ever, whoever keeps coming."""

import math
import random

import pytest
from policy_cases import LATENCY, state, view

from timely_llm import policies
from timely_llm.policies import View
from timely_llm.policies.timely import PATIENCE
from timely_llm.protocols.utility import PRESETS, Urgency

FAIR = ("edf", "fcfs", "timely")  # the papers of the others promise nothing to the late


def waits(name: str, victim: View, make, memory: int = 100_000, seconds: float = 60.0) -> float:
    """Time until ``victim`` runs, while ``make(number, now)`` keeps the engine (of batch 2) full
    with goals of one segment, 4 tokens each; infinite if it never runs."""
    choose, now, number = policies.get(name).choose, 0.0, 100
    rng, left, crowd = random.Random(1), {}, []
    while now < seconds:
        while len(crowd) < 6:
            number += 1
            crowd.append(make(number, now))
            left[f"p{number}"] = rng.randint(3, 5)
        held = sum(one.kv_tokens for one in crowd)
        run = choose(now, [victim, *crowd], state(2, free=memory - held)).run
        if victim.id in run:
            return now
        now += LATENCY(len(run))
        for index, one in enumerate(crowd):
            if one.id in run:
                left[one.id] -= 1
                crowd[index] = one._replace(running=True, mid_segment=True, kv_tokens=60)
            else:
                crowd[index] = one._replace(running=False)
        crowd = [one for one in crowd if left[one.id]]
    return math.inf


def urgent(number: int, now: float) -> View:
    utility = PRESETS[Urgency.URGENT]
    return view(number, arrival=now, origin=now, due=now + 0.2, utility=utility)


@pytest.mark.parametrize("name", FAIR)
def test_a_background_goal_is_served_under_a_flood_of_urgent_ones(name):
    utility = PRESETS[Urgency.BACKGROUND]
    victim = view(1, utility=utility, due=10.0)
    assert waits(name, victim, urgent) <= 10.0 + PATIENCE + 0.5


def test_the_flood_does_keep_the_background_goal_waiting():
    """Or the test above would show nothing."""
    victim = view(1, utility=PRESETS[Urgency.BACKGROUND], due=10.0)
    assert waits("timely", victim, urgent) > 1.0


@pytest.mark.parametrize("name", FAIR)
def test_a_goal_that_needs_much_memory_is_served_under_a_flood_of_small_ones(name):
    victim = view(1, due=1.0, uncached=900)
    assert waits(name, victim, urgent, memory=1000) <= 1.0 + PATIENCE + 0.5


def test_nobody_has_a_veto_against_one_that_is_long_overdue():
    now = 20.0
    running = view(1, due=now + 0.225, running=True, mid_segment=True)
    choose = policies.get("timely").choose
    for due, run in [(now - PATIENCE + 0.1, ("p1",)), (now - PATIENCE - 0.1, ("p1", "p2"))]:
        assert choose(now, [running, view(2, due=due, uncached=100)], state()).run == run
