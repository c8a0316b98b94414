"""The console on which commands print tables and lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from timely_llm.validation.outgoing import visible

if TYPE_CHECKING:
    from rich.console import Console


def say(words: object, error: bool = False) -> None:
    """Print a line, wherever its words come from: a terminal obeys none of them."""
    print(visible(str(words)), file=sys.stderr if error else sys.stdout, flush=True)


def plain_console(width: int) -> Console:
    """Standard output, where text is printed as it is: no markup, no emoji, no highlighting.
    ``width``: characters of a table that no terminal limits."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, width=width)
    return console
