"""What things cost in a recording, measured from its events: engine steps, network, our own share.

Pure. The planner stamps its events when they happen, so what lies between them is known: between a
goal's clock and the engine's beginning on it, between the steps of one plan, between a segment sent
and a segment received, between a robot's last report and the plan's end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from timely_llm.estimation import presets as engine_presets
from timely_llm.estimation.presets import EngineModel
from timely_llm.estimation.step_time import StepLatency
from timely_llm.protocols.messages import ExecutionState
from timely_llm.recording.goals import Goal, SentSegment
from timely_llm.recording.recording import Recording
from timely_llm.recording.spans import Concurrency

_FALLBACK = "rtx4090-llama3-8b"  # where no step was recorded and no pace is known
_KV_BLOCKS, _BLOCK = 4096, 16  # where the engine does not say
_ENOUGH = 20  # steps of a batch size, whose mean then counts
_LONGEST_FIRST = 5.0  # s of a first segment; beyond it something else went on
_APART = 0.1  # s between goals that do not wait for each other
_SAME_STEP = 0.003  # s between two ends of one step, as far as they are known
_LONGEST_GAP = 0.05  # s between two steps of one plan; beyond it, it was not computed at all


class _First(NamedTuple):
    """A plan's beginning: how many others the engine wrote then, own prompt tokens, the first
    segment, s until its end, and when the step ended that gave its first token (s)."""

    others: int
    prompt: int
    segment: SentSegment
    whole: float
    ended: float


@dataclass(frozen=True, slots=True)
class Costs:
    """Medians over a recording, in s: what a busy machine delays now and then is no cost.

    ``submit``: from when a goal's clock starts until the engine can begin on it. ``gap``: between
    two steps of the engine. ``forward``: until a segment is at its robot; ``back``: until a report
    is at the planner. ``steps`` are the times of steps that decode, by how many plans they decode,
    and ``counts`` how many of them were seen. ``prefill`` is the time of a prompt token alone,
    ``prefill_beside`` what it adds to a step that also decodes. ``measured``: how many steps.
    """

    submit: float = 0.0
    gap: float = 0.0
    forward: float = 0.0
    back: float = 0.0
    steps: Mapping[int, float] = field(default_factory=dict)
    counts: Mapping[int, int] = field(default_factory=dict)
    prefill: float = 0.0
    prefill_beside: float = 0.0
    measured: int = 0

    @property
    def network(self) -> float:
        """One way, s: the mean of both."""
        return (self.forward + self.back) / 2


def costs_of(goals: Sequence[Goal]) -> Costs:
    """Measured from a recording's goals; 0 where there is nothing to measure."""
    batches = Concurrency([span for goal in goals for span in goal.writing])
    decode, first, gaps = _steps(goals, batches)
    steps = {size: median(times) for size, times in sorted(decode.items())}
    gap = median(gaps) if gaps else 0.0
    first = [_together(one, first) for one in first]
    alone = [one for one in first if one.others == 0]
    prefill = [_prefill(one, steps, gap) for one in alone or first]
    beside = [_prefill(one, steps, gap) for one in first if one.others > 0]
    return Costs(
        submit=_middle(_submits(goals, batches)),
        gap=gap,
        forward=_middle(
            segment.received - segment.at
            for goal in goals
            for segment in goal.segments
            if segment.received is not None
        ),
        back=_middle(
            goal.returned - _last_report(goal, goal.returned)
            for goal in goals
            if goal.returned is not None and goal.calls
        ),
        steps=steps,
        counts={size: len(times) for size, times in sorted(decode.items())},
        prefill=median(prefill) if prefill else 0.0,
        prefill_beside=median(beside or prefill) if first else 0.0,
        measured=sum(map(len, decode.values())) + len(first),
    )


def _together(one: _First, first: Sequence[_First]) -> _First:
    """With the prompts that were computed in the same step, which are not plans being written."""
    same = [other for other in first if abs(other.ended - one.ended) < _SAME_STEP]
    others = max(0, one.others - (len(same) - 1))
    return one._replace(others=others, prompt=sum(other.prompt for other in same))


def _prefill(one: _First, steps: Mapping[int, float], gap: float) -> float:
    """s that each token of a plan's prompt took, on a machine as fast as it typically was."""
    others, prompt, segment, whole, _ = one
    time, slow = segment.steps[0], 1.0
    if others:
        known = [size for size in steps if size <= others]
        time -= steps[max(known)] if known else 0.0
    else:
        time = max(time, whole - sum(segment.steps[1:]) - gap * len(segment.steps))
    if len(segment.steps) > 1 and steps:
        usual = steps[min(steps, key=lambda size: abs(size - others - 1))]
        slow = max(1.0, median(segment.steps[1:]) / usual) if usual else 1.0
    return max(0.0, time) / prompt / slow


def engine_of(recording: Recording, costs: Costs, max_batch: int) -> EngineModel:
    """The recording's engine as numbers: measured times of its steps, with the time between them.

    Batches that were not seen take what the pace's preset says of them over what was seen, or,
    without a pace, the line through those that were.
    """
    engine, pace = recording.engine, str(recording.engine.get("pace") or "")
    preset = engine_presets.PACES.get(pace)
    table = _table(costs, max_batch, preset)
    blocks = int(engine.get("kv_blocks") or _KV_BLOCKS)
    block = int(engine.get("block_size") or _BLOCK)
    prefill = costs.prefill
    if not costs.measured:
        preset = preset or engine_presets.get(_FALLBACK).latency
        table = tuple(preset(size) for size in range(1, max_batch + 1))
        prefill = preset.per_prefill_token
    source = f"{costs.measured} steps measured in {recording.source}"
    return EngineModel(
        name=f"recorded{f' at {pace}' if pace else ''}",
        latency=StepLatency(
            tuple(time + costs.gap for time in table), per_prefill_token=prefill, source=source
        ),
        kv_tokens=blocks * block,
        block_size=block,
        source=source,
    )


def _table(costs: Costs, most: int, preset: StepLatency | None) -> tuple[float, ...]:
    """Step times for batches of 1 to ``most``; they never fall."""
    seen = costs.steps
    if not seen:
        return (0.0,) * most
    preset = preset or _line(seen)
    total = sum(costs.counts.values())
    off = sum((seen[size] - preset(size)) * costs.counts[size] for size in seen) / total
    times: list[float] = []
    for size in range(1, most + 1):
        sure = costs.counts.get(size, 0) >= _ENOUGH
        time = seen[size] if sure else max(0.0, preset(size) + off)
        times.append(max([time, *times[-1:]]))
    return tuple(times)


def _line(seen: Mapping[int, float]) -> StepLatency:
    """Through the times by batch size; level where there is but one."""
    low, high = min(seen), max(seen)
    slope = max(0.0, (seen[high] - seen[low]) / (high - low)) if high > low else 0.0
    return StepLatency((max(0.0, seen[low] - slope * (low - 1)),), slope)


def _steps(
    goals: Sequence[Goal], batches: Concurrency
) -> tuple[dict[int, list[float]], list[_First], list[float]]:
    """Steps that decode, by batch; beginnings of plans; gaps between two steps of one plan."""
    decode: dict[int, list[float]] = {}
    first: list[_First] = []
    gaps: list[float] = []
    for goal in goals:
        for segment in goal.segments:
            if not segment.steps:
                continue
            begun = max(
                (span.start for span in goal.writing if span.start < segment.at), default=None
            )
            earlier = [s.at for s in goal.segments if s.index < segment.index]
            since = max([begun or segment.at, *earlier])
            gap = (segment.at - since - sum(segment.steps)) / len(segment.steps)
            whole = -_LONGEST_GAP < gap < _LONGEST_GAP and begun is not None
            if whole and gap >= 0:
                gaps += [gap] * len(segment.steps)
            end = segment.at
            for i in range(len(segment.steps) - 1, -1, -1):
                time = segment.steps[i]
                batch = max(1, batches.at(end - time / 2))
                if i == 0 and segment.index == 0:
                    if own := goal.own_prompt_tokens:
                        first.append(_First(batch - 1, own, segment, _until_first(goal), end))
                else:
                    decode.setdefault(batch, []).append(time)
                end -= time + max(0.0, gap if whole else 0.0)
    return decode, first, gaps


def _until_first(goal: Goal) -> float:
    """s from the beginning of the writing to the end of the first segment, if it was written in one
    go; else 0. A prompt may take several steps, of which none but the last is in the events."""
    segment = goal.segments[0]
    if goal.started is None or segment.at - goal.started > _LONGEST_FIRST:
        return 0.0
    rests = any(goal.started <= span.start < segment.at for span in goal.suspended)
    return 0.0 if rests else segment.at - goal.started


def _submits(goals: Sequence[Goal], batches: Concurrency) -> list[float]:
    """Of the goals that came alone, when the engine wrote nothing; else of all."""
    begun = sorted(goal.begun for goal in goals)
    waits = [(goal.started - goal.begun, goal.begun) for goal in goals if goal.started is not None]

    def alone(at: float) -> bool:
        near = bisect_right(begun, at + _APART) - bisect_right(begun, at - _APART)
        return near == 1 and batches.at(at) == 0

    return [wait for wait, at in waits if alone(at)] or [wait for wait, _ in waits]


def _last_report(goal: Goal, returned: float) -> float:
    """When the robot reported the end of the last call: of the plan's end it reports then too."""
    done = [call.ended for call in goal.calls if call.state is ExecutionState.SUCCEEDED]
    return max(done, default=returned)


def _middle(values: Iterable[float]) -> float:
    known = [max(0.0, value) for value in values]
    return median(known) if known else 0.0
