"""How long an engine's steps take and how long segments are, as learned. Pure."""

from __future__ import annotations

from timely_llm import engine_presets
from timely_llm.step_latency import StepLatency

# Step times that a real engine can be slowed down to.
PRESETS: dict[str, StepLatency] = engine_presets.paces()


class LatencyEstimate:
    """A ``StepLatency`` learned from the engine's own steps, in s; starts from ``prior``.

    Decode steps keep a moving mean per batch size; a size not seen yet is extended from the
    nearest smaller one by the prior's difference. Prompt tokens are charged with what a step took
    beyond its decode part.
    """

    RATE = 0.05

    def __init__(self, prior: StepLatency) -> None:
        self.prior = prior
        self._decode: dict[int, float] = {}
        self._extended: dict[int, float] = {}  # sizes not seen yet, as of the last observation
        self._prefill = prior.per_prefill_token

    def observe(self, batch: int, prefill_tokens: int, kv_tokens: int, duration: float) -> None:
        """A step of ``batch`` decoding sequences and ``prefill_tokens`` took ``duration`` s."""
        if batch and not prefill_tokens:
            mean = self._decode.get(batch, duration)
            self._decode[batch] = mean + self.RATE * (duration - mean)
            self._extended.clear()
        elif prefill_tokens:
            beyond = max(0.0, duration - self(batch, 0, kv_tokens))
            self._prefill += self.RATE * (beyond / prefill_tokens - self._prefill)

    def __call__(self, batch: int, prefill_tokens: int = 0, kv_tokens: int = 0) -> float:
        """Predicted time of a step in s; arguments as of ``StepLatency``."""
        decode = 0.0
        if batch:
            decode = self._decode.get(batch, -1.0)
            if decode < 0:
                if not self._decode:
                    return self.prior(batch, 0, kv_tokens) + self._prefill * prefill_tokens
                decode = self._extended.get(batch, -1.0)
            if decode < 0:
                decode = self._extended[batch] = self._extend(batch)
        return decode + self._prefill * prefill_tokens

    def _extend(self, batch: int) -> float:
        smaller = max((size for size in self._decode if size < batch), default=0)
        if smaller:
            return self._decode[smaller] + self.prior(batch) - self.prior(smaller)
        return self._decode[min(self._decode)]


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
