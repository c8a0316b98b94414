"""Regular expressions of string arguments: read once, refused if they could be slow or endless.

A pattern is a small tree of character sets, sequences, choices and repeats. The number of ways a
backtracking matcher could try bounds its time; the same tree gives the pattern's grammar.
"""

from __future__ import annotations

import re
import string
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

ALPHABET = frozenset(string.printable[:95]) - set("'\"\\")
"""Characters of a string in a plan: printable ASCII without quotes and backslash."""

MAX_WAYS = 10_000
_CATEGORIES = {
    codes.CATEGORY_DIGIT: frozenset(string.digits),
    codes.CATEGORY_WORD: frozenset(string.ascii_letters + string.digits + "_"),
    codes.CATEGORY_SPACE: frozenset(" "),
    codes.CATEGORY_NOT_DIGIT: ALPHABET - frozenset(string.digits),
    codes.CATEGORY_NOT_WORD: ALPHABET - frozenset(string.ascii_letters + string.digits + "_"),
    codes.CATEGORY_NOT_SPACE: ALPHABET - {" "},
}


class PatternError(ValueError):
    """A pattern that is not allowed, with the reason."""


class Pattern:
    """A checked pattern: ``ways`` to match, ``shortest`` and ``longest`` match, its ``ebnf``."""

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
        self.ways, self.shortest, self.longest, self.ebnf = _sequence(nodes)


_Facts = tuple[int, int, int, str]


def _limited(ways: int) -> int:
    if ways > MAX_WAYS:
        raise PatternError(
            f"could take exponential time: more than {MAX_WAYS} ways to match one text"
        )
    return ways


def _sequence(nodes: Any, repeated: bool = False) -> _Facts:
    ways, shortest, longest, parts = 1, 0, 0, []
    for code, value in nodes:
        facts = _node(code, value, repeated)
        ways = _limited(ways * facts[0])
        shortest, longest = shortest + facts[1], longest + facts[2]
        parts.append(facts[3])
    return ways, shortest, longest, " ".join(part for part in parts if part)


def _node(code: Any, value: Any, repeated: bool) -> _Facts:
    if code in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
        return 1, 1, 1, character_class(_characters(code, value))
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
            "(" + " | ".join(choice[3] or '""' for choice in choices) + ")",
        )
    raise PatternError(f"uses {str(code).lower()}, which is not supported")


def _repeat(low: int, high: int, content: Any, repeated: bool) -> _Facts:
    ways, shortest, longest, ebnf = _sequence(content, repeated or high > 1)
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
    return total, shortest * low, longest * high, f"({ebnf}){{{low},{high}}}" if ebnf else ""


def _characters(code: Any, value: Any) -> frozenset[str]:
    if code is codes.ANY:
        return ALPHABET
    if code is codes.LITERAL:
        if chr(value) not in ALPHABET:
            raise PatternError(f"wants {chr(value)!r}, which a string cannot hold")
        return frozenset(chr(value))
    if code is codes.NOT_LITERAL:
        return ALPHABET - {chr(value)}
    chosen: set[str] = set()
    negated = False
    for kind, item in value:
        if kind is codes.NEGATE:
            negated = True
        elif kind is codes.LITERAL:
            chosen.add(chr(item))
        elif kind is codes.RANGE:
            chosen.update(map(chr, range(item[0], min(item[1], 127) + 1)))
        elif kind is codes.CATEGORY and item in _CATEGORIES:
            chosen |= _CATEGORIES[item]
        else:
            raise PatternError(f"uses {str(kind).lower()}, which is not supported")
    result = ALPHABET - chosen if negated else ALPHABET & chosen
    if not result:
        raise PatternError("has a character class without a character that a string can hold")
    return frozenset(result)


def character_class(characters: frozenset[str]) -> str:
    """The EBNF character class of a set, as ranges in order."""
    runs: list[list[str]] = []
    for character in sorted(characters):
        if runs and ord(character) == ord(runs[-1][1]) + 1:
            runs[-1][1] = character
        else:
            runs.append([character, character])
    return "[" + "".join(_run(first, last) for first, last in runs) + "]"


def _run(first: str, last: str) -> str:
    def escape(character: str) -> str:
        return "\\" + character if character in "[]^-\\" else character

    if first == last:
        return escape(first)
    return f"{escape(first)}{'-' if ord(last) > ord(first) + 1 else ''}{escape(last)}"
