"""How fast a recorded engine was from time to time, against its own typical speed. Pure.

Other work on the machine makes steps longer for a while, whatever the policy: at the same times a
replay makes its steps longer by the same factor.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from timely_llm.estimation.step_time import Latency, StepTimes
from timely_llm.recording.goals import Goal
from timely_llm.recording.spans import overlap

_NEAR = 0.5  # s from what was measured, within which it still counts
_LEAST, _MOST = 0.5, 20.0  # times the typical one; beyond it something else went on
_SAME = 0.003  # s between two ends of one step, as far as they are known
_NOISE = 0.1  # of a factor: what a segment of a few steps cannot resolve
_LONGEST = 10.0  # s of the writing of one segment


@dataclass(frozen=True, slots=True)
class Stretch:
    """From ``begun`` to ``ended`` (s) steps took ``factor`` times what is typical."""

    begun: float
    ended: float
    factor: float


class Speed:
    """What steps took at a time, as a factor of what is typical."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._stretches = sorted(stretches, key=lambda stretch: stretch.begun)
        self._begun = [stretch.begun for stretch in self._stretches]

    def at(self, time: float) -> float:
        """The mean of what covers ``time`` (s); else of the nearest; 1 where nothing is near."""
        near = self._stretches[
            bisect_left(self._begun, time - _LONGEST) : bisect_left(self._begun, time + _NEAR)
        ]
        found = [(max(s.begun - time, time - s.ended, 0.0), s.factor) for s in near]
        least = min((away for away, _ in found), default=_NEAR)
        factors = [factor for away, factor in found if away == least < _NEAR]
        return sum(factors) / len(factors) if factors else 1.0


class AtItsTime:
    """Step times at ``now`` (s), which the replay sets: the typical ones times the factors at that
    time, for decoding and for prompts. ``beside``: the time of a prompt in a step that also
    decodes, as a share of its time alone."""

    def __init__(
        self, typical: StepTimes, decoding: Speed, prompts: Speed, beside: float = 1.0
    ) -> None:
        self.typical, self._decoding, self._prompts = typical, decoding, prompts
        self._beside = beside
        self.source = typical.source
        self.now = 0.0

    def __call__(self, batch: int, prefill_tokens: int = 0, kv_tokens: int = 0) -> float:
        time = 0.0
        if batch:
            time += self.typical(batch, 0, kv_tokens) * self._decoding.at(self.now)
        if prefill_tokens:
            factor = self._beside if batch else self._prompts.at(self.now)
            time += self.typical(0, prefill_tokens, 0) * factor
        return time


def at_its_time(goals: Sequence[Goal], typical: StepTimes, beside: float) -> AtItsTime:
    """Measured segment by segment, each against the typical time of the steps that it took; and
    prompt by prompt."""
    decoding = [s for goal in goals for s in _stretches(goal, goals, typical, beside)]
    prompts = [s for goal in goals for s in _prompt(goal, goals, typical)]
    return AtItsTime(typical, Speed(decoding), Speed(prompts), beside)


def _prompt(goal: Goal, goals: Sequence[Goal], typical: Latency) -> list[Stretch]:
    """Of a prompt that was computed in one go, while nobody else was written."""
    if goal.started is None or goal.result is None or not goal.segments:
        return []
    first = goal.segments[0]
    tokens = goal.own_prompt_tokens
    if tokens < 1 or not first.steps or any(s.start < first.at for s in goal.suspended):
        return []
    over = max(goal.started + first.steps[0], first.at - sum(first.steps[1:]))
    if any(overlap(other.writing, goal.started, over) for other in goals if other is not goal):
        return []
    expected = typical(0, tokens, 0)
    factor = (over - goal.started) / expected if expected else 1.0
    return [Stretch(goal.started, over, _factor(factor))]


def _factor(measured: float) -> float:
    """Within its limits; what is hardly more or less than typical is typical."""
    return 1.0 if abs(measured - 1.0) < _NOISE else min(_MOST, max(_LEAST, measured))


def _stretches(goal: Goal, goals: Sequence[Goal], typical: Latency, beside: float) -> list[Stretch]:
    """Of each segment written in one go; of the first one, after the step that had the prompt."""
    found, before = [], 0.0
    others = [other for other in goals if other is not goal and other.segments]
    for segment in goal.segments:
        starts = [span.start for span in goal.writing if span.start < segment.at]
        begun = max([before, *starts[-1:]])
        before = segment.at
        steps = segment.steps[1:] if segment.index == 0 else segment.steps
        if segment.index == 0:
            begun = max(begun, segment.at - sum(steps))
        whole = segment.at - begun
        while steps and sum(steps) > whole + _SAME:  # those before it was suspended
            steps = steps[1:]
        if not starts or not steps or not 0 < whole < _LONGEST:
            continue
        expected, end = 0.0, segment.at
        gap = (whole - sum(steps)) / len(steps)
        for time in reversed(steps):
            middle = end - time / 2
            size = 1 + sum(_writes(other, middle) for other in others)
            expected += typical(size, 0, 0)
            end -= time + gap
        for other in others:
            if begun < other.first_token_at <= segment.at + _SAME:
                expected += beside * typical(0, other.own_prompt_tokens, 0)
        if expected > 0:
            found.append(Stretch(begun, segment.at, _factor(whole / expected)))
    return found


def _writes(goal: Goal, time: float) -> bool:
    """Whether a token of ``goal`` after its first was being written."""
    return time > goal.first_token_at and any(s.start < time < s.end for s in goal.writing)
