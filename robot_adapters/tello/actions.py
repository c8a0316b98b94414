"""What carries out each skill of a Tello: jobs of its ``Flight``, with eyes where it has some."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from robot_adapters.perception import (
    SIGHTS,
    Answers,
    Looks,
    Sighting,
    TakesPictures,
    View,
    reading,
    seen,
)
from robot_adapters.simulated.bodies import SCAN_STEP, STANDOFF, TELLO_CAMERA
from robot_adapters.tello.dead_reckoning import Step, Way
from robot_adapters.tello.drone_skills import LANDINGS, MOVE_LIMITS, TAKEOFFS, step_of
from robot_adapters.tello.flight import Flight, FlightError
from timely_llm.language.skills import Skill, Value

_SCANS = round(360 / SCAN_STEP)
_HALF_WIDTH = math.tan(math.radians(TELLO_CAMERA.horizontal / 2))
_HALF_HEIGHT = math.tan(math.radians(TELLO_CAMERA.vertical / 2))
Action = Callable[[], Value | None]


class Eyes:
    """A perception and what it saw last; used in the flight's thread. That it has the methods which
    the skills need was checked at the start."""

    def __init__(self, perception: object, flight: Flight) -> None:
        self.sightings: Sequence[Sighting] = ()
        self._perception = perception
        self._flight = flight

    @property
    def answers(self) -> bool:
        """Whether it can answer a probe."""
        return isinstance(self._perception, Answers)

    def look(self) -> Sequence[Sighting]:
        """What is in the picture now."""
        assert isinstance(self._perception, Looks)
        self.sightings = tuple(self._perception.look(self._view()))
        return self.sightings

    def sees(self, name: str) -> bool:
        """Whether the thing is in the picture."""
        return seen(self.look(), name) is not None

    def find(self, name: str) -> Sighting:
        """The nearest thing of that name; ``FlightError`` where none is in the picture."""
        if (sighting := seen(self.look(), name)) is None:
            raise FlightError(f"{name!r} is not in view")
        return sighting

    def answer(self, question: str) -> str:
        """What the perception answers to the question."""
        assert isinstance(self._perception, Answers)
        return self._perception.answer(question, self._view())

    def picture(self) -> None:
        """Take a picture."""
        assert isinstance(self._perception, TakesPictures)
        return self._perception.picture(self._view())

    def _view(self) -> View:
        link = self._flight.link
        return View(self._flight.dead_reckoning.pose, link.state(), link.sdk)


class Actions:
    """The actions of one drone by skill."""

    def __init__(self, flight: Flight, eyes: Eyes) -> None:
        self._flight, self._eyes = flight, eyes

    def action(self, skill: Skill, values: Sequence[Value], expected: float) -> Action:
        """What carries out a call; ``expected`` s is how long one of its motions takes."""
        name, eyes = skill.long_name, self._eyes
        if name in TAKEOFFS:
            return self._flight.take_off
        if name in LANDINGS:
            return self._flight.land
        step = step_of(name, values[0]) if values else None
        if step is not None:
            return lambda: self._flight.fly(step, expected)
        if name == "take_picture":
            return eyes.picture
        text = str(values[0])
        if name in SIGHTS:
            return lambda: reading(name, eyes.find(text))
        if skill.role == "probe":
            return lambda: eyes.answer(text)
        return {
            "is_visible": lambda: eyes.sees(text),
            "scan": lambda: self._scan(lambda: eyes.sees(text)),
            "scan_abstract": lambda: self._scan(lambda: self._answer(text)),
            "goto": lambda: self._go_to(text),
        }[name]

    def _answer(self, question: str) -> str | bool:
        answer = self._eyes.answer(question)
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
        sighting = self._eyes.find(name)
        angle = math.degrees(math.atan((1 - 2 * sighting.x) * _HALF_WIDTH))
        if abs(angle) >= 1:
            self._turn(angle)
        level = sighting.distance * math.cos(math.atan((1 - 2 * sighting.y) * _HALF_HEIGHT))
        keeps_in_view = 1.1 * abs(1 - 2 * sighting.y) * level  # nearer, it leaves the picture
        amount = min(MOVE_LIMITS[1], math.floor(100 * (level - max(STANDOFF, keeps_in_view))))
        if amount >= MOVE_LIMITS[0]:
            step = Step(f"forward {amount}", Way(ahead=amount / 100))
            self._flight.fly(step, 1.8 + 0.0072 * amount)

    def _turn(self, degrees: float) -> None:
        """Counterclockwise, if positive."""
        amount = round(abs(degrees))
        word = "ccw" if degrees > 0 else "cw"
        step = Step(f"{word} {amount}", Way(turn=math.copysign(amount, degrees)))
        self._flight.fly(step, 0.8 + 0.0165 * amount)
