"""How doubtful a model's plan may be: thresholds that were calibrated for models and their prompts.
Pure, but for reading the package's own table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from timely_llm.paths import share
from timely_llm.validation.reader import Entry, file_text, number, parse_yaml

AUTO, NONE = "auto", "none"
LEAST = -1000.0


@dataclass(frozen=True, slots=True)
class _Table(Entry):
    thresholds: Mapping[str, Annotated[float, number(LEAST, 0.0)]] = field(default_factory=dict)


def min_logprob(parameter: str, model: str) -> float | None:
    """The least mean log probability (natural logarithm) of a plan's tokens before anything moves;
    None: whatever it is. ``parameter`` is a number, ``none``, or ``auto``: what was calibrated for
    the ``model``, by the name of its folder. ``ValueError`` says what it must be."""
    if parameter == NONE:
        return None
    if parameter == AUTO:
        return calibrated().get(Path(model).name)
    try:
        value = float(parameter)
    except ValueError:
        value = math.nan
    if not LEAST <= value <= 0:
        raise ValueError(f"is {parameter!r}: must be {AUTO}, {NONE} or a number, {LEAST:g} to 0")
    return value


def calibrated() -> Mapping[str, float]:
    """By the names of models' folders."""
    path = share("config", "doubt.yaml")
    return parse_yaml(file_text(path), str(path)).read(_Table).thresholds
