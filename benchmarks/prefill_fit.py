"""The paper's operating point at three batch slopes: the fitted prefill, and the policies there.

The paper prints the utility of ``vllm``, but neither the prefill of a goal's own words nor the step
time of larger batches, on which it hangs. For a slope of the second, the first is fitted here.
"""

from __future__ import annotations

from statistics import fmean

from scipy.optimize import bisect

from benchmarks.figures import Figure, Report
from timely_llm.bench.search import PAPER_BATCH, PAPER_UTILITY
from timely_llm.estimation.presets import KV_READ, OWN_WORDS, rtx4090_llama3_8b
from timely_llm.simulation.loop import Setting, simulate
from timely_llm.simulation.trace import Trace
from timely_llm.simulation.workloads.published import make

SLOPES = (0.0, KV_READ, 0.002)  # s a further sequence
POLICIES = {"vllm_stream": 12, "fcfs": 6, "edf": 6, "timely": 6}  # and their max batch
PAPER_TIMELY = 1.21  # TimelyLLM, Figure 7
HIGHEST = 0.02  # s a token, where the search ends
SAME = 1e-6  # s a token, between the fit and the preset


def run(samples: int = 10) -> Report:
    """``samples`` is not used: the published arrivals are one trace."""
    trace = make("wid2")
    figures, data = [], {}
    for slope in SLOPES:
        per_token = fitted_prefill(trace, slope)
        reached, _ = _means(trace, "vllm", PAPER_BATCH, slope, per_token)
        where = f"{slope * 1e3:g} ms a sequence"
        preset = OWN_WORDS[slope]
        figures.append(
            Figure(
                f"{where}: prefill of own words, where vllm has {PAPER_UTILITY}",
                f"{per_token * 1e3:.4f} ms a token ({reached:.4f})",
                f"the preset's {preset * 1e3:.4f} ms",
                abs(per_token - preset) < SAME,
            )
        )
        for policy, batch in POLICIES.items():
            utility, waiting = _means(trace, policy, batch, slope, per_token)
            data[f"{slope} {policy}"] = {"utility": utility, "waiting_s": waiting}
            paper = f" (paper: {PAPER_TIMELY})" if policy == "timely" else ""
            figures.append(
                Figure(
                    f"{where}: {policy}, max batch {batch}",
                    f"utility {utility:.4f}{paper}, waiting {waiting:.3f} s",
                )
            )
    return Report("WID2 at load 1, rtx4090-llama3-8b", figures, data)


def fitted_prefill(trace: Trace, per_sequence: float) -> float:
    """The prefill, in s a token of a goal's own words, at which ``vllm`` has the paper's mean
    utility on ``trace``, to 0.1 us; ``ValueError`` where none up to ``HIGHEST`` gives it.
    ``per_sequence`` is what a further sequence adds to a step, in s."""

    def beyond(per_token: float) -> float:
        return _means(trace, "vllm", PAPER_BATCH, per_sequence, per_token)[0] - PAPER_UTILITY

    return bisect(beyond, 0.0, HIGHEST, xtol=5e-8)


def _means(
    trace: Trace, policy: str, max_batch: int, per_sequence: float, per_token: float
) -> tuple[float, float]:
    """Mean utility and mean waiting (s) of a goal."""
    engine = rtx4090_llama3_8b(per_sequence, per_token)
    outcomes = simulate(trace, Setting(policy, engine, max_batch)).outcomes
    return fmean(one.utility for one in outcomes), fmean(one.waiting_s for one in outcomes)
