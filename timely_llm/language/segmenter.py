"""Incremental text in, complete segments out. Detectors see each character once.

A detector's segments and its ``finish()``, joined, are the text it was fed, byte for byte.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Protocol

from timely_llm.language.skills import SkillSet

MAX_NAME = 32  # characters of a skill's name
_MARK = re.compile(r"""['"()]""")
_MARK_OR_END = re.compile(r"""['"();}]""")
_WORD_END = re.compile(r"\w+\Z", re.ASCII)
_CLOSERS = re.compile(r"""["')\]\u201d\u2019]*""")
_SENTENCE_END = re.compile(r"""[.!?]["')\]\u201d\u2019]*(\s|\Z)""")


class Detector(Protocol):
    """Cuts a growing text into segments."""

    def feed(self, text: str) -> list[str]:
        """Add text; returns the segments that it completes."""

    def finish(self) -> str:
        """The text is over: returns the rest, possibly empty."""


class SegmentDetector:
    """Ends a segment behind the closing parenthesis of each timed skill call in a plan.

    TimelyLLM, section 4.1. Quoted text never ends one, nor does the bracket of an untimed call. A
    timed call without parentheses is known to be whole, and ends one, at a ``;`` or ``}``.
    """

    def __init__(self, skills: SkillSet) -> None:
        self._call = call_pattern(skills)
        bare = [name for name in skills.callable_names if _ends_bare(skills, name)]
        self._bare = _names_before(bare, "[;}]")
        self._mark = _MARK_OR_END if bare else _MARK
        self._parts: list[str] = []  # of the segment being written
        self._word = ""  # the word that the text so far ends in, unquoted
        self._quote = ""  # the open quote
        self._open: list[bool] = []  # open parentheses: whether each is a timed call's

    def feed(self, text: str) -> list[str]:
        segments: list[str] = []
        start = position = 0  # of the segment and of the scan
        while True:
            if self._quote:
                end = text.find(self._quote, position) + 1
                if not end:
                    break
                self._quote = ""
                position = end
            match = self._mark.search(text, position)
            if match is None:
                self._keep_word(text, position)
                break
            end = match.end()
            if self._ends_segment(text, position, match[0], end):
                self._parts.append(text[start:end])
                segments.append("".join(self._parts))
                self._parts.clear()
                start = end
            self._word = ""
            position = end
        if start < len(text):
            self._parts.append(text[start:])
        return segments

    def _ends_segment(self, text: str, position: int, mark: str, end: int) -> bool:
        if mark in "(;}":
            # Only the word right before it counts; its beginning may have come with earlier text.
            first = max(position, end - MAX_NAME - 2)
            before = text[first:end] if first > position else self._word + text[position:end]
            if mark != "(":
                return self._bare.search(before) is not None
            self._open.append(self._call.search(before) is not None)
        elif mark == ")":
            return bool(self._open) and self._open.pop()
        else:
            self._quote = mark
        return False

    def _keep_word(self, text: str, position: int) -> None:
        match = _WORD_END.search(text, max(position, len(text) - MAX_NAME - 1))
        if match is None:
            self._word = self._word if position == len(text) else ""
        elif match.start() == position:
            self._word = (self._word + match[0])[-MAX_NAME - 1 :]
        else:
            self._word = match[0]

    def finish(self) -> str:
        rest = "".join(self._parts)
        self._parts.clear()
        self._open.clear()
        self._word = self._quote = ""
        return rest


class SentenceDetector:
    """Plain text: a sentence ends behind . ! or ?, with closing quotes or brackets, at a space."""

    def __init__(self, skills: SkillSet | None = None) -> None:
        self._parts: list[str] = []
        self._ended = False  # the text so far ends like a sentence: a space would confirm it

    def feed(self, text: str) -> list[str]:
        segments: list[str] = []
        start = position = 0
        if self._ended:
            position = _CLOSERS.match(text).end()  # type: ignore[union-attr]
            if position < len(text):
                self._ended = False
                if text[position].isspace():
                    start = self._cut(text, 0, position, segments)
        for match in _SENTENCE_END.finditer(text, position):
            if match[1]:
                start = self._cut(text, start, match.start(1), segments)
            else:
                self._ended = True
        if start < len(text):
            self._parts.append(text[start:])
        return segments

    def _cut(self, text: str, start: int, end: int, segments: list[str]) -> int:
        self._parts.append(text[start:end])
        segments.append("".join(self._parts))
        self._parts.clear()
        return end

    def finish(self) -> str:
        rest = "".join(self._parts)
        self._parts.clear()
        self._ended = False
        return rest


class ParagraphDetector:
    """Plain text: a paragraph ends behind the first blank line that follows its text."""

    def __init__(self, skills: SkillSet | None = None) -> None:
        self._parts: list[str] = []
        self._blank = True  # the current line so far
        self._text = False  # the segment has a line that is not blank

    def feed(self, text: str) -> list[str]:
        segments: list[str] = []
        start = line = 0
        while (end := text.find("\n", line) + 1) > 0:
            self._blank = self._blank and not text[line:end].strip()
            if self._blank and self._text:
                self._parts.append(text[start:end])
                segments.append("".join(self._parts))
                self._parts.clear()
                self._text = False
                start = end
            self._text = self._text or not self._blank
            self._blank = True
            line = end
        self._blank = self._blank and not text[line:].strip()
        if start < len(text):
            self._parts.append(text[start:])
        return segments

    def finish(self) -> str:
        rest = "".join(self._parts)
        self._parts.clear()
        self._blank, self._text = True, False
        return rest


DETECTORS: dict[str, Callable[[SkillSet], Detector]] = {
    "skill": SegmentDetector,
    "sentence": SentenceDetector,
    "paragraph": ParagraphDetector,
}


def make_detector(name: str, skills: SkillSet) -> Detector:
    """A new detector by name; an unknown name is a ``ValueError`` with the nearest known one."""
    if name not in DETECTORS:
        near = difflib.get_close_matches(name, DETECTORS, 1, 0)[0]
        raise ValueError(f"segment rule {name!r} is unknown: did you mean {near!r}?")
    return DETECTORS[name](skills)


def call_pattern(skills: SkillSet) -> re.Pattern[str]:
    """Matches the name and opening parenthesis of a timed call at the end of a text."""
    return _names_before([n for n in skills.callable_names if skills[n].timed], r"\(")


def _ends_bare(skills: SkillSet, name: str) -> bool:
    return skills[name].timed and not skills[name].arguments


def _names_before(names: list[str], mark: str) -> re.Pattern[str]:
    choices = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{choices}){mark}\Z" if names else r"(?!)", re.ASCII)


def segments(text: str, skills: SkillSet) -> list[str]:
    """The segments of a whole plan, by the rule read character for character.

    The reference for ``SegmentDetector``; the last segment is the rest, if there is one.
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
            and _ends_bare(skills, word)
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
