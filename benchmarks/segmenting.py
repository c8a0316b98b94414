"""What it costs to suspend and resume one plan at every segment boundary."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.figures import Figure, Report
from benchmarks.generation import Bench, bundled_model, running
from benchmarks.stats import milliseconds, ratio, summary

TARGET = 1.02
INSTRUCTION = (
    "[A] Pick up the pencil and drop it in the pen holder. Then, pick up the eraser and drop it "
    "near the pencil. Finally, pick up the notebook and drop it on the desk."
)


def run(pairs: int = 200) -> Report:
    """Triples in turn: not segmented, segmented, not segmented again (A, B, A')."""
    with running(bundled_model(), "indy7") as bench:
        plans = {name: way(bench) for name, way in _WAYS.items()}  # also warms up
        times: dict[str, list[float]] = {name: [] for name in _WAYS}
        recomputed = 0
        for number in range(pairs):
            names = list(_WAYS)
            for name in names[number % 3 :] + names[: number % 3]:
                elapsed, text, again, _ = _WAYS[name](bench)
                assert text == plans[name][1], "the text of the plan changed"
                times[name].append(elapsed)
                recomputed += again
    overhead, same = ratio(times["B"], times["A"]), ratio(times["A'"], times["A"])
    noise = max(same.high - 1, 1 - same.low)
    texts = {text for _, text, _, _ in plans.values()}
    figures = [
        Figure("plan, segments", f"{plans['B'][1]!r}, {plans['B'][3]}"),
        Figure("not segmented: median, mean, p99", milliseconds(summary(times["A"]))),
        Figure("segmented: median, mean, p99", milliseconds(summary(times["B"]))),
        Figure("A/A: not segmented over itself", str(same)),
        Figure(
            "segmented over not segmented",
            str(overhead),
            f"at most {TARGET} beyond A/A (paper: up to 1.056)",
            overhead.value <= TARGET + noise,
        ),
        Figure("same text", str(len(texts) == 1), "True", len(texts) == 1),
        Figure("prompt tokens computed again on resume", str(recomputed), "0", recomputed == 0),
    ]
    return Report(f"Segmenting: {pairs} triples", figures, {"times_s": times})


def _whole(bench: Bench) -> tuple[float, str, int, int]:
    """Seconds, text, prompt tokens computed again, segments."""
    begun = time.perf_counter()
    name, detector, text, count = bench.submit(INSTRUCTION), bench.detector(), [], 0
    for output in bench.outputs(name):
        text.append(output.text)
        count += len(detector.feed(output.text))
    return time.perf_counter() - begun, "".join(text), 0, count


def _segmented(bench: Bench) -> tuple[float, str, int, int]:
    begun = time.perf_counter()
    name, detector, text, count, again = bench.submit(INSTRUCTION), bench.detector(), [], 0, 0
    finished, suspended = False, False
    while not finished:
        step = bench.engine.step(()) if suspended else bench.engine.step([name])
        again += step.recomputed_tokens
        suspended = False
        output = step.outputs.get(name)
        if output is not None:
            text.append(output.text)
            finished = output.finish is not None
            boundaries = len(detector.feed(output.text))
            count += boundaries
            suspended = boundaries > 0 and not finished
    return time.perf_counter() - begun, "".join(text), again, count


_WAYS: dict[str, Callable[[Bench], tuple[float, str, int, int]]] = {
    "A": _whole,
    "B": _segmented,
    "A'": _whole,
}
