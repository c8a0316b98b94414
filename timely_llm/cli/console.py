"""The console on which commands print tables and lines."""

from __future__ import annotations

from rich.console import Console


def plain_console(width: int) -> Console:
    """Standard output, where text is printed as it is: no markup, no emoji, no highlighting.
    ``width``: characters of a table that no terminal limits."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, width=width)
    return console
