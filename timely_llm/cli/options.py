"""Options that several commands have, and checks of what they name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

Namespace = Annotated[
    str, typer.Option(help="ROS namespace of the planner; its action is NAMESPACE/plan")
]
Timeout = Annotated[float, typer.Option(min=0.1, help="s to wait for the planner to answer")]


def parameters(items: Iterable[str], **given: Any) -> dict[str, Any]:
    """Parameters from NAME:=VALUE texts, values as in YAML (a JSON object stays a text), and from
    those ``given`` that are not empty. ``BadParameter`` for a value that ROS has no type for."""
    from timely_llm.validation.reader import yaml_value

    found = {name: value for name, value in given.items() if value}
    for item in items:
        name, sign, text = item.partition(":=")
        if not sign or not name:
            raise typer.BadParameter(f"{item!r}: must be NAME:=VALUE", param_hint="--param")
        try:
            value = yaml_value(text)
        except ValueError as error:
            raise typer.BadParameter(f"{item!r:.80}: {error}", param_hint="--param") from error
        value = text if value is None or isinstance(value, dict) else value
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, bool | int | float | str) for part in parts):
            raise typer.BadParameter(
                f"{item!r:.80}: must be true, false, a number, a text or a list of these",
                param_hint="--param",
            )
        found[name] = value
    return found


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
