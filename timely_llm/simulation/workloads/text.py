"""The workloads of text requests: SLICE, Semantic Scheduling, ELIS, TimelyLLM's chatbot.

Their requests stand in ``text_tasks.py``. What a paper leaves open is in the docstring.
"""

from __future__ import annotations

import random

from timely_llm.simulation.trace import Trace
from timely_llm.simulation.workloads import arrivals as times
from timely_llm.simulation.workloads import text_tasks as texts
from timely_llm.simulation.workloads.composition import Event, compose


def slice_mix(
    seed: int,
    *,
    rate: float = 1.0,
    real_time: float = 0.7,
    count: int = 200,
    robots: int | None = None,
) -> Trace:
    """SLICE's mix, 7:3 real-time to others, Poisson at 0.1 to 7 tasks/s (sections VI-C to VI-E).

    How many tasks a run has is not given: 200. ``load`` is a factor on ``rate``.
    """
    if not 0 <= real_time <= 1:
        raise ValueError(f"real_time is {real_time:g}: must be 0 to 1")
    rng = random.Random(f"slice {seed}")
    events = []
    for at in times.poisson(rate, rng, count=count):
        draw = texts.slice_control if rng.random() < real_time else texts.slice_answer
        events.append((at, [draw(rng)]))
    source = f"SLICE, section VI; rate {rate:g}/s, seed {seed}"
    return compose("slice", events, seed=seed, robots=robots, source=source)


def slice_table2(seed: int, *, robots: int | None = None) -> Trace:
    """SLICE's nine tasks of Table II, all at once at 0 s, each from its own user; no seed."""
    events = [(0.0, texts.slice_table2())]
    source = "SLICE, section VI-B and Table II"
    return compose("slice_table2", events, robots=robots, source=source, spacing=0.0)


def semantic(
    seed: int,
    *,
    gap: float = 0.1,
    at_once: int = 100,
    count: int = 1000,
    robots: int | None = None,
) -> Trace:
    """Semantic Scheduling's spikes (section 4, Figure 2c): every ``gap`` s up to ``at_once``.

    How many come at each moment, 1 to ``at_once``, is drawn evenly. How many in all is not given:
    1000, the size of its real data set (section 4.2).
    """
    times.positive("gap", gap, " s")
    rng = random.Random(f"semantic {seed}")
    events: list[Event] = []
    left = count
    while left > 0:
        size = min(left, rng.randint(1, at_once))
        events.append((gap * len(events), [texts.emergency(rng) for _ in range(size)]))
        left -= size
    source = f"Semantic Scheduling, section 4.1; gap {gap:g} s, seed {seed}"
    return compose("semantic", events, seed=seed, robots=robots, source=source, spacing=0.0)


def elis(
    seed: int,
    *,
    model: str = "lam13",
    batch: int = 4,
    latency: float | None = None,
    count: int = 200,
    robots: int | None = None,
) -> Trace:
    """ELIS's stream of 200 prompts with Gamma gaps (sections 4.1 and 6.2).

    The mean rate is the paper's, batch / latency (s a request) of a model of its Table 4, and
    ``load`` its multiple; the gaps keep the log's shape of 0.73. Give ``latency`` for another
    engine. The batch size of section 6.2 is not given: 4, where section 6.3 takes 1 and 2.
    """
    if latency is None and model not in texts.ELIS_LATENCY:
        raise ValueError(f"model {model!r} is unknown ({', '.join(texts.ELIS_LATENCY)})")
    seconds = texts.ELIS_LATENCY[model] if latency is None else latency
    times.positive("latency", seconds, " s")
    rng = random.Random(f"elis {seed}")
    arrivals = times.gamma(count, rng, rate=batch / seconds)
    events = [(at, [texts.elis_prompt(rng)]) for at in arrivals]
    source = f"ELIS, section 6; {batch / seconds:.4g} requests/s, seed {seed}"
    return compose("elis", events, seed=seed, robots=robots, source=source)


def chat(
    seed: int,
    *,
    rate: float = 0.25,
    time: float = 300.0,
    words: int = 400,
    robots: int | None = None,
) -> Trace:
    """Stories for readers, a sentence a segment, read at 300 words a minute (sections 7.1, 7.4.2).

    Arrivals and lengths are not given: Poisson with WID2's 0.25 events/s for 300 s, a request an
    event, and stories of 400 words, whose whole answer alone comes after about 10 s as it must for
    the paper's difference of 21 in utility.
    """
    return _stories("chat", "reader", seed, rate, time, words, robots)


def chat_paragraphs(
    seed: int,
    *,
    rate: float = 0.25,
    time: float = 300.0,
    words: int = 400,
    robots: int | None = None,
) -> Trace:
    """The same stories at the same times as ``chat``, a paragraph a segment."""
    return _stories("chat_paragraphs", "reader_paragraphs", seed, rate, time, words, robots)


def _stories(
    name: str, kind: str, seed: int, rate: float, time: float, words: int, robots: int | None
) -> Trace:
    if words < 1:
        raise ValueError(f"words is {words}: must be at least 1")
    rng = random.Random(f"chat {seed}")
    arrivals = times.poisson(rate, rng, until=time)
    events = [(at, [texts.story(rng, kind, words)]) for at in arrivals]
    source = f"TimelyLLM, section 7.4.2; seed {seed}"
    return compose(name, events, seed=seed, robots=robots, source=source)
