"""The best total first-segment time utility that a clairvoyant could reach on a trace: an upper
bound, by linear programs over slots of time (``bound_program.py``). Model: docs/policies.md. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from timely_llm.bench.bound_program import CUT, Setup, relaxed
from timely_llm.bench.engine_costs import EngineCosts, Work, works_of
from timely_llm.estimation.step_time import Latency
from timely_llm.language.skills import SkillSet
from timely_llm.simulation.trace import Trace

MAX_GROUP = 16  # goals in one program
SLOT = 0.04  # s, at first
FINEST = 0.002  # s
ROUNDS = 5
SIZE = 500  # goals times slots beyond which no finer program is tried
GAP = 0.002  # of the value: what rounding utilities up may add to it, if rounds suffice
GAIN = 0.25  # of it: a round that lowers the bound by less is the last one
_FAR = 1.3  # growth of slots after the last arrival


def upper_bound(
    trace: Trace,
    latency: Latency,
    max_batch: int,
    *,
    kinds: Mapping[str, SkillSet],
    network: float = 0.008,
    cut: float = CUT,
    block_size: int | None = None,
) -> float:
    """No policy's mean utility a goal on ``trace`` is above this.

    ``latency`` gives an engine's step times, ``max_batch`` sequences at most compute in a step.
    ``kinds`` says what a segment is, ``block_size`` see ``works_of``. A goal without a first
    segment ``cut`` s after the last arrival is worth its utility then. Times in s. ``ValueError``
    for an unknown kind of task and for an engine whose steps take less than their parts.
    """
    if not trace.arrivals:
        raise ValueError(f"trace {trace.name!r} has no arrivals")
    works = works_of(trace.arrivals, kinds, block_size)
    costs = EngineCosts.of(latency, max_batch)
    cut_at = max(work.at for work in works) + cut
    robots: set[str] = set()
    first: list[Work] = []
    later: list[Work] = []
    for work, arrival in zip(works, trace.arrivals, strict=True):
        (later if arrival.robot_id in robots else first).append(work)
        robots.add(arrival.robot_id)
    # The clock of a goal that waits for its robot starts when that is free, whenever that is: it
    # may find the engine idle.
    alone = Setup(works, costs, max_batch, network, cut_at)
    total = sum(alone.worth(work, work.at + alone.shortest(work)) for work in later)
    total += total_bound(first, costs, max_batch, network=network, cut_at=cut_at)
    return total / len(works)


def total_bound(
    works: Sequence[Work],
    costs: EngineCosts,
    max_batch: int,
    *,
    network: float = 0.008,
    cut_at: float | None = None,
    max_group: int = MAX_GROUP,
) -> float:
    """No schedule's total utility of the first segments ``works`` is above this.

    Groups of goals are bounded each for itself, as if the others left the engine alone: a sum of
    bounds is a bound, however the goals are grouped.
    """
    if not works:
        return 0.0
    whole = Setup.of(works, costs, max_batch, network, cut_at)
    return sum(group_bound(replace(whole, works=part)) for part in groups(whole, max_group))


def groups(setup: Setup, max_group: int) -> list[list[Work]]:
    """The goals in groups: parted where the engine would be idle even if it served one goal after
    the other, and where a group is still too large, at its widest gaps."""
    parts: list[list[Work]] = []
    until = -np.inf
    for work in setup.works:
        if work.at >= until:
            parts.append([])
        parts[-1].append(work)
        until = max(until, work.at) + setup.shortest(work)
    return [small for part in parts for small in _smaller(part, max_group)]


def _smaller(part: list[Work], max_group: int) -> list[list[Work]]:
    """Halves, about, of a group that is too large, cut where it loses least."""
    if len(part) <= max_group:
        return [part]
    low, high = len(part) // 3, len(part) - len(part) // 3
    gaps = [(part[i].at - part[i - 1].at, -abs(2 * i - len(part)), i) for i in range(low, high + 1)]
    middle = max(gaps)[2]
    return _smaller(part[:middle], max_group) + _smaller(part[middle:], max_group)


def group_bound(setup: Setup) -> float:
    """The program's value on finer and finer slots: finer where rounding adds most to it, until
    that no longer tells much, or a schedule is known that is as good."""
    best = sum(setup.worth(work, work.at + setup.shortest(work)) for work in setup.works)
    reached = max(map(setup.plain, range(1, len(setup.works) + 1)))
    grid, before = first_grid(setup), np.inf
    for _ in range(ROUNDS):
        allowed = GAP * max(abs(best), 1e-9)
        if best - reached <= allowed:
            break
        found = relaxed(setup, grid)
        best = min(best, found.value)
        widths = np.diff(grid)
        split = (found.loss > allowed / len(widths)) & (widths >= 2 * FINEST)
        if found.loss.sum() <= allowed or before - found.value < GAIN * allowed or not split.any():
            break
        before = found.value
        grid = np.sort(np.concatenate([grid, (grid[:-1] + widths / 2)[split]]))
        if len(grid) * len(setup.works) > SIZE:
            break
    return best


def first_grid(setup: Setup) -> np.ndarray:
    """Slots from the first arrival until all goals are served one after the other, or the cut:
    even while goals arrive and are due, then longer and longer. Arrivals and due times divide."""
    works = setup.works
    end = works[0].at
    for work in works:
        slower = setup.costs.decode(1) - setup.costs.shortest_step
        end = max(end, work.at) + setup.shortest(work) + work.decodes * slower
    end = min(end, setup.cut_at)
    start, last = works[0].at, works[-1].at
    times = [start]
    width = SLOT
    while times[-1] < end:
        times.append(times[-1] + width)
        if times[-1] > last + 0.3:
            width *= _FAR
    marks = {work.at for work in works}
    marks |= {work.at + work.utility.ert - setup.network for work in works}
    for mark in sorted(marks):
        if start < mark < end and min(abs(mark - time) for time in times) >= FINEST * 2:
            times.append(mark)
    times = sorted(time for time in times if time < end - 1e-9)
    return np.array([*times, max(end, times[-1] + 1e-6)])
