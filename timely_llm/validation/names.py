"""What a name that nobody knows was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], form: str = "; {}", cutoff: float = 0.6) -> str:
    """``; did you mean 'x'?`` for the known name that is most like ``name``.

    Empty where none is alike: ``cutoff`` is how alike, from 0 (anything) to 1 (equal). ``form`` is
    what stands around the question.
    """
    near = difflib.get_close_matches(name, sorted(known), 1, cutoff)
    return form.format(f"did you mean {near[0]!r}?") if near else ""


def hint(name: str, known: Iterable[str], words: str = "known") -> str:
    """``; did you mean 'x'? (known: x, y)``, or only what is known where nothing is alike."""
    names = sorted(known)
    return f"{did_you_mean(name, names)} ({words}: {', '.join(names) or 'none'})"
