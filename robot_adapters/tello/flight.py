"""The flight of one Tello: its moves, take-off and landing, and what it tells of them.

What takes time happens here, in the worker's thread; the adapter in ``adapter.py`` only looks.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Mapping
from typing import Any

from robot_adapters.tello.dead_reckoning import DeadReckoning
from robot_adapters.tello.drone_skills import Step
from robot_adapters.tello.link import GivenUp, NoAnswer, TelloLink
from robot_adapters.tello.worker import LATE, QUICK, TRIES, FlightError, Worker

TAKEOFF_HEIGHT = 0.8  # m, about; the drone tells its own afterwards
TAKEOFF_TIMEOUT, LANDING_TIMEOUT = 20.0, 20.0  # s; the SDK waits so long for a take-off
PARTING = 0.3  # s, between the first and the second time that the last landing is said
SETTLED = 0.3  # s behind a motion's answer; a state line read before may be of its middle
_GROUND = 20  # cm; the range finder reads 10 or less on the ground


class Flight(Worker):
    """``answer_timeout`` s more than twice its expected time may a motion take to be answered."""

    def __init__(
        self, link: TelloLink, dead_reckoning: DeadReckoning, answer_timeout: float
    ) -> None:
        super().__init__(link)
        self.dead_reckoning = dead_reckoning
        self._answer_timeout = answer_timeout
        self._grounded_since: float | None = None
        self._in_use: int | None = None  # s, how long its motors have run
        self._moved_at = -math.inf
        self._thread.start()

    # ---- for the adapter -----------------------------------------------------------------------

    def observe(self) -> Mapping[str, Any]:
        """The drone's state; what it tells of pose and flight is taken over."""
        state = self.link.state()
        silence = self.link.silence()
        if state and silence is not None and silence < QUICK and self.job() is None:
            told_at = time.monotonic() - silence
            if told_at > self._moved_at + SETTLED:
                self._learn(state)
        return state

    def close(self, land: bool, wait: float) -> None:
        """Halt, land if it flies, let go; for at most about ``wait`` s."""
        with contextlib.suppress(OSError):
            self.halt()
        if land and self.flying:
            job = self.submit("landing", self._part)
            if not job.done.wait(wait) and self.flying:
                with contextlib.suppress(OSError):
                    self.link.send("land")
        self.end()

    # ---- jobs: in the thread -------------------------------------------------------------------

    def fly(self, step: Step, expected: float) -> None:
        """A move or turn, with a take-off before it where it is needed; once, never again."""
        self.take_off()
        if reason := self.dead_reckoning.outside(step.way):
            raise FlightError(reason)
        self.rearm()
        try:
            answer = self.ask(step.command, 2 * expected + self._answer_timeout)
        except FlightError:
            self.dead_reckoning.interrupted(step.way)
            raise
        except GivenUp as given_up:
            if given_up.sent:
                self.dead_reckoning.interrupted(step.way)
            raise
        self._moved_at = time.monotonic()
        if answer.lower() == "ok":
            self.dead_reckoning.arrived(step.way)
            return
        if "error" in answer.lower() or "stop" in answer.lower():
            self.dead_reckoning.interrupted(step.way)
        self._refused = True
        raise FlightError(answer)

    def take_off(self) -> None:
        """Nothing where it flies already."""
        if self.flying:
            return
        self.rearm()
        self.flying = True  # unless it says otherwise: a stop must reach it
        answer = self.ask("takeoff", TAKEOFF_TIMEOUT)
        if answer.lower() != "ok":
            self.flying, self._refused = False, True
            raise FlightError(f"takeoff: {answer}")
        self.dead_reckoning.at_height(TAKEOFF_HEIGHT)
        if not on_ground(state := self.link.state()):
            self._learn(state)

    def land(self) -> None:
        """Nothing where it has landed already."""
        for _ in range(TRIES):
            if not self.flying:
                return
            try:
                answer = self.ask("land", LANDING_TIMEOUT if self.connected else LATE)
            except FlightError:
                continue
            if answer.lower() == "ok" or on_ground(self.link.state()):
                self._landed()
                return
        raise FlightError("land: not confirmed")

    def _part(self) -> None:
        """The last landing: said, and said again, but not waited for."""
        for _ in range(2):
            if self.flying:
                try:
                    self.link.ask("land", PARTING, threading.Event())
                    return
                except NoAnswer:
                    continue

    # ---- what the state tells ------------------------------------------------------------------

    def met(self, state: Mapping[str, Any]) -> None:
        in_use = int(state.get("time", 0))
        if self._in_use is None or in_use < self._in_use:  # switched on since
            self.dead_reckoning.calibrate(float(state.get("yaw", 0)))
        self._in_use = in_use
        self.flying = not on_ground(state)

    def _learn(self, state: Mapping[str, Any]) -> None:
        height, yaw = state.get("h"), state.get("yaw")
        self._in_use = int(state.get("time", 0))
        self.dead_reckoning.observe(
            None if height is None else float(height) / 100, None if yaw is None else float(yaw)
        )
        if self.flying and on_ground(state):
            self._grounded_since = self._grounded_since or time.monotonic()
            if time.monotonic() - self._grounded_since > QUICK:
                self._landed()  # by itself
        else:
            self._grounded_since = None

    def _landed(self) -> None:
        self.flying, self._grounded_since = False, None
        self.dead_reckoning.at_height(0.0)


def on_ground(state: Mapping[str, Any]) -> bool:
    """By both its height, counted from where it took off, and its range finder (cm)."""
    return float(state.get("h", 0)) <= 0 and float(state.get("tof", 0)) <= _GROUND
