"""The grammar that holds a model to a robot's plan language: EBNF for xgrammar.

It forbids what is no plan, and never touches a value: any number, string or count of arguments may
be written, and as many statements and blocks; ``Parser``, which reads along while the plan is
written, refuses what is out of limits. Were a limit in the grammar, a model that wants ``mf(1500)``
would write its first digits and the robot would move.
"""

from __future__ import annotations

from collections.abc import Iterable

from timely_llm.language.parser import REFUSAL
from timely_llm.language.skills import SkillSet

_PLANS = {
    # A plan may end inside blocks: the end closes them, as in a published plan.
    "root": "plan",
    "plan": 'simple (end (plan | "") | gap) | return (end | gap) | ("?" condition | number) block',
    "block": '"{" gap plan ("}" gap (end | "") (plan | "") | "")',
    "end": '";" gap',
    "gap": '" " | "\\n" | ""',  # as models like to write; another space is theirs to lose
    "condition": 'term ([&|] term)* ("->" | "")',
    "comparison": '("==" | "!=" | "<=" | ">=" | "<" | ">") value | ""',
    "arguments": 'value ("," gap value)* | ""',
    "value": "number | string | boolean | variable",
    # Also what only looks like a number: 1e3, .5, 50cm, 1_000.
    "number": '("-" | "+" | "") [0-9.] [0-9A-Za-z_.]*',
    "string": r""" "'" [^']* "'" | "\"" [^"]* "\"" """.strip(),
    "boolean": '"True" | "False"',
    "variable": '"_" [0-9]+',
}


def plan_grammar(skills: SkillSet) -> str:
    """The EBNF of all plans for these skills, sound or out of limits; the start is ``root``."""
    valued = [skill.name for skill in skills.skills if skill.returns != "none"]
    answer = "answer | " if valued else ""
    calls = {
        "term": f"({answer}variable) comparison",
        "simple": f'call | variable "=" ({answer}value ([-+*/] number | ""))',
        "return": f'"->" ({answer}value) | "{REFUSAL}(" string ")"',
        "call": f'{_choice(skills.names)} "(" arguments ")"',
    }
    if valued:
        calls["answer"] = f'{_choice(valued)} "(" arguments ")"'
    return "".join(f"{name} ::= {text}\n" for name, text in (_PLANS | calls).items())


def _choice(names: Iterable[str]) -> str:
    return "(" + " | ".join(f'"{name}"' for name in names) + ")"
