"""Step times learned from the engine's own steps. Pure: numbers in, seconds out."""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from collections.abc import Callable

Latency = Callable[[int, int, int], float]
"""(decoding sequences, prompt tokens beside them, KV tokens of the sequences) -> s of a step."""

_SHORTEST = 1e-7  # s; no step is shorter
_PROBES = (64, 1024, 4096)  # prompt tokens, where a prior's prefill terms are read off
_PROBE_KV = 4096
# Weight of each term's own prior beside what the steps say of it: where these leave open which term
# it is, it is g.
_CAUTION = (1e-5, 3e-4, 3e-4, 3e-4, 3e-4, 3e-4, 3e-4)
_MOST_CELLS = 512
_KV_BUCKETS = 24  # by powers of two, of 256 tokens and more
_SWEEPS = 3
_SOON = 64  # steps that are fitted one by one, then
_EVERY = 8  # once in so many


class LatencyEstimate:
    """Time of an engine step in s, learned step by step; starts from ``prior``.

    Decode: ``g prior(batch) + c_b batch + c_kv kv_tokens + r[batch]``, where r is what batches of
    just this size take beyond the rest. Prefill: ``a n^2 + b n + c`` for n prompt tokens, the form
    of TimeBill's Eq. 4a, with a c of its own beside decoding sequences. ``prior`` is any latency
    that is linear in context and at most quadratic in prompt tokens.

    Steps are sorted into cells of like ones; a cell stands for the median of its last ``WINDOW``
    steps, so that steps during which something else had the processor count for nothing.
    Coefficients are the non-negative least squares fit to the cells, in relative errors; they
    follow by a few sweeps of coordinate descent, soon every few steps. So no prediction is
    negative, and more tokens never take less time. When the median of the last ``WINDOW`` steps, of
    whatever kind, is off by more than ``CHANGED``, the machine has changed its speed: all terms are
    scaled, and cells begin again.
    """

    WINDOW = 25
    CHANGED = 1.4
    REWEIGH = 256  # steps between looking at how old the cells are
    AGE = 2000.0  # steps after which a cell counts half

    def __init__(self, prior: Latency) -> None:
        self._prior = prior
        # g, c_b, c_kv, then prefill: c alone, c beside, b, a.
        self._start = [1.0, 0.0, _context_term(prior), *_prefill_terms(prior)]
        self._terms = list(self._start)
        self._cells: dict[tuple[int, int, int], _Cell] = {}
        self._steps = self._unfitted = 0
        self._errors: deque[float] = deque(maxlen=self.WINDOW)
        self._clear_sums()
        self._publish()

    def __call__(self, batch: int, prefill_tokens: int = 0, kv_tokens: int = 0) -> float:
        """Predicted time in s of a step of ``batch`` decoding sequences over ``kv_tokens`` of
        context in all, with ``prefill_tokens`` prompt tokens computed beside them."""
        time = 0.0
        if batch:
            time = self._decode[batch] + self._context * kv_tokens
        if prefill_tokens:
            constant = self._beside if batch else self._alone
            time += constant + prefill_tokens * (self._linear + self._square * prefill_tokens)
        return time

    def observe(self, batch: int, prefill_tokens: int, kv_tokens: int, duration: float) -> None:
        """A step of these took ``duration`` s. One without a duration tells nothing."""
        if not _SHORTEST < duration < math.inf or not (batch or prefill_tokens):
            return
        predicted = self(batch, prefill_tokens, kv_tokens)
        if not self._cells and abs(duration - predicted) <= 1e-9 * duration:
            return  # the prior is exact
        self._steps += 1
        error = duration / max(predicted, _SHORTEST)
        self._errors.append(error)
        if not 1.0 / self.CHANGED <= self._usual_error() <= self.CHANGED:
            self._rescale(self._usual_error())
        size = batch.bit_length() if prefill_tokens else -batch
        bucket = min((kv_tokens >> 8).bit_length(), _KV_BUCKETS - 1)
        key = (size, prefill_tokens.bit_length(), bucket)
        cell = self._cells.get(key)
        if cell is None:
            cell = self._new_cell(key)
        features = self._features(batch, prefill_tokens, kv_tokens)
        step = (error, self._steps, duration, features)
        self._add(cell, -1.0)
        changed = cell.take(step, self.WINDOW)
        self._add(cell, 1.0)
        if self._steps % self.REWEIGH == 0:
            self._reweigh()
        self._unfitted += changed
        if self._unfitted and (self._steps <= _SOON or self._steps % _EVERY == 0):
            self._fit()

    # The machine's speed.

    def _usual_error(self) -> float:
        """Time over prediction of the last steps, at the median; 1 while they are few."""
        errors = self._errors
        if len(errors) < self.WINDOW:
            return 1.0
        return sorted(errors)[self.WINDOW // 2]

    def _rescale(self, factor: float) -> None:
        self._terms = [term * factor for term in self._terms]
        self._start = list(self._terms)
        self._cells.clear()
        self._errors.clear()
        self._clear_sums()
        self._publish()

    # Cells.

    def _new_cell(self, key: tuple[int, int, int]) -> _Cell:
        if len(self._cells) == _MOST_CELLS:
            oldest = min(self._cells, key=lambda other: self._cells[other].seen)
            self._add(self._cells.pop(oldest), -1.0)
        cell = self._cells[key] = _Cell()
        return cell

    def _reweigh(self) -> None:
        """What was not seen for long counts less. Also takes the rounding out of the sums."""
        self._clear_sums()
        for cell in self._cells.values():
            cell.weight = 1.0 / (1.0 + (self._steps - cell.seen) / self.AGE)
            self._add(cell, 1.0)

    # Least squares.

    def _features(self, batch: int, prefill: int, kv: int) -> tuple[tuple[int, float], ...]:
        """What the terms stand before in this step: number of the term, and value."""
        decode = ((0, self._prior(batch, 0, 0)), (1, float(batch)), (2, float(kv))) if batch else ()
        if not prefill:
            return decode
        constant = (4, 1.0) if batch else (3, 1.0)
        return (*decode, constant, (5, float(prefill)), (6, float(prefill) ** 2))

    def _clear_sums(self) -> None:
        count = len(self._start)
        self._squares = [[0.0] * count for _ in range(count)]
        self._products = [0.0] * count

    def _add(self, cell: _Cell, sign: float) -> None:
        """Put a cell's median into the normal equations (or take it out), as a relative error."""
        if not cell.window:
            return
        _, _, duration, features = cell.median
        weight = sign * cell.weight * len(cell.window) / (duration * duration)
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
        self._decode = _Offsets(self._offset)

    def _offset(self, batch: int) -> float:
        """Time in s of a step of ``batch`` sequences without context, with r of this size."""
        line = self._terms[0] * self._prior(batch, 0, 0) + self._terms[1] * batch
        total = beyond = 0.0
        most = 0.0
        for bucket in range(_KV_BUCKETS):
            cell = self._cells.get((-batch, 0, bucket))
            if cell is not None:
                _, _, duration, features = cell.median
                weight = cell.weight * len(cell.window) / (duration * duration)
                most = max(most, weight / len(cell.window))
                total += weight
                beyond += weight * (duration - line - self._context * features[2][1])
        return max(0.0, line + beyond / (total + most)) if total else line


class _Cell:
    """The last steps of one kind, in order of (time over prediction, number) and of time."""

    __slots__ = ("ranked", "seen", "weight", "window")

    def __init__(self) -> None:
        self.window: deque[tuple] = deque()
        self.ranked: list[tuple] = []
        self.weight = 1.0
        self.seen = 0

    @property
    def median(self) -> tuple:
        return self.ranked[len(self.ranked) // 2]

    def take(self, step: tuple, most: int) -> bool:
        """Take a step in and the oldest of more than ``most`` out; whether the sums change."""
        before = self.median if self.ranked else None
        growing = len(self.window) < most
        if not growing:
            self.ranked.remove(self.window.popleft())
        self.window.append(step)
        insort(self.ranked, step)
        self.seen = step[1]
        return growing or self.median is not before


class _Offsets(dict[int, float]):
    """Decode times by batch size, made when they are first asked for."""

    def __init__(self, offset: Callable[[int], float]) -> None:
        super().__init__()
        self._offset = offset

    def __missing__(self, batch: int) -> float:
        time = self[batch] = self._offset(batch)
        return time


def _context_term(prior: Latency) -> float:
    return max(0.0, (prior(1, 0, _PROBE_KV) - prior(1, 0, 0)) / _PROBE_KV)


def _prefill_terms(prior: Latency) -> tuple[float, float, float, float]:
    """The prior's prefill: constant alone and beside others, square and linear term."""
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
