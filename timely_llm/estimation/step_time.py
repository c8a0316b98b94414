"""How long an engine step takes: as a formula, and as learned from the engine's own steps. Pure:
numbers in, seconds out.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Protocol

Latency = Callable[[int, int, int], float]
"""(decoding sequences, prompt tokens in the same step, KV tokens of the sequences) -> s of a
step."""


class StepTimes(Protocol):
    """A ``Latency`` that says where its times are from."""

    @property
    def source(self) -> str: ...

    def __call__(self, batch: int, prefill_tokens: int = 0, kv_tokens: int = 0) -> float: ...


@dataclass(frozen=True, slots=True)
class StepLatency:
    """Time of one engine step in s, from what the step computes: TimeBill's Eq. 4, for batches.

    Decode: ``decode[batch - 1] + per_kv_token kv_tokens``; a batch larger than the table takes
    ``per_sequence`` more for each further sequence. Prefill of n prompt tokens:
    ``per_prefill_token n + per_prefill_square n^2``, and whatever n is ``prefill_alone``, or
    ``prefill_beside`` in a step that decodes as well. ``source`` says where the numbers are from.
    A negative or infinite time is a ``ValueError``.
    """

    decode: tuple[float, ...]
    per_sequence: float = 0.0
    per_kv_token: float = 0.0
    per_prefill_token: float = 0.0
    per_prefill_square: float = 0.0
    prefill_alone: float = 0.0
    prefill_beside: float = 0.0
    source: str = ""

    def __post_init__(self) -> None:
        if not self.decode:
            raise ValueError("decode has no times: must have at least one")
        values = self._terms() | {f"decode[{i}]": time for i, time in enumerate(self.decode)}
        for name, value in values.items():
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value} s: must be finite and at least 0")

    def _terms(self) -> dict[str, float]:
        names = [field.name for field in fields(self) if field.name not in ("decode", "source")]
        return {name: getattr(self, name) for name in names}

    def __call__(self, batch: int, prefill_tokens: float = 0, kv_tokens: float = 0) -> float:
        """Step time in s for ``batch`` decoding sequences over ``kv_tokens`` of context in all,
        with ``prefill_tokens`` prompt tokens computed in the same step."""
        prefill = 0.0
        if prefill_tokens:
            prefill = self.prefill_beside if batch else self.prefill_alone
            prefill += self.per_prefill_token * prefill_tokens
            prefill += self.per_prefill_square * prefill_tokens * prefill_tokens
        if batch == 0:
            return prefill
        known = len(self.decode)
        if batch <= known:
            decode = self.decode[batch - 1]
        else:
            decode = self.decode[-1] + self.per_sequence * (batch - known)
        return decode + self.per_kv_token * kv_tokens + prefill

    def each(self, change: Callable[[float], float]) -> StepLatency:
        """The step times with every coefficient (s) changed by ``change``."""
        terms: dict[str, Any] = {name: change(time) for name, time in self._terms().items()}
        return replace(self, decode=tuple(map(change, self.decode)), **terms)

    def in_loop(self, factor: float, overhead: float) -> StepLatency:
        """Steps that take ``factor`` times as long, and ``overhead`` s more each."""
        slower = self.each(lambda time: time * factor)
        return replace(
            slower,
            decode=tuple(time + overhead for time in slower.decode),
            prefill_alone=slower.prefill_alone + overhead,
        )


_SHORTEST = 1e-7  # s; no step is shorter
_PROBES = (64, 1024, 4096)  # prompt tokens at which a prior's prefill terms are read off
_PROBE_KV = 4096
# Weight of each term's prior against what the steps say: where the steps leave open which term is
# off, it is g.
_CAUTION = (1e-5, 3e-4, 3e-4, 3e-4, 3e-4, 3e-4, 3e-4)
_MOST_GROUPS = 512
_KV_BUCKETS = 24  # by powers of two, of 256 tokens and more
_SWEEPS = 3
_FIRST = 64  # steps after each of which the terms are fitted; later
_EVERY = 8  # after every so many

Features = tuple[tuple[int, float], ...]
"""A step's row of the least squares: (number of the term, its factor) of those that are not 0."""

_Step = tuple[float, int, float, Features]
"""Time over prediction, number of the step, time in s, features."""


class LatencyEstimate:
    """Time of an engine step in s, learned step by step; starts from ``prior``.

    Decode: ``g prior(batch) + c_b batch + c_kv kv_tokens + r[batch]``, where r is what batches of
    exactly this size take beyond the rest. Prefill: ``a n^2 + b n + c`` for n prompt tokens, the
    form of TimeBill's Eq. 4a, with another c in steps that decode as well. ``prior`` is any latency
    that is linear in context and at most quadratic in prompt tokens.

    Like steps form a group; a group stands for the median of its last ``WINDOW`` steps, so that
    steps during which something else had the processor count for nothing. Coefficients are the
    non-negative least squares fit to the groups, in relative errors; they follow by a few sweeps of
    coordinate descent. So no prediction is negative, and more tokens never take less time. When the
    median of the last ``WINDOW`` steps of any kind is off by more than ``CHANGED``, the machine has
    changed its speed: all terms are scaled, and the groups start again.
    """

    WINDOW = 25
    CHANGED = 1.4
    REWEIGH = 256  # steps between two looks at how old the groups are
    AGE = 2000.0  # steps after which a group counts half

    def __init__(self, prior: Latency) -> None:
        self._prior = prior
        # g, c_b, c_kv, then prefill: c alone, c with decoding, b, a.
        self._start = [1.0, 0.0, _context_term(prior), *_prefill_terms(prior)]
        self._terms = list(self._start)
        self._groups: dict[tuple[int, int, int], _Group] = {}
        self._steps = self._unfitted = 0
        self._errors: deque[float] = deque(maxlen=self.WINDOW)
        self._clear_sums()
        self._publish()

    def __call__(self, batch: int, prefill_tokens: int = 0, kv_tokens: int = 0) -> float:
        """Predicted time in s of a step of ``batch`` decoding sequences over ``kv_tokens`` of
        context in all, with ``prefill_tokens`` prompt tokens computed in the same step."""
        time = 0.0
        if batch:
            time = self._decode(batch) + self._context * kv_tokens
        if prefill_tokens:
            constant = self._beside if batch else self._alone
            time += constant + prefill_tokens * (self._linear + self._square * prefill_tokens)
        return time

    def observe(self, batch: int, prefill_tokens: int, kv_tokens: int, duration: float) -> None:
        """A step of these took ``duration`` s. One without a valid duration is ignored."""
        if not _SHORTEST < duration < math.inf or not (batch or prefill_tokens):
            return
        predicted = self(batch, prefill_tokens, kv_tokens)
        if not self._groups and abs(duration - predicted) <= 1e-9 * duration:
            return  # the prior is exact
        self._steps += 1
        error = duration / max(predicted, _SHORTEST)
        self._errors.append(error)
        if not 1.0 / self.CHANGED <= self._usual_error() <= self.CHANGED:
            self._rescale(self._usual_error())
        group = self._group(batch, prefill_tokens, kv_tokens)
        features = self._features(batch, prefill_tokens, kv_tokens)
        self._add(group, -1.0)
        self._unfitted += group.take((error, self._steps, duration, features), self.WINDOW)
        self._add(group, 1.0)
        if self._steps % self.REWEIGH == 0:
            self._reweigh()
        if self._unfitted and (self._steps <= _FIRST or self._steps % _EVERY == 0):
            self._fit()

    # The machine's speed.

    def _usual_error(self) -> float:
        """Median of time over prediction of the last steps; 1 while they are few."""
        errors = self._errors
        return sorted(errors)[self.WINDOW // 2] if len(errors) == self.WINDOW else 1.0

    def _rescale(self, factor: float) -> None:
        self._terms = [term * factor for term in self._terms]
        self._start = list(self._terms)
        self._groups.clear()
        self._errors.clear()
        self._clear_sums()
        self._publish()

    # Groups of like steps.

    def _group(self, batch: int, prefill: int, kv: int) -> _Group:
        """The group that a step belongs to; a new one may replace the one not seen for longest."""
        size = batch.bit_length() if prefill else -batch
        key = (size, prefill.bit_length(), min((kv >> 8).bit_length(), _KV_BUCKETS - 1))
        if key not in self._groups:
            if len(self._groups) == _MOST_GROUPS:
                oldest = min(self._groups, key=lambda other: self._groups[other].seen)
                self._add(self._groups.pop(oldest), -1.0)
            self._groups[key] = _Group()
        return self._groups[key]

    def _reweigh(self) -> None:
        """What was not seen for long counts less. Also takes the rounding out of the sums."""
        self._clear_sums()
        for group in self._groups.values():
            group.weight = 1.0 / (1.0 + (self._steps - group.seen) / self.AGE)
            self._add(group, 1.0)

    # Least squares.

    def _features(self, batch: int, prefill: int, kv: int) -> Features:
        decode: Features = ()
        if batch:
            decode = ((0, self._prior(batch, 0, 0)), (1, float(batch)), (2, float(kv)))
        if not prefill:
            return decode
        constant = (4, 1.0) if batch else (3, 1.0)
        return (*decode, constant, (5, float(prefill)), (6, float(prefill) ** 2))

    def _clear_sums(self) -> None:
        count = len(self._start)
        self._squares = [[0.0] * count for _ in range(count)]
        self._products = [0.0] * count

    def _add(self, group: _Group, sign: float) -> None:
        """Add a group's median to the normal equations, as a relative error; -1 removes it."""
        if not group.ranked:
            return
        _, _, duration, features = group.median
        weight = sign * group.weight * len(group.ranked) / (duration * duration)
        for i, x in features:
            self._products[i] += weight * x * duration
            row, weighted = self._squares[i], weight * x
            for j, other in features:
                row[j] += weighted * other

    def _fit(self) -> None:
        """A few sweeps of non-negative coordinate descent."""
        terms, self._unfitted = self._terms, 0
        for _ in range(_SWEEPS):
            for i, row in enumerate(self._squares):
                own = row[i]
                if own <= 0.0:
                    continue
                rest = self._products[i] - sum(map(float.__mul__, row, terms)) + own * terms[i]
                best = rest / own + _CAUTION[i] * self._start[i]
                terms[i] = max(0.0, best / (1.0 + _CAUTION[i]))
        self._publish()

    def _publish(self) -> None:
        _, _, self._context, self._alone, self._beside, self._linear, self._square = self._terms
        self._decode = cache(self._decode_time)

    def _decode_time(self, batch: int) -> float:
        """Time in s of a step of ``batch`` sequences without context, with r of this size."""
        line = self._terms[0] * self._prior(batch, 0, 0) + self._terms[1] * batch
        total = beyond = most = 0.0
        for bucket in range(_KV_BUCKETS):
            group = self._groups.get((-batch, 0, bucket))
            if group is not None:
                _, _, duration, features = group.median
                weight = group.weight * len(group.ranked) / (duration * duration)
                most = max(most, weight / len(group.ranked))
                total += weight
                beyond += weight * (duration - line - self._context * features[2][1])
        return max(0.0, line + beyond / (total + most)) if total else line


class _Group:
    """The last steps of one kind, in order of time and ranked by time over prediction."""

    __slots__ = ("_window", "ranked", "seen", "weight")

    def __init__(self) -> None:
        self._window: deque[_Step] = deque()
        self.ranked: list[_Step] = []
        self.weight = 1.0
        self.seen = 0  # number of the last step

    @property
    def median(self) -> _Step:
        return self.ranked[len(self.ranked) // 2]

    def take(self, step: _Step, most: int) -> bool:
        """Take a step in, and the oldest of more than ``most`` out; whether the sums change."""
        before = self.median if self.ranked else None
        growing = len(self._window) < most
        if not growing:
            self.ranked.remove(self._window.popleft())
        self._window.append(step)
        insort(self.ranked, step)
        self.seen = step[1]
        return growing or self.median is not before


def _context_term(prior: Latency) -> float:
    return max(0.0, (prior(1, 0, _PROBE_KV) - prior(1, 0, 0)) / _PROBE_KV)


def _prefill_terms(prior: Latency) -> tuple[float, float, float, float]:
    """The prior's prefill: constants alone and with decoding, linear and square term."""
    (a, b, c), (ta, tb, tc) = _PROBES, [prior(0, tokens, 0) for tokens in _PROBES]
    first, second = (tb - ta) / (b - a), (tc - tb) / (c - b)
    square = max(0.0, (second - first) / (c - a))
    if square * c * c < 1e-9 * tc:  # rounding
        square = 0.0
    linear = max(0.0, first - square * (a + b))
    rest = a * (linear + square * a)
    alone, beside = ta - rest, prior(1, a, 0) - prior(1, 0, 0) - rest
    alone, beside = (time if time > 1e-9 * ta else 0.0 for time in (alone, beside))
    return alone, beside, linear, square
