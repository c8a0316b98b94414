"""What ``timely-llm bench`` is to run: its one configuration object, read from the options of the
command and checked before anything runs. Pure but for reading traces and profiles.

Every error is a ``BadOption`` that names the option, the value, and what it could have been.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from timely_llm import policies as all_policies
from timely_llm.bench import DEFAULT_PRESET
from timely_llm.bench import profile_file as profile
from timely_llm.bench.search import LEAST
from timely_llm.estimation import presets as engine_presets
from timely_llm.estimation.plan_length import Predictor
from timely_llm.estimation.presets import EngineModel
from timely_llm.paths import share
from timely_llm.simulation import trace_file
from timely_llm.simulation.loop import noisy, oracle
from timely_llm.simulation.trace import Trace
from timely_llm.simulation.workloads import published as workloads
from timely_llm.simulation.workloads.tasks import DECODE_STEP, skill_sets
from timely_llm.validation.names import hint

_Number = TypeVar("_Number", int, float)

ALL = "all"
PAPER_LOAD = "paper"  # the load at which ``vllm`` has the paper's utility: see ``search.py``
BATCHES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)  # tried where the best one is looked for
DEFAULT_BATCH = 8  # TimelyLLM's
TRACE_SUFFIX = ".jsonl"
PROFILE_SUFFIXES = (".yaml", ".yml")
PREDICTORS = {"oracle": oracle, "noisy": noisy}
MAX_SEEDS = 1000
MIN_LOAD, MAX_LOAD = 1e-6, 1000.0
MIN_TIME_SCALE, MAX_TIME_SCALE = 1e-6, 1000.0
MAX_SECONDS = 1000.0  # of network and overheads
MAX_BATCH = 1024

Scenario = tuple[str, str, float]
"""Engine, workload and load: where policies are compared."""


class BadOption(ValueError):
    """An option with a value that cannot be. ``option`` is its name, as ``--load``."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(reason)
        self.option = option


class GridPoint(NamedTuple):
    """One run: one trace under one policy on one engine."""

    engine: str
    workload: str
    load: float
    policy: str
    max_batch: int
    seed: int

    @property
    def scenario(self) -> Scenario:
        return self[:3]

    @property
    def setup(self) -> tuple[str, str, float, str, int]:
        """All but the seed."""
        return self[:5]


@dataclass(frozen=True, slots=True)
class Batches:
    """How many generations compute in one step: ``sizes``, but ``own`` for the policies it names.

    With several sizes every one is a run, and with ``best`` only the one with the highest mean
    utility is kept, for each policy, workload and load.
    """

    sizes: tuple[int, ...] = (DEFAULT_BATCH,)
    own: tuple[tuple[str, tuple[int, ...]], ...] = ()
    best: bool = False

    def of(self, policy: str) -> tuple[int, ...]:
        return dict(self.own).get(policy, self.sizes)


@dataclass(frozen=True, slots=True)
class TimeScale:
    """What 1 s of the workload lasts on an engine, in s: ``factor``; with ``auto`` this many times
    the engine's decode step over the paper's."""

    factor: float = 1.0
    auto: bool = False

    def of(self, decode_step: Callable[[], float]) -> float:
        return self.factor * decode_step() / DECODE_STEP if self.auto else self.factor


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is the same for all runs on an engine. Times in s.

    A workload that ``time_scale`` (s for 1 s of it) shrinks meets the engine as the workload itself
    meets an engine that is slower by the same factor. A run ends ``cut`` after the last arrival.
    ``plan_overhead`` and ``decision_overhead`` are added to each plan and to each decision.
    """

    network: float = 0.008
    refusals: bool = False
    cut: float = 60.0
    plan_overhead: float = 0.0
    decision_overhead: float = 0.0
    time_scale: float = 1.0


@dataclass(frozen=True, slots=True)
class BenchConfig:
    """Every combination of engine, workload, load, policy with its batch sizes, and seed is a run.

    A load may be ``PAPER_LOAD``. ``model`` set: the one engine is real vLLM with it. ``jobs``:
    processes for simulated runs. ``bound``: compute upper bounds too. ``json_file`` and ``plots``:
    where the report and the figures go. ``record``: the file for what the real model answers.
    """

    engines: tuple[str, ...]
    workloads: tuple[str, ...]
    loads: tuple[float | str, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)
    batches: Batches = Batches()
    conditions: Conditions = Conditions()
    time_scale: TimeScale = TimeScale()
    model: str = ""
    jobs: int = 1
    bound: bool = False
    json_file: Path | None = None
    plots: Path | None = None
    record: Path | None = None

    def points(self, paper: Mapping[tuple[str, str], float]) -> tuple[GridPoint, ...]:
        """The runs in the order of the report. ``paper`` has the loads that ``PAPER_LOAD`` stands
        for, by engine and workload."""
        found = []
        for engine, workload, load, policy in itertools.product(
            self.engines, self.workloads, self.loads, self.policies
        ):
            value = paper[engine, workload] if load == PAPER_LOAD else float(load)
            for size, seed in itertools.product(self.batches.of(policy), self.seeds):
                found.append(GridPoint(engine, workload, value, policy, size, seed))
        return tuple(dict.fromkeys(found))

    @property
    def expected(self) -> int:
        """How many runs there are to be."""
        sizes = sum(len(self.batches.of(policy)) for policy in self.policies)
        return len(self.engines) * len(self.workloads) * len(self.loads) * sizes * len(self.seeds)


# What the names stand for.


@lru_cache(maxsize=64)
def trace_of(workload: str, seed: int, load: float = 1.0) -> Trace:
    """A workload by name, with options as in ``wid2:robots=42``, or from the file of that name,
    which is the same for all seeds; ``ValueError`` or ``OSError`` if it cannot be had."""
    if workload.endswith(TRACE_SUFFIX):
        return workloads.scale(trace_file.read(workload), load)
    name, *options = workload.split(":")
    pairs = [option.partition("=") for option in options]
    for text, (_, sign, _) in zip(options, pairs, strict=True):
        if not sign:
            raise ValueError(f"{text!r}: must be NAME=VALUE")
    given = {option: value for option, _, value in pairs}
    return workloads.make(name, seed=seed, load=load, **given)


@cache
def engine_of(name: str) -> EngineModel:
    """A simulated engine by the name of a preset or the path of a profile (``.yaml``); a
    ``ValueError`` or an ``OSError`` if it cannot be had."""
    if name.endswith(PROFILE_SUFFIXES):
        return profile.load(name)
    return engine_presets.get(name)


def policy_of(name: str) -> tuple[str, Callable[[Trace], Predictor] | None]:
    """A policy's own name, and the predictor that ``name`` gives it: ``isrtf:oracle``."""
    policy, _, predictor = name.partition(":")
    return policy, PREDICTORS[predictor] if predictor else None


# From the options of the command.


def config_of(
    *,
    engine: str,
    preset: str,
    model: str,
    workload: str,
    load: str,
    policies: str,
    max_batch: str,
    seeds: str,
    time_scale: str,
    json_file: Path | None,
    plots: Path | None,
    jobs: int,
    bound: bool,
    record: Path | None,
    refusals: bool,
    network: float,
    plan_overhead: float,
    decision_overhead: float,
) -> BenchConfig:
    """The configuration that the options say, with every name looked up and every trace made once.
    ``BadOption`` for the first option that cannot be."""
    conditions = Conditions(
        network=check_seconds("--network", network),
        refusals=refusals,
        plan_overhead=check_seconds("--plan-overhead", plan_overhead),
        decision_overhead=check_seconds("--decision-overhead", decision_overhead),
    )
    real = ""
    if engine == "vllm":
        if preset != DEFAULT_PRESET:
            raise BadOption("--preset", "a preset is for --engine sim; real vLLM takes --model")
        real = model or str(share("models", "tiny_planner"))
    own = all_policies.names()
    predicting = [name for name in own if all_policies.get(name).predicts]
    known = own + [f"{name}:{predictor}" for name in predicting for predictor in PREDICTORS]
    chosen = own if policies.strip() == ALL else parse_names("--policies", policies, known)
    drawn, factors = parse_seeds(seeds), parse_loads(load)
    least = min(LEAST if factor == PAPER_LOAD else float(factor) for factor in factors)
    name = f"vllm {real.rstrip('/').rpartition('/')[2]}"  # of real vLLM in the report
    config = BenchConfig(
        engines=(name,) if real else _checked("--preset", preset, engine_of),
        workloads=_checked(
            "--workload", workload, lambda name: _check_workload(name, drawn, real != "", least)
        ),
        loads=factors,
        policies=tuple(chosen),
        seeds=drawn,
        batches=parse_batches(max_batch, known),
        conditions=conditions,
        time_scale=parse_time_scale(time_scale),
        model=real,
        jobs=jobs or os.cpu_count() or 1,
        bound=bound,
        json_file=json_file,
        plots=plots,
        record=record,
    )
    if real:
        _check_real(config)
    elif record is not None:
        raise BadOption("--record", "only --engine vllm has answers of its own")
    elif model:
        _check_profiles(config.engines, model)
    return config


def _check_real(config: BenchConfig) -> None:
    """Refuse what a real engine cannot be given."""
    if config.bound:
        raise BadOption(
            "--bound",
            "bounds need step times as numbers: use --engine sim with a profile of the engine",
        )
    for option, value in (
        ("--plan-overhead", config.conditions.plan_overhead),
        ("--decision-overhead", config.conditions.decision_overhead),
    ):
        if value:
            raise BadOption(option, "on real vLLM it is measured")
    for name in config.policies:
        policy, _, predictor = name.partition(":")
        if predictor:
            raise BadOption(
                "--policies",
                f"{name}: the {predictor} predictor knows the trace's answers, real vLLM writes "
                f"its own: use {policy}",
            )


def _check_profiles(presets: Sequence[str], model: str) -> None:
    """Refuse profiles of another model than ``model``, a folder or a name."""
    for name in presets:
        if not name.endswith(PROFILE_SUFFIXES):
            raise BadOption("--model", f"preset {name!r} is no profile of a model: leave it out")
        try:
            profile.load(name, model)
        except ValueError as error:
            raise BadOption("--preset", str(error)) from error


def _checked(option: str, text: str, check: Callable[[str], object]) -> tuple[str, ...]:
    """Names separated by commas, each of which ``check`` accepts."""
    found = _items(option, text)
    for name in found:
        try:
            check(name)
        except (ValueError, OSError) as error:
            raise BadOption(option, str(error)) from error
    return found


def _check_workload(name: str, seeds: Iterable[int], real: bool, load: float) -> None:
    """``ValueError`` unless the workload has goals at every seed, also at the least ``load``, and
    robots for them where the planner is ``real``: it writes plans, no texts."""
    for seed in seeds:
        trace = trace_of(name, seed)
        if not trace.arrivals:
            raise ValueError(f"workload {trace.name!r} is empty")
        known = skill_sets()
        for kind in {arrival.task.kind for arrival in trace.arrivals} if real else ():
            if kind not in known:
                raise ValueError(
                    f"workload {trace.name!r} has goals of kind {kind!r}: the real planner writes "
                    f"plans for robots alone ({', '.join(known)})"
                )
        workloads.scale(trace, load)


def parse_names(option: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Names separated by commas, all of them known."""
    found = _items(option, text)
    for name in found:
        if name not in known:
            raise BadOption(option, f"{name!r} is unknown{hint(name, known)}")
    return found


def parse_loads(text: str) -> tuple[float | str, ...]:
    """Numbers, or ``paper``, separated by commas."""
    return tuple(
        item if item == PAPER_LOAD else _number("--load", item, MIN_LOAD, MAX_LOAD)
        for item in _items("--load", text)
    )


def parse_seeds(text: str) -> tuple[int, ...]:
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


def parse_time_scale(text: str) -> TimeScale:
    """A factor; ``auto``; or ``auto:FACTOR``."""
    option, limits = "--time-scale", (MIN_TIME_SCALE, MAX_TIME_SCALE)
    name, colon, factor = text.partition(":")
    if name != "auto":
        return TimeScale(_number(option, text, *limits))
    return TimeScale(_number(option, factor, *limits) if colon else 1.0, auto=True)


def check_seconds(option: str, value: float) -> float:
    """``value`` of an option in s."""
    if not 0 <= value <= MAX_SECONDS:
        raise BadOption(option, f"{value:g} must be 0 to {MAX_SECONDS:g} s")
    return value


def parse_batches(text: str, known: Sequence[str]) -> Batches:
    """``8``; ``2,4,8``: each; ``best`` or ``best:4,6,8``: for each policy the best of them;
    ``8,vllm=12,timely=6``: with sizes of their own for some. ``known`` are all policies.
    """
    option = "--max-batch"
    best, sizes = False, []
    own: dict[str, list[int]] = {}
    for item in _items(option, text):
        policy, sign, number = item.partition("=")
        if sign:
            (policy,) = parse_names(option, policy, known)
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


def _parsed(option: str, text: str, kind: Callable[[str], _Number]) -> _Number:
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise BadOption(option, f"{text!r} is not {what}") from None
