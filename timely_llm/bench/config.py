"""What the options of ``timely-llm bench`` mean, checked before anything runs. Pure.

Every error is a ``BadOption`` that names the option, the value, and what it could have been.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from timely_llm import policies
from timely_llm.bench import profile_file as profile
from timely_llm.bench.cells import PREDICTORS, PROFILE_SUFFIXES, engine_of, trace_of
from timely_llm.bench.grid import BATCHES, DEFAULT_BATCH, PAPER_LOAD, Batches, Grid, TimeScale
from timely_llm.bench.search import LEAST
from timely_llm.simulation.trace import Trace
from timely_llm.simulation.workloads.composition import scale
from timely_llm.simulation.workloads.tasks import skill_sets
from timely_llm.validation.names import hint

_Kind = TypeVar("_Kind", int, float)

ALL = "all"
MAX_SEEDS = 1000
MIN_LOAD, MAX_LOAD = 1e-6, 1000.0
MIN_TIME_SCALE, MAX_TIME_SCALE = 1e-6, 1000.0
MAX_SECONDS = 1000.0  # of network and overheads
MAX_BATCH = 1024


class BadOption(ValueError):
    """An option with a value that cannot be. ``option`` is its name, as ``--load``."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(reason)
        self.option = option


def grid(
    presets: str, model: str, workload: str, load: str, policy: str, batch: str, seed: str
) -> Grid:
    """The grid that the options' texts say, with every name looked up and every trace made once.

    ``model`` set: real vLLM with it takes the presets' place.
    """
    own = policies.names()
    known = own + [f"{name}:{p}" for name in own if policies.get(name).predicts for p in PREDICTORS]
    chosen = tuple(own) if policy.strip() == ALL else names("--policies", policy, known)
    drawn, factors = seeds(seed), loads(load)
    least = min(LEAST if factor == PAPER_LOAD else float(factor) for factor in factors)
    return Grid(
        engines=(real_engine(model),) if model else _presets(presets),
        workloads=_workloads(workload, drawn, model != "", least),
        loads=factors,
        policies=chosen,
        seeds=drawn,
        batches=batches(batch, known),
    )


def real_engine(model: str) -> str:
    """What the report calls real vLLM with ``model``."""
    return f"vllm {model.rstrip('/').rpartition('/')[2]}"


def check_profiles(presets: Sequence[str], model: str) -> None:
    """Refuse profiles of another model than ``model``, a folder or a name."""
    for name in presets:
        if not name.endswith(PROFILE_SUFFIXES):
            raise BadOption("--model", f"preset {name!r} is no profile of a model: leave it out")
        try:
            profile.load(name, model)
        except ValueError as error:
            raise BadOption("--preset", str(error)) from error


def _presets(text: str) -> tuple[str, ...]:
    found = _items("--preset", text)
    for name in found:
        try:
            engine_of(name)
        except (ValueError, OSError) as error:
            raise BadOption("--preset", str(error)) from error
    return found


def _workloads(text: str, drawn: Sequence[int], real: bool, load: float) -> tuple[str, ...]:
    """``load`` is the least of the loads."""
    found = _items("--workload", text)
    for name in found:
        for seed in drawn:
            try:
                trace = trace_of(name, seed)
                check_trace(trace, real)
                scale(trace, load)
            except (ValueError, OSError) as error:
                raise BadOption("--workload", str(error)) from error
    return found


def check_trace(trace: Trace, real: bool) -> None:
    """``ValueError`` unless ``trace`` has tasks, and robots for them where the planner is
    ``real``: it writes plans, no texts."""
    if not trace.arrivals:
        raise ValueError(f"workload {trace.name!r} is empty")
    kinds = skill_sets()
    for kind in {arrival.task.kind for arrival in trace.arrivals} if real else ():
        if kind not in kinds:
            raise ValueError(
                f"workload {trace.name!r} has goals of kind {kind!r}: the real planner writes "
                f"plans for robots alone ({', '.join(kinds)})"
            )


def names(option: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Names apart by commas, all of them known."""
    found = _items(option, text)
    for name in found:
        if name not in known:
            raise BadOption(option, f"{name!r} is unknown{hint(name, known)}")
    return found


def loads(text: str) -> tuple[float | str, ...]:
    """Numbers, or ``paper``, apart by commas."""
    return tuple(
        item if item == PAPER_LOAD else _number("--load", item, MIN_LOAD, MAX_LOAD)
        for item in _items("--load", text)
    )


def seeds(text: str) -> tuple[int, ...]:
    """``10``: ten of them, 0 to 9; ``3,`` or ``0,3,7``: these; ``5-9``: these."""
    if "," not in text and "-" not in text.strip().lstrip("-"):
        return tuple(range(_whole("--seeds", text.strip(), 1, MAX_SEEDS)))
    found: list[int] = []
    for item in _items("--seeds", text):
        first, dash, last = item.partition("-")
        low = _whole("--seeds", first, 0)
        high = _whole("--seeds", last, low, low + MAX_SEEDS - 1) if dash else low
        found.extend(range(low, high + 1))
    return tuple(dict.fromkeys(found))


def time_scale(text: str) -> TimeScale:
    """A factor; ``auto``; or ``auto:FACTOR``."""
    option, limits = "--time-scale", (MIN_TIME_SCALE, MAX_TIME_SCALE)
    name, colon, factor = text.partition(":")
    if name != "auto":
        return TimeScale(_number(option, text, *limits))
    return TimeScale(_number(option, factor, *limits) if colon else 1.0, auto=True)


def seconds(option: str, value: float) -> float:
    """``value`` of an option in s."""
    if not 0 <= value <= MAX_SECONDS:
        raise BadOption(option, f"{value:g} must be 0 to {MAX_SECONDS:g} s")
    return value


def batches(text: str, known: Sequence[str]) -> Batches:
    """``8``; ``2,4,8``: each; ``best`` or ``best:4,6,8``: for each policy the best of them;
    ``8,vllm=12,timely=6``: with sizes of their own for some. ``known`` are all policies.
    """
    option = "--max-batch"
    best, sizes, own = False, [], {}
    for item in _items(option, text):
        policy, sign, number = item.partition("=")
        if sign:
            (policy,) = names(option, policy, known)
            own.setdefault(policy, []).append(_whole(option, number, 1, MAX_BATCH))
            continue
        if item == "best" or item.startswith("best:"):
            best, item = True, item.removeprefix("best").removeprefix(":")
        if item:
            sizes.append(_whole(option, item, 1, MAX_BATCH))
    default = BATCHES if best else (DEFAULT_BATCH,)
    kept = tuple((policy, tuple(dict.fromkeys(found))) for policy, found in own.items())
    return Batches(tuple(dict.fromkeys(sizes)) or default, kept, best)


def _items(option: str, text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))
    if not found:
        raise BadOption(option, "is empty")
    return found


def _number(option: str, text: str, least: float, most: float) -> float:
    value = _parsed(option, text, float)
    if not least <= value <= most:
        raise BadOption(option, f"{text} must be {least:g} to {most:g}")
    return value


def _whole(option: str, text: str, least: int, most: int | None = None) -> int:
    value = _parsed(option, text, int)
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"{least} to {most}"
        raise BadOption(option, f"{text} must be {limits}")
    return value


def _parsed(option: str, text: str, kind: Callable[[str], _Kind]) -> _Kind:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise BadOption(option, f"{text!r} is not {what}") from None
