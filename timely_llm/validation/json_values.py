"""Values of JSON checked one by one: what is wrong is a ``Fault`` with the key, the value and what
must be there. No files, no lines, no schema.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

REQUIRED = object()
"""In a table of keys: there is no value to stand for a missing key."""


class Fault(ValueError):
    """``key`` is the key's path, empty for the whole; ``reason`` says what is wrong."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}" if key else reason)
        self.key = key
        self.reason = reason


def parse_object(text: str) -> dict[str, Any]:
    """A JSON object; a number beyond floats and a key given twice are faults."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise Fault("", f"is not JSON: {error.msg}, column {error.colno}") from None
    except Fault:
        raise
    except (ValueError, RecursionError) as error:  # a number of too many digits; nested too deep
        raise Fault("", f"is not JSON that can be read: {error}") from None
    if not isinstance(value, dict):
        raise Fault("", f"is {shown(value)}: must be an object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for key, value in pairs:
        if key in entry:
            raise Fault(key, "is given twice")
        entry[key] = value
    return entry


def _constant(name: str) -> NoReturn:
    raise Fault("", f"holds {name}: numbers must be finite")


def keys(entry: Mapping[str, Any], known: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """``entry`` with what is missing put in; unknown keys and missing ``REQUIRED`` are faults."""
    for key in entry:
        if key not in known:
            raise Fault(prefix + key, f"unknown key: did you mean {nearest(key, known)!r}?")
    for key, default in known.items():
        if default is REQUIRED and key not in entry:
            raise Fault(prefix + key, "is missing")
    return {key: entry.get(key, default) for key, default in known.items()}


def choice(key: str, value: Any, known: Iterable[str]) -> str:
    """One of the known names."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        hint = f"did you mean {nearest(str(value), names)!r}?" if names else "none is known"
        raise Fault(key, f"is {shown(value)}: {hint}")
    return value


def nearest(name: str, known: Iterable[str]) -> str:
    return difflib.get_close_matches(name, list(known), 1, 0)[0]


def number(key: str, value: Any, least: float = -math.inf) -> float:
    """A finite number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Fault(key, f"is {shown(value)}: must be a number")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise Fault(key, f"is {shown(value)}: must be finite")
    if result < least:
        raise Fault(key, f"is {shown(value)}: must be at least {least:g}")
    return result


def whole(key: str, value: Any, least: int) -> int:
    """A whole number of at least ``least``, written without a point."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Fault(key, f"is {shown(value)}: must be a whole number")
    if value < least:
        raise Fault(key, f"is {shown(value)}: must be at least {least}")
    return value


def string(key: str, value: Any, empty: bool = True) -> str:
    """A text, which may be empty unless said otherwise."""
    if not isinstance(value, str):
        raise Fault(key, f"is {shown(value)}: must be a text")
    if not value and not empty:
        raise Fault(key, "is empty")
    return value


def array(key: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Fault(key, f"is {shown(value)}: must be a list")
    return value


def shown(value: Any) -> str:
    """A value as JSON writes it, cut to 40 characters."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
