"""The flight of one Tello: jobs one after another in a thread, on a link that is kept in step.

What takes time happens here; the adapter only looks. A job that is given up ends at once, and the
next one begins only when the drone has confirmed that it stands still and has answered whatever it
was still asked. The part that runs in the thread is marked.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from robot_adapters.tello.dead_reckoning import DeadReckoning, Step
from robot_adapters.tello.link import GivenUp, NoAnswer, TelloLink
from timely_llm.language.skills import Value

TRIES = 3  # of what may be said twice: never of a motion
QUICK = 1.0  # s, for an answer that takes no motion
LATE = 5.0  # s, that an answer may be late
STATE_WAIT = 2.0  # s, from "command" to the first state line
STATE_LOOK = 0.05  # s, between two looks for it
IDLE_WAKE = 0.5  # s, between two looks while there is nothing to do
TAKEOFF_HEIGHT = 0.8  # m, about; the drone tells its own afterwards
TAKEOFF_TIMEOUT, LANDING_TIMEOUT = 20.0, 20.0  # s; the SDK waits so long for a take-off
PARTING = 0.3  # s, between the first and the second time that the last landing is said
SETTLED = 0.3  # s after a motion's answer; a state line read before may be of its middle
_GROUND = 20  # cm; the range finder reads 10 or less on the ground


class FlightError(Exception):
    """The drone, or the link to it, refused or failed; in its own words where it has some."""


@dataclass(slots=True)
class Job:
    """Something for the thread to do. ``done`` is set last."""

    name: str
    action: Callable[[], Value | None]
    value: Value | None = None
    error: str = ""
    given_up: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class Flight:
    """``flying`` is whether the drone may be in the air: a stop must reach it then. ``silent``: say
    nothing that keeps it in the air. ``trouble`` is why it is not connected.

    A motion may take ``answer_timeout`` s more than twice its expected time to be answered.
    """

    def __init__(
        self, link: TelloLink, dead_reckoning: DeadReckoning, answer_timeout: float
    ) -> None:
        self.link, self.dead_reckoning = link, dead_reckoning
        self.connected = self.flying = self.silent = False
        self._where = f"{link.address[0]}:{link.address[1]}"
        self.trouble = f"the drone at {self._where} has not answered yet"
        self._answer_timeout = answer_timeout
        self._grounded_since: float | None = None
        self._in_use: int | None = None  # s, how long its motors have run
        self._moved_at = -math.inf
        self._lock = threading.Lock()  # of the jobs
        self._current: Job | None = None
        self._waiting: deque[Job] = deque()
        self._wake = threading.Event()
        self._abort = threading.Event()
        self._end = threading.Event()
        self._unsettled = ""  # "stop": it may be moving; "ask": it may still answer something
        self._refused = False
        self._late_until = 0.0
        threading.Thread(target=self._work, name="tello", daemon=True).start()

    # ---- for any thread: returns at once -------------------------------------------------------

    def submit(self, name: str, action: Callable[[], Value | None]) -> Job:
        """Do it after all jobs that were submitted before."""
        job = Job(name, action)
        with self._lock:
            self._waiting.append(job)
        self._wake.set()
        return job

    @property
    def busy(self) -> bool:
        """Whether a job is in progress or next."""
        with self._lock:
            return self._current is not None or bool(self._waiting)

    def halt(self) -> None:
        """Give up all jobs and tell the drone to stop; the thread sees to it that it does."""
        with self._lock:
            for job in (self._current, *self._waiting):
                if job is not None:
                    job.given_up = True
            moving = self._current is not None or self.flying
            self._abort.set()
            self._unsettled = "stop" if moving else self._unsettled
        self._wake.set()
        if moving:
            self.link.send("stop")

    def lose(self, words: str) -> None:
        """The link counts as lost until the drone answers again."""
        self.connected, self.trouble = False, words

    def end(self) -> None:
        """Let go of the drone."""
        self._end.set()
        self._wake.set()
        self.link.close()

    def observe(self) -> None:
        """Learn pose and flight from the drone's state, unless a job is in progress."""
        state, silence = self.link.state(), self.link.silence()
        if not state or silence is None or silence >= QUICK or self.busy:
            return
        if time.monotonic() - silence > self._moved_at + SETTLED:
            self._learn(state)

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
        self._rearm()
        try:
            answer = self._ask(step.command, 2 * expected + self._answer_timeout)
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
        self._rearm()
        self.flying = True  # unless it says otherwise: a stop must reach it
        answer = self._ask("takeoff", TAKEOFF_TIMEOUT)
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
                answer = self._ask("land", LANDING_TIMEOUT if self.connected else LATE)
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
                with contextlib.suppress(NoAnswer):
                    self.link.ask("land", PARTING, threading.Event())
                    return

    def _ask(self, command: str, timeout: float) -> str:
        """Send it once; the answer, or a ``FlightError``."""
        try:
            return self.link.ask(command, timeout, self._abort)
        except GivenUp as given_up:
            if given_up.sent and command in ("takeoff", "land"):  # it may say so when it is done
                self._late_until = time.monotonic() + LATE
            raise
        except NoAnswer as error:
            self._unsettled = "ask" if command == "land" else "stop"  # a landing may go on
            self._late_until = time.monotonic() + LATE
            raise FlightError(f"{command}: no answer within {timeout:.3g} s") from error
        except OSError as error:
            raise FlightError(f"{command}: {error.strerror or error}") from error

    def _rearm(self) -> None:
        """After an error some drones have left SDK mode."""
        if self._refused:
            self._refused = False
            self._ask("command", QUICK)

    # ---- the thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._end.is_set():
            try:
                if self._unsettled:
                    self._settle()
                if not self.connected and not self.silent:
                    self._connect()
                self._next_job()
            except GivenUp:  # the link is closed
                self._end.wait(IDLE_WAKE)
            except Exception as error:  # nothing may end this thread
                self.lose(f"{type(error).__name__}: {error}")
                self._end.wait(IDLE_WAKE)

    def _next_job(self) -> None:
        if not self._waiting:
            self._wake.wait(IDLE_WAKE)
        self._wake.clear()
        with self._lock:
            if not self._waiting:
                return
            job = self._waiting.popleft()
            given_up = job.given_up
            if not given_up:
                self._current = job
                self._abort.clear()
        try:
            if given_up:
                raise GivenUp
            job.value = job.action()
        except (GivenUp, FlightError) as error:
            job.error = str(error)
        except Exception as error:
            job.error = f"{type(error).__name__}: {error}"
        with self._lock:
            self._current = None
        job.done.set()

    def _connect(self) -> None:
        """Into SDK mode, and to the first state line; ``trouble`` says what is missing."""
        try:
            self.link.ask("command", QUICK, self._end)
            command = self.link.port_command()
            answer = self.link.ask(command, QUICK, self._end) if command else "ok"
        except NoAnswer:
            self.trouble = f"the drone at {self._where} does not answer"
        except OSError as error:
            self.trouble = f"the drone at {self._where}: {error.strerror or error}"
            self._end.wait(IDLE_WAKE)
        else:
            if answer.lower() == "ok":
                self._first_state()
            else:
                self.trouble = f"the drone at {self._where} refuses {command!r}: {answer}"
                self._end.wait(IDLE_WAKE)

    def _first_state(self) -> None:
        deadline = time.monotonic() + STATE_WAIT
        while not self._hears():
            if time.monotonic() >= deadline:
                self.trouble = f"the drone at {self._where} answers, but its state does not arrive"
                return
            self._end.wait(STATE_LOOK)
        self.met(self.link.state())
        self.connected, self.trouble = True, ""

    def _hears(self) -> bool:
        """Whether the state stream runs."""
        self.link.state()
        silence = self.link.silence()
        return silence is not None and silence < QUICK

    def _settle(self) -> None:
        """After a motion that was given up or not answered: make sure that the drone stands still
        and that no answer is on its way."""
        stop, self._unsettled = self._unsettled == "stop", ""
        try:
            if stop and self.flying:
                self._insist("stop")
            self._synchronise()
        except (NoAnswer, OSError):
            self.lose(f"the drone at {self._where} does not answer")
        wait = self._late_until - time.monotonic()
        if wait > 0:
            with contextlib.suppress(NoAnswer):
                self.link.listen(wait, self._end)
            self._late_until = 0.0
        self.link.forget()

    def _insist(self, command: str) -> str:
        for _ in range(TRIES):
            with contextlib.suppress(NoAnswer):
                return self.link.ask(command, QUICK, self._end)
        raise NoAnswer

    def _synchronise(self) -> None:
        """Only a question is answered by a number: what comes before that is an old answer."""
        answer = self._insist("battery?")
        while not answer.isdecimal():
            answer = self.link.listen(QUICK, self._end)
            self._late_until = 0.0

    # ---- what the state tells ------------------------------------------------------------------

    def met(self, state: Mapping[str, Any]) -> None:
        """The link is up, for the first time or again; ``state`` is what the drone tells."""
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
