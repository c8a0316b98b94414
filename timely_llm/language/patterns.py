"""Regular expressions of string arguments: read once, refused if they could be slow or endless.

A pattern is a small tree of characters, sequences, choices and repeats. The number of ways a
backtracking matcher could try bounds its time.
"""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MAX_WAYS = 10_000


class PatternError(ValueError):
    """A pattern that is not allowed, with the reason."""


class Pattern:
    """A checked pattern: ``ways`` to match, ``shortest`` and ``longest`` match."""

    def __init__(self, text: str) -> None:
        try:
            tree = parser.parse(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise PatternError(f"is not a regular expression: {error}") from None
        if tree.state.flags & ~re.UNICODE:
            raise PatternError("sets flags, which is not supported")
        nodes = list(tree)
        if nodes and nodes[0] == (codes.AT, codes.AT_BEGINNING):
            del nodes[0]  # the whole text has to match anyway
        if nodes and nodes[-1] == (codes.AT, codes.AT_END):
            del nodes[-1]
        self.ways, self.shortest, self.longest = _sequence(nodes)


_Facts = tuple[int, int, int]


def _limited(ways: int) -> int:
    if ways > MAX_WAYS:
        raise PatternError(
            f"could take exponential time: more than {MAX_WAYS} ways to match one text"
        )
    return ways


def _sequence(nodes: Any, repeated: bool = False) -> _Facts:
    ways, shortest, longest = 1, 0, 0
    for code, value in nodes:
        facts = _node(code, value, repeated)
        ways = _limited(ways * facts[0])
        shortest, longest = shortest + facts[1], longest + facts[2]
    return ways, shortest, longest


def _node(code: Any, value: Any, repeated: bool) -> _Facts:
    if code in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
        return 1, 1, 1
    if code is codes.MAX_REPEAT:
        low, high, content = value
        return _repeat(low, high, content, repeated)
    if code is codes.SUBPATTERN:
        _, added, dropped, content = value
        if not added and not dropped:
            return _sequence(content, repeated)
    if code is codes.BRANCH:
        choices = [_sequence(choice, repeated) for choice in value[1]]
        return (
            _limited(sum(choice[0] for choice in choices)),
            min(choice[1] for choice in choices),
            max(choice[2] for choice in choices),
        )
    raise PatternError(f"uses {str(code).lower()}, which is not supported")


def _repeat(low: int, high: int, content: Any, repeated: bool) -> _Facts:
    ways, shortest, longest = _sequence(content, repeated or high > 1)
    if high is codes.MAXREPEAT:
        if repeated or ways > 1:
            raise PatternError("could take exponential time: an endless repeat inside a repeat")
        raise PatternError("is unbounded: write {m,n} for * and +")
    if high > MAX_WAYS:
        raise PatternError(f"repeats up to {high} times: at most {MAX_WAYS}")
    total = 0
    power = ways**low if ways == 1 or low < 64 else MAX_WAYS + 1
    for _ in range(low, high + 1):
        total = _limited(total + _limited(power))
        power *= ways
    return total, shortest * low, longest * high
