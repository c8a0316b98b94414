"""The grammar that holds a model to a robot's plan language: EBNF for xgrammar, finite by design.

Every plan of the grammar passes ``Parser``; the reverse holds for plans written
without spaces, in single quotes, with arithmetic and nested calls only in assignments. Blocks nest
up to ``max_nesting`` and a plan has up to ``max_statements`` statements, wherever they stand, so
the rules count: ``b2n7`` is "a statement in two blocks, seven more allowed". All numbers are within
their argument's limits by their digits. Nothing recurses, so the longest plan is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from timely_llm.language.patterns import ALPHABET, Pattern, character_class
from timely_llm.language.skills import Argument, Bounds, SkillSet

MAX_COMPARED = 32  # characters of a string that a variable is compared with


class Piece(NamedTuple):
    """A part of a rule: its EBNF and the characters of its longest text."""

    ebnf: str
    longest: int


def literal(text: str) -> Piece:
    return Piece('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"', len(text))


EMPTY = Piece('""', 0)


def sequence(*pieces: Piece) -> Piece:
    return Piece(" ".join(piece.ebnf for piece in pieces), sum(piece.longest for piece in pieces))


def choice(*pieces: Piece) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    return Piece(f"({' | '.join(p.ebnf for p in pieces)})", max(p.longest for p in pieces))


def words(texts: Iterable[str]) -> Piece:
    return choice(*map(literal, texts))


class _Rules:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.pieces: dict[str, Piece] = {}

    def define(self, name: str, *choices: Piece) -> Piece:
        """Add the rule ``name``; returns the piece that refers to it."""
        self.texts[name] = " | ".join(piece.ebnf for piece in choices)
        self.pieces[name] = Piece(name, max(piece.longest for piece in choices))
        return self.pieces[name]

    def __getitem__(self, name: str) -> Piece:
        return self.pieces[name]


def plan_grammar(skills: SkillSet) -> str:
    """The EBNF of all plans within the skill set and its bounds; the start is ``root``."""
    return "".join(f"{name} ::= {text}\n" for name, text in _rules(skills).texts.items())


def longest_plan(skills: SkillSet) -> int:
    """Characters of the longest plan of the grammar: no plan takes more tokens than that."""
    return _rules(skills)["root"].longest


def _rules(skills: SkillSet) -> _Rules:
    rules = _Rules()
    _values(rules, skills)
    return _statements(rules, skills.bounds)


def _values(rules: _Rules, skills: SkillSet) -> None:
    bounds = skills.bounds
    boolean = rules.define("boolean", literal("True"), literal("False"))
    variable = rules.define("variable", sequence(literal("_"), _digit(1, bounds.max_variables)))
    number = rules.define("number", _number(bounds.max_number))
    compared = _text(rules, 1, min(MAX_COMPARED, bounds.max_string))
    equal = words(("==", "!="))
    compare = rules.define("compare", words(("==", "!=", "<=", ">=", "<", ">")))

    found = {returns: _calls(rules, skills, returns) for returns in ("none", "bool", "num", "str")}
    calls = {returns: piece for returns, piece in found.items() if piece}
    valued = [piece for returns, piece in calls.items() if returns != "none"]
    rules.define("call", *calls.values())

    is_boolean = rules.define("is_boolean", EMPTY, sequence(equal, boolean))
    terms = [
        sequence(variable, choice(is_boolean, sequence(compare, number), sequence(equal, compared)))
    ]
    terms += [sequence(calls[kind], is_boolean) for kind in ("bool", "str") if kind in calls]
    if "num" in calls:
        terms.append(sequence(calls["num"], compare, number))
    rules.define("term", *terms)

    operation = sequence(Piece("[-+*/]", 1), number)
    assigned = (*valued, boolean, number, sequence(variable, choice(EMPTY, operation)))
    rules.define("simple", rules["call"], sequence(variable, literal("="), choice(*assigned)))
    returned = (*valued, boolean, number, variable, _text(rules, 1, bounds.max_string))
    rules.define("return", sequence(literal("->"), choice(*returned)))
    rules.define("loop", sequence(integers(1, bounds.max_loop), literal("{")))


def _statements(rules: _Rules, bounds: Bounds) -> _Rules:
    """Counting rules: <kind><blocks open>n<statements left>.

    b begins a statement, s may begin one, a follows a call or an assignment, f follows a return,
    c follows a condition's term, k closes a block.
    """
    depths = range(bounds.max_nesting + 1)
    semicolon = choice(literal(";"), EMPTY)
    for left in range(bounds.max_statements + 1):
        for depth in depths:
            place = f"{depth}n{left}"
            if left:
                rules.define(f"b{place}", *_beginnings(rules, depth, left - 1, bounds.max_nesting))
            begin = [rules[f"b{place}"]] if left else []
            close = []
            if depth:
                outer = rules[f"s{depth - 1}n{left}"]
                close = [rules.define(f"k{place}", sequence(literal("}"), semicolon, outer))]
            # A plan may end inside blocks: the end closes them, as in a published plan.
            start = rules.define(f"s{place}", *begin, *close, EMPTY)
            rules.define(f"a{place}", sequence(literal(";"), start), *close, EMPTY)
            rules.define(f"f{place}", sequence(semicolon, choice(*close, EMPTY)))
        for depth in depths[:-1]:
            if left:
                arrow = choice(literal("->"), EMPTY)
                block = sequence(arrow, literal("{"), rules[f"b{depth + 1}n{left}"])
                more = []
                if left > 1:
                    following = rules[f"c{depth}n{left - 1}"]
                    more = [sequence(Piece("[&|]", 1), rules["term"], following)]
                rules.define(f"c{depth}n{left}", block, *more)
    rules.define("root", rules[f"b0n{bounds.max_statements}"])
    return rules


def _beginnings(rules: _Rules, depth: int, left: int, max_nesting: int) -> list[Piece]:
    place = f"{depth}n{left}"
    result = [
        sequence(rules["simple"], rules[f"a{place}"]),
        sequence(rules["return"], rules[f"f{place}"]),
    ]
    if left and depth < max_nesting:
        result.append(sequence(literal("?"), rules["term"], rules[f"c{place}"]))
        result.append(sequence(rules["loop"], rules[f"b{depth + 1}n{left}"]))
    return result


def _calls(rules: _Rules, skills: SkillSet, returns: str) -> Piece | None:
    """A call of any skill that returns such a value; skills with like arguments share a choice."""
    wanted = ("int", "float") if returns == "num" else (returns,)
    chosen = sorted(
        (skill for skill in skills.skills if skill.returns in wanted),
        key=lambda skill: str([_likeness(argument) for argument in skill.arguments]),
    )
    calls = []
    for _, group in groupby(chosen, key=lambda s: [_likeness(a) for a in s.arguments]):
        members = list(group)
        arguments: list[Piece] = []
        for argument in members[0].arguments:
            arguments += [literal(","), _argument(rules, argument)]
        names = words(skill.name for skill in members)
        calls.append(sequence(names, literal("("), *arguments[1:], literal(")")))
    return rules.define(f"{returns}_call", *calls) if calls else None


def _likeness(argument: Argument) -> tuple[str, float, float, str | None]:
    return argument.type, argument.minimum, argument.maximum, argument.pattern


def _argument(rules: _Rules, argument: Argument) -> Piece:
    if argument.type == "int":
        return integers(int(argument.minimum), int(argument.maximum))
    if argument.type == "float":
        return tenths(argument.minimum, argument.maximum)
    low, high = int(argument.minimum), int(argument.maximum)
    return choice(_text(rules, low, high, argument.pattern), rules["variable"])


def _text(rules: _Rules, low: int, high: int, pattern: str | None = None) -> Piece:
    quote = literal("'")
    if pattern is not None:
        checked = Pattern(pattern)
        return sequence(quote, Piece(f"({checked.ebnf})", checked.longest), quote)
    name = f"text_{low}_{high}"
    if name not in rules.pieces:
        characters = Piece(f"{character_class(ALPHABET)}{{{low},{high}}}", high)
        rules.define(name, sequence(quote, characters, quote))
    return rules[name]


def _number(maximum: int) -> Piece:
    decimals = Piece('("." [0-9]{1,2} | "")', 3)
    whole = integers(0, maximum - 1) if maximum > 1 else literal("0")
    return choice(sequence(whole, decimals), literal(str(maximum)))


def _digit(low: int, high: int) -> Piece:
    return Piece(f"[{low}-{high}]" if low < high else f"[{low}]", 1)


def integers(low: int, high: int) -> Piece:
    """Exactly the whole numbers low..high, without leading zeros."""
    choices = []
    if low < 0:
        below = _positive(max(1, -high), -low)
        choices += [sequence(literal("-"), piece) for piece in below]
    if high >= 0:
        choices += _positive(max(0, low), high)
    return choice(*choices)


def _positive(low: int, high: int) -> list[Piece]:
    choices = []
    for digits in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (digits - 1) if digits > 1 else 0)
        choices += _same_length(str(first), str(min(high, 10**digits - 1)))
    return choices


def _same_length(low: str, high: str) -> list[Piece]:
    """Numbers low..high, written with equally many digits."""
    if len(low) == 1:
        return [_digit(int(low), int(high))]
    rest = len(low) - 1
    zeros, nines = "0" * rest, "9" * rest
    first, last = int(low[0]), int(high[0])
    if first == last:
        tails = _same_length(low[1:], high[1:])
        return [sequence(_digit(first, first), choice(*tails))]
    choices = []
    if low[1:] != zeros:
        choices.append(sequence(_digit(first, first), choice(*_same_length(low[1:], nines))))
        first += 1
    if high[1:] != nines:
        end = sequence(_digit(last, last), choice(*_same_length(zeros, high[1:])))
        last -= 1
    else:
        end = None
    if first <= last:
        choices.append(sequence(_digit(first, last), *[Piece("[0-9]", 1)] * rest))
    return choices + ([end] if end else [])


def tenths(low: float, high: float) -> Piece:
    """The numbers low..high with at most one decimal, without leading zeros."""
    first, last = math.ceil(low * 10 - 1e-9), math.floor(high * 10 + 1e-9)
    choices = []
    if first < 0:
        below = _tenths(max(1, -last), -first)
        choices += [sequence(literal("-"), piece) for piece in below]
    if last >= 0:
        choices += _tenths(max(0, first), last)
    return choice(*choices)


def _tenths(first: int, last: int) -> list[Piece]:
    """The numbers first..last tenths; whole ones also without a decimal."""
    whole, end = divmod(first, 10)
    final, rest = divmod(last, 10)
    if whole == final:
        return [_with_decimals(_same(whole), end, rest)]
    choices = []
    if end:
        choices.append(_with_decimals(_same(whole), end, 9))
        whole += 1
    if rest < 9:
        choices.append(_with_decimals(_same(final), 0, rest))
        final -= 1
    if whole <= final:
        choices.append(_with_decimals(integers(whole, final), 0, 9))
    return choices


def _same(number: int) -> Piece:
    return literal(str(number))


def _with_decimals(whole: Piece, first: int, last: int) -> Piece:
    decimals = sequence(whole, literal("."), _digit(first, last))
    return choice(whole, decimals) if first == 0 else decimals
