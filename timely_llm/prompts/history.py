"""What a prompt tells of plans for the same goal that have failed. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Done(NamedTuple):
    """A call that succeeded, as a plan writes it, and what it returned (None: nothing)."""

    call: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """A plan that failed on its robot, or that the planner's check refused: what was sent of it
    (of one that was refused: all), what was done, the call that failed (empty: none did) and why,
    in the robot's words or the check's. ``written`` is all of its text, with the tokens
    of its prompt and its own."""

    plan: str
    done: tuple[Done, ...]
    failed: str
    failure: str
    written: str = ""
    prompt_tokens: int = 0
    tokens: int = 0
