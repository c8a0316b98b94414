"""What a robot tells its planner: numbering and collecting ``Execution`` messages. Pure."""

from __future__ import annotations

from typing import Any

from robot_adapters.executor.values import LONGEST
from timely_llm.language.skills import Value, value_text
from timely_llm.protocols.messages import Execution, ExecutionState


class Reports:
    """Messages of one adapter in order. ``session`` is None until the robot is registered."""

    def __init__(self) -> None:
        self.session: int | None = None
        self.sent = 0.0  # s, when the last message was made
        self._sequence = 0
        self._messages: list[Execution] = []

    def add(self, state: ExecutionState, now: float, plan_id: str, **fields: Any) -> None:
        """One more message; ``fields`` are those of ``Execution``."""
        self._messages.append(
            Execution(self.session or 0, self._sequence, plan_id, state, stamp=now, **fields)
        )
        self._sequence += 1
        self.sent = now

    def flush(self) -> list[Execution]:
        """The messages made since the last flush."""
        messages, self._messages = self._messages, []
        return messages


def value_fields(value: Value | None) -> dict[str, Any]:
    """``has_value`` and ``value`` of an ``Execution``; no longer than a plan may take it."""
    return {"has_value": value is not None, "value": value_text(value)[:LONGEST]}
