"""The parameters of the Indy7 adapter: names, defaults, units, ranges. Pure."""

from __future__ import annotations

from robot_adapters.adapter import AdapterParameter as Parameter

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("host", "192.168.0.10", "address of the controller"),
    Parameter("index", 0, "which of its robots: 0 by ports 20001 on, 1 by 30001 on", "", 0, 1),
    Parameter("cell", "", "cell by name (config/cells), or a file; it must be given"),
    Parameter("speed", 15.0, "of all motions, of the arm's own limit", "%", 1.0, 100.0),
    Parameter("acceleration", 100.0, "of all motions", "%", 1.0, 900.0),
    Parameter(
        "stop_category", 2, "0: brakes at once, 1: slows down and brakes, 2: slows down", "", 0, 2
    ),
    Parameter("call_timeout", 1.0, "the deadline of every call", "s", 0.05, 30.0),
    Parameter("link_timeout", 2.0, "a controller silent for longer is lost", "s", 0.2, 60.0),
    Parameter("start_timeout", 2.0, "a move that was taken must begin within", "s", 0.1, 60.0),
)
