"""Where the files that come with the package lie, in a checkout and in an install space. Pure."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def share(*parts: str) -> Path:
    """The path of a file or folder such as ``share("config", "prompts")``; it need not exist.

    Beside the package, where that is a checkout; else ``<prefix>/share/timely_llm`` of the install
    space that the package lies in. ``FileNotFoundError`` where there is neither.
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
    """The path of a file of published data, which lies inside the package wherever that is."""
    return _PACKAGE / "data" / name
