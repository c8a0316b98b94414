"""One burst of a trace, goal by goal: when its plan was generated and when its robot worked. Pure.

What TimelyLLM's Figure 6 shows of two goals of WID2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

from timely_llm.bench.config import trace_of
from timely_llm.bench.results import Results
from timely_llm.bench.simulated import setting_of
from timely_llm.protocols.messages import Execution, ExecutionState, PlanEvent, PlanEventType
from timely_llm.protocols.utility import URGENT
from timely_llm.simulation.loop import Setting, simulated
from timely_llm.simulation.trace import Trace

GAP = 0.05  # s at load 1: arrivals closer than this are of one burst
SIZES = range(4, 9)  # goals of a burst that can be told apart in a figure
_AFTER = 20.0  # s that are replayed after the burst

_BEGIN = (PlanEventType.STARTED, PlanEventType.RESUMED)
_REST = (
    PlanEventType.SUSPENDED,
    PlanEventType.EVICTED,
    PlanEventType.REPLANNED,
    PlanEventType.ENDED,
)


@dataclass(frozen=True, slots=True)
class Span:
    """From ``start`` to ``end``, in s: the engine writes the plan, or the robot does ``text``."""

    start: float
    end: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class GoalTimeline:
    """One goal. ``arrival``, ``due`` (arrival + ERT) and ``first`` (its first segment is at the
    robot; None: it never was) in s."""

    number: int
    name: str
    urgent: bool
    arrival: float
    due: float
    first: float | None
    writing: tuple[Span, ...]
    executing: tuple[Span, ...]


def burst_timelines(results: Results) -> tuple[str, dict[str, tuple[GoalTimeline, ...]]]:
    """What is shown of one burst, the first of the grid's first workload and load: its title, and
    the burst under vllm (else the worst policy) and under the best one."""
    found = results.summaries()
    first = found[0].point
    here = [one for one in found if one.point.scenario == first.scenario]
    here.sort(key=lambda one: one.utility)
    low = next((one for one in here if one.point.policy == "vllm"), here[0])
    trace = trace_of(first.workload, first.seed, first.load)
    burst, conditions = burst_of(trace, first.load), results.conditions_of(first.engine)
    shown = {
        f"{one.point.policy}, max batch {one.point.max_batch}": timelines(
            trace, setting_of(one.point, conditions), burst
        )
        for one in (low, here[-1])
    }
    at = trace.arrivals[burst.start].at
    return f"One burst of {first.workload} at load {first.load:g}, at {at:.1f} s", shown


def burst_of(trace: Trace, load: float = 1.0) -> range:
    """The numbers of the arrivals of the first burst with urgent and other goals that can be told
    apart in a figure; without one, of the first goals of the trace."""
    arrivals = trace.arrivals
    begin = 0
    for end in range(1, len(arrivals) + 1):
        if end < len(arrivals) and arrivals[end].at - arrivals[end - 1].at <= GAP / load:
            continue
        urgent = {arrivals[i].task.urgency in URGENT for i in range(begin, end)}
        if end - begin in SIZES and len(urgent) == 2:
            return range(begin, end)
        begin = end
    return range(min(len(arrivals), SIZES[-1]))


def timelines(trace: Trace, setting: Setting, burst: range) -> tuple[GoalTimeline, ...]:
    """Replay ``trace`` up to the burst, and a little further, and follow the burst's goals."""
    cut = replace(trace, arrivals=trace.arrivals[: burst.stop])
    replay = simulated(cut, replace(setting, timeline=True, cut=_AFTER))
    run = replay.run()
    found = []
    for number in burst:
        arrival = trace.arrivals[number]
        events = [event for event in run.timeline if event.plan_id == str(number)]
        found.append(
            GoalTimeline(
                number,
                arrival.task.name,
                arrival.task.urgency in URGENT,
                arrival.at,
                arrival.at + arrival.task.utility.ert,
                replay.first_at.get(number),
                tuple(_writing(events)),
                tuple(_executing(r for r in replay.reports if r.plan_id == str(number))),
            )
        )
    return tuple(found)


def _writing(events: Iterable[PlanEvent]) -> Iterable[Span]:
    begun: float | None = None
    for event in events:
        if event.type in _BEGIN and begun is None:
            begun = event.stamp
        over = event.type is PlanEventType.SEGMENT and event.last
        if begun is not None and (over or event.type in _REST):
            yield Span(begun, event.stamp)
            begun = None


def _executing(reports: Iterable[Execution]) -> Iterable[Span]:
    calls = (r for r in reports if r.call.name)
    for _, group in groupby(calls, key=lambda report: report.call_number):
        own = list(group)
        if own[-1].state is ExecutionState.SUCCEEDED:
            call = own[-1].call
            text = f"{call.name}({','.join(call.arguments)})"
            yield Span(own[0].stamp, own[-1].stamp, text)
