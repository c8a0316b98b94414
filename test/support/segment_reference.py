"""For tests: where a whole plan is cut, read character for character. No tests here."""

from timely_llm.language.skills import SkillSet


def segments(text: str, skills: SkillSet) -> list[str]:
    """The segments of a whole plan, by the rule read character for character.

    The reference for ``plan_detector``; the last segment is the rest, if there is one.
    """
    result, start, quote = [], 0, None
    brackets: list[bool] = []
    for i, character in enumerate(text):
        if quote:
            quote = None if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "(":
            skill = skills.get(_word_before(text, i))
            brackets.append(skill is not None and skill.timed)
        elif (character == ")" and brackets and brackets.pop()) or (
            character in ";}"
            and (word := _word_before(text, i)) in skills
            and skills[word].timed
            and not skills[word].arguments
        ):
            result.append(text[start : i + 1])
            start = i + 1
    return result + ([text[start:]] if start < len(text) else [])


def _word_before(text: str, end: int) -> str:
    first = end
    while (
        first > 0
        and text[first - 1].isascii()
        and (text[first - 1].isalnum() or text[first - 1] == "_")
    ):
        first -= 1
    return text[first:end]
