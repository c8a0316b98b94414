"""Runs the commands that stand in docs/results.md and puts what they print below them.

A block of the document that begins with ``$ timely-llm`` holds a command and its output; a command
that goes on in the next line ends in a backslash. The document is written after each command, so
that what was there is lost only for commands that have run.

    python scripts/results.py [WORD...]    only commands whose text or heading has all WORDs
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCUMENT = Path(__file__).parents[1] / "docs" / "results.md"
_BLOCK = re.compile(r"```console\n(\$ timely-llm (?:.*\\\n)*.*\n)((?:(?!```).*\n)*)```\n")


@dataclass(frozen=True, slots=True)
class Block:
    """A command, the words after ``timely-llm``, and where its output stands in the document."""

    arguments: tuple[str, ...]
    heading: str
    start: int
    end: int


def blocks(text: str) -> Iterator[Block]:
    """The commands of a document, in order."""
    for match in _BLOCK.finditer(text):
        words = shlex.split(match[1].removeprefix("$ ").replace("\\\n", " "))
        headings = re.findall(r"^#+ (.*)$", text[: match.start()], re.MULTILINE)
        yield Block(tuple(words[1:]), headings[-1] if headings else "", *match.span(2))


def with_output(text: str, block: Block, output: str) -> str:
    """The document with ``output`` in place of what stood below the command."""
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    return text[: block.start] + "".join(f"{line}\n" for line in lines) + text[block.end :]


def main(words: list[str]) -> int:
    count = len(list(blocks(DOCUMENT.read_text(encoding="utf-8"))))
    for number in range(count):
        text = DOCUMENT.read_text(encoding="utf-8")
        block = list(blocks(text))[number]
        searched = f"{block.heading} {shlex.join(block.arguments)}"
        if not all(word in searched for word in words):
            continue
        print(f"timely-llm {shlex.join(block.arguments)}", flush=True)
        command = [sys.executable, "-m", "timely_llm.cli", *block.arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            return done.returncode
        text = with_output(text, block, done.stdout)
        DOCUMENT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
