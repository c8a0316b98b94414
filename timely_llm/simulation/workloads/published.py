"""The workloads by name. ``make`` is the way in: tasks, arrivals and true durations by seed.

Robots' workloads stand here, those of text in ``text.py``. Where a paper leaves something
open, the workload's docstring says what was chosen, with the section.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Sequence
from typing import get_args

from timely_llm.simulation.trace import Task, Trace
from timely_llm.simulation.workloads import arrivals as times
from timely_llm.simulation.workloads import text as texts
from timely_llm.simulation.workloads.composition import Event, compose, scale
from timely_llm.simulation.workloads.tasks import data, published
from timely_llm.validation.names import did_you_mean

__all__ = ["make", "names", "scale"]

DRONE_TASKS = range(8)  # ids of LRTrace; Table 3 counts them from 1
ARM_TASKS = range(8, 11)
_LRTRACE = "TimelyLLM, section 6"

_YES_OR_NO = {"true": True, "1": True, "false": False, "0": False}

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
    rng = random.Random(f"wid1 {seed}")
    events = _events(DRONE_TASKS, times.poisson(rate, rng, until=time), 1, max_tasks, rng)
    source = f"{_LRTRACE}, Table 3; drawn with seed {seed}"
    return compose("wid1", events, seed=seed, robots=robots, source=source)


def wid2(seed: int, *, robots: int | None = None) -> Trace:
    """Events of up to 16 drone tasks as published: 532 tasks from 33.9 to 302.9 s.

    ``seed`` draws the durations alone. An event's tasks come 1 ms apart. The paper's 42 agents are
    the option ``robots=42``: by default each task has its own.
    """
    found, tasks = data("lrtrace_wid2.json"), published()
    pairs = zip(found["event_time_s"], found["event_tasks"], strict=True)
    events = [(at, [tasks[i] for i in ids]) for at, ids in pairs]
    source = f"{_LRTRACE}: WID2, the published arrivals; durations with seed {seed}"
    return compose("wid2", events, seed=seed, robots=robots, source=source)


def wid3(
    seed: int,
    *,
    robots: int | None = None,
    rate: float = 0.1,
    max_tasks: int = 8,
    time: float = 900.0,
) -> Trace:
    """Arm tasks of long plans (Table 3): Poisson events, up to 8 tasks each; see ``wid1``."""
    rng = random.Random(f"wid3 {seed}")
    events = _events(ARM_TASKS, times.poisson(rate, rng, until=time), 1, max_tasks, rng)
    source = f"{_LRTRACE}, Table 3; drawn with seed {seed}"
    return compose("wid3", events, seed=seed, robots=robots, source=source)


def bursts(
    seed: int,
    *,
    count: int = 50,
    max_tasks: int = 6,
    gap: float = 120.0,
    arm: bool = False,
    robots: int | None = None,
) -> Trace:
    """Small bursts, ``gap`` s apart, of 2 to ``max_tasks`` drone (or arm) tasks 1 ms apart, drawn
    evenly: each alone small enough to be solved exactly.

    Not from a paper. The gap is longer than any task takes at load 1, so that no burst meets the
    one before it; ``composition.split`` parts them.
    """
    times.positive("gap", gap, " s")
    rng = random.Random(f"bursts {seed}")
    moments = [gap * i for i in range(count)]
    events = _events(ARM_TASKS if arm else DRONE_TASKS, moments, 2, max_tasks, rng)
    source = f"LRTrace's tasks; drawn with seed {seed}"
    return compose("bursts", events, seed=seed, robots=robots, source=source)


def _events(
    ids: Sequence[int], moments: Sequence[float], fewest: int, most: int, rng: random.Random
) -> list[Event]:
    if most < fewest:
        raise ValueError(f"max_tasks is {most}: must be at least {fewest}")
    tasks: list[Task] = [published()[i] for i in ids]
    return [(at, rng.choices(tasks, k=rng.randint(fewest, most))) for at in moments]


WORKLOADS: dict[str, Maker] = {
    "wid1": wid1,
    "wid2": wid2,
    "wid3": wid3,
    "arm": wid3,  # TimelyLLM's section 7.4.1
    "slice": texts.slice_mix,
    "slice_table2": texts.slice_table2,
    "semantic": texts.semantic,
    "elis": texts.elis,
    "chat": texts.chat,
    "chat_paragraphs": texts.chat_paragraphs,
    "bursts": bursts,
}


def names() -> tuple[str, ...]:
    """Of all workloads."""
    return tuple(WORKLOADS)


def make(name: str, seed: int = 0, load: float = 1.0, **options: object) -> Trace:
    """A workload's trace; the same arguments, the same trace.

    ``load`` divides inter-arrival times, see ``scale``. ``robots=n`` shares n robots in turn; what
    else a workload takes stands in its function. Options are values or the texts of values.
    ``ValueError`` for an unknown name or option, with the nearest known one, for a value that does
    not fit, and for a workload without a task.
    """
    if name not in WORKLOADS:
        raise ValueError(_unknown("workload", name, WORKLOADS))
    maker = WORKLOADS[name]
    _, *known = inspect.signature(maker, eval_str=True).parameters.values()
    kinds = {parameter.name: parameter.annotation for parameter in known}
    for option in options:
        if option not in kinds:
            raise ValueError(_unknown(f"option of {name}", option, kinds))
    fitting = {option: _value(option, value, kinds[option]) for option, value in options.items()}
    trace = scale(maker(seed, **fitting), load)
    if not trace.arrivals:
        raise ValueError(f"workload {name} with seed {seed} has no task")
    return trace


def _value(option: str, value: object, kind: object) -> object:
    """``value``, or what it is the text of, as an option of this kind takes it."""
    kinds = get_args(kind) or (kind,)
    text = str(value)
    if bool in kinds:
        if text.lower() in _YES_OR_NO:
            return _YES_OR_NO[text.lower()]
        raise ValueError(f"{option} is {text}: must be true or false")
    if str in kinds:
        return text
    number = float if float in kinds else int
    try:
        found = number(text)
    except ValueError:
        words = "a number" if number is float else "a whole number"
        raise ValueError(f"{option} is {text}: must be {words}") from None
    if number is int and found < 1:
        raise ValueError(f"{option} is {text}: must be at least 1")
    if number is int and found > times.MAX_ARRIVALS:
        raise ValueError(f"{option} is {text}: must be at most {times.MAX_ARRIVALS}")
    return found


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    return f"{what} {name!r} is unknown{did_you_mean(name, known, ': {}', cutoff=0)}"
