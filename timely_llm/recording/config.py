"""A recorded ``planner_config``: what of it can be used, and notes on the rest. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from timely_llm.protocols.utility import PRESETS, TimeUtility

MAX_BATCH, MAX_BLOCKS, MAX_NETWORK = 65_536, 10**9, 1000.0

Check = tuple[Callable[[Any], bool], str]


def usable(config: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """``config`` without the settings that cannot be, and a note for each of these."""
    found, notes = dict(config), []
    for part, checks in _CHECKS.items():
        given = config.get(part) or {}
        if not isinstance(given, Mapping):
            notes.append(_note(part, given, "a mapping"))
            given = {}
        wrong = {
            key: words
            for key, (fits, words) in checks.items()
            if given.get(key) is not None and not fits(given[key])
        }
        notes += [_note(f"{part}.{key}", given[key], words) for key, words in wrong.items()]
        found[part] = {key: value for key, value in given.items() if key not in wrong}
    return found, tuple(notes)


def _note(name: str, value: Any, words: str) -> str:
    return f"planner_config: {name} is {value!r:.80}: must be {words}; left out"


def _whole(most: int) -> Check:
    return lambda value: type(value) is int and 0 <= value <= most, f"a whole number, 0 to {most}"


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_NETWORK


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_utility(value: Any) -> bool:
    if not isinstance(value, list) or any(type(each) not in (int, float) for each in value):
        return False
    try:
        TimeUtility(*map(float, value))
    except (TypeError, ValueError, OverflowError):
        return False
    return True


_PACE: Check = (_is_text, "a text")
_UTILITY: Check = (_is_utility, "ert, alpha and beta of a utility")
_CHECKS: dict[str, dict[str, Check]] = {
    "engine": {
        "pace": _PACE,
        "max_batch": _whole(MAX_BATCH),
        "kv_blocks": _whole(MAX_BLOCKS),
        "block_size": _whole(MAX_BLOCKS),
    },
    "parameters": {
        "pace": _PACE,
        "max_batch": _whole(MAX_BATCH),
        "network": (_is_time, f"0 to {MAX_NETWORK:g} s"),
        **{f"utility.{urgency.name.lower()}": _UTILITY for urgency in PRESETS},
    },
}
