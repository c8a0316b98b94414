"""The former place of ``robot_adapters.adapter``: it warns, and goes with the next release."""

from __future__ import annotations

import warnings
from typing import Any

from robot_adapters import adapter


def __getattr__(name: str) -> Any:
    found = getattr(adapter, name)
    if not name.startswith("_"):
        words = f"robot_adapters.base.{name} is robot_adapters.adapter.{name} now"
        warnings.warn(words, DeprecationWarning, stacklevel=2)
    return found
