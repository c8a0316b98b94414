"""The grammar that holds a model to a robot's plan language: EBNF for xgrammar, finite by design.

It forbids what is no plan, and never touches a value: any number, string or count of arguments may
be written, and ``Parser`` refuses what is out of limits. Were a limit in the grammar, a model that
wants ``mf(1500)`` would write its first digits and the robot would move. For the same reason every
bound of the grammar lies one beyond the parser's: a plan that reaches it is refused, not closed
early.

Blocks nest and statements follow each other up to their bounds, wherever they stand, so the rules
count: ``b2n7`` is "a statement in two blocks, seven more allowed". Nothing recurses.
"""

from __future__ import annotations

from collections.abc import Iterable

from timely_llm.language.lexer import MAX_WORD
from timely_llm.language.skills import Bounds, SkillSet

_MOST_ARGUMENTS = 8  # of a call; more than any skill has
_EMPTY = '""'
_VALUES = {
    "sign": '"-" | "+" | ""',
    # Also what only looks like a number: 1e3, .5, 50cm, 1_000.
    "number": f"sign [0-9.] [0-9A-Za-z_.]{{0,{MAX_WORD}}}",
    "boolean": '"True" | "False"',
    "variable": f'"_" [0-9]{{1,{MAX_WORD}}}',
    "compare": '"==" | "!=" | "<=" | ">=" | "<" | ">"',
    "comparison": 'compare value | ""',
    "arguments": f'(value ("," value){{0,{_MOST_ARGUMENTS}}} | "")',
    "loop": 'number "{"',
}


def plan_grammar(skills: SkillSet) -> str:
    """The EBNF of all plans for these skills, sound or out of limits; the start is ``root``."""
    rules = _VALUES | _words(skills) | _statements(skills.bounds)
    return "".join(f"{name} ::= {text}\n" for name, text in rules.items())


def _words(skills: SkillSet) -> dict[str, str]:
    """Strings, and calls: those that have a value, and all."""
    content = f"{{0,{skills.bounds.max_string + 1}}}"
    valued = [skill.name for skill in skills.skills if skill.returns != "none"]
    answer = f'{_choice(valued)} "(" arguments ")"' if valued else ""
    return {
        "string": " | ".join(
            rf'"{quote}" [^{mark}]{content} "{quote}"' for quote, mark in (("'", "'"), (r"\"", '"'))
        ),
        "value": "number | string | boolean | variable",
        "answer": answer,
        "term": _either(answer and "answer comparison", "variable comparison"),
        "call": f'{_choice(skills.names)} "(" arguments ")"',
        "assigned": _either(answer and "answer", 'value (([-+*/] number) | "")'),
        "simple": 'call | variable "=" assigned',
        "return": f'"->" ({_either(answer and "answer", "value")})',
    }


def _choice(names: Iterable[str]) -> str:
    return "(" + " | ".join(f'"{name}"' for name in names) + ")"


def _either(*choices: str) -> str:
    return " | ".join(filter(None, choices))


def _statements(bounds: Bounds) -> dict[str, str]:
    """Counting rules: <kind><blocks open>n<statements left>.

    b begins a statement, s may begin one, a follows a call or an assignment, f follows a return,
    c follows a condition's term, k closes a block.
    """
    rules: dict[str, str] = {}
    deepest, most = bounds.max_nesting + 1, bounds.max_statements + 1
    for left in range(most + 1):
        for depth in range(deepest + 1):
            place = f"{depth}n{left}"
            if left:
                rules[f"b{place}"] = _either(*_beginnings(depth, left - 1, deepest))
            if depth:
                rules[f"k{place}"] = f'"}}" (";" | "") s{depth - 1}n{left}'
            # A plan may end inside blocks: the end closes them, as in a published plan.
            begin, close = left and f"b{place}", depth and f"k{place}"
            rules[f"s{place}"] = _either(begin or "", close or "", _EMPTY)
            rules[f"a{place}"] = _either(f'";" s{place}', close or "", _EMPTY)
            rules[f"f{place}"] = f'(";" | "") ({_either(close or "", _EMPTY)})'
        for depth in range(deepest if left else 0):
            block = f'("->" | "") "{{" b{depth + 1}n{left}'
            more = f"[&|] term c{depth}n{left - 1}" if left > 1 else ""
            rules[f"c{depth}n{left}"] = _either(block, more)
    return rules | {"root": f"b0n{most}"}


def _beginnings(depth: int, left: int, deepest: int) -> list[str]:
    place = f"{depth}n{left}"
    result = [f"simple a{place}", f"return f{place}"]
    if left and depth < deepest:
        result += [f'"?" term c{place}', f"loop b{depth + 1}n{left}"]
    return result
