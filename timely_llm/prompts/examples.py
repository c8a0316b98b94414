"""Example plans made of a robot's own skills, for prompts. Pure.

A model that has never seen a robot learns the plan language from them, so each is a plan that the
robot would accept: within the limits of its skills and the bounds of its skill set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from timely_llm.language.parser import REFUSAL
from timely_llm.language.skills import Argument, Example, Skill, SkillSet, value_literal, value_text

_THING = "apple"
_ROUND_NUMBERS = (100.0, 90.0, 45.0, 20.0, 10.0, 5.0, 2.0, 1.0, 0.5)
_USUAL = {"deg": 90.0, "s": 2.0}
_UNITS = {"deg": "degrees", "s": "seconds"}


@lru_cache(maxsize=64)
def examples(skills: SkillSet) -> tuple[Example, ...]:
    """The skill set's own examples; where it has none, one for each form of plan that the skills
    and bounds allow."""
    if skills.examples:
        return skills.examples
    makers: tuple[Callable[[SkillSet], Example | None], ...] = (
        _metres,
        _steps,
        _condition,
        _question,
        _loop,
        _sum,
        _below,
        _refusal,
    )
    return tuple(example for make in makers if (example := make(skills)) is not None)


def _metres(skills: SkillSet) -> Example | None:
    """A distance in another unit than the skill's."""
    chosen = _measured(skills, "cm")
    if chosen is None or not chosen.arguments[0].minimum <= 150 <= chosen.arguments[0].maximum:
        return None
    return Example(f"{_capital(_verb(chosen))} 1.5 m.", f"{chosen.name}(150)")


def _steps(skills: SkillSet) -> Example | None:
    chosen = _motions(skills)[: skills.bounds.max_statements]
    if not chosen:
        return None
    words = ", then ".join(map(_words, reversed(chosen)))
    return Example(f"{_capital(words)}.", ";".join(map(_call, reversed(chosen))))


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
    words = " and ".join(map(_words, chosen))
    return Example(f"{_capital(words)}, three times.", f"3{{{';'.join(map(_call, chosen))}}}")


def _sum(skills: SkillSet) -> Example | None:
    """More than one call may be: two do it."""
    chosen = _measured(skills, "cm")
    if chosen is None or skills.bounds.max_statements < 2:
        return None
    most = chosen.arguments[0].maximum
    rest = most - most % 100 - 200
    if most % 100 or rest < chosen.arguments[0].minimum or rest <= 0:
        return None
    words = f"{_capital(_verb(chosen))} {value_text((most + rest) / 100)} m."
    first, second = value_text(most), value_text(rest)
    return Example(words, f"{chosen.name}({first});{chosen.name}({second})")


def _below(skills: SkillSet) -> Example | None:
    """Less than the first motion takes."""
    chosen = [skill for skill in _motions(skills) if len(skill.arguments) == 1]
    if not chosen:
        return None
    argument = chosen[0].arguments[0]
    half = argument.minimum // 2
    if argument.choices or argument.type == "bool" or half <= 0:
        return None
    least = f"{argument.name} is at least {value_text(argument.minimum)} {argument.unit}".rstrip()
    return _refused(skills, f"{_capital(_does(chosen[0], [value_text(half)]))}.", least)


def _refusal(skills: SkillSet) -> Example | None:
    return _refused(skills, "Bake a cake.", "I have no skill for that")


def _measured(skills: SkillSet, unit: str) -> Skill | None:
    """The first motion whose only argument is a number of this unit."""
    for skill in _motions(skills):
        if len(skill.arguments) == 1 and skill.arguments[0].unit == unit:
            return None if skill.arguments[0].choices else skill
    return None


def _refused(skills: SkillSet, instruction: str, reason: str) -> Example | None:
    if len(reason) > skills.bounds.max_string:
        return None
    return Example(instruction, f"{REFUSAL}('{reason}')")


def _motions(skills: SkillSet) -> list[Skill]:
    """Up to two timed skills that take no texts but of a few choices, unlike ones if there are."""
    found = [
        skill
        for skill in skills.skills
        if skill.timed
        and not skill.role
        and all(a.choices or a.type != "str" for a in skill.arguments)
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
    if argument.choices:
        return text in argument.choices
    return argument.pattern is None and argument.minimum <= len(text) <= argument.maximum


def _value(argument: Argument) -> str:
    if argument.choices:
        return value_literal(argument.choices[0])
    if argument.type == "bool":
        return "True"
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
    return _does(skill, [_value(argument) for argument in skill.arguments])


def _does(skill: Skill, values: Sequence[str]) -> str:
    """What the call does, in words: ``move forward 100 cm``; of several arguments with their
    names, ``drive (speed 2 m/s, light True)``."""
    given = list(zip(skill.arguments, values, strict=True))
    if len(given) == 1 and given[0][0].unit:
        argument, value = given[0]
        return f"{_verb(skill)} {value} {_UNITS.get(argument.unit, argument.unit)}"
    texts = ", ".join(f"{a.name} {value} {a.unit}".rstrip() for a, value in given)
    return f"{_verb(skill)} ({texts})" if texts else _verb(skill)


def _verb(skill: Skill) -> str:
    return skill.description.split(";")[0] or skill.long_name


def _capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"
