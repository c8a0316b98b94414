"""Answers known beforehand, read once for all goals that get them.

The real segmenter cuts and checks an answer token by token, and the real parser says in which order
a robot does its calls; what they say is kept and played back. Values and playback only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from timely_llm.language import instructions as code
from timely_llm.language.parser import Parser, PlanError
from timely_llm.language.segmenter import CheckedSegment, make_segmenter
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.messages import Segment, SkillCall
from timely_llm.simulation.trace import Task


@dataclass(frozen=True, slots=True)
class Action:
    """A call that the robot does: written in ``segment``, the ``index``-th of the text. It can be
    done once the robot has the segment ``needs``, which a loop back may make a later one; ``timed``
    counts for what a robot says is left to do."""

    call: SkillCall
    segment: int
    index: int
    timed: bool
    needs: int


@dataclass(frozen=True, slots=True)
class KnownPlan:
    """An answer, cut: ``cuts`` by token. ``actions`` in order, every condition taken as true; the
    plan is over behind them, once the robot has the segment ``ends``. ``tokens_to_boundary``: how
    many tokens from each one on complete no segment, and 0 after the last. ``ahead``: s of expected
    work before each action, and of all."""

    cuts: tuple[tuple[CheckedSegment, ...], ...]
    actions: Sequence[Action]
    ends: int
    calls: int
    tokens_to_boundary: tuple[int, ...] = field(init=False)
    ahead: Sequence[float] = field(init=False)

    def __post_init__(self) -> None:
        tokens_to_boundary = [0]
        for cuts in reversed(self.cuts):
            tokens_to_boundary.append(0 if cuts else tokens_to_boundary[-1] + 1)
        object.__setattr__(self, "tokens_to_boundary", tuple(reversed(tokens_to_boundary)))
        object.__setattr__(self, "ahead", work_before(self.actions))

    def grow(self, segment: Segment) -> None:
        """Nothing new: all of it is known."""


def work_before(actions: Sequence[Action]) -> list[float]:
    """Expected work in s before each action, and of all; only ``timed`` ones count."""
    times = (action.call.expected_duration if action.timed else 0.0 for action in actions)
    return [0.0, *accumulate(times)]


class Playback:
    """The segmenter of one goal whose answer is known: fed a token at a time, or told to ``skip``
    those that complete no segment."""

    __slots__ = ("_plan", "_token", "tokens_to_boundary")

    inside = False  # no grammar rules over it

    def __init__(self, plan: KnownPlan) -> None:
        self._plan = plan
        self._token = 0
        self.tokens_to_boundary = plan.tokens_to_boundary[0]

    def feed(self, text: str, last: bool = False) -> Sequence[CheckedSegment]:
        token = self._token
        self._token = token + 1
        self.tokens_to_boundary = self._plan.tokens_to_boundary[token + 1]
        return self._plan.cuts[token]

    def skip(self, tokens: int) -> None:
        """Over ``tokens`` that complete no segment."""
        self._token += tokens
        self.tokens_to_boundary -= tokens


def read(task: Task, kind: SkillSet) -> KnownPlan:
    """Cut and check the task's answer. ``ValueError`` that names the task if it is not sound."""
    if not task.tokens:
        raise ValueError(f"task {task.name!r} has no tokens")
    try:
        cuts = tuple(_cut(task.tokens, kind))
        segments = [cut.text for cuts_of_token in cuts for cut in cuts_of_token]
        if kind.reading:
            calls = [cut.calls[0] for cuts_of_token in cuts for cut in cuts_of_token]
            actions = tuple(Action(call, i, i, True, i) for i, call in enumerate(calls))
            return KnownPlan(cuts, actions, len(segments) - 1, len(calls))
        return _plan(cuts, segments, kind)
    except PlanError as error:
        raise ValueError(f"task {task.name!r}: {error}") from error


def _cut(tokens: Sequence[str], kind: SkillSet) -> Iterator[tuple[CheckedSegment, ...]]:
    segmenter = make_segmenter(kind)
    for i, token in enumerate(tokens, 1):
        yield tuple(segmenter.feed(token, i == len(tokens)))


def _plan(
    cuts: tuple[tuple[CheckedSegment, ...], ...], segments: Sequence[str], kind: SkillSet
) -> KnownPlan:
    parser, written = Parser(kind), []
    for segment in segments:
        parser.feed(segment)
        written.append(len(parser.program))
    parser.finish()
    written[-1] = len(parser.program)
    calls = [call for cuts_of_token in cuts for cut in cuts_of_token for call in cut.calls]
    actions, end = walk(parser.program, calls, written, kind.bounds.max_steps)
    return KnownPlan(cuts, tuple(actions), end, len(calls))


def walk(
    program: Sequence[code.Instruction],
    calls: Sequence[SkillCall],
    written: Sequence[float],
    limit: int,
) -> tuple[list[Action], int]:
    """What the robot does, and the segment behind which it is over. ``written``: instructions that
    are there with each segment."""
    actions: list[Action] = []
    loops: list[int] = []
    place = needs = 0
    while place < len(program) and len(actions) < limit:
        instruction = program[place]
        segment = bisect_right(written, place)
        needs = max(needs, segment)
        place += 1
        match instruction:
            case code.Invoke(skill, _, index):
                if skill.role == "replan":
                    return actions, needs
                actions.append(Action(calls[index], segment, index, skill.timed, needs))
            case code.Return() | code.Refuse():
                return actions, needs
            case code.Skip(True, int(target)):
                place = target
            case code.Repeat(count):
                loops.append(count)
            case code.Again(start):
                loops[-1] -= 1
                if loops[-1]:
                    place = start
                else:
                    loops.pop()
    return actions, len(written) - 1
