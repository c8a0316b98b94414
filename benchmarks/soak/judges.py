"""What is wrong in the records of a soak. Pure: records in, findings in words out.

A record is a dictionary that one process wrote as a line of JSON; ``t`` is s on the machine's
monotonic clock.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from timely_llm.language.skills import SkillSet

Record = Mapping[str, Any]

RUNS = (0, 1)  # RUN, REPLACE: the segments that are part of a plan
DEAD = "dead"  # what a client is told of a goal whose planner is gone
TOLD = 5.0  # s, for it to be told so


def without_result(records: Iterable[Record], limit: float) -> list[str]:
    """Goals of one client that lived: without an end, or ended later than ``limit`` s."""
    sent: dict[str, float] = {}
    found = []
    for record in records:
        if record["event"] == "sent":
            sent[record["goal"]] = record["t"]
        elif record["event"] == "ended":
            lasted = record["t"] - sent.pop(record["goal"])
            if lasted > limit:
                found.append(f"goal {record['goal']} ended after {lasted:.1f} s")
    return found + [f"goal {goal} has no result" for goal in sent]


def told_late(
    records: Iterable[Record], killed: Sequence[float], paused: Iterable[tuple[float, float]]
) -> tuple[list[str], list[float]]:
    """Goals of one client that were in flight when the planner was killed and heard of it later
    than ``TOLD``; and how long each took to be told, in s. A client that was ``paused`` (from,
    until) meanwhile does not count."""
    paused = list(paused)
    sent: dict[str, float] = {}
    found, delays = [], []
    for record in records:
        if record["event"] == "sent":
            sent[record["goal"]] = record["t"]
        elif record["event"] == "ended" and record["code"] == DEAD:
            begun, end = sent[record["goal"]], record["t"]
            at = next((t for t in killed if begun < t < end), None)
            if at is None or any(a < end and at < b for a, b in paused):
                continue
            delays.append(end - at)
            if end - at > TOLD:
                found.append(f"goal {record['goal']} was told {end - at:.1f} s after the kill")
    return found, delays


def segments_wrong(records: Iterable[Record]) -> tuple[list[str], list[str]]:
    """Segments that were sent twice, and those out of order or with a gap before them; as heard on
    the robots' topics, from the true planners."""
    last: dict[tuple[str, str], int] = {}
    twice, disordered = [], []
    for record in records:
        if record["event"] != "segment" or record["command"] not in RUNS:
            continue
        key, index = (record["robot"], record["plan"]), record["index"]
        before = last.get(key)
        words = f"{record['robot']}: plan {record['plan']}: segment {index}"
        if before is not None and index <= before:
            twice.append(f"{words} after {before}")
        elif before is not None and index != before + 1:
            disordered.append(f"{words} after {before}")
        last[key] = max(index, -1 if before is None else before)
    return twice, disordered


def calls_twice(records: Iterable[Record]) -> list[str]:
    """Calls of a plan that a robot began twice, by the robots' own reports."""
    begun = Counter(
        (record["robot"], record["plan"], record["call"])
        for record in records
        if record["event"] == "started"
    )
    return [
        f"{robot}: plan {plan}: call {call} was begun {count} times"
        for (robot, plan, call), count in begun.items()
        if count > 1
    ]


def motions_overlapping(records: Iterable[Record]) -> list[str]:
    """Motions of one robot process that began while another went on, or after its end."""
    found, current, closed = [], None, False
    for record in records:
        match record["event"]:
            case "start":
                if current is not None:
                    found.append(f"{_of(record)} began during {current}")
                if closed:
                    found.append(f"{_of(record)} began after the end")
                current = _of(record)
            case "end" | "halt":
                current = None
            case "close":
                current, closed = None, True
    return found


def motions_outside(records: Iterable[Record], skills: SkillSet) -> list[str]:
    """Motions of one robot process with arguments outside of the skill's limits, and places
    outside of the geofence, which is counted from the first one (z from the ground)."""
    found: list[str] = []
    fence: list[tuple[float, float]] | None = None
    for record in records:
        if record["event"] == "start":
            try:
                skill = skills[record["name"]]
                skill.check(skill.parse_values(record["values"]))
            except (KeyError, ValueError) as error:
                found.append(f"{_of(record)}: {error}")
        if "at" not in record or skills.bounds.geofence is None:
            continue
        if fence is None:
            origin = (*record["at"][:2], 0.0)
            pairs = zip(skills.bounds.geofence, origin, strict=True)
            fence = [(low + at, high + at) for (low, high), at in pairs]
            fence[2] = (0.0, fence[2][1])  # it lands where it is left alone
        for axis, value, (low, high) in zip("xyz", record["at"], fence, strict=True):
            if not low - 1e-6 <= value <= high + 1e-6:
                found.append(f"{_of(record)}: {axis} is {value:.3f} m")
    return found


def _of(record: Record) -> str:
    call = f"{record.get('name', record['event'])}({', '.join(record.get('values', ()))})"
    return f"{call} at {record['t']:.2f}"


def growth(samples: Sequence[tuple[float, float]]) -> float:
    """How much a process has grown after its warm-up: of the samples (s, value) the first third is
    that; the median of the last third less that of the one between."""
    third = len(samples) // 3
    middle, end = samples[third : 2 * third], samples[2 * third :]
    return median(value for _, value in end) - median(value for _, value in middle)


def not_flat(
    samples: Iterable[Record], shortest: float, limits: Mapping[str, float], share: float
) -> tuple[list[str], list[dict[str, Any]]]:
    """Processes that lived for ``shortest`` s and still grew by more than the limit of a quantity
    and ``share`` of it; and the growth of each of them."""
    of: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for sample in samples:
        of[sample["name"], sample["pid"]].append(sample)
    found, table = [], []
    for (name, pid), rows in of.items():
        lived = rows[-1]["t"] - rows[0]["t"]
        if lived < shortest or len(rows) < 9:
            continue
        for what, limit in limits.items():
            values = [(row["t"], row[what]) for row in rows]
            grown, level = growth(values), median(row[what] for row in rows)
            line = {"name": name, "pid": pid, "what": what, "level": level, "growth": grown}
            table.append(line | {"lived": round(lived)})
            if grown > limit + share * level:
                words = f"{name} ({pid}): {what} grew by {grown:g} from {level:g} in {lived:.0f} s"
                found.append(words)
    return found, table


def ends_unexpected(ends: Iterable[Record]) -> list[str]:
    """Processes that ended by themselves, or by a signal with another status than they should."""
    return [
        f"{end['name']} ended with {end['status']} (expected {end['expected']}): {end['tail']}"
        for end in ends
        if end["status"] not in end["expected"]
    ]


FAULTS = ("Traceback", "[FATAL]", "terminate called", "Segmentation fault", "core dumped")


def log_faults(name: str, text: str) -> list[str]:
    """Lines of a log that no process should write, with the three that follow the first of each."""
    lines = text.splitlines()
    places = [i for i, line in enumerate(lines) if any(fault in line for fault in FAULTS)]
    starts = [i for before, i in pairwise([-9, *places]) if i - before > 3]
    return [f"{name}:{i + 1}: " + " | ".join(lines[i : i + 12]) for i in starts]
