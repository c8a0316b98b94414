"""Learned durations against wrong ones: what waiting comes back to, and after how many executions.

The planner believes skill sets whose durations are all a wrong factor of the true ones, and so do
the robots, as their reports show; calls take what the trace says. Before a run it is shown so many
executions of each skill that the workload's plans use, with their arguments and with durations
drawn from the true set, by robots other than the run's; then it learns nothing more, so that a run
shows what so many executions are worth.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import fmean

from benchmarks.figures import Figure, Report
from timely_llm.estimation.learned_times import Times
from timely_llm.estimation.presets import rtx4090_llama3_8b
from timely_llm.estimation.skill_time import QUANTILE
from timely_llm.language.parser import Call, parse
from timely_llm.language.skills import Duration, SkillSet
from timely_llm.protocols.messages import SkillCall
from timely_llm.simulation.loop import Setting, simulate
from timely_llm.simulation.workloads import published as workloads
from timely_llm.simulation.workloads.tasks import published, skill_sets

POLICIES = ("least_loss", "timely")
SCENARIOS = (("wid2", 10.0), ("arm", 28.0))
"""Workloads with their loads: the least at which waiting clearly depends on what is believed."""
OPTIONS = {"arm": {"time": 450.0}}
FACTORS = (0.3, 3.0)
EXECUTIONS = 30  # of each skill
CURVE = (0, 1, 2, 3, 5, 10, 30, 100)
QUANTILES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
NEARLY = (0.99, 1.01)  # factors that make no difference: what waiting varies by itself
TARGET = 1.1  # of the waiting with true times
BATCH = 12
TRAINERS = 3  # robots
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Arm:
    """What the planner believes: skill sets' durations times ``factor``; after ``executions`` of
    each skill; None: it learns nothing and takes them at their word."""

    factor: float = 1.0
    executions: int | None = None
    quantile: float = QUANTILE


@dataclass(frozen=True, slots=True)
class Trial:
    """One simulated run."""

    workload: str
    load: float
    policy: str
    seed: int
    arm: Arm


def run(seeds: int = 10) -> Report:
    """Both policies at the loads of ``SCENARIOS``, with as many seeds; the learning curve and the
    quantiles with half of them."""
    seeds = max(1, seeds)
    half = max(1, seeds // 2)
    learned = [Arm(factor, EXECUTIONS) for factor in (1.0, *FACTORS)]
    arms = [Arm(), *map(Arm, (*NEARLY, *FACTORS)), *learned]
    curve = [Arm(factor, count) for factor in FACTORS for count in CURVE]
    quantiles = [Arm(1.0, EXECUTIONS, quantile) for quantile in QUANTILES]
    results = measure(arms, seeds)
    results |= measure([arm for arm in curve if arm not in arms], half, SCENARIOS[:1])
    results |= measure([arm for arm in quantiles if arm not in arms], half)
    figures = []
    for workload, load in SCENARIOS:
        for policy in POLICIES:
            figures += _figures(results, workload, load, policy, seeds)
            means = Means(results, workload, load, policy, half)
            if (workload, load) == SCENARIOS[0]:
                figures += _curve(means)
            figures += _quantiles(means)
    data = {f"{c.workload} {c.load:g} {c.policy} {c.seed} {c.arm}": r for c, r in results.items()}
    return Report("Waiting with wrong durations, and with learned ones", figures, data)


class Means:
    """Over the first ``seeds`` of one workload and policy."""

    def __init__(
        self,
        results: Mapping[Trial, tuple[float, float]],
        workload: str,
        load: float,
        policy: str,
        seeds: int,
    ) -> None:
        self.name = f"{workload} x{load:g}, {policy}"
        self._results, self._seeds = results, seeds
        self._first = Trial(workload, load, policy, 0, Arm())

    def __call__(self, arm: Arm, figure: int = 0) -> float:
        """Mean waiting in s; with 1, mean utility."""
        trials = [replace(self._first, seed=seed, arm=arm) for seed in range(self._seeds)]
        return fmean(self._results[trial][figure] for trial in trials)


def _curve(means: Means) -> list[Figure]:
    true = means(Arm())
    return [
        Figure(
            f"{means.name}: x{factor:g}, after {', '.join(map(str, CURVE))} executions",
            ", ".join(f"{means(Arm(factor, count)) / true - 1:+.1%}" for count in CURVE),
        )
        for factor in FACTORS
    ]


def _quantiles(means: Means) -> list[Figure]:
    return [
        Figure(
            f"{means.name}: quantile {quantile:g}",
            f"waiting {means(Arm(1.0, EXECUTIONS, quantile)):.3f} s, "
            f"utility {means(Arm(1.0, EXECUTIONS, quantile), 1):.3f}",
        )
        for quantile in QUANTILES
    ]


def _figures(results, workload: str, load: float, policy: str, seeds: int) -> list[Figure]:
    waiting = Means(results, workload, load, policy, seeds)
    name, true = waiting.name, waiting(Arm())
    nearly = ", ".join(f"{waiting(Arm(factor)) / true - 1:+.1%}" for factor in NEARLY)
    figures = [
        Figure(f"{name}: true times", f"{true:.3f} s"),
        Figure(f"{name}: true times x0.99, x1.01 (A/A)", nearly),
        Figure(f"{name}: true, learned", _against(waiting(Arm(1.0, EXECUTIONS)), true)),
    ]
    for factor in FACTORS:
        figures.append(
            Figure(f"{name}: x{factor:g} believed", _against(waiting(Arm(factor)), true))
        )
        after = waiting(Arm(factor, EXECUTIONS))
        figures.append(
            Figure(
                f"{name}: x{factor:g}, after {EXECUTIONS} executions",
                _against(after, true),
                "at most +10%",
                after <= TARGET * true,
            )
        )
    return figures


def _against(waiting: float, true: float) -> str:
    return f"{waiting:.3f} s ({waiting / true - 1:+.1%})"


def measure(
    arms: Sequence[Arm],
    seeds: int,
    scenarios: Sequence[tuple[str, float]] = SCENARIOS,
    policies: Sequence[str] = POLICIES,
) -> dict[Trial, tuple[float, float]]:
    """Mean waiting in s and mean utility of all runs."""
    runs = [
        Trial(workload, load, policy, seed, arm)
        for workload, load in scenarios
        for policy in policies
        for arm in arms
        for seed in range(seeds)
    ]
    with ProcessPoolExecutor(WORKERS) as pool:
        return dict(zip(runs, pool.map(one, runs, chunksize=4), strict=True))


def one(trial: Trial) -> tuple[float, float]:
    """Mean waiting in s and mean utility of one run."""
    options = OPTIONS.get(trial.workload, {})
    trace = workloads.make(trial.workload, trial.seed, trial.load, **options)
    arm, times = trial.arm, None
    kinds = {kind: believed(kind, arm.factor) for kind in skill_sets()}
    if arm.executions is not None:
        times = partial(trained, kinds, arm.executions, arm.quantile, trial.seed)
    setting = Setting(trial.policy, rtx4090_llama3_8b(), max_batch=BATCH, skills=kinds, times=times)
    outcomes = simulate(trace, setting).outcomes
    return fmean(o.waiting_s for o in outcomes), fmean(o.utility for o in outcomes)


@cache
def believed(kind: str, factor: float) -> SkillSet:
    """The kind's skill set with all durations times ``factor``."""
    skills = skill_sets()[kind]
    changed = tuple(replace(s, duration=scaled(s.duration, factor)) for s in skills.skills)
    return replace(skills, skills=changed)


def scaled(duration: Duration, factor: float) -> Duration:
    """``duration`` times ``factor``, at any arguments."""
    first, *rest = duration.coefficients
    if duration.model != "choice":  # whose second is a count
        rest = [value * factor for value in rest]
    return replace(
        duration,
        coefficients=(first * factor, *rest),
        least=duration.least * factor,
        most=duration.most * factor,
    )


def trained(kinds: Mapping[str, SkillSet], executions: int, quantile: float, seed: int) -> Times:
    """What the planner knows after so many ``executions`` of each skill of the published plans."""
    times, rng = Times(quantile), random.Random(f"executions {seed}")
    for kind, wrong in kinds.items():
        true, calls = skill_sets()[kind], calls_of(kind)
        robots = [times.robot(f"trainer {i}", wrong) for i in range(TRAINERS)]
        for name, known in sorted(calls.items()):
            for i in range(executions):
                call = rng.choice(known)
                duration = true[name].sample_duration(call.values, rng)
                expected = wrong[name].expected_duration(call.values)
                robots[i % TRAINERS].observe(SkillCall(name, (), (), expected), duration)
    times.learning = False
    return times


@cache
def calls_of(kind: str) -> dict[str, list[Call]]:
    """The timed calls in the published plans of a kind, by skill."""
    skills = skill_sets()[kind]
    found: dict[str, list[Call]] = {}
    for task in published():
        if task.kind == kind:
            for call in parse(task.plan, skills):
                if skills[call.name].timed:
                    found.setdefault(call.name, []).append(call)
    return found
