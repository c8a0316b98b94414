"""The workloads by name: tasks, arrivals and true durations drawn by seed into a ``Trace``.

``make`` is the way in. Where a paper leaves something open, the workload's docstring says what was
chosen, with the section.
"""

from __future__ import annotations

import difflib
import inspect
import json
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from timely_llm.evaluation import arrivals as times
from timely_llm.evaluation.tasks import draw_durations, published, skill_sets
from timely_llm.evaluation.trace import Arrival, Task, Trace
from timely_llm.paths import share

DRONE_TASKS = range(8)  # ids of LRTrace; Table 3 counts them from 1
ARM_TASKS = range(8, 11)
_LRTRACE = "TimelyLLM, section 6"

Event = tuple[float, Sequence[Task]]
Maker = Callable[..., Trace]


def wid1(
    seed: int,
    *,
    robots: int | None = None,
    rate: float = 0.25,
    max_tasks: int = 8,
    time: float = 260.0,
) -> Trace:
    """Normal and urgent drone tasks (Table 3): Poisson events, up to 8 tasks each, 260 s.

    Only WID2's arrivals are published. An event's tasks, 1 to the most, and each task are drawn
    evenly, as they are spread in WID2. Each task has its own robot; the paper's 25 agents would
    have to queue.
    """
    return _events("wid1", seed, DRONE_TASKS, rate, max_tasks, time, robots)


def wid2(seed: int, *, robots: int | None = None) -> Trace:
    """Events of up to 16 drone tasks as published: 532 tasks from 33.9 to 302.9 s.

    ``seed`` draws the durations alone. An event's tasks come 1 ms apart. The paper's 42 agents are
    the option ``robots=42``: by default each task has its own.
    """
    data = json.loads(share("timely_llm", "data", "lrtrace_wid2.json").read_text("utf-8"))
    tasks = published()
    events = zip(data["event_time_s"], data["event_tasks"], strict=True)
    chosen = ((at, [tasks[i] for i in ids]) for at, ids in events)
    return _trace("wid2", chosen, seed, robots, f"{_LRTRACE}: WID2, the published arrivals")


def wid3(
    seed: int,
    *,
    robots: int | None = None,
    rate: float = 0.1,
    max_tasks: int = 8,
    time: float = 900.0,
) -> Trace:
    """Arm tasks of long plans (Table 3): Poisson events, up to 8 tasks each; see ``wid1``."""
    return _events("wid3", seed, ARM_TASKS, rate, max_tasks, time, robots)


def _events(
    name: str,
    seed: int,
    ids: Sequence[int],
    rate: float,
    max_tasks: int,
    time: float,
    robots: int | None,
) -> Trace:
    rng = random.Random(f"{name} arrivals {seed}")
    tasks = [published()[i] for i in ids]
    events = [
        (at, rng.choices(tasks, k=rng.randint(1, max_tasks)))
        for at in times.poisson(rate, rng, until=time)
    ]
    return _trace(name, events, seed, robots, f"{_LRTRACE}, Table 3; drawn with seed {seed}")


def _trace(name: str, events: Iterable[Event], seed: int, robots: int | None, source: str) -> Trace:
    """All tasks of all events, each on its own robot, or the robots in turn; durations by seed."""
    if robots is not None and robots < 1:
        raise ValueError(f"robots is {robots}: must be at least 1")
    rng = random.Random(f"{name} durations {seed}")
    found: list[tuple[float, Task]] = []
    for at, tasks in events:
        found += zip(times.burst(at, len(tasks)), tasks, strict=True)
    found.sort(key=lambda pair: pair[0])
    return Trace(
        name,
        tuple(
            Arrival(at, f"robot_{i % (robots or len(found))}", task, _durations(task, rng))
            for i, (at, task) in enumerate(found)
        ),
        source,
    )


def _durations(task: Task, rng: random.Random) -> tuple[float, ...]:
    return draw_durations(task, skill_sets()[task.kind], rng)


def scale(trace: Trace, load: float) -> Trace:
    """``trace`` with all inter-arrival times, the first from 0 s, divided by ``load``.

    Nothing else changes: tasks, robots, true durations and expected response times stay.
    """
    if not 0 < load < math.inf:
        raise ValueError(f"load is {load:g}: must be finite and above 0")
    scaled = (replace(arrival, at=arrival.at / load) for arrival in trace.arrivals)
    return replace(trace, arrivals=tuple(scaled))


WORKLOADS: dict[str, Maker] = {maker.__name__: maker for maker in (wid1, wid2, wid3)}


def names() -> tuple[str, ...]:
    """Of all workloads."""
    return tuple(WORKLOADS)


def make(name: str, seed: int = 0, load: float = 1.0, **options) -> Trace:
    """A workload's trace; the same arguments, the same trace.

    ``load`` divides inter-arrival times, see ``scale``. ``robots=n`` shares n robots in turn; what
    else a workload takes stands in its function. ``ValueError`` for an unknown name or option, with
    the nearest known one, and for a workload without a task.
    """
    if name not in WORKLOADS:
        raise ValueError(_unknown("workload", name, WORKLOADS))
    maker = WORKLOADS[name]
    known = [*inspect.signature(maker).parameters][1:]
    for option in options:
        if option not in known:
            raise ValueError(_unknown(f"option of {name}", option, known))
    trace = scale(maker(seed, **options), load)
    if not trace.arrivals:
        raise ValueError(f"workload {name} with seed {seed} has no task")
    return trace


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1, 0)[0]
    return f"{what} {name!r} is unknown: did you mean {near!r}?"
