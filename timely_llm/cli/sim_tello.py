"""``timely-llm sim-tello``: simulated drones that speak the protocol of real ones."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from timely_llm.cli.console import say
from timely_llm.cli.simulators import Host, SpeedUp, hosts, inject, tell


def sim_tello(
    count: Annotated[int, typer.Option(min=1, max=100, help="drones, each at its own address")] = 1,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="command port of each")] = 8889,
    speed_up: SpeedUp = 1.0,
    seed: Annotated[int, typer.Option(help="of noise; each drone adds its number")] = 0,
    noise: Annotated[float, typer.Option(min=0, max=10, help="scale of noise; 0: none")] = 1.0,
    battery: Annotated[float, typer.Option(min=0, max=100, help="charge at the start, %")] = 100.0,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            help="[HOST/]KIND[=VALUE][@SECONDS]; kinds: silence, late, joystick, imu, motor, loss, "
            "battery; repeatable; docs/robots.md explains them"
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option(help="print commands and answers too")] = False,
) -> None:
    """Simulate Ryze Tello drones by the SDK's own protocol, until Ctrl-C.

    Commands come to port 8889 of each address, the state goes to port 8890 of who sent "command".
    """
    from robot_adapters.tello.simulated_drone import KINDS, SimTello
    from robot_adapters.tello.udp_simulator import TelloSimulator

    addresses = enumerate(hosts(host, count))
    drones = {address: SimTello(seed + i, battery, noise) for i, address in addresses}
    inject(drones, fault or [], KINDS, "drone")

    places = [(address, port, drone) for address, drone in drones.items()]
    with TelloSimulator(places, speed_up, partial(tell, verbose)) as simulator:
        say(f"simulated Tellos: {', '.join(drones)}, port {port}")
        simulator.run()
