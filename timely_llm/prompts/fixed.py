"""What all requests for robots of one kind share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from timely_llm.protocols.engine import EngineRequest, Turn


@dataclass(frozen=True, slots=True)
class FixedPrompt:
    """The fixed part of the prompts, a system text and examples as turns, and the grammar (EBNF)
    of the answers; an empty one bounds nothing."""

    system: str
    examples: tuple[Turn, ...] = ()
    grammar: str = ""

    def request(
        self, request_id: str, number: int, user: str | None, max_tokens: int, **fields: Any
    ) -> EngineRequest:
        """One generation; ``user`` is the goal's own part, None for the fixed part alone."""
        own = {"grammar": self.grammar or None, "examples": self.examples} | fields
        return EngineRequest(request_id, number, self.system, user, max_tokens=max_tokens, **own)
