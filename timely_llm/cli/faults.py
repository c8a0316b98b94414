"""Faults that are asked of simulated robots: ``[HOST/]KIND[=VALUE][@SECONDS]``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import typer


def inject(
    robots: Mapping[str, Any], faults: Iterable[str], parse: Callable[[str], Any], what: str
) -> None:
    """Give each of ``robots``, by address, the faults that are its own or everybody's. ``parse``
    raises ``FaultError``; ``what`` they are is said of an address that nobody has."""
    from robot_adapters.simulated.faults import FaultError

    for text in faults:
        where, sign, words = text.rpartition("/")
        if sign and where not in robots:
            known = ", ".join(robots)
            raise typer.BadParameter(f"no {what} at {where!r} ({known})", param_hint="--fault")
        try:
            wanted = parse(words)
        except FaultError as error:
            raise typer.BadParameter(str(error), param_hint="--fault") from error
        for address, robot in robots.items():
            if address == where or not sign:
                robot.inject(wanted, 0.0)
