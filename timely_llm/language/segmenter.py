"""Answers cut into checked segments while they are written: where segments end, and their calls.

What a segment is depends on who gets it: a robot's plan ends a segment after each timed call, a
reader's text after each sentence or paragraph. Text comes in pieces of any size; each character is
looked at once. The segments, joined, are the text, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

from timely_llm.language.parser import Call, Parser
from timely_llm.language.skills import Reading, SkillSet
from timely_llm.protocols.messages import SkillCall
from timely_llm.validation.names import did_you_mean

MAX_NAME = 32  # characters of a skill's name
_MARK = re.compile(r"""['"()]""")
_MARK_OR_END = re.compile(r"""['"();}]""")
_WORD_END = re.compile(r"\w+\Z", re.ASCII)
_CLOSERS = "\"')]\u201d\u2019"
_SENTENCE_END = re.compile(r"""[.!?]["')\]\u201d\u2019]*(\s|\Z)""")


# ---- where segments end ------------------------------------------------------------------------


class Rule(Protocol):
    """Where segments end in one growing text."""

    def ends(self, text: str) -> list[int]:
        """The offsets in ``text``, which follows what came before, at which a segment ends."""
        ...


class Detector:
    """Cuts a growing text into segments by a rule; ``finish`` makes it ready for another text."""

    def __init__(self, make_rule: Callable[[], Rule]) -> None:
        self._make_rule = make_rule
        self._rule: Rule | None = None
        self._parts: list[str] = []  # of the segment being written

    def feed(self, text: str) -> list[str]:
        """Add text; returns the segments that it completes."""
        self._rule = self._rule or self._make_rule()
        segments, start = [], 0
        for end in self._rule.ends(text):
            segments.append("".join((*self._parts, text[start:end])))
            self._parts.clear()
            start = end
        if start < len(text):
            self._parts.append(text[start:])
        return segments

    def finish(self) -> str:
        """The text is over: returns the rest, possibly empty."""
        rest, self._rule = "".join(self._parts), None
        self._parts.clear()
        return rest

    def pieces(self, text: str, last: bool) -> Iterator[tuple[str, bool]]:
        """The segments that ``text`` completes; with ``last`` the rest too, which may be empty.
        Each with whether the whole text ends with it."""
        segments = self.feed(text)
        rest = self.finish() if last else ""
        if rest or (last and not segments):
            segments.append(rest)
        for i, segment in enumerate(segments, 1):
            yield segment, last and i == len(segments)


class TimedCalls:
    """A segment of a plan ends at the closing parenthesis of each timed skill call.

    TimelyLLM, section 4.1. Quoted text never ends one, nor does the bracket of an untimed call. A
    timed call without parentheses is known to be whole, and ends one, at a ``;`` or ``}``.
    """

    def __init__(self, skills: SkillSet) -> None:
        timed = [name for name in skills.callable_names if skills[name].timed]
        bare = [name for name in timed if not skills[name].arguments]
        self._call, self._bare = _names_before(timed, r"\("), _names_before(bare, "[;}]")
        self._mark = _MARK_OR_END if bare else _MARK
        self._word = ""  # the word that the text so far ends in, unquoted
        self._quote = ""  # the open quote
        self._open: list[bool] = []  # open parentheses: whether each is a timed call's

    def ends(self, text: str) -> list[int]:
        found: list[int] = []
        position = 0
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
            if self._ends_segment(text, position, match[0], match.end()):
                found.append(match.end())
            self._word = ""
            position = match.end()
        return found

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


def _names_before(names: list[str], mark: str) -> re.Pattern[str]:
    """Matches one of ``names`` and then ``mark`` at the end of a text."""
    choices = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{choices}){mark}\Z" if names else r"(?!)", re.ASCII)


class Sentences:
    """A sentence ends after . ! or ?, with closing quotes or brackets, before a space."""

    def __init__(self) -> None:
        self._ended = False  # the text so far ends like a sentence: a space would confirm it

    def ends(self, text: str) -> list[int]:
        found: list[int] = []
        position = 0
        if self._ended:
            while position < len(text) and text[position] in _CLOSERS:
                position += 1
            if position < len(text):
                self._ended = False
                if text[position].isspace():
                    found.append(position)
        for match in _SENTENCE_END.finditer(text, position):
            if match[1]:
                found.append(match.start(1))
            else:
                self._ended = True
        return found


class Paragraphs:
    """A paragraph ends after the first blank line that follows its text."""

    def __init__(self) -> None:
        self._blank = True  # the current line so far
        self._text = False  # the segment has a line that is not blank

    def ends(self, text: str) -> list[int]:
        found: list[int] = []
        line = 0
        while (end := text.find("\n", line) + 1) > 0:
            self._blank = self._blank and not text[line:end].strip()
            if self._blank and self._text:
                self._text = False
                found.append(end)
            self._text = self._text or not self._blank
            self._blank = True
            line = end
        self._blank = self._blank and not text[line:].strip()
        return found


class Whole:
    """An answer in one piece."""

    def ends(self, text: str) -> list[int]:
        return []


TEXT_RULES: dict[str, Callable[[], Rule]] = {
    "sentence": Sentences,
    "paragraph": Paragraphs,
    "whole": Whole,
}


def plan_detector(skills: SkillSet) -> Detector:
    """Cuts a plan after its timed calls."""
    return Detector(partial(TimedCalls, skills))


def text_detector(rule: str) -> Detector:
    """Cuts plain text; an unknown rule is a ``ValueError`` with the nearest known one."""
    if rule not in TEXT_RULES:
        likely = did_you_mean(rule, TEXT_RULES, ": {}", cutoff=0)
        raise ValueError(f"segment rule {rule!r} is unknown{likely}")
    return Detector(TEXT_RULES[rule])


# ---- checked segments --------------------------------------------------------------------------


class CheckedSegment(NamedTuple):
    """One complete segment. ``last``: the answer ends with it."""

    text: str
    calls: tuple[SkillCall, ...]
    last: bool


class Segmenter(Protocol):
    """Cuts one growing answer into checked segments."""

    @property
    def inside(self) -> bool:
        """Whether what comes next belongs to a value or a name."""
        ...

    def feed(self, text: str, last: bool = False) -> Iterable[CheckedSegment]:
        """The segments that ``text`` completes, in order; with ``last`` the rest too, which may be
        empty. ``PlanError`` at the first one that is not sound."""


class PlanSegmenter:
    """A plan for a robot with ``skills``: every segment ends after a timed call. What is written
    after the last one is read along, so that a plan that cannot be sound goes on for no token."""

    def __init__(self, skills: SkillSet) -> None:
        self._skills = skills
        self._detector = plan_detector(skills)
        self._checker = Parser(skills)
        self._read = 0  # characters of the segment being written that were checked
        self._calls: list[Call] = []  # of them

    @property
    def inside(self) -> bool:
        return self._checker.inside

    def feed(self, text: str, last: bool = False) -> Iterator[CheckedSegment]:
        taken = 0  # characters of ``text``
        for piece, ends in self._detector.pieces(text, last):
            new = piece[self._read :]
            taken += len(new)
            calls = self._calls + self._checker.feed(new)
            self._read, self._calls = 0, []
            if ends:
                calls += self._checker.finish()
            yield CheckedSegment(piece, tuple(map(self._skill_call, calls)), ends)
        if not last:
            self._calls += self._checker.feed(text[taken:])
            self._read += len(text) - taken

    def _skill_call(self, call: Call) -> SkillCall:
        expected = self._skills[call.name].expected_duration(call.values)
        return SkillCall(call.name, call.arguments, (), expected)


class TextSegmenter:
    """Plain text by its reader's rule: each segment is one call, to read it. All text is sound."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._detector = text_detector(reading.segments)

    @property
    def inside(self) -> bool:
        return False

    def feed(self, text: str, last: bool = False) -> Iterator[CheckedSegment]:
        for piece, ends in self._detector.pieces(text, last):
            call = SkillCall("read", expected_duration=self._reading.duration(piece))
            yield CheckedSegment(piece, (call,), ends)


def make_segmenter(kind: SkillSet) -> Segmenter:
    """A new segmenter for an answer to a robot or reader of this kind."""
    return TextSegmenter(kind.reading) if kind.reading else PlanSegmenter(kind)


MakeSegmenter = Callable[[SkillSet, str], Segmenter]
"""Makes the segmenter of a plan, from its robot's kind and its id."""
