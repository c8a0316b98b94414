"""Plans in words (``move_forward(100)``) and in short names (``mf(100)``): both are read alike."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from timely_llm.language.lexer import Lexer
from timely_llm.language.skills import SkillSet


@lru_cache(maxsize=64)
def in_words(skills: SkillSet) -> SkillSet:
    """The same skills, but their long names are the ones that prompts and grammars use."""
    swapped = tuple(
        replace(skill, name=skill.long_name, long_name=skill.name) for skill in skills.skills
    )
    worded = replace(skills, skills=swapped)
    examples = (replace(e, plan=renamed(e.plan, worded)) for e in skills.examples)
    return replace(worded, examples=tuple(examples))


def renamed(plan: str, skills: SkillSet) -> str:
    """The plan with each skill by the name that ``skills`` uses first; nothing else is changed.
    ``PlanError`` for what is no text of the language."""
    pieces: list[str] = []
    position = 0
    for token in Lexer(skills.bounds.max_string).feed(plan, last=True):
        if token.kind == "name" and token.text in skills:
            pieces += plan[position : token.start], skills[token.text].name
            position = token.start + len(token.text)
    return "".join((*pieces, plan[position:]))
