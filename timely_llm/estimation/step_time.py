"""How long an engine step takes, as a formula. Pure: numbers in, seconds out."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepLatency:
    """Time of one engine step in s, from what the step computes.

    Decode: ``base + per_sequence (batch - 1) + per_kv_token kv_tokens``. With a ``table``, of the
    times for batches of 1, 2, ..., the first two terms are read from it; a larger batch takes as
    long as the last one. Prefill: ``per_prefill_token n + per_prefill_square n^2`` for the n prompt
    tokens of the step. A step of prefill alone leaves the decode terms out. ``source`` says where
    the numbers are from. A negative or infinite time is a ``ValueError``.
    """

    base: float
    per_sequence: float = 0.0
    per_kv_token: float = 0.0
    per_prefill_token: float = 0.0
    source: str = ""
    per_prefill_square: float = 0.0
    table: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        names = ("base", "per_sequence", "per_kv_token", "per_prefill_token", "per_prefill_square")
        values = [(name, getattr(self, name)) for name in names]
        values += [(f"table[{i}]", value) for i, value in enumerate(self.table)]
        for name, value in values:
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value} s: must be finite and at least 0")

    def __call__(self, batch: int, prefill_tokens: int = 0, kv_tokens: int = 0) -> float:
        """Step time in s for ``batch`` decoding sequences over ``kv_tokens`` of context in all,
        with ``prefill_tokens`` prompt tokens computed beside them."""
        prefill = self.per_prefill_token * prefill_tokens
        if self.per_prefill_square:
            prefill += self.per_prefill_square * prefill_tokens * prefill_tokens
        if batch == 0:
            return prefill
        if self.table:
            decode = self.table[min(batch, len(self.table)) - 1]
        else:
            decode = self.base + self.per_sequence * (batch - 1)
        return decode + self.per_kv_token * kv_tokens + prefill
