"""Tasks and times put together into a trace, and a trace's load: the programmable composition of
LRTrace (TimelyLLM, section 6).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from timely_llm.language.parser import Call, parse
from timely_llm.language.skills import SkillSet
from timely_llm.simulation.trace import Arrival, Task, Trace
from timely_llm.simulation.workloads.tasks import draw_durations, skill_sets
from timely_llm.simulation.workloads.text_tasks import TEXT_KINDS, reading_durations

EVENT_SPACING = 0.001
"""s between the tasks of one event, as LRTrace sends them."""

MAX_TIME = 1e10
"""s; the latest arrival: a float still tells microseconds there."""

Event = tuple[float, Sequence[Task]]


def compose(
    name: str,
    events: Iterable[Event],
    *,
    seed: int = 0,
    robots: int | None = None,
    source: str = "",
    spacing: float = EVENT_SPACING,
    skills: Mapping[str, SkillSet] | None = None,
) -> Trace:
    """A trace of events: a time (s) and the tasks that come then, ``spacing`` s apart.

    Each task has its own robot (or reader); with ``robots`` those take the tasks in turn, kind by
    kind. True durations are drawn by ``seed``. ``skills`` by kind are those of the package unless
    given. A task whose plan does not parse is a ``PlanError``.
    """
    if robots is not None and robots < 1:
        raise ValueError(f"robots is {robots}: must be at least 1")
    known = skill_sets() if skills is None else skills
    rng = random.Random(f"{name} durations {seed}")
    found = [(at + i * spacing, task) for at, tasks in events for i, task in enumerate(tasks)]
    found.sort(key=lambda pair: pair[0])
    turns: dict[str, int] = {}
    plans: dict[tuple[str, str], list[Call]] = {}
    arrivals = []
    for at, task in found:
        turn = turns[task.kind] = turns.get(task.kind, -1) + 1
        robot = f"{task.kind}_{turn % robots if robots else turn}"
        if task.kind in TEXT_KINDS:
            durations = reading_durations(task)
        else:
            skill_set, key = known[task.kind], (task.kind, task.plan)
            if key not in plans:
                plans[key] = parse(task.plan, skill_set)
            durations = draw_durations(plans[key], skill_set, rng)
        arrivals.append(Arrival(at, robot, task, durations))
    return Trace(name, tuple(arrivals), source)


def scale(trace: Trace, load: float) -> Trace:
    """``trace`` with all inter-arrival times, the first from 0 s, divided by ``load``.

    Nothing else changes: tasks, robots, true durations and expected response times stay.
    ``ValueError`` for arrivals later than ``MAX_TIME``.
    """
    if not 0 < load < math.inf:
        raise ValueError(f"load is {load:g}: must be finite and above 0")
    scaled = tuple(replace(arrival, at=arrival.at / load) for arrival in trace.arrivals)
    last = max((arrival.at for arrival in scaled), default=0.0)
    if not last <= MAX_TIME:
        raise ValueError(
            f"load is {load:g}: {trace.name!r} has arrivals at {last:g} s: at most {MAX_TIME:g} s"
        )
    return replace(trace, arrivals=scaled)


def split(trace: Trace, gap: float) -> list[Trace]:
    """The parts of ``trace`` between pauses of at least ``gap`` s, each from 0 s on."""
    parts: list[list[Arrival]] = []
    last = -math.inf
    for arrival in trace.arrivals:
        if arrival.at - last >= gap:
            parts.append([])
        parts[-1].append(arrival)
        last = arrival.at
    return [
        replace(trace, arrivals=tuple(replace(each, at=each.at - part[0].at) for each in part))
        for part in parts
    ]
