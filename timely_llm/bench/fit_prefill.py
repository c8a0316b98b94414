"""The one open number of TimelyLLM's engine, fitted: what a goal's own words cost. Pure.

The paper prints the utility of ``vllm``, but neither the prefill of a goal's own words nor the step
time of larger batches, on which it hangs. For a slope of the second, the first is found here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from timely_llm.estimation.presets import rtx4090_llama3_8b
from timely_llm.simulation.loop import Setting, simulate
from timely_llm.simulation.metrics import mean
from timely_llm.simulation.trace import Trace

PAPER_UTILITY = 0.74  # of ``vllm`` on WID2 (TimelyLLM, Figure 5)
PAPER_BATCH = 12


@dataclass(frozen=True, slots=True)
class Fit:
    """``per_token`` s of prefill give ``utility``, at ``per_sequence`` s a further sequence."""

    per_sequence: float
    per_token: float
    utility: float


def fit_prefill(
    trace: Trace,
    per_sequence: float,
    *,
    target: float = PAPER_UTILITY,
    policy: str = "vllm",
    max_batch: int = PAPER_BATCH,
    highest: float = 0.02,
) -> Fit:
    """The prefill, in s a token of a goal's own words, at which ``policy`` has the mean utility
    ``target`` on ``trace``; to 0.1 us.

    ``ValueError`` where none up to ``highest`` gives it.
    """

    def utility(per_token: float) -> float:
        engine = rtx4090_llama3_8b(per_sequence, per_token)
        run = simulate(trace, Setting(policy, engine, max_batch))
        return mean(outcome.utility for outcome in run.outcomes)

    per_token = bisect(lambda x: utility(x) - target, 0.0, highest, 1e-7)
    return Fit(per_sequence, per_token, utility(per_token))


def bisect(falling: Callable[[float], float], low: float, high: float, width: float) -> float:
    """Where ``falling`` becomes negative between ``low`` and ``high``, to ``width``."""
    if falling(low) < 0 or falling(high) >= 0:
        raise ValueError(f"the target is not reached between {low:g} and {high:g}")
    while high - low > width:
        middle = math.fsum((low, high)) / 2
        low, high = (middle, high) if falling(middle) >= 0 else (low, middle)
    return (low + high) / 2
