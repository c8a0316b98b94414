"""What a bench compares policies with: upper bounds of the utility that any schedule can have, and
on small bursts the exact optimum. Pure.

Both are for the largest batch that any policy of the bench has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from timely_llm.bench.bound import total_bound, upper_bound
from timely_llm.bench.config import Conditions, engine_of, trace_of
from timely_llm.bench.engine_costs import EngineCosts, works_of
from timely_llm.bench.exact import MAX_GOALS, TooLarge, exact
from timely_llm.bench.simulated import stretched
from timely_llm.language.skills import SkillSet
from timely_llm.simulation.trace import Arrival, Trace
from timely_llm.simulation.workloads.tasks import skill_sets
from timely_llm.simulation.workloads.text_tasks import TEXT_KINDS

GAP = 20.0  # s at load 1 without an arrival: what is computed before is over


@dataclass(frozen=True, slots=True)
class Problem:
    """How much utility the goals of one trace can have: of all of them at once (``burst`` None), or
    of one burst, exactly where the search for it is not too large."""

    engine: str
    workload: str
    load: float
    seed: int
    max_batch: int
    burst: int | None = None

    def most(self, conditions: Conditions) -> float:
        """The most that the goals can be worth together."""
        trace = trace_of(self.workload, self.seed, self.load)
        latency = stretched(engine_of(self.engine), conditions.time_scale).latency
        network = conditions.network
        if self.burst is None:
            mean = upper_bound(
                trace, latency, self.max_batch, kinds=kinds(), network=network, cut=conditions.cut
            )
            return mean * len(trace.arrivals)
        works = works_of(bursts(trace, self.load)[self.burst], kinds())
        costs = EngineCosts.of(latency, self.max_batch)
        cut_at = trace.arrivals[-1].at + conditions.cut
        try:
            return exact(works, costs, self.max_batch, network=network, cut_at=cut_at)
        except TooLarge:  # few goals, but of long answers
            return total_bound(works, costs, self.max_batch, network=network, cut_at=cut_at)


def problems(
    engine: str, workload: str, load: float, seed: int, max_batch: int
) -> tuple[Problem, ...]:
    """One for each burst where all bursts are small enough for the exact optimum, else one."""
    found = bursts(trace_of(workload, seed, load), load)
    parts: tuple[int | None, ...] = (None,)
    if len(found) > 1 and max(map(len, found)) <= MAX_GOALS:
        parts = tuple(range(len(found)))
    return tuple(Problem(engine, workload, load, seed, max_batch, part) for part in parts)


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


def kinds() -> Mapping[str, SkillSet]:
    """All kinds of goals, by name."""
    return {**TEXT_KINDS, **skill_sets()}
