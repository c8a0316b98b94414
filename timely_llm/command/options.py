"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

Namespace = Annotated[
    str, typer.Option(help="ROS namespace of the planner; its action is NAMESPACE/plan")
]
Timeout = Annotated[float, typer.Option(min=0.1, help="s to wait for the planner to answer")]


def parameters(items: Iterable[str], **given: Any) -> dict[str, Any]:
    """Parameters from NAME:=VALUE texts, values as in YAML (a JSON object stays a text), and from
    those ``given`` that are not empty."""
    import yaml

    found = {name: value for name, value in given.items() if value}
    for item in items:
        name, sign, text = item.partition(":=")
        if not sign:
            raise typer.BadParameter(f"{item!r}: must be NAME:=VALUE", param_hint="--param")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            words = " ".join(str(error).split())
            raise typer.BadParameter(f"{item!r}: {words}", param_hint="--param") from error
        found[name] = text if value is None or isinstance(value, dict) else value
    return found
