"""Requests whose answer is text, as other papers than TimelyLLM describe them: values drawn by
seed. Only lengths, targets and urgencies count; the words are filler.

A request's kind says how its answer is cut and used: ``TEXT_KINDS``.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from functools import cache

from timely_llm.language.segmenter import make_segmenter
from timely_llm.language.skills import Reading, SkillSet
from timely_llm.protocols.utility import PRESETS, TimeUtility, Urgency
from timely_llm.simulation.trace import Task
from timely_llm.simulation.workloads.tasks import pieces


def reader(kind: str, reading: Reading) -> SkillSet:
    """A kind of readers, in place of robots with skills."""
    return SkillSet(kind, "reads answers", (), reading=reading)


TEXT_KINDS: Mapping[str, SkillSet] = {
    "reader": reader("reader", Reading()),
    "reader_paragraphs": reader("reader_paragraphs", Reading("paragraph")),
    "text": reader("text", Reading("whole", 0.0)),
}
"""A reader takes time for each sentence or paragraph; a ``text`` is one segment and takes none."""

_TEXT = (
    "the old river ran under a quiet town where nobody spoke of it and every morning she walked "
    "along its stones to find what the night had left behind for those who waited by the door "
    "until one winter brought him back with lanterns maps broken clocks many stories"
)
_WORDS = tuple(_TEXT.split())


@cache
def filler(count: int) -> tuple[str, ...]:
    """A text of ``count`` tokens, a word each."""
    words = itertools.islice(itertools.cycle(_WORDS), count)
    return tuple(word if i == 0 else f" {word}" for i, word in enumerate(words))


def reading_durations(task: Task) -> tuple[float, ...]:
    """How long a reader takes for each segment of the answer, s; nothing for the kind ``text``."""
    kind = TEXT_KINDS[task.kind]
    reading = kind.reading
    if reading is None or not reading.words_per_minute:
        return ()
    return tuple(reading.duration(cut.text) for cut in make_segmenter(kind).feed(task.plan, True))


def soft_deadline(time: float, value: float) -> TimeUtility:
    """``value`` until ``time`` s and nothing from one and a half times that on, the form that
    TimelyLLM gives its normal tasks (section 7.1)."""
    return TimeUtility(time, -value / (0.5 * time), value)


# SLICE, section VI-A: classes, rates, the deadline. It prints neither lengths nor TTFT targets.
SLICE_DEADLINE = 1.5  # s
SLICE_CONTROL_TOKENS = (15, 25)
SLICE_ANSWER_TOKENS = (200, 300)
SLICE_CONTROL_VALUE = 100.0  # 1 for the others: the published code's; section I: 10 to 100 times
_SLICE_RATES = {"voice": 8.0, "question": 10.0}  # tokens/s


def slice_control(rng: random.Random) -> Task:
    """SLICE's real-time task: 20 tokens/s, done within 1.5 s, worth 100 times any other.

    Lengths are not given. 15 to 25 tokens can be written at that rate within the deadline, which is
    their only target (section VI-A).
    """
    low, high = SLICE_CONTROL_TOKENS
    return Task(
        name="control",
        kind="text",
        instruction="Steer around the obstacle ahead.",
        tokens=filler(rng.randint(low, high)),
        utility=soft_deadline(SLICE_DEADLINE, SLICE_CONTROL_VALUE),
        urgency=Urgency.URGENT,
        prompt_tokens=20,
        tpot=1 / 20.0,
        time_budget=SLICE_DEADLINE,
    )


def slice_answer(rng: random.Random) -> Task:
    """SLICE's other tasks, evenly voice chat (8 tokens/s) and questions by text (10 tokens/s).

    Lengths are not given; the paper calls them long. 200 to 300 tokens, with the real-time tasks'
    15 to 25, were chosen so that FCFS batching of unlimited size on SLICE's engine and 200 tasks at
    1/s attains what the paper's does (Figure 7): 26% of real-time tasks (paper: 26%), 48% of others
    (41%), 33% of all (31%). Its fall from 0.8/s to nearly nothing at 1.5/s (Figure 11) follows.
    TTFT 1 s, people's patience (TimelyLLM, section 2.3); the answer is expected after that and
    250 tokens at its rate.
    """
    name = rng.choice(sorted(_SLICE_RATES))
    rate = _SLICE_RATES[name]
    low, high = SLICE_ANSWER_TOKENS
    return Task(
        name=name,
        kind="text",
        instruction="Tell me about the town by the river.",
        tokens=filler(rng.randint(low, high)),
        utility=soft_deadline(1.0 + (low + high) / 2 / rate, 1.0),
        urgency=Urgency.NORMAL,
        prompt_tokens=30,
        ttft=1.0,
        tpot=1 / rate,
    )


def slice_table2() -> tuple[Task, ...]:
    """The nine tasks of SLICE's Table II: 3 x A (TPOT 100 ms), 4 x B (120 ms), 2 x C (250 ms).

    Lengths are not given: 130 tokens each, the 100 words that the published code asks for.
    """
    targets = {"A": (3, 0.1), "B": (4, 0.12), "C": (2, 0.25)}
    return tuple(
        Task(
            name=name,
            kind="text",
            instruction="Describe a day by the river in a hundred words.",
            tokens=filler(130),
            utility=soft_deadline(1.0 + 130 * tpot, 1.0),
            urgency=Urgency.NORMAL,
            prompt_tokens=30,
            ttft=1.0,
            tpot=tpot,
        )
        for name, (count, tpot) in targets.items()
        for _ in range(count)
    )


SEMANTIC_LEVELS = (
    *(Urgency.CRITICAL, Urgency.URGENT, Urgency.NORMAL),
    *(Urgency.LOW, Urgency.BACKGROUND),
)
"""Ours for the paper's urgency 0 to 4, the five levels of the Emergency Severity Index."""
SEMANTIC_TOKENS = (1, 50)


def emergency(rng: random.Random) -> Task:
    """A request of Semantic Scheduling's simulation (section 4.1): urgency 0 to 4, short answer.

    Answers are 1 to 50 tokens, its five buckets of about ten; levels, prompts of 10 to 50 tokens
    ("relatively short") and lengths within a bucket are drawn evenly, which the paper leaves open.
    The time utility is the preset of the urgency.
    """
    level = rng.randrange(len(SEMANTIC_LEVELS))
    return Task(
        name=f"urgency_{level}",
        kind="text",
        instruction="Caller: please send help to the house by the river.",
        tokens=filler(rng.randint(*SEMANTIC_TOKENS)),
        utility=PRESETS[SEMANTIC_LEVELS[level]],
        urgency=SEMANTIC_LEVELS[level],
        prompt_tokens=rng.randint(10, 50),
    )


ELIS_MEAN, ELIS_DEVIATION = 176.0, 140.0
"""Tokens of an answer in ELIS's LMSYS data, from its Table 2. R2 = 1 - RMSE2/variance gives 140.5
(fine-tuned) and 140.1 (pre-trained). The pre-trained predictor's MAE of 176 and RMSE of 225 are
those of one that always says 0, for a mean of 176."""
ELIS_PROMPT = 69.5  # tokens, the mean of LMSYS-Chat-1M (its Table 1)
ELIS_LATENCY = {"opt6.7": 1.3155, "opt13": 2.6432, "lam7": 6.5222, "lam13": 8.6102, "vic": 2.9649}
"""s a request on an A100, by model (ELIS, Table 4)."""


def elis_prompt(rng: random.Random) -> Task:
    """A prompt of ELIS (section 6.1), which samples LMSYS-Chat-1M, not shipped here.

    Answers are Gamma distributed with the data's mean and deviation, prompts exponentially with
    its mean; both forms are chosen. ELIS measures completion times alone: NORMAL's time utility.
    """
    shape = (ELIS_MEAN / ELIS_DEVIATION) ** 2
    length = rng.gammavariate(shape, ELIS_MEAN / shape)
    return Task(
        name="prompt",
        kind="text",
        instruction="Tell me about the town by the river.",
        tokens=filler(max(1, round(length))),
        utility=PRESETS[Urgency.NORMAL],
        urgency=Urgency.NORMAL,
        prompt_tokens=max(1, round(rng.expovariate(1 / ELIS_PROMPT))),
    )


def story(rng: random.Random, kind: str, words: int) -> Task:
    """A story for a reader: TimelyLLM's chatbot on WritingPrompts (section 7.4.2).

    Lengths are not given. Stories end with the sentence that reaches ``words``; 8 to 24 words a
    sentence and 3 to 6 sentences a paragraph, evenly. A prompt has 20 to 40 tokens (WritingPrompts'
    average is 28 words). Time utility as section 7.1 has it, a normal task's.
    """
    paragraphs: list[list[str]] = []
    left = words
    while left > 0:
        sentences = []
        for _ in range(rng.randint(3, 6)):
            if left > 0:
                length = rng.randint(8, 24)
                left -= length
                sentences.append(f"{' '.join(rng.choices(_WORDS, k=length)).capitalize()}.")
        paragraphs.append(sentences)
    return Task(
        name="story",
        kind=kind,
        instruction="Write a story about the town by the river.",
        tokens=tuple(pieces("\n\n".join(map(" ".join, paragraphs)))),
        utility=PRESETS[Urgency.NORMAL],
        urgency=Urgency.NORMAL,
        prompt_tokens=rng.randint(20, 40),
    )
