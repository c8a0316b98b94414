"""The eyes of a simulated drone: a perception that reads a world file instead of a picture. Pure.

It knows where the drone believes to be, not where the simulation has it: as good as dead reckoning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from robot_adapters.adapter import AdapterError
from robot_adapters.perception import Pose, Sighting, View
from robot_adapters.simulated.adapter import world_file
from robot_adapters.simulated.bodies import TELLO_CAMERA
from robot_adapters.simulated.world import World
from timely_llm.validation.names import hint

_KEYS = ("world", "x", "y", "yaw")


class SimulatedCamera:
    """``config`` is ``world=house, x=0.4, y=0.6, yaw=90``: the world, and where the drone starts in
    it (m, degrees counterclockwise). A picture is the list of what is in view."""

    def __init__(self, robot_id: str, config: str) -> None:
        values = _read(config)
        self.world = World.from_file(world_file(values.get("world", "house")))
        x, y, yaw = (_number(key, values.get(key, "0")) for key in ("x", "y", "yaw"))
        self.start = Pose(x, y, 0.0, yaw)
        self.pictures: list[Sequence[Sighting]] = []

    def look(self, view: View) -> Sequence[Sighting]:
        """What is in view of the drone where it believes to be."""
        return TELLO_CAMERA.sightings(self.world, self.start.moved(*view.pose.values))

    def answer(self, question: str, view: View) -> str:
        """The name of a thing in view that fits the question, or ``False``."""
        names = (sighting.name for sighting in self.look(view))
        return next((name for name in names if self.world[name].fits(question)), "False")

    def picture(self, view: View) -> None:
        """Keep what is in view in ``pictures``."""
        self.pictures.append(self.look(view))


def _read(config: str) -> dict[str, str]:
    values = {}
    for item in filter(None, map(str.strip, config.split(","))):
        key, sign, value = map(str.strip, item.partition("="))
        if not sign:
            raise AdapterError(f"{item!r}: must be KEY=VALUE")
        if key not in _KEYS:
            raise AdapterError(f"unknown key {key!r}{hint(key, _KEYS)}")
        values[key] = value
    return values


def _number(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise AdapterError(f"{key} is {text!r}: must be a number")
    return value
