"""What a bench holds policies against: the upper bound, on small bursts the exact optimum. Pure.

Both are for the largest batch that any policy of the bench has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from timely_llm.bench.bound import total_bound, upper_bound
from timely_llm.bench.cells import engine_of, stretched, trace_of
from timely_llm.bench.engine_costs import EngineCosts, works_of
from timely_llm.bench.exact import MAX_GOALS, TooLarge, exact
from timely_llm.bench.grid import Conditions
from timely_llm.language.segmenter import TextKind
from timely_llm.language.skills import SkillSet
from timely_llm.simulation.trace import Arrival, Trace
from timely_llm.simulation.workloads.tasks import skill_sets
from timely_llm.simulation.workloads.text_tasks import TEXT_KINDS

GAP = 20.0  # s at load 1 without an arrival: what is computed before is over


@dataclass(frozen=True, slots=True)
class Question:
    """How much utility the goals of one trace can have: of all of them at once (``burst`` None), or
    of one burst, exactly where the search for it is not too large."""

    engine: str
    workload: str
    load: float
    seed: int
    max_batch: int
    burst: int | None = None


def questions(
    engine: str, workload: str, load: float, seed: int, max_batch: int
) -> tuple[Question, ...]:
    """One for each burst where all bursts are small enough for the exact optimum, else one."""
    found = bursts(trace_of(workload, seed, load), load)
    if len(found) > 1 and max(map(len, found)) <= MAX_GOALS:
        parts: Sequence[int | None] = range(len(found))
    else:
        parts = (None,)
    return tuple(Question(engine, workload, load, seed, max_batch, part) for part in parts)


def answer(question: Question, conditions: Conditions) -> float:
    """The most that the goals asked for can be worth together."""
    trace = trace_of(question.workload, question.seed, question.load)
    latency = stretched(engine_of(question.engine), conditions.time_scale).latency
    if question.burst is None:
        mean = upper_bound(
            trace,
            latency,
            question.max_batch,
            kinds=kinds(),
            network=conditions.network,
            cut=conditions.cut,
        )
        return mean * len(trace.arrivals)
    works = works_of(bursts(trace, question.load)[question.burst], kinds())
    costs = EngineCosts.of(latency, question.max_batch)
    ends = {"network": conditions.network, "cut_at": trace.arrivals[-1].at + conditions.cut}
    try:
        return exact(works, costs, question.max_batch, **ends)
    except TooLarge:  # few goals, but of long answers
        return total_bound(works, costs, question.max_batch, **ends)


def bursts(trace: Trace, load: float) -> list[tuple[Arrival, ...]]:
    """The goals between pauses."""
    found: list[list[Arrival]] = []
    last = -math.inf
    for arrival in trace.arrivals:
        if arrival.at - last > GAP / load:
            found.append([])
        found[-1].append(arrival)
        last = arrival.at
    return [tuple(burst) for burst in found]


def kinds() -> Mapping[str, SkillSet | TextKind]:
    """All kinds of goals, by name."""
    return {**TEXT_KINDS, **skill_sets()}
