"""A recorded day with messages that nobody sent: values that cannot be, lost, doubled, in disorder.

By hand: ``scripts/env.sh python test/support/forged_bags.py 200 1`` (how many, seed).
"""

from __future__ import annotations

import dataclasses
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from bag_cases import START, Messages, busy_fleet, config, messages

from timely_llm.cli.replay_table import notes, replay_table
from timely_llm.recording import bag
from timely_llm.recording.compare import Replayed, as_recorded, report_json
from timely_llm.recording.costs import costs_of
from timely_llm.recording.goals import goals_of
from timely_llm.recording.recorded_trace import NothingToReplay, trace_of
from timely_llm.recording.replay import batch_of, replay, what_happened
from timely_llm.recording.report import page
from timely_llm.validation.outgoing import json_text

FLOATS = (float("inf"), -float("inf"), float("nan"), 1e308, -1e308, -1.0, 0.0, 1e-308, 1e9)
INTEGERS = (0, 1, 2, 9, 99, 2**7, 2**8 - 1, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)
TEXTS = ("", "x" * 100_000, "\x1b[2J", "\0", "[" * 3000, "-1", "nan", "</script>", "é", "{{ x }}")
ERRORS = (bag.BagError, NothingToReplay)


@cache
def true_messages() -> list[tuple[float, str, str, Any]]:
    found = messages(busy_fleet(), Messages(bag.typestore()), config(), "", 0.0)
    return sorted(found, key=lambda item: item[0])


def forged(message: Any, rng: random.Random) -> Any:
    """The message with another value in one of its fields."""
    fields = {f.name: getattr(message, f.name) for f in dataclasses.fields(message)}
    fields.pop("__msgtype__", None)
    name = rng.choice(sorted(fields))
    return dataclasses.replace(message, **{name: _other(fields[name], rng)})


def _other(value: Any, rng: random.Random) -> Any:
    if dataclasses.is_dataclass(value):
        return forged(value, rng)
    if isinstance(value, np.ndarray):
        if value.dtype == np.float64:
            return np.array(rng.choices(FLOATS, k=rng.choice((0, 1, 9))), np.float64)
        return np.frombuffer(rng.randbytes(len(value)), value.dtype)
    if isinstance(value, list):
        if value and rng.random() < 0.7:
            at = rng.randrange(len(value))
            return [*value[:at], _other(value[at], rng), *value[at + 1 :]]
        return value * rng.choice((0, 2, 50))
    if isinstance(value, bool):
        return not value
    choices: dict[type, tuple[Any, ...]] = {float: FLOATS, int: INTEGERS, str: TEXTS}
    return rng.choice(choices[type(value)])


def write(folder: Path, rng: random.Random) -> None:
    """A bag with a few, or many, forged messages."""
    found, share = list(true_messages()), rng.choice((0.01, 0.05, 0.3))
    types = bag.typestore()
    with bag.BagWriter(folder) as writer:
        topics: dict[str, Any] = {}
        for at, topic, kind, message in found:
            draw = rng.random()
            if draw < share / 4:
                continue
            for _ in range(2 if draw < share / 2 else 1):
                if topic not in topics:
                    topics[topic] = writer.topic(topic, kind)
                data = types.serialize_cdr(message, kind)
                if rng.random() < share:
                    data = _serialized(message, kind, rng)
                late = rng.choice((0.0, 0.0, 3.0, -3.0)) if rng.random() < share else 0.0
                writer.write(topics[topic], round((START + at + late) * 1e9), data)


def _serialized(message: Any, kind: str, rng: random.Random) -> memoryview | bytes:
    """Of a forged message; or bytes that are none."""
    if rng.random() < 0.1:
        return rng.randbytes(rng.choice((0, 4, 40)))
    while True:
        try:
            return bag.typestore().serialize_cdr(forged(message, rng), kind)
        except Exception:  # a number that the field's type does not hold
            continue


def use(folder: Path) -> None:
    """All that a bag is read for."""
    recording = bag.read(folder)
    goals = goals_of(recording)
    page(recording, goals).encode()
    traced, costs = trace_of(recording, goals), costs_of(goals)
    runs = [as_recorded(recording, what_happened(traced))]
    size = min(batch_of(recording), 64)
    runs.append(Replayed("vllm", "sim", size, replay(recording, traced, costs, "vllm", size)))
    report = report_json(recording, traced, costs, runs)
    json_text(report), replay_table(report), list(notes(report))


def faults(folder: Path, count: int, seed: object) -> Iterator[tuple[float, str]]:
    """Seconds of each, and its traceback where something else than an error of bags came."""
    rng = random.Random(str(seed))
    for number in range(count):
        place, wrong = folder / f"bag{number}", ""
        write(place, rng)
        begun = time.perf_counter()
        try:
            use(place)
        except ERRORS as error:
            if __name__ == "__main__":
                print(str(error)[:150])
        except Exception:
            wrong = f"{place}\n{traceback.format_exc()}"
        yield time.perf_counter() - begun, wrong


if __name__ == "__main__":
    seen = set()
    with tempfile.TemporaryDirectory() as scratch:
        for took, wrong in faults(Path(scratch), int(sys.argv[1]), sys.argv[2]):
            if took > 10.0:
                print(f"took {took:.1f} s")
            key = wrong.strip().splitlines()[-3:]
            if wrong and str(key) not in seen:
                seen.add(str(key))
                print(wrong[-1800:], flush=True)
    print(f"{sys.argv[1]} bags, {len(seen)} kinds of faults")
