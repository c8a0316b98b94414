"""Faults of simulated robots: how they are asked for, and those that wait for their time. Pure.

Which kinds there are is up to each simulated robot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from timely_llm.validation.names import hint

_FORM = re.compile(r"([a-z]+)(?:=([0-9]+(?:\.[0-9]+)?))?(?:@([0-9]+(?:\.[0-9]+)?))?")


class FaultError(ValueError):
    """A fault that does not exist, or with a wrong value."""


@dataclass(frozen=True, slots=True)
class Kind:
    """``default`` is the value where none is given; None: one must be given."""

    words: str
    low: float = 0.0
    high: float = 3600.0
    default: float | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """``at`` in s on the robot's clock, 0: at once."""

    kind: str
    value: float = 1.0
    at: float = 0.0


def parse_fault(text: str, kinds: Mapping[str, Kind]) -> Fault:
    """``KIND``, ``KIND=VALUE``, either with ``@SECONDS``. ``FaultError`` names what is wrong."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise FaultError(f"fault {text!r}: must be KIND, KIND=VALUE or KIND=VALUE@SECONDS")
    name, value, at = match.groups()
    kind = kinds.get(name)
    if kind is None:
        raise FaultError(f"fault {name!r} is unknown{hint(name, kinds)}")
    number = kind.default if value is None else float(value)
    if number is None:
        raise FaultError(f"fault {name!r} needs a value: {kind.words}")
    if not kind.low <= number <= kind.high:
        limits = f"{kind.low:g} to {kind.high:g}"
        raise FaultError(f"fault {name!r}: value is {number:g}: must be {limits}")
    return Fault(name, number, float(at or 0.0))


class PendingFaults:
    """The faults of one robot that are still to come: at a time, or with a call they concern."""

    def __init__(self) -> None:
        self._timed: list[Fault] = []
        self._waiting: list[Fault] = []

    @property
    def times(self) -> list[float]:
        """When the timed ones begin, in s."""
        return [fault.at for fault in self._timed]

    def schedule(self, fault: Fault, now: float) -> None:
        """The fault begins at its time, or now if that is over."""
        self._timed.append(replace(fault, at=max(fault.at, now)))

    def due(self, now: float) -> list[Fault]:
        """The timed ones that begin by ``now``, each once."""
        due = [fault for fault in self._timed if fault.at <= now]
        self._timed = [fault for fault in self._timed if fault.at > now]
        return due

    def wait(self, fault: Fault, calls: int = 1) -> None:
        """The fault concerns the next so many calls."""
        self._waiting += [fault] * calls

    def take(self, *kinds: str) -> Fault | None:
        """The first one of these kinds that waits for a call; it waits no more."""
        found = next((fault for fault in self._waiting if fault.kind in kinds), None)
        if found is not None:
            self._waiting.remove(found)
        return found
