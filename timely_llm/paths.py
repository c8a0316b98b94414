"""Paths of the files that come with the package, in a checkout and in an install space. Pure."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def share(*parts: str) -> Path:
    """The path of a file or folder such as ``share("config", "prompts")``; it need not exist.

    In a checkout next to the package; else in ``<prefix>/share/timely_llm`` of the install space
    that holds the package. ``FileNotFoundError`` where there is neither.
    """
    root = _PACKAGE.parent
    if (root / "package.xml").is_file():
        return root.joinpath(*parts)
    for prefix in root.parents:
        folder = prefix / "share" / "timely_llm"
        if folder.is_dir():
            return folder.joinpath(*parts)
    raise FileNotFoundError(f"no share/timely_llm beside or above {_PACKAGE}")


def data(name: str) -> Path:
    """The path of a file of published data, which is part of the package."""
    return _PACKAGE / "data" / name
