"""The grammar as text: the same whatever the limits of values."""

from dataclasses import replace

from plan_language import TELLO

from timely_llm.language.grammar import plan_grammar
from timely_llm.language.skills import Bounds


def test_no_limit_of_a_value_is_in_it():
    """Else a model would be made to write another value than it means."""
    tighter = tuple(
        replace(skill, arguments=tuple(replace(a, minimum=3, maximum=3) for a in skill.arguments))
        for skill in TELLO.skills
    )
    strict = Bounds(max_nesting=0, max_statements=1, max_string=1, max_loop=1, max_variables=1)
    assert plan_grammar(replace(TELLO, skills=tighter, bounds=strict)) == plan_grammar(TELLO)
