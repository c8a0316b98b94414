"""The parameters of the Tello adapter: names, defaults, units, ranges."""

from __future__ import annotations

from robot_adapters.adapter import AdapterParameter as Parameter

SILENCE = 14.0  # s; after 15 s of silence the drone lands by itself

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("host", "192.168.10.1", "address of the drone"),
    Parameter("port", 8889, "its command port", "", 1, 65535),
    Parameter("local_port", 0, "our command port; 0: any free one", "", 0, 65535),
    Parameter("state_port", 8890, "our port for its state", "", 1025, 65535),
    Parameter("auto_takeoff", True, "it takes off before the first motion"),
    Parameter(
        "land_idle", 30.0, "it lands after so long without a call; 0: never", "s", 0.0, 600.0
    ),
    Parameter("land_after_plan", False, "it lands when a plan is over"),
    Parameter(
        "land_after_stop",
        10.0,
        "stopped, it hovers so long, then lands; -1: never",
        "s",
        -1.0,
        600.0,
    ),
    Parameter(
        "hover_time", 5.0, "without planner it hovers so long, then lands", "s", 0.0, SILENCE
    ),
    Parameter("land_on_exit", True, "it lands when the node ends"),
    Parameter("min_battery", 15, "below it, no motion is begun", "%", 0, 100),
    Parameter("link_timeout", 2.0, "a drone that is silent for longer is lost", "s", 0.3, 60.0),
    Parameter(
        "answer_timeout", 5.0, "a motion may take twice its expected time and this", "s", 0.1, 60.0
    ),
    Parameter("keepalive", 5.0, "how often it is kept in the air", "s", 0.1, SILENCE),
    Parameter("drift", 0.05, "what a way may be off, as a share of it", "", 0.0, 1.0),
    Parameter("perception", "", "module:class that looks at its picture; empty: nobody does"),
    Parameter("perception_config", "", "for the perception"),
)
