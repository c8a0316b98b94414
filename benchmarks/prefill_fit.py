"""The paper's operating point at three batch slopes: the fitted prefill, and the policies there."""

from __future__ import annotations

from benchmarks.figures import Figure, Report
from timely_llm.bench.fit_prefill import PAPER_UTILITY, fit_prefill
from timely_llm.estimation.presets import KV_READ, OWN_WORDS, rtx4090_llama3_8b
from timely_llm.simulation.loop import Setting, simulate
from timely_llm.simulation.metrics import mean
from timely_llm.simulation.workloads.published import make

SLOPES = (0.0, KV_READ, 0.002)  # s a further sequence
POLICIES = {"vllm_stream": 12, "fcfs": 6, "edf": 6, "timely": 6}  # and their max batch
PAPER_TIMELY = 1.21  # Figure 5
SAME = 1e-6  # s a token, between the fit and the preset


def run(samples: int = 10) -> Report:
    """``samples`` is not used: the published arrivals are one trace."""
    trace = make("wid2")
    figures, data = [], {}
    for slope in SLOPES:
        fit = fit_prefill(trace, slope)
        where = f"{slope * 1e3:g} ms a sequence"
        preset = OWN_WORDS[slope]
        figures.append(
            Figure(
                f"{where}: prefill of own words, where vllm has {PAPER_UTILITY}",
                f"{fit.per_token * 1e3:.4f} ms a token ({fit.utility:.4f})",
                f"the preset's {preset * 1e3:.4f} ms",
                abs(fit.per_token - preset) < SAME,
            )
        )
        engine = rtx4090_llama3_8b(slope, fit.per_token)
        for policy, batch in POLICIES.items():
            outcomes = simulate(trace, Setting(policy, engine, batch)).outcomes
            utility = mean(outcome.utility for outcome in outcomes)
            waiting = mean(outcome.waiting_s for outcome in outcomes)
            data[f"{slope} {policy}"] = {"utility": utility, "waiting_s": waiting}
            paper = f" (paper: {PAPER_TIMELY})" if policy == "timely" else ""
            figures.append(
                Figure(
                    f"{where}: {policy}, max batch {batch}",
                    f"utility {utility:.4f}{paper}, waiting {waiting:.3f} s",
                )
            )
    return Report("WID2 at load 1, rtx4090-llama3-8b", figures, data)
