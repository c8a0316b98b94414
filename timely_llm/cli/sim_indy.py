"""``timely-llm sim-indy``: simulated controllers of Indy7 arms, in the environment of their SDK."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from timely_llm.cli.console import say
from timely_llm.cli.simulators import Host, SpeedUp, hosts, inject, tell


def sim_indy(
    count: Annotated[int, typer.Option(min=1, max=20, help="arms, each at its own address")] = 1,
    host: Host = "127.0.0.1",
    cell: Annotated[
        str, typer.Option(help="cell that each stands in: a name (config/cells), or a file")
    ] = "indy_sim",
    speed_up: SpeedUp = 1.0,
    tidy: Annotated[
        float,
        typer.Option(min=0, help="after so many s without a client, things are put back; 0: never"),
    ] = 3.0,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            help="[HOST/]KIND[=VALUE][@SECONDS]; kinds: hang, loss, mute, late, reject, drop, "
            "short, collision, violation, deaf, output, slip; repeatable; see docs/robots.md"
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option(help="print calls too")] = False,
) -> None:
    """Simulate Neuromeka Indy7 controllers by the SDK's own servicers, until Ctrl-C.

    Each serves the ports 20001 to 20004 of its address. Needs neuromeka: `make sim-indy`.
    """
    from robot_adapters.adapter import AdapterError
    from robot_adapters.indy7.adapter import find_cell
    from robot_adapters.indy7.simulated_controller import KINDS, SimIndy

    try:
        from robot_adapters.indy7.grpc_simulator import IndySimulator
    except ImportError as error:
        raise typer.BadParameter(
            f"needs the package neuromeka, in an environment of its own (`make indy`): {error}",
            param_hint="sim-indy",
        ) from error
    try:
        arms = {address: SimIndy(find_cell(cell), tidy=tidy) for address in hosts(host, count)}
    except AdapterError as error:
        raise typer.BadParameter(str(error), param_hint="--cell") from error
    inject(arms, fault or [], KINDS, "arm")

    with IndySimulator(list(arms.items()), speed_up) as simulator:
        say(f"simulated Indy7 arms: {', '.join(arms)}, ports 20001 to 20004")
        simulator.run(partial(tell, verbose))
