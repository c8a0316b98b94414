"""Small traces for the simulator's tests: round step times, plans of the walker, texts."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sim_parts import tokens_of, walker

from timely_llm.estimation.presets import EngineModel
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.utility import TimeUtility, Urgency
from timely_llm.simulation.loop import Run, Setting, simulate
from timely_llm.simulation.trace import Arrival, Task, Trace

UTILITY = TimeUtility(1.0, -2.0, 1.0)
STEP = StepLatency((0.02,), per_sequence=0.01, per_prefill_token=0.001, source="test")
ENGINE = EngineModel("test", STEP, kv_tokens=4000, block_size=4, prefill_chunk=100)
SKILLS = {"walker": walker()}
GO = "go(2);go(3)"  # in nine tokens, the fourth of which ends the first segment


def task(plan: str = GO, kind: str = "walker", prompt_tokens: int = 10, **fields) -> Task:
    fields = {"utility": UTILITY, "urgency": Urgency.NORMAL} | fields
    return Task(plan, kind, "do it", tuple(tokens_of(plan)), prompt_tokens=prompt_tokens, **fields)


def trace(*arrivals: tuple[float, Task], durations: Sequence[float] = ()) -> Trace:
    """Each task on its own robot."""
    return Trace(
        "small",
        tuple(
            Arrival(at, f"robot_{i}", one, tuple(durations)) for i, (at, one) in enumerate(arrivals)
        ),
    )


def run(what: Trace, policy: str = "fcfs", max_batch: int = 1, **fields) -> Run:
    fields = {"engine": ENGINE, "skills": SKILLS, "timeline": True} | fields
    return simulate(what, Setting(policy, max_batch=max_batch, **fields))


def drawn(seed: int, goals: int = 12) -> Trace:
    """Plans and texts of all lengths for a few robots, in bursts."""
    rng = random.Random(seed)
    at, arrivals = 0.0, []
    for _ in range(goals):
        at += rng.choice((0.0, 0.0, 0.013, 0.4, 3.0))
        if rng.random() < 0.6:
            calls = [f"go({rng.randint(1, 3)})" for _ in range(rng.randint(1, 5))]
            one = task(";".join(calls), prompt_tokens=rng.randint(1, 150), **_worth(rng))
            durations = tuple(rng.uniform(0.5, 4.0) for _ in calls) if rng.random() < 0.7 else ()
            robot = f"walker_{rng.randint(0, 9)}"
        else:
            kind = rng.choice(("reader", "reader_paragraphs", "text"))
            words = " ".join(rng.choice(("a", "b.", "c\n\n")) for _ in range(rng.randint(1, 60)))
            one = task(words, kind, rng.randint(1, 150), **_worth(rng))
            robot, durations = f"{kind}_{rng.randint(0, 3)}", ()
        arrivals.append(Arrival(at, robot, one, durations))
    return Trace(f"drawn {seed}", tuple(arrivals))


def _worth(rng: random.Random) -> dict:
    if rng.random() < 0.3:
        utility = TimeUtility(0.2, -6.0, 2.0)
        return {"urgency": Urgency.URGENT, "utility": utility, "ttft": 0.3, "tpot": 0.1}
    return {}
