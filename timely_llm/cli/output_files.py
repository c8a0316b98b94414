"""Files that a command is to write, looked at before it does anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import typer


def check_writable(files: Mapping[str, Path | None]) -> None:
    """``BadParameter`` for the first file, by option, that cannot be written."""
    for option, file in files.items():
        if file is None:
            continue
        place = file if file.exists() else file.absolute().parent
        if not os.access(place, os.W_OK):
            raise typer.BadParameter(f"cannot write {file}", param_hint=option)


def make_folder(option: str, folder: Path | None) -> None:
    """``BadParameter`` for a folder that is not there and cannot be made."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise typer.BadParameter(str(error), param_hint=option) from error
