"""Files of instructions: a JSON list of ``{"kind", "scene", "instruction"}``, or YAML that also
says what each asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import PlainValidator

from timely_llm.evaluation.outcome import Step, steps_of
from timely_llm.language.loader import load_skill_set
from timely_llm.language.skills import SkillSet
from timely_llm.paths import share
from timely_llm.protocols.messages import LONGEST_REQUEST
from timely_llm.validation.reader import (
    NOT_IN_FILE,
    Document,
    Entry,
    Fault,
    as_text,
    choice,
    file_text,
    items,
    known,
    number,
    parse_json,
    parse_yaml,
    text,
)

MOST = 100_000  # instructions of a file
HALVES = ("open", "held_out")
"""Of the instructions that come with the package: planners may be improved by looking at the first;
nothing was ever chosen by looking at the second."""
FAMILIES = (
    *("motion", "loops", "steps", "search", "condition", "question", "refusal", "limits"),
    *("vague", "clumsy", "language", "replan"),
)


def kinds() -> dict[str, SkillSet]:
    """The kinds of robots that come with the package, by name."""
    paths = sorted(share("config", "skills").glob("*.yaml"))
    return {skills.kind: skills for skills in map(load_skill_set, paths)}


@dataclass(frozen=True, slots=True)
class Instruction(Entry):
    """What a robot of a kind is told. The ``scene`` is what it sees, as in prompts; empty: what it
    sees where it starts in the world of its kind."""

    kind: Annotated[str, known(lambda context: context)]
    instruction: Annotated[str, text(LONGEST_REQUEST)]
    scene: Annotated[str, text(LONGEST_REQUEST, 0)] = ""


def _alternatives(value: Any) -> tuple[tuple[Step, ...], ...]:
    """Steps, or a list of them."""
    texts = value if isinstance(value, list) else [value]
    if not texts:
        raise Fault("has 0 entries: must have at least 1")
    try:
        return tuple(steps_of(as_text(each)) for each in texts)
    except ValueError as error:
        raise Fault(str(error)) from None


def _pattern(value: Any) -> str:
    written = as_text(value, 200)
    try:
        re.compile(written)
    except (re.error, RecursionError) as error:
        raise Fault(f"is {written!r}: is no regular expression: {error}") from None
    return written


_Coordinate = Annotated[float, number(-10, 10, " m")]
_Place = Annotated[tuple[_Coordinate, _Coordinate, _Coordinate], items(3, 3)]


@dataclass(frozen=True, slots=True)
class After(Entry):
    """A plan that has failed before: what was done of it, what failed (empty: the check refused
    it) and why; calls are in long names."""

    plan: Annotated[str, text()]
    done: Annotated[tuple[Annotated[str, text()], ...], items()]
    failure: Annotated[str, text()]
    failed: Annotated[str, text(4000, 0)] = ""


@dataclass(frozen=True, slots=True)
class Judged(Instruction):
    """An instruction with what should happen: one of ``expect``, and something said that matches
    ``says``. ``plan`` is one, in long names, that does it; ``unseen`` are things that the scene
    does not show."""

    family: Annotated[str, choice(*FAMILIES)] = ""
    plan: Annotated[str, text()] = ""
    expect: Annotated[tuple[tuple[Step, ...], ...], PlainValidator(_alternatives)] = ()
    says: Annotated[str, PlainValidator(_pattern)] = ""
    unseen: Mapping[str, _Place] = field(default_factory=dict)
    after: After | None = None
    half: Annotated[str, NOT_IN_FILE] = ""

    def checked(self, context: object) -> Judged:
        for key in ("family", "plan", "expect"):
            if not getattr(self, key):
                raise Fault(f"{key!r} is missing")
        return self


@dataclass(frozen=True, slots=True)
class _File(Entry):
    instructions: Annotated[tuple[Instruction, ...], items(1, MOST)]


@dataclass(frozen=True, slots=True)
class _JudgedFile(Entry):
    instructions: Annotated[tuple[Judged, ...], items(1, MOST)]


def read_instructions(path: Path) -> tuple[Instruction, ...]:
    """The file's list. ``FileError`` names what is wrong in it; ``OSError``: it is not there."""
    value = parse_json(file_text(path), str(path)).value
    listed = Document({"instructions": value}, str(path))
    return listed.read(_File, context=tuple(kinds())).instructions


def read_judged(path: Path) -> tuple[Judged, ...]:
    """As ``read_instructions``, of a YAML file whose ``instructions`` say what they ask for."""
    document = parse_yaml(file_text(path), str(path))
    read = document.read(_JudgedFile, context=tuple(kinds())).instructions
    return tuple(replace(each, half=path.stem) for each in read)


def bundled(half: str) -> tuple[Judged, ...]:
    """One of the ``HALVES`` that come with the package."""
    return read_judged(share("config", "instructions", f"{half}.yaml"))


def spread(asked: Sequence[Judged], most: int) -> tuple[Judged, ...]:
    """At most so many of them, each family and kind in its share."""
    if len(asked) <= most:
        return tuple(asked)
    order = sorted(asked, key=lambda each: (each.family, each.kind))
    return tuple(order[len(order) * number // most] for number in range(most))
