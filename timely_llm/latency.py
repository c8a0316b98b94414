"""Step times by name, and how long segments are, as learned. Pure."""

from __future__ import annotations

from timely_llm import engine_presets
from timely_llm.step_latency import StepLatency

# Step times that a real engine can be slowed down to.
PRESETS: dict[str, StepLatency] = engine_presets.paces()


class SegmentLength:
    """Tokens of a segment, learned from those that came: the mean and the longest of late.

    The priors are TimelyLLM's for the drone: 90 ms at 21.8 ms a token, at most 10 tokens.
    """

    RATE = 0.1
    FORGET = 0.99

    def __init__(self, mean: float = 4.1, worst: float = 10.0) -> None:
        self.mean = mean
        self.worst = worst

    def observe(self, tokens: int) -> None:
        """A segment of ``tokens`` tokens came to its end."""
        self.mean += self.RATE * (tokens - self.mean)
        self.worst = max(float(tokens), self.worst * self.FORGET, self.mean)
