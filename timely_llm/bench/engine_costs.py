"""What the first segment of a goal costs an engine at least: works and step times as numbers.

Shared by ``bench/bound.py`` and ``bench/exact.py``; the model is in docs/policies.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from timely_llm.estimation.step_time import Latency
from timely_llm.language.segmenter import make_segmenter
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.utility import TimeUtility
from timely_llm.simulation.trace import Arrival, Task

TOLERANCE = 1e-9  # s
_PROBED_PROMPTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_PROBED_CONTEXTS = (1, 100, 1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Work:
    """A goal's first segment: ``prompt`` tokens of its own to be computed, which give the first
    token of the answer, then ``decodes`` steps of a token each. ``cached`` prompt tokens are there
    already. ``at`` is its arrival in s."""

    at: float
    prompt: int
    decodes: int
    utility: TimeUtility
    cached: int = 0

    def context(self, left: int) -> int:
        """Tokens that the step reads with which ``left`` steps, itself included, are to go."""
        return self.cached + self.prompt + 1 + self.decodes - left


@dataclass(frozen=True)
class EngineCosts:
    """Lower bounds of an engine's step times, exact where it is linear:
    a step of ``b`` sequences, ``p`` prompt tokens and ``k`` cached ones takes at least
    ``decode(b) + per_prompt_token p + per_kv_token k`` s."""

    decode_times: tuple[float, ...]  # of batches of 1, 2, ...
    per_prompt_token: float
    per_kv_token: float = 0.0

    def decode(self, batch: int) -> float:
        return self.decode_times[min(batch, len(self.decode_times)) - 1]

    @cached_property
    def shortest_step(self) -> float:
        """s of the fastest decode step, of whatever batch: a batch of one, on any real engine."""
        return min(self.decode_times)

    @classmethod
    def of(cls, latency: Latency, max_batch: int) -> EngineCosts:
        """From an engine's step latency, by probing it. ``ValueError`` where parts of a step
        overlap, so that it takes less time than all of them."""
        if max_batch < 1:
            raise ValueError(f"max_batch is {max_batch}: must be at least 1")
        decode = tuple(latency(size, 0, 0) for size in range(1, max_batch + 1))
        alone = min(latency(0, tokens, 0) / tokens for tokens in _PROBED_PROMPTS)
        # In a step that decodes as well a prompt may take less: it has no fixed costs of its own.
        mixed = min((latency(1, tokens, 0) - decode[0]) / tokens for tokens in _PROBED_PROMPTS)
        prompt = alone if mixed < 0.01 * alone else min(alone, mixed)  # it overlaps: refused below
        cached = min((latency(1, 0, k) - decode[0]) / k for k in _PROBED_CONTEXTS)
        costs = cls(decode, prompt, max(0.0, cached))
        for size in range(1, max_batch + 1):
            for tokens in (0, *_PROBED_PROMPTS):
                for context in (0, *_PROBED_CONTEXTS):
                    least = decode[size - 1] + prompt * tokens + costs.per_kv_token * context
                    time = latency(size, tokens, context)
                    if time < least - TOLERANCE - 1e-6 * least:
                        raise ValueError(
                            f"step latency of (batch {size}, prompt {tokens}, context {context}) "
                            f"is {time} s: less than the {least} s of its parts"
                        )
        return costs

    @cached_property
    def facets(self) -> tuple[tuple[float, float], ...]:
        """The lower convex hull of the decode times over the batch size: pairs (q, m) such that a
        step of ``b`` sequences takes at least ``q + m b`` s, for every pair."""
        hull: list[tuple[int, float]] = []
        for point in enumerate(self.decode_times, 1):
            while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], point):
                hull.pop()
            hull.append(point)
        if len(hull) == 1:
            return ((hull[0][1], 0.0),)
        pairs = []
        for left, right in pairwise(hull):
            slope = _slope(left, right)
            pairs.append((left[1] - slope * left[0], slope))
        return tuple(pairs)

    def decode_times_at_least(
        self, steps: np.ndarray, tokens: np.ndarray, max_batch: int
    ) -> np.ndarray:
        """s that ``tokens`` tokens in ``steps`` or more steps take at least, elementwise."""
        least = np.maximum(steps, tokens / max_batch)
        # More steps than needed cost less where larger batches take disproportionately long: the
        # best number lies where the facet on top changes.
        numbers = [least, np.maximum(least, tokens)]
        for (q, m), (r, n) in pairwise(self.facets):
            numbers.append(np.clip(tokens * (n - m) / (q - r), least, np.maximum(least, tokens)))
        times = [np.max([q * s + m * tokens for q, m in self.facets], axis=0) for s in numbers]
        return np.min(times, axis=0)


def _slope(left: tuple[int, float], right: tuple[int, float]) -> float:
    return (right[1] - left[1]) / (right[0] - left[0])


def first_tokens(task: Task, kind: SkillSet) -> int:
    """Tokens of the answer up to the one that completes its first segment.

    Where that is the whole answer, the end token may come on top; it is left out here.
    """
    segmenter = make_segmenter(kind)
    for number, token in enumerate(task.tokens, 1):
        if next(iter(segmenter.feed(token)), None) is not None:
            return number
    return max(1, len(task.tokens))


def works_of(
    arrivals: Sequence[Arrival],
    kinds: Mapping[str, SkillSet],
    block_size: int | None = None,
) -> list[Work]:
    """The first segments of ``arrivals``; ``kinds`` says what a segment is for each kind.

    The prompt that a kind shares is in the cache; with a ``block_size`` only whole blocks of it,
    and the rest is computed for each goal. ``ValueError`` for a kind that is not there.
    """
    known: dict[Task, int] = {}
    works = []
    for task in (arrival.task for arrival in arrivals):
        if task not in known:
            if task.kind not in kinds:
                raise ValueError(f"task {task.name!r}: kind {task.kind!r} is not in kinds")
            known[task] = first_tokens(task, kinds[task.kind])
    for arrival in arrivals:
        task, cached = arrival.task, arrival.task.system_tokens
        if block_size is not None:
            cached = max(0, cached - 1) // block_size * block_size
        prompt = max(1, task.system_tokens - cached + task.prompt_tokens)
        works.append(Work(arrival.at, prompt, known[task] - 1, task.utility, cached))
    return works
