"""How fast the simulator's loop is, how its cost grows, and what one decision costs."""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Callable

from benchmarks.figures import Figure, Report
from timely_llm import policies
from timely_llm.core.request import Request, State
from timely_llm.core.views import view_of
from timely_llm.estimation.presets import get
from timely_llm.estimation.segment_length import SegmentLength
from timely_llm.estimation.step_time import LatencyEstimate
from timely_llm.language.parser import parse
from timely_llm.policies import EngineState
from timely_llm.protocols.messages import PlanGoal
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency
from timely_llm.simulation.loop import Setting, simulated
from timely_llm.simulation.trace import Arrival, Task, Trace
from timely_llm.simulation.workloads.tasks import draw_durations, published, skill_sets

ENGINE = get("rtx4090-llama3-8b")
LIVE = 32
BATCH = 8  # TimelyLLM's
TARGET = 10_000  # steps/s
WAITING = (100, 1000, 10_000)
DECISIONS = {8: 50e-6, 1000: 1e-3}  # s, by live goals
POLICIES = ("edf", "timely", "least_loss")


def run(repeats: int = 20) -> Report:
    """The fastest of ``repeats`` counts: the machine may be busy with other things."""
    figures, data = [], {}
    for name, trace in (("chats", chats(LIVE)), ("arm plans", arm_plans(LIVE))):
        for policy in POLICIES:
            best = max(steps_per_second(trace, policy) for _ in range(max(2, repeats // 4)))
            data[f"{name} {policy}"] = best
            what = f"steps/s, {LIVE} live {name}, batch of {BATCH}, {policy}"
            figures.append(Figure(what, f"{best:,.0f}", f"at least {TARGET:,}", best >= TARGET))
    figures += [growth(policy, data) for policy in POLICIES]
    for count, target in DECISIONS.items():
        for policy in POLICIES:
            figures += decision(policy, count, target, repeats, data)
    return Report(f"Simulator's speed: the fastest of {repeats}", figures, data)


# The loop.


def steps_per_second(trace: Trace, policy: str) -> float:
    """Of the loop's own time: plans are read before it starts."""
    replay = simulated(trace, Setting(policy, ENGINE, BATCH, cut=1e6))
    begun = time.process_time()
    steps = replay.run().steps
    return steps / (time.process_time() - begun)


def chats(live: int, rounds: int = 4, tokens: int = 300) -> Trace:
    """Readers who ask again as soon as they have read: sentences of 8 to 25 tokens."""
    rng = random.Random(0)
    arrivals = []
    for i in range(live * rounds):
        words: list[str] = []
        while len(words) < tokens:
            words += [" word"] * rng.randint(7, 24) + ["."]
        utility = TimeUtility(1.0, -1.0, 1.0)
        task = Task("chat", "reader", "x", tuple(words), utility, Urgency.NORMAL, prompt_tokens=50)
        arrivals.append(Arrival(0.0, f"reader_{i % live}", task, ()))
    return Trace("chats", tuple(arrivals))


def arm_plans(live: int, rounds: int = 6) -> Trace:
    """The published arm plans, on robots that are fifty times as fast: the engine never idles."""
    rng = random.Random(0)
    arrivals = []
    for i in range(live * rounds):
        task = published()[8 + i % 3]
        skills = skill_sets()[task.kind]
        times = draw_durations(parse(task.plan, skills), skills, rng)
        arrivals.append(Arrival(0.0, f"arm_{i % live}", task, tuple(t / 50 for t in times)))
    return Trace("arm plans", tuple(arrivals))


# How it grows.


def growth(policy: str, data: dict) -> Figure:
    """Time of a step with n waiting goals, over n log n, from the fewest to the most."""
    costs = {n: min(_step_cost(policy, n) for _ in range(3)) for n in WAITING}
    data[f"step_s {policy}"] = costs
    few, many = WAITING[0], WAITING[-1]
    allowed = many * math.log(many) / (few * math.log(few))
    grown = costs[many] / costs[few]
    shown = ", ".join(f"{n:,}: {cost * 1e6:.0f} us" for n, cost in costs.items())
    return Figure(
        f"a step with n goals waiting, {policy}",
        f"{shown}; {grown:.0f} times",
        f"at most {allowed:.0f} times",
        grown <= allowed,
    )


def _step_cost(policy: str, waiting: int, steps: int = 60) -> float:
    """Seconds of one turn of the loop while ``waiting`` goals wait."""
    tasks = published()
    arrivals = [Arrival(0.0, f"drone_{i}", tasks[i % 8], ()) for i in range(waiting)]
    replay = simulated(Trace("waiting", tuple(arrivals)), Setting(policy, ENGINE, BATCH))
    replay.begin()
    planner = replay.planner
    now = planner.run_once(0.0).ended  # makes all views
    begun = time.process_time()
    for _ in range(steps):
        now = planner.run_once(now).ended
    return (time.process_time() - begun) / steps


# One decision.


def decision(policy: str, count: int, target: float, repeats: int, data: dict) -> list[Figure]:
    """With all views made again, and with the views that the loop keeps."""
    plans, lengths = live_plans(count), SegmentLength()
    state = EngineState(BATCH, LatencyEstimate(ENGINE.latency), 10**6, 10**6)
    choose = policies.get(policy).choose

    def views() -> list:
        return [view_of(plan, lengths, 2900, 0.008) for plan in plans]

    kept = views()
    again = _seconds(lambda: choose(5.0, views(), state), count, repeats)
    only = _seconds(lambda: choose(5.0, kept, state), count, repeats)
    data[f"decision_s {policy} {count}"] = {"again": again, "kept": only}
    what = f"a decision for {count:,} live goals, {policy}"
    limit = f"at most {target * 1e6:,.0f} us"
    return [
        Figure(f"{what}, views again", f"{again * 1e6:,.0f} us", limit, again <= target),
        Figure(f"{what}, views kept", f"{only * 1e6:,.0f} us"),
    ]


def live_plans(count: int) -> list[Request]:
    """Half of them wait for their first segment, half are suspended after it."""
    rng = random.Random(0)
    plans = []
    for i in range(count):
        urgency = rng.choice((Urgency.URGENT, Urgency.NORMAL))
        goal = PlanGoal(f"robot_{i}", "go", urgency=urgency)
        plan = Request(str(i), i, goal, PRESETS[urgency], rng.uniform(4.0, 5.0), State.WAITING)
        plan.prompt_tokens, plan.uncached = 3000, 100
        if i % 2:
            plan.begun, plan.state, plan.segments = True, State.SUSPENDED, ["mf(50)"]
            plan.uncached, plan.tokens, plan.horizon.end = 0, 8, rng.uniform(4.5, 9.0)
        plans.append(plan)
    return plans


def _seconds(work: Callable[[], object], count: int, repeats: int) -> float:
    """Processor time of one call, the least of ``repeats`` rounds; no garbage is collected."""
    number = max(1, 2000 // count)
    times: list[float] = []
    gc.disable()
    try:
        for _ in range(repeats):
            begun = time.process_time()
            for _ in range(number):
                work()
            times.append((time.process_time() - begun) / number)
    finally:
        gc.enable()
    return min(times)
