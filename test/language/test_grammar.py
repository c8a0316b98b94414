"""The grammar as text: finite, and the same whatever the limits of values."""

import re
from dataclasses import replace

from plan_language import TELLO

from timely_llm.language.grammar import plan_grammar


def test_no_limit_of_a_value_is_in_it():
    """Else a model would be made to write another value than it means."""
    tighter = tuple(
        replace(skill, arguments=tuple(replace(a, minimum=3, maximum=3) for a in skill.arguments))
        for skill in TELLO.skills
    )
    assert plan_grammar(replace(TELLO, skills=tighter)) == plan_grammar(TELLO)


def test_nothing_recurses():
    rules = dict(line.split(" ::= ", 1) for line in plan_grammar(TELLO).splitlines())
    words = {name: set(re.findall(r"\b[a-z]\w*\b", re.sub(r'"[^"]*"|\[[^]]*\]', "", text)))
             for name, text in rules.items()}  # fmt: skip
    done: set[str] = set()
    while len(done) < len(rules):
        ready = {name for name in rules if name not in done and words[name] & set(rules) <= done}
        assert ready, "a rule needs itself"
        done |= ready
