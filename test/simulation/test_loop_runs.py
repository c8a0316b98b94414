"""Every policy runs a few seeded traces as it did when these runs were written down, to the byte.

What a run should give is tested by hand in ``test_loop.py``; here any change is seen.
Where one is meant, write them down again:
``PYTHONPATH=.:test/support scripts/env.sh python test/simulation/test_loop_runs.py``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from sim_cases import drawn, run

from timely_llm import policies
from timely_llm.simulation.loop import Run, noisy

FILE = Path(__file__).parents[1] / "data" / "runs.json"
CASES: dict[str, tuple[int, dict[str, Any]]] = {  # seed of the trace, setting
    "one at a time": (1, {"max_batch": 1}),
    "two at a time": (2, {"max_batch": 2}),
    "eight at a time": (3, {"max_batch": 8}),
    "little memory": (4, {"max_batch": 4, "kv_tokens": 400}),
    "refusals": (5, {"max_batch": 2, "refusals": True}),
    "overheads": (6, {"max_batch": 4, "plan_overhead": 0.05, "decision_overhead": 0.01}),
    "noisy predictions": (7, {"max_batch": 2, "predictor": noisy}),
    "cut early": (8, {"max_batch": 2, "cut": 0.5}),
}


def case(name: str, policy: str) -> Run:
    seed, setting = CASES[name]
    return run(drawn(seed, goals=24), policy, **setting)


def digest(ran: Run) -> str:
    events = [(e.type.name, e.plan_id, e.stamp) for e in ran.timeline]
    outcomes = [astuple(outcome) for outcome in ran.outcomes]
    text = repr((outcomes, ran.cut_at, ran.steps, ran.busy_s, events))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def digests(policy: str) -> dict[str, str]:
    return {name: digest(case(name, policy)) for name in CASES}


@pytest.mark.parametrize("policy", policies.names())
def test_runs_are_those_of_before(policy: str) -> None:
    assert digests(policy) == json.loads(FILE.read_text())[policy]


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: digests(name) for name in policies.names()}, indent=1) + "\n")
