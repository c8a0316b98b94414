"""Step times by name, and how long segments are, as learned. Pure."""

from __future__ import annotations

from timely_llm.estimation import presets as engine_presets
from timely_llm.estimation.step_time import StepLatency

# Step times that a real engine can be slowed down to.
PRESETS: dict[str, StepLatency] = engine_presets.paces()


class SegmentLength:
    """Tokens of a segment, learned from those that came: the mean and the longest of late.

    ``mean`` and ``worst`` are told again with each of the first ``EARLY`` segments, with every
    longest one and then with every ``EVERY``-th: whoever goes by them need not look in between.
    The priors are TimelyLLM's for the drone: 90 ms at 21.8 ms a token, at most 10 tokens.
    """

    RATE = 0.1
    FORGET = 0.99
    EARLY = 8
    EVERY = 16

    def __init__(self, mean: float = 4.1, worst: float = 10.0) -> None:
        self.mean = self._mean = mean
        self.worst = self._worst = worst
        self._count = 0

    def observe(self, tokens: int) -> bool:
        """A segment of ``tokens`` tokens came to its end; whether ``mean`` or ``worst`` changed."""
        self._count += 1
        self._mean += self.RATE * (tokens - self._mean)
        self._worst = max(float(tokens), self._worst * self.FORGET, self._mean)
        if self._count > self.EARLY and self._count % self.EVERY and tokens <= self.worst:
            return False
        before = self.mean, self.worst
        self.mean, self.worst = self._mean, self._worst
        return before != (self.mean, self.worst)
