"""Answers cut into checked segments while they are written: the detector and the checker together.

What a segment is depends on the kind of robot: a plan's end behind timed calls, a text's behind
sentences or paragraphs. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from timely_llm.language.parser import Call, PlanChecker
from timely_llm.language.segmenter import SegmentDetector, make_detector
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.messages import SkillCall

READING_SPEED = 300.0  # words a minute (TimelyLLM, section 7.4.2)


class CheckedSegment(NamedTuple):
    """One complete segment. ``last``: the answer ends with it."""

    text: str
    calls: tuple[SkillCall, ...]
    last: bool


class Segmenter(Protocol):
    """Cuts one growing answer. Its next ``tokens_to_boundary`` tokens are known to complete
    no segment: 0 unless the answer is known beforehand."""

    tokens_to_boundary: int

    def feed(self, text: str, last: bool = False) -> Iterator[CheckedSegment]:
        """The segments that ``text`` completes, in order; with ``last`` the rest too, which may be
        empty. ``PlanError`` at the first one that is not sound."""


@dataclass(frozen=True, slots=True)
class TextKind:
    """A reader of plain text, in place of a robot with skills.

    ``segments`` is the rule: sentence, paragraph, or whole for an answer in one piece. Reading
    takes ``words_per_minute``; 0: no time.
    """

    kind: str
    segments: str = "sentence"
    words_per_minute: float = READING_SPEED

    def reading_time(self, text: str) -> float:
        """In s, from the number of words."""
        return len(text.split()) * 60 / self.words_per_minute if self.words_per_minute else 0.0


class PlanSegmenter:
    """A plan for a robot with ``skills``: every segment ends behind a timed call."""

    tokens_to_boundary = 0

    def __init__(self, skills: SkillSet) -> None:
        self._skills = skills
        self._detector = SegmentDetector(skills)
        self._checker = PlanChecker(skills)

    def feed(self, text: str, last: bool = False) -> Iterator[CheckedSegment]:
        pieces = self._detector.feed(text)
        if last:
            rest = self._detector.finish()
            if rest or not pieces:
                pieces.append(rest)
        for i, piece in enumerate(pieces, 1):
            ends = last and i == len(pieces)
            calls = self._checker.feed(piece)
            if ends:
                calls += self._checker.finish()
            yield CheckedSegment(piece, tuple(map(self._skill_call, calls)), ends)

    def _skill_call(self, call: Call) -> SkillCall:
        expected = self._skills[call.name].expected_duration(call.values)
        return SkillCall(call.name, call.arguments, (), expected)


class TextSegmenter:
    """Plain text by its kind's rule: each segment is one call, to read it. Every text is sound."""

    tokens_to_boundary = 0

    def __init__(self, kind: TextKind) -> None:
        self._kind = kind
        self._detector = None if kind.segments == "whole" else make_detector(kind.segments, None)
        self._parts: list[str] = []

    def feed(self, text: str, last: bool = False) -> Iterator[CheckedSegment]:
        pieces = self._pieces(text, last)
        for i, piece in enumerate(pieces, 1):
            call = SkillCall("read", expected_duration=self._kind.reading_time(piece))
            yield CheckedSegment(piece, (call,), last and i == len(pieces))

    def _pieces(self, text: str, last: bool) -> list[str]:
        if self._detector is None:
            self._parts.append(text)
            return ["".join(self._parts)] if last else []
        pieces = self._detector.feed(text)
        if last:
            rest = self._detector.finish()
            if rest or not pieces:
                pieces.append(rest)
        return pieces


def make_segmenter(kind: SkillSet | TextKind) -> Segmenter:
    """A new cutter for an answer to a robot of this kind."""
    return TextSegmenter(kind) if isinstance(kind, TextKind) else PlanSegmenter(kind)


MakeSegmenter = Callable[[SkillSet | TextKind, str], Segmenter]
"""Makes the cutter of a plan, from its robot's kind and its id."""
