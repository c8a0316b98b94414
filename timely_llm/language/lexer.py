"""The words of the plan language: growing text in, whole tokens out. No grammar, no skills."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_WORD = 40  # characters of a name or a number
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<name>[A-Za-z][A-Za-z0-9_]*)
    |(?P<variable>_[0-9]*)
    |(?P<argument>\$[0-9]+)
    |(?P<number>[0-9.][0-9A-Za-z_.]*)
    |(?P<string>'[^']*'|"[^"]*")
    |(?P<symbol>->|==|!=?|<=|>=|[-+*/<>=&|?{}(),;])""",
    re.VERBOSE,
)
_GROWS = ("name", "variable", "argument", "number", "-", "=", "!", "<", ">")


class PlanError(ValueError):
    """A plan that breaks the language, its skills' limits or its bounds.

    ``position`` counts the characters before the fault, ``reason`` says what it is.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"plan, character {position}: {reason}")
        self.position = position
        self.reason = reason


class Token(NamedTuple):
    """``kind`` is name, variable, argument, number, string or end; a symbol is its own kind."""

    kind: str
    text: str
    start: int

    def __str__(self) -> str:
        return "the end of the plan" if self.kind == "end" else repr(self.text)


class Lexer:
    """Cuts a growing text into tokens; a token that could still grow waits for the next text.

    What waits is short (``max_string``, ``MAX_WORD``), so the time is linear in the text.
    """

    def __init__(self, max_string: int) -> None:
        self._max_string = max_string
        self._rest = ""
        self._start = 0  # of the rest, in the plan

    @property
    def growing(self) -> str:
        """The token that could still grow, if there is one."""
        return self._rest.strip()

    def feed(self, text: str, last: bool = False) -> Iterator[Token]:
        """The tokens that ``text`` completes; with ``last`` all, and an end token after them."""
        text, self._rest = self._rest + text, ""
        position = 0
        while position < len(text):
            token, end = self._token(text, position)
            if not last and end == len(text) and token.kind in _GROWS:
                break
            if token.kind == "open":
                if last:
                    raise PlanError(token.start, "the plan is cut off inside a string")
                break
            position = end
            if token.kind != "space":
                yield token
        self._rest = text[position:]
        self._start += position
        if last:
            yield Token("end", "", self._start)

    def _token(self, text: str, position: int) -> tuple[Token, int]:
        start = self._start + position
        match = _TOKEN.match(text, position)
        if match is None:
            if text[position] not in "'\"":
                raise PlanError(start, f"unexpected character {text[position]!r}")
            self._check_string(text[position + 1 :], start)
            return Token("open", text[position:], start), len(text)
        kind, word = str(match.lastgroup), match[0]
        if kind == "string":
            self._check_string(word[1:-1], start)
        elif kind in ("name", "argument", "number", "variable") and len(word) > MAX_WORD:
            raise PlanError(start, f"{word[:MAX_WORD]!r}... is longer than {MAX_WORD} characters")
        return Token(word if kind == "symbol" else kind, word, start), match.end()

    def _check_string(self, text: str, start: int) -> None:
        if len(text) > self._max_string:
            raise PlanError(start, f"a string is longer than {self._max_string} characters")
        if not text.isprintable():
            raise PlanError(start, "a string holds a line break or a control character")
        if "\\" in text or "\ufffd" in text:
            raise PlanError(start, "a string holds a backslash, or a character that was cut")
