"""The eleven tasks published with TimelyLLM (LRTrace), as values; their plans cut into tokens and
true durations drawn for their calls. Other papers' requests stand in ``text_tasks.py``.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from timely_llm.language.loader import load_skill_set
from timely_llm.language.parser import Call
from timely_llm.language.skills import SkillSet
from timely_llm.paths import data as path_of
from timely_llm.paths import share
from timely_llm.protocols.utility import TimeUtility, Urgency
from timely_llm.simulation.trace import Task

DECODE_STEP = 0.0218
"""s a token of Llama3-8B alone on an RTX 4090 (TimelyLLM, Table 1 and section 7.1)."""

KINDS = {"drone": "tello", "arm": "indy7"}
"""The skill set of each robot of the dataset."""

SYSTEM_TOKENS = {"tello": 2900, "indy7": 1300}
"""Tokens of the prompt that all goals of a kind share. The drone's is as LRTrace gives it. The
arm's is not published: its skill list is shorter, so the paper's one other context is taken, 170 MB
of 131,072 bytes a token (section 4.1)."""

NAMES = (
    *("find_cat", "keys_and_wallet", "book_on_cabinet", "toy_under_bed", "cutting_tool"),
    *("avoid_collision", "evade_animal", "avoid_human"),
    *("stack_boxes", "clean_desk", "sort_food"),
)
"""Of the tasks, by their id: 0-4 normal and 5-7 urgent for the drone, 8-10 for the arm. Ids count
from 0 as in the published file; the paper's Table 2 counts from 1."""


# Llama 3's pre-tokenizer, for ASCII: a word with the sign before it, up to three digits, signs.
_PIECE = re.compile(r"[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{1,3}| ?[^\sA-Za-z0-9]+[\r\n]*|\s+")


def pieces(text: str) -> list[str]:
    """A text as Llama 3's pre-tokenizer cuts it; joined, the text. Its tokens are never fewer."""
    return _PIECE.findall(text)


def cut(text: str, count: int) -> tuple[str, ...]:
    """``text`` in exactly ``count`` tokens; at most one a character, at least one.

    The pre-tokenizer's pieces; then the longest is halved, or the shortest neighbours are joined,
    the leftmost first, until there are ``count``.
    """
    if not text:
        raise ValueError("a text of no characters has no tokens")
    if count < 1:
        raise ValueError(f"count is {count}: must be at least 1")
    tokens = pieces(text)
    while len(tokens) < min(count, len(text)):
        i = max(range(len(tokens)), key=lambda i: (len(tokens[i]), -i))
        half = (len(tokens[i]) + 1) // 2
        tokens[i : i + 1] = [tokens[i][:half], tokens[i][half:]]
    while len(tokens) > count:
        i = min(range(len(tokens) - 1), key=lambda i: (len(tokens[i]) + len(tokens[i + 1]), i))
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
    return tuple(tokens)


def data(name: str) -> Any:
    """A JSON file of the published data."""
    return json.loads(path_of(name).read_text("utf-8"))


@cache
def skill_sets() -> Mapping[str, SkillSet]:
    """The skill sets that come with the package, by kind."""
    found = [load_skill_set(path) for path in sorted(share("config", "skills").glob("*.yaml"))]
    return MappingProxyType({skills.kind: skills for skills in found})


@cache
def published() -> tuple[Task, ...]:
    """LRTrace's eleven tasks by id, with their published plans and time utilities.

    A plan has as many tokens as its published time alone on the RTX 4090 holds decode steps of
    21.8 ms, rounded. That time includes the end-of-text token and the prompt's own words, so the
    count may be a token above the text's. ``prompt_tokens`` are the pieces of scene and
    instruction: the paper prints no number.
    """
    return tuple(map(_task, data("lrtrace_tasks.json")["tasks"]))


def _task(entry: Mapping[str, Any]) -> Task:
    kind = KINDS[entry["robot"]]
    count = round(entry["plan_time_s_llama3_8b_4090_alone"] / DECODE_STEP)
    tuf = entry["tuf"]
    return Task(
        name=NAMES[entry["id"]],
        kind=kind,
        instruction=entry["task"],
        tokens=cut(entry["plan"], count),
        utility=TimeUtility(float(tuf["ert_s"]), float(tuf["alpha"]), float(tuf["beta"])),
        urgency=Urgency.URGENT if entry["class"] == "urgent" else Urgency.NORMAL,
        scene=entry["scene"],
        system_tokens=SYSTEM_TOKENS[kind],
        prompt_tokens=len(pieces(entry["scene"])) + len(pieces(entry["task"])),
    )


def draw_durations(
    calls: Iterable[Call], skills: SkillSet, rng: random.Random
) -> tuple[float, ...]:
    """How long the calls of a plan really take, s, in order of the text.

    From the measured distributions; a call that the robot may skip has its duration too. An
    argument that is not a literal counts as unknown.
    """
    return tuple(skills[call.name].sample_duration(call.values, rng) for call in calls)
