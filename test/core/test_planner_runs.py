"""The planner goes through seeded stories of a fleet in trouble as when they were written down.

What it should do is tested by hand in the other files, and what holds of any story in
``test_planner_campaign.py``; here any change is seen. Where one is meant, write them down again:
run this file itself, with ``PYTHONPATH=.:test/support``.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from campaign import INSTRUCTIONS, MOST, ROBOTS, Run, Story

from timely_llm import policies
from timely_llm.protocols.messages import ExecutionState, OnFailure, WhenBusy
from timely_llm.protocols.utility import Urgency

FILE = Path(__file__).parents[1] / "data" / "planner_runs.json"
GROUPS, IN_GROUP = 20, 4
TROUBLE = ("mute", "deaf", "lose", "lose_segment", "restart", "stop", "stop_all", "own_stop",
           "rearm", "unregister", "deactivate", "activate", "fail")  # fmt: skip


def some_action(rng: random.Random, kind: str) -> dict[str, Any]:
    action: dict[str, Any] = {"kind": kind, "at": rng.randint(0, 100) / 40}
    action["robot"] = rng.choice((*ROBOTS * 4, "r9") if kind == "goal" else ROBOTS)
    if kind == "goal":
        action |= {
            "instruction": rng.choice(INSTRUCTIONS),
            "urgency": rng.choice(list(Urgency)),
            "when_busy": rng.choice(list(WhenBusy)),
            "on_failure": rng.choice(list(OnFailure)),
            "max_replans": rng.randint(0, MOST),
        }
    return action | {
        "length": round(rng.uniform(0.05, 5), 2),
        "state": rng.choice(list(ExecutionState)),
        "index": rng.randint(0, 3),
        "call": rng.choice(("go(1)", "find(cat)", "go(0.3)")),
        "goal": rng.randint(0, 9),
        "timeout": rng.choice((0.0, 0.05)),
    }


def some_story(rng: random.Random) -> Story:
    kinds = ["goal"] * rng.randint(3, 14) + ["cancel"] * rng.randint(0, 3)
    kinds += ["probe"] * rng.randint(0, 2) + rng.sample(TROUBLE, rng.choice((0, 0, 1, 2, 4)))
    engine = {"max_batch": rng.randint(1, 4), "kv_blocks": rng.choice((30, 40, 400)),
              "lag": rng.random() < 0.5}  # fmt: skip
    faults = {rng.randint(1, 300): rng.choice(("raise", "output"))} if rng.random() < 0.3 else {}
    return Story(
        policy=rng.choice(policies.names()),
        engine=engine,
        network=rng.choice((0.008, 0.1)),
        instances=rng.random() < 0.5,
        actions=[some_action(rng, kind) for kind in kinds],
        faults=faults,
    )


def told(story: Story) -> list[object]:
    """All that went to robots and clients, and when."""
    sim = Run(story).sim
    robots = [(sim.commands(r), sim.reports(r), sim.motions(r)) for r in ROBOTS]
    results = [(plan_id, astuple(result)) for plan_id, result in sim.results.items()]
    feedback = [(time, astuple(one)) for time, one in sim.feedback]
    return [sim.story(*sim.goals), robots, results, feedback, sim.busy, sim.now]


def digest(group: int) -> str:
    rng = random.Random(group)
    stories = [told(some_story(rng)) for _ in range(IN_GROUP)]
    return hashlib.sha256(repr(stories).encode()).hexdigest()[:8]


@pytest.mark.parametrize("group", range(GROUPS))
def test_stories_are_those_of_before(group: int) -> None:
    assert digest(group) == json.loads(FILE.read_text())[group]


if __name__ == "__main__":
    FILE.write_text(json.dumps([digest(group) for group in range(GROUPS)]) + "\n")
