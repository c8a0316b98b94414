"""How long an engine step takes, as fitted to measured steps. Pure: numbers in, seconds out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class FittedLatency:
    """Time of one engine step in s, of the form that TimeBill's Eq. 4 has, for batches.

    Decode: ``decode[batch - 1] + per_kv_token kv_tokens``; a batch larger than the table takes
    ``per_sequence`` more for each further sequence. Prefill of n prompt tokens:
    ``per_prefill_token n + per_prefill_square n^2``, and ``prefill_alone`` or ``prefill_beside``
    decoding sequences, whatever n is. ``source`` says where it was measured. A negative or infinite
    time is a ``ValueError``.
    """

    decode: tuple[float, ...]
    per_sequence: float
    per_kv_token: float
    prefill_alone: float
    prefill_beside: float
    per_prefill_token: float
    per_prefill_square: float
    source: str = ""

    def __post_init__(self) -> None:
        if not self.decode:
            raise ValueError("decode has no times: must have at least one")
        names = [name for name in self.__slots__ if name not in ("decode", "source")]
        values = [(name, getattr(self, name)) for name in names]
        values += [(f"decode[{i}]", value) for i, value in enumerate(self.decode)]
        for name, value in values:
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value} s: must be finite and at least 0")

    def __call__(self, batch: int, prefill_tokens: int = 0, kv_tokens: int = 0) -> float:
        """Step time in s for ``batch`` decoding sequences over ``kv_tokens`` of context in all,
        with ``prefill_tokens`` prompt tokens computed beside them."""
        time = 0.0
        if prefill_tokens:
            time = self.prefill_beside if batch else self.prefill_alone
            time += self.per_prefill_token * prefill_tokens
            time += self.per_prefill_square * prefill_tokens * prefill_tokens
        if batch:
            known = len(self.decode)
            if batch <= known:
                time += self.decode[batch - 1]
            else:
                time += self.decode[-1] + self.per_sequence * (batch - known)
            time += self.per_kv_token * kv_tokens
        return time


def in_loop(latency: FittedLatency, factor: float, own: float) -> FittedLatency:
    """Steps that take ``factor`` times as long, and ``own`` s more each."""
    return replace(
        latency,
        decode=tuple(time * factor + own for time in latency.decode),
        per_sequence=latency.per_sequence * factor,
        per_kv_token=latency.per_kv_token * factor,
        prefill_alone=latency.prefill_alone * factor + own,
        prefill_beside=latency.prefill_beside * factor,
        per_prefill_token=latency.per_prefill_token * factor,
        per_prefill_square=latency.per_prefill_square * factor,
    )
