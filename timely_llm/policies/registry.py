"""The policies by name. Every file in this folder is looked through for them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from timely_llm.policies.base import Choose
from timely_llm.validation.names import hint


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy by name. ``streams``: segments are sent as they appear, else with the whole plan.
    ``native``: vLLM's own scheduler decides and ``choose`` only mirrors it, the scheduler being one
    by priority where ``priority`` is set. ``predicts``: it wants ``View.predicted``."""

    name: str
    choose: Choose
    streams: bool = True
    native: bool = False
    priority: bool = False
    predicts: bool = False


_POLICIES: dict[str, Policy] = {}


class UnknownPolicy(ValueError):
    """No policy of that name."""


def register(
    name: str,
    *,
    streams: bool = True,
    native: bool = False,
    priority: bool = False,
    predicts: bool = False,
) -> Callable[[Choose], Choose]:
    """Decorator: make ``choose`` known as ``name``; the rest is as in ``Policy``."""

    def add(choose: Choose) -> Choose:
        _POLICIES[name] = Policy(name, choose, streams, native, priority, predicts)
        return choose

    return add


def names() -> list[str]:
    """All policies, sorted."""
    _load()
    return sorted(_POLICIES)


def get(name: str) -> Policy:
    """The policy ``name``, or ``UnknownPolicy`` with the nearest known one."""
    _load()
    if name not in _POLICIES:
        raise UnknownPolicy(f"policy {name!r} is unknown{hint(name, _POLICIES)}")
    return _POLICIES[name]


def _load() -> None:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"{__package__}.{module.name}")
