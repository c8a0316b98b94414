"""Files of instructions: a JSON list of ``{"kind", "scene", "instruction"}``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from timely_llm.language.loader import load_skill_set
from timely_llm.language.skills import SkillSet
from timely_llm.paths import share
from timely_llm.protocols.messages import LONGEST_REQUEST
from timely_llm.validation.reader import Document, Entry, file_text, items, known, parse_json, text

MOST = 100_000  # instructions of a file


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


@dataclass(frozen=True, slots=True)
class _File(Entry):
    instructions: Annotated[tuple[Instruction, ...], items(1, MOST)]


def read_instructions(path: Path) -> tuple[Instruction, ...]:
    """The file's list. ``FileError`` names what is wrong in it; ``OSError``: it is not there."""
    value = parse_json(file_text(path), str(path)).value
    listed = Document({"instructions": value}, str(path))
    return listed.read(_File, context=tuple(kinds())).instructions
