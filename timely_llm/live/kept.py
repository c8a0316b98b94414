"""What is kept of a message that comes from outside: not more than a viewer can be shown. Pure."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from timely_llm.protocols.utility import TimeUtility
from timely_llm.validation.outgoing import visible

LONGEST = 4000  # characters of a text
LARGEST = 1e12  # of a number of any unit; beyond it there are no seconds and no utility
MOST = 100  # entries of a list

T = TypeVar("T")


def kept(message: T) -> T:
    """A message of ``protocols/messages.py``, or a part of one: long texts and lists are cut,
    control characters shown; a number that cannot be is NaN: not known."""
    found: T = _kept(message)
    return found


def _kept(value: Any) -> Any:
    match value:
        case str():
            return visible(value if len(value) <= LONGEST else value[: LONGEST - 1] + "…")
        case float():
            return value if abs(value) <= LARGEST else float("nan")
        case tuple():
            return tuple(map(_kept, value[:MOST]))
        case TimeUtility():
            return value  # it has limits of its own
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            changed = {n: new for n, old in fields.items() if (new := _kept(old)) is not old}
            return dataclasses.replace(value, **changed) if changed else value
    return value
