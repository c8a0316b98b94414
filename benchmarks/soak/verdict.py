"""From the folder of a soak's records to its figures: reads the files, asks the judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Report
from benchmarks.soak import judges
from benchmarks.soak.conductor import ARMS, DRONES, LIMIT, Options
from benchmarks.soak.records import read
from timely_llm.language.loader import load_skill_set
from timely_llm.paths import share
from timely_llm.recording import bag

LONG = 240.0  # s that a process must live to be judged for growth
GROWTH = {"memory": 2.0, "descriptors": 4.0, "threads": 2.0}  # MiB, and numbers
SHARE = 0.05  # of the level, on top
SHOWN = 20  # findings of a kind that are kept in words


def report(options: Options, robots_out: Sequence[str], least: int) -> Report:
    """The figures of a soak with their targets; ``data`` has the findings in words."""
    folder = options.folder
    conductor = list(read(folder / "conductor.jsonl"))
    starts = {record["pid"]: record for record in conductor if record["event"] == "start"}
    ends = [record for record in conductor if record["event"] == "end"]
    findings: dict[str, list[str]] = {"robots not back at the end of a phase": list(robots_out)}
    codes, delays, found = _goals(folder, conductor, ends)
    findings |= found
    witness = [record for path in folder.glob("witness-*.jsonl") for record in read(path)]
    twice, disordered = judges.segments_wrong(witness)
    findings["segments sent twice"] = twice
    findings["segments out of order"] = disordered
    findings["calls begun twice"] = judges.calls_twice(witness)
    overlapping, outside, motions = _motions(folder)
    findings["motions that overlap"] = overlapping
    findings["motions outside limits"] = outside
    findings["processes that ended by themselves"] = judges.ends_unexpected(ends)
    findings["faults in logs"] = _log_faults(folder)
    findings["bags that cannot be read"] = _bags(folder)
    samples = [record for record in conductor if record["event"] == "sample"]
    grown, growth = judges.not_flat(samples, LONG, GROWTH, SHARE)
    findings["processes that grow"] = grown

    signals = Counter(
        f"{record['signal']} {record['kind']}"
        for record in conductor
        if record["event"] == "signal"
    )
    lies = Counter(r["event"] for path in folder.glob("hostile-*.jsonl") for r in read(path))
    goals, segments = sum(codes.values()), sum(r["event"] == "segment" for r in witness)
    figures = [
        Figure("goals", str(goals), f"at least {least}", goals >= least),
        Figure("of them succeeded", str(codes["NONE"])),
        Figure("ended with another code", str(goals - codes["NONE"] - codes[judges.DEAD])),
        Figure("told that the planner is gone", str(codes[judges.DEAD])),
        Figure("longest after its kill", f"{max(delays, default=0.0):.1f} s of {len(delays)}"),
        Figure("segments, motions", f"{segments}, {motions}"),
        Figure("processes started", str(len(starts))),
        Figure("SIGKILL, SIGTERM, SIGSTOP", _signals(signals)),
        Figure("lies", str(sum(lies.values()))),
        *(Figure(name, str(len(lines)), "0", not lines) for name, lines in findings.items()),
        *_levels(growth),
    ]
    lines = [[figure.name, figure.value, figure.target] for figure in figures]
    data: dict[str, Any] = {
        "tables": [{"title": "Soak", "columns": ["", "measured", "target"], "lines": lines}],
        "options": {"seed": options.seed, "speed": options.speed, "minutes": options.minutes}
        | {"kill_period": options.kill_period, "lie_period": options.lie_period, "limit": LIMIT},
        "codes": dict(codes.most_common()),
        "signals": dict(signals),
        "lies": dict(lies),
        "growth": growth,
        "findings": {name: lines[:SHOWN] for name, lines in findings.items() if lines},
    }
    return Report(f"Soak: {options.minutes:g} minutes, robots at {options.speed:g}x", figures, data)


def _goals(
    folder: Path, conductor: list[dict[str, Any]], ends: list[dict[str, Any]]
) -> tuple[Counter[str], list[float], dict[str, list[str]]]:
    """Codes of all goals, how long after the planner's kill clients were told, and findings."""
    killed = [
        record["t"]
        for record in conductor
        if record["event"] == "signal"
        and (record["kind"], record["signal"]) == ("planner", "SIGKILL")
    ]
    codes: Counter[str] = Counter()
    open_goals, late, delays = [], [], []
    for path in sorted(folder.glob("client_*-*-*.jsonl")):
        name = path.name.split("-")[0]
        records = list(read(path))
        codes.update(record["code"] for record in records if record["event"] == "ended")
        if not records or _was_killed(name, records[-1]["t"], ends):
            codes["the client was killed"] += _open(records)
            continue
        open_goals += [f"{path.stem}: {w}" for w in judges.without_result(records, LIMIT)]
        told, took = judges.told_late(records, killed, _pauses(name, conductor))
        late += [f"{path.stem}: {words}" for words in told]
        delays += took
    found = {"goals without a result in time": open_goals, "told late": late}
    return codes, delays, found


def _open(records: list[dict[str, Any]]) -> int:
    events = Counter(record["event"] for record in records)
    return events["sent"] - events["ended"]


def _was_killed(name: str, last: float, ends: list[dict[str, Any]]) -> bool:
    """Whether the process that wrote its last record then was killed."""
    end = next((end for end in ends if end["name"] == name and end["t"] >= last), None)
    return end is not None and end["signal"] == "SIGKILL"


def _pauses(name: str, conductor: list[dict[str, Any]]) -> list[tuple[float, float]]:
    signals = [r for r in conductor if r["event"] == "signal" and r["name"] == name]
    begun = [r["t"] for r in signals if r["signal"] == "SIGSTOP"]
    ended = [r["t"] for r in signals if r["signal"] == "SIGCONT"]
    return list(zip(begun, ended, strict=False))


def _motions(folder: Path) -> tuple[list[str], list[str], int]:
    overlapping, outside, count = [], [], 0
    for robots, kind in ((DRONES, "tello"), (ARMS, "indy7")):
        skills = load_skill_set(share("config", "skills", f"{kind}.yaml"))
        for robot in robots:
            for path in sorted(folder.glob(f"{robot}-*.jsonl")):
                records = list(read(path))
                count += sum(record["event"] == "start" for record in records)
                found = judges.motions_overlapping(records)
                overlapping += [f"{path.stem}: {words}" for words in found]
                found = judges.motions_outside(records, skills)
                outside += [f"{path.stem}: {words}" for words in found]
    return overlapping, outside, count


def _log_faults(folder: Path) -> list[str]:
    logs = sorted(folder.glob("*.log"))
    return [
        fault
        for path in logs
        for fault in judges.log_faults(path.name, path.read_text("utf-8", "replace"))
    ]


def _bags(folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.glob("bag-*")):
        if not any(path.iterdir()):
            continue  # its recorder was killed before it began
        try:
            bag.read(path)
        except bag.EmptyBag:
            continue  # and here, before it had written anything
        except Exception as error:  # whatever it is, it is a finding
            found.append(f"{path.name}: {type(error).__name__}: {error}")
    return found


def _signals(signals: Counter[str]) -> str:
    names = ("SIGKILL", "SIGTERM", "SIGSTOP")
    return ", ".join(str(sum(n for key, n in signals.items() if key.startswith(s))) for s in names)


def _levels(growth: list[dict[str, Any]]) -> list[Figure]:
    """Memory and descriptors of those that lived longest, one of each name."""
    figures = []
    longest = {(line["name"], line["what"]): line for line in sorted(growth, key=_lived)}
    for (name, what), line in longest.items():
        unit = " MiB" if what == "memory" else ""
        value = f"{line['level']:.4g}{unit}, {line['growth']:+.3g} in {line['lived']} s"
        figures.append(Figure(f"{name}: {what}", value))
    return figures


def _lived(line: dict[str, Any]) -> float:
    return line["lived"]
