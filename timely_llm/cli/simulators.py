"""What the commands that simulate robots share: addresses, faults, what they print."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from timely_llm.cli.console import say

if TYPE_CHECKING:
    from robot_adapters.simulated.faults import Fault, Kind

Host = Annotated[str, typer.Option(help="address of the first; the others count up")]
SpeedUp = Annotated[float, typer.Option(min=0.1, max=100, help="their time runs so much faster")]


class Robot(Protocol):
    """A simulated robot."""

    def inject(self, fault: Fault, now: float) -> None: ...


def hosts(first: str, count: int) -> list[str]:
    """So many IPv4 addresses from the first one on; a wrong one is a wrong option."""
    try:
        address = ipaddress.IPv4Address(first)
        return [str(address + i) for i in range(count)]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--host") from error


def tell(verbose: bool, address: str, at: float, mark: str, text: str) -> None:
    """Print an entry of a robot's log; unless ``verbose``, only what happened by itself."""
    if verbose or mark == "*":
        say(f"{address} {at:9.3f} s {mark} {text}")


def inject(
    robots: Mapping[str, Robot], faults: Iterable[str], kinds: Mapping[str, Kind], what: str
) -> None:
    """Give each of ``robots``, by address, its faults: those of its address, and those without
    one. ``what`` the robots are is said of an address that nobody has."""
    from robot_adapters.simulated.faults import FaultError, parse_fault

    for text in faults:
        where, sign, words = text.rpartition("/")
        if sign and where not in robots:
            known = ", ".join(robots)
            raise typer.BadParameter(f"no {what} at {where!r} ({known})", param_hint="--fault")
        try:
            wanted = parse_fault(words, kinds)
        except FaultError as error:
            raise typer.BadParameter(str(error), param_hint="--fault") from error
        for address, robot in robots.items():
            if address == where or not sign:
                robot.inject(wanted, 0.0)
