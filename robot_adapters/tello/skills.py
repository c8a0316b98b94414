"""What each skill has a Tello do: jobs of its ``Flight``, with eyes where there are some."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from robot_adapters.perception import Sighting, View, reading, seen
from robot_adapters.simulated.bodies import SCAN_STEP, STANDOFF, TELLO_CAMERA
from robot_adapters.tello.drone_skills import (
    LANDINGS,
    MOVE_LIMITS,
    SIGHTS,
    TAKEOFFS,
    Step,
    Way,
    step_of,
)
from robot_adapters.tello.flight import Flight
from robot_adapters.tello.worker import FlightError
from timely_llm.language.skills import Skill, Value

_SCANS = round(360 / SCAN_STEP)
_HALF_WIDTH = math.tan(math.radians(TELLO_CAMERA.horizontal / 2))
_HALF_HEIGHT = math.tan(math.radians(TELLO_CAMERA.vertical / 2))
Action = Callable[[], Value | None]


class Eyes:
    """A perception and what it saw last; used in the flight's thread."""

    def __init__(self, perception: Any, flight: Flight) -> None:
        self.perception = perception
        self.sightings: Sequence[Sighting] = ()
        self._flight = flight

    def look(self) -> Sequence[Sighting]:
        self.sightings = tuple(self.perception.look(self.view()))
        return self.sightings

    def view(self) -> View:
        link = self._flight.link
        return View(self._flight.dead_reckoning.pose, link.state(), link.sdk)


class Skills:
    """The actions of one drone by skill."""

    def __init__(self, flight: Flight, eyes: Eyes) -> None:
        self._flight, self._eyes = flight, eyes

    def action(self, skill: Skill, values: Sequence[Value], expected: float) -> Action:
        """What carries out a call; ``expected`` s is how long one of its motions takes."""
        name = skill.long_name
        if name in TAKEOFFS:
            return self._flight.take_off
        if name in LANDINGS:
            return self._flight.land
        step = step_of(name, values[0]) if values else None
        if step is not None:
            return lambda: self._flight.fly(step, expected)
        if name == "take_picture":
            return lambda: self._eyes.perception.picture(self._eyes.view())
        text = str(values[0])
        if name in SIGHTS:
            return lambda: reading(name, self._in_view(text))
        if skill.role == "probe":
            return lambda: self._eyes.perception.answer(text, self._eyes.view())
        return {
            "is_visible": lambda: seen(self._eyes.look(), text) is not None,
            "scan": lambda: self._scan(lambda: seen(self._eyes.look(), text) is not None),
            "scan_abstract": lambda: self._scan(lambda: self._answer(text)),
            "goto": lambda: self._go_to(text),
        }[name]

    def _in_view(self, name: str) -> Sighting:
        if (sighting := seen(self._eyes.look(), name)) is None:
            raise FlightError(f"{name!r} is not in view")
        return sighting

    def _answer(self, question: str) -> str | bool:
        answer = self._eyes.perception.answer(question, self._eyes.view())
        return False if answer.strip() in ("", "False") else answer

    def _scan(self, find: Callable[[], Value]) -> Value:
        """Turn by steps until ``find`` has something; once around if it never has."""
        self._flight.take_off()
        for _ in range(_SCANS):
            if found := find():
                return found
            self._turn(SCAN_STEP)
        return False

    def _go_to(self, name: str) -> None:
        """Face the thing and fly toward it, up to a safe distance from it."""
        self._flight.take_off()
        sighting = self._in_view(name)
        angle = math.degrees(math.atan((1 - 2 * sighting.x) * _HALF_WIDTH))
        if abs(angle) >= 1:
            self._turn(angle)
        ahead = _level(sighting) - max(STANDOFF, _keeps_in_view(sighting))
        amount = min(MOVE_LIMITS[1], math.floor(100 * ahead))
        if amount >= MOVE_LIMITS[0]:
            step = Step(f"forward {amount}", Way(ahead=amount / 100))
            self._flight.fly(step, 1.8 + 0.0072 * amount)

    def _turn(self, degrees: float) -> None:
        """Counterclockwise, if positive."""
        amount = round(abs(degrees))
        step = Step(
            f"{'ccw' if degrees > 0 else 'cw'} {amount}", Way(turn=math.copysign(amount, degrees))
        )
        self._flight.fly(step, 0.8 + 0.0165 * amount)


def _level(sighting: Sighting) -> float:
    """Its distance along the ground, in m."""
    return sighting.distance * math.cos(math.atan((1 - 2 * sighting.y) * _HALF_HEIGHT))


def _keeps_in_view(sighting: Sighting) -> float:
    """m ahead of it at which its centre is just in the picture still."""
    return 1.1 * abs(1 - 2 * sighting.y) * _level(sighting)
