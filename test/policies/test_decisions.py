"""Every policy decides on a few hundred seeded situations as it did when these were written down.

What a decision should be is tested by hand in the file of each policy; here any change is seen.
Where one is meant, write them down again:
``PYTHONPATH=.:test/support scripts/env.sh python test/policies/test_decisions.py``.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

import pytest
from policy_cases import state, view

from timely_llm import policies
from timely_llm.estimation.step_time import StepLatency
from timely_llm.policies import EngineState, View
from timely_llm.protocols.utility import PRESETS

FILE = Path(__file__).parents[1] / "data" / "decisions.json"
GROUPS, IN_GROUP = 40, 10
# An engine that hides further sequences, a usual one, one on which prompts are dear, and one on
# which two take as long together as one after the other.
ENGINES = (
    StepLatency((0.02,), per_sequence=0.0003, per_prefill_token=1e-4),
    StepLatency((0.0218,), per_sequence=0.002, per_prefill_token=1e-4),
    StepLatency((0.02, 0.021, 0.025, 0.03, 0.04), per_prefill_token=2e-3),
    StepLatency((0.02,), per_sequence=0.02, per_prefill_token=1e-3),
)


def some_view(rng: random.Random, number: int, now: float) -> View:
    """A goal that waits, is being written or goes on, due from 8 s ago to 4 s from now."""
    first, begun = rng.random() < 0.6, rng.random() < 0.6
    urgency = rng.choice(sorted(PRESETS))
    utility = PRESETS[urgency]
    due, mean = now + rng.choice((rng.uniform(-8, 4), rng.uniform(-0.5, 1.5))), rng.uniform(1, 20)
    written = rng.randint(0, 120) if begun or not first else 0
    running = begun and rng.random() < 0.5
    return view(
        number,
        segment=0 if first else rng.randint(1, 9),
        arrival=due - utility.ert if first else now - rng.uniform(0, 30),
        origin=due - utility.ert if first else due,
        due=due,
        utility=utility if first else utility.continuation(),
        urgency=urgency,
        tokens_left=mean,
        worst_tokens_left=mean + rng.uniform(0, 20),
        uncached=rng.choice((0, 0, rng.randint(1, 60), rng.randint(1, 900))),
        kv_tokens=rng.randint(1, 400) if written or running else 0,
        running=running,
        mid_segment=running and rng.random() < 0.7,
        network=rng.choice((0.0, 0.008, 0.05)),
        ttft=rng.choice((0.0, 0.25, 1.0)),
        tpot=rng.choice((0.0, 0.05, 0.12, 0.25, 2.0)),
        written=written,
        first_token=now - rng.uniform(0, 6) if written else -1.0,
        predicted=rng.choice((-1.0, 1.0, 30.0, float(rng.randint(1, 400)))),
    )


def situations(group: int) -> Iterator[tuple[float, Sequence[View], EngineState]]:
    """Ten of them: time, views and engine."""
    rng = random.Random(group)
    for _ in range(IN_GROUP):
        now = rng.uniform(10, 100)
        count = rng.choice((1, 2, 3, 4, 5, 7, 9, 12, 20, 45))
        some = [some_view(rng, number, now) for number in range(count)]
        free = rng.choice((100_000, rng.randint(0, 3000)))
        engine = state(rng.randint(1, 12), free, rng.choice(ENGINES), rng.randint(0, 99))
        yield now, some, engine


def digests(name: str) -> list[str]:
    """One for each group of situations."""
    choose, found = policies.get(name).choose, []
    for group in range(GROUPS):
        decisions = [astuple(choose(*situation)) for situation in situations(group)]
        found.append(hashlib.sha256(repr(decisions).encode()).hexdigest()[:8])
    return found


@pytest.mark.parametrize("name", policies.names())
def test_decisions_are_those_of_before(name: str) -> None:
    assert digests(name) == json.loads(FILE.read_text())[name]


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: digests(name) for name in policies.names()}, indent=1) + "\n")
