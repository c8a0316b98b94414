"""Example plans made of a robot's own skills, for prompts. Pure.

A model that has never seen a robot learns the plan language from them, so each is a plan that the
robot would accept: within the limits of its skills and the bounds of its skill set.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from timely_llm.language.skills import Argument, Example, Skill, SkillSet, value_text

_THING = "apple"
_ROUND_NUMBERS = (100.0, 90.0, 45.0, 20.0, 10.0, 5.0, 2.0, 1.0, 0.5)
_USUAL = {"deg": 90.0, "s": 2.0}
_REFUSAL = "I cannot do that"


@lru_cache(maxsize=64)
def examples(skills: SkillSet) -> tuple[Example, ...]:
    """The skill set's own examples; where it has none, one for each form of plan that the skills
    and bounds allow."""
    if skills.examples:
        return skills.examples
    makers: tuple[Callable[[SkillSet], Example | None], ...] = (
        _steps,
        _condition,
        _question,
        _loop,
        _refusal,
    )
    return tuple(example for make in makers if (example := make(skills)) is not None)


def _steps(skills: SkillSet) -> Example | None:
    chosen = _motions(skills)[: skills.bounds.max_statements]
    if not chosen:
        return None
    words = ", then ".join(map(_words, chosen))
    return Example(f"{words[0].upper()}{words[1:]}.", ";".join(map(_call, chosen)))


def _condition(skills: SkillSet) -> Example | None:
    seeing = sorted(_about_a_thing(skills, "bool"), key=lambda skill: not skill.timed)
    acting = [skill for skill in _about_a_thing(skills, "none") if skill.timed]
    bounds = skills.bounds
    if not seeing or not acting or not bounds.max_nesting or bounds.max_statements < 4:
        return None
    see, act = seeing[0], acting[0]
    return Example(
        f"Use {see.long_name} to find the {_THING}; if it is there, use {act.long_name} on it.",
        f"?{_call(see)}==True{{{_call(act)};->True}}->False",
    )


def _question(skills: SkillSet) -> Example | None:
    seeing = [skill for skill in _about_a_thing(skills, "bool") if not skill.timed]
    telling = _telling(skills, "Yes")
    bounds = skills.bounds
    if not seeing or telling is None or not bounds.max_nesting or bounds.max_statements < 5:
        return None
    tell = telling.name
    return Example(
        f"Do you see an {_THING}?",
        f"?{_call(seeing[0])}{{{tell}('Yes');->True}}{tell}('No');->False",
    )


def _loop(skills: SkillSet) -> Example | None:
    chosen = _motions(skills)
    bounds = skills.bounds
    if not chosen or not bounds.max_nesting or bounds.max_statements < 3 or bounds.max_loop < 3:
        return None
    words = ", then ".join(map(_words, chosen))
    return Example(f"Three times: {words}.", f"3{{{';'.join(map(_call, chosen))}}}")


def _refusal(skills: SkillSet) -> Example:
    telling = _telling(skills, _REFUSAL)
    plan = f"{telling.name}('{_REFUSAL}')" if telling else "->False"
    return Example("Something that none of the skills can do.", plan)


def _motions(skills: SkillSet) -> list[Skill]:
    """Up to two timed skills that take numbers alone, unlike ones if there are."""
    found = [
        skill
        for skill in skills.skills
        if skill.timed and not skill.role and all(a.type != "str" for a in skill.arguments)
    ]
    unlike = [skill for skill in found if skill.arguments != found[0].arguments]
    return found[:1] + (unlike or found[1:])[:1]


def _about_a_thing(skills: SkillSet, returns: str) -> list[Skill]:
    """Skills that take one object by name."""
    return [skill for skill in skills.skills if skill.returns == returns and _takes(skill, _THING)]


def _telling(skills: SkillSet, text: str) -> Skill | None:
    """The skill that tells the user something, if it is there and takes ``text``."""
    skill = skills.get("log")
    return skill if skill is not None and _takes(skill, text) else None


def _takes(skill: Skill, text: str) -> bool:
    if skill.role or len(skill.arguments) != 1 or skill.arguments[0].type != "str":
        return False
    argument = skill.arguments[0]
    return argument.pattern is None and argument.minimum <= len(text) <= argument.maximum


def _value(argument: Argument) -> str:
    if argument.type == "str":
        return f"'{_THING}'"
    fits = [
        number
        for number in (_USUAL.get(argument.unit, 100.0), *_ROUND_NUMBERS)
        if argument.minimum <= number <= argument.maximum
        and (argument.type == "float" or number == int(number))
    ]
    return value_text(fits[0] if fits else argument.minimum)


def _call(skill: Skill) -> str:
    return f"{skill.name}({','.join(map(_value, skill.arguments))})"


def _words(skill: Skill) -> str:
    """What the call does, in words: ``move forward (distance 100 cm)``."""
    values = ", ".join(f"{a.name} {_value(a)} {a.unit}".rstrip() for a in skill.arguments)
    does = skill.description.split(";")[0]
    return f"{does} ({values})" if values else does
