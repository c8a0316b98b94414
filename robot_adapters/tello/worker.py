"""A thread that carries out one job after another on a Tello's link, and keeps the two in step.

A job that is given up ends at once, and the next one begins only when the drone has confirmed that
it stands still and whatever it still had to say has been said. What the jobs are is in
``flight.py``.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from robot_adapters.tello.link import GivenUp, NoAnswer, TelloLink
from timely_llm.language.skills import Value

TRIES = 3  # of what may be said twice: never of a motion
QUICK = 1.0  # s, for an answer that takes no motion
LATE = 5.0  # s, that an answer may be behind
STATE_WAIT = 2.0  # s, from "command" to the first state line
STATE_LOOK = 0.05  # s, between two looks for it
IDLE_WAKE = 0.5  # s, between two looks while there is nothing to do


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


class Worker:
    """``flying`` is whether the drone may be in the air: a stop must reach it then."""

    def __init__(self, link: TelloLink) -> None:
        self.link = link
        self.connected = self.flying = False
        self.silent = False  # say nothing that keeps the drone in the air
        self.trouble = f"the drone at {self._where} has not answered yet"
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._current: Job | None = None
        self._waiting: list[Job] = []
        self._abort = threading.Event()
        self._end = threading.Event()
        self._unsettled = ""  # "stop": it may be moving; "ask": it may still answer something
        self._refused = False
        self._late_until = 0.0
        self._thread = threading.Thread(target=self._work, name="tello", daemon=True)

    def met(self, state: Mapping[str, Any]) -> None:
        """The link is up, for the first time or again; ``state`` is what the drone tells."""

    # ---- for any thread: returns at once -------------------------------------------------------

    def submit(self, name: str, action: Callable[[], Value | None]) -> Job:
        """Have it done after whatever is to be done before."""
        job = Job(name, action)
        with self._lock:
            self._waiting.append(job)
        self._jobs.put(job)
        return job

    def job(self) -> Job | None:
        """What is being done, or is next."""
        with self._lock:
            return self._current or (self._waiting[0] if self._waiting else None)

    def halt(self) -> None:
        """Give up all jobs and tell the drone to stop; the thread sees to it that it has."""
        with self._lock:
            for job in (self._current, *self._waiting):
                if job is not None:
                    job.given_up = True
            moving = self._current is not None or self.flying
            self._abort.set()
            self._unsettled = "stop" if moving else self._unsettled
        self._jobs.put(None)
        if moving:
            self.link.send("stop")

    def lose(self, words: str) -> None:
        """The link counts as lost until the drone answers again."""
        self.connected, self.trouble = False, words

    def end(self) -> None:
        """Let go of the drone."""
        self._end.set()
        self._jobs.put(None)
        self.link.close()

    # ---- for the jobs --------------------------------------------------------------------------

    def ask(self, command: str, timeout: float) -> str:
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

    def rearm(self) -> None:
        """Behind an error some drones have left SDK mode."""
        if self._refused:
            self._refused = False
            self.ask("command", QUICK)

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
        try:
            job = self._jobs.get(timeout=IDLE_WAKE)
        except queue.Empty:
            return
        if job is None:
            return
        with self._lock:
            self._waiting.remove(job)
            if not job.given_up:
                self._current = job
                self._abort.clear()
        if self._current is job:
            self._do(job)
        else:
            job.error = "given up"
        with self._lock:
            self._current = None
        job.done.set()

    def _do(self, job: Job) -> None:
        try:
            job.value = job.action()
        except GivenUp:
            job.error = "given up"
        except FlightError as error:
            job.error = str(error)
        except Exception as error:
            job.error = f"{type(error).__name__}: {error}"

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

    @property
    def _where(self) -> str:
        return f"{self.link.address[0]}:{self.link.address[1]}"

    def _hears(self) -> bool:
        """Whether the state stream runs."""
        self.link.state()
        silence = self.link.silence()
        return silence is not None and silence < QUICK

    def _settle(self) -> None:
        """After a motion that was given up or not answered: the drone stands still, and whatever
        it still had to say has been said."""
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
            try:
                return self.link.ask(command, QUICK, self._end)
            except NoAnswer:
                continue
        raise NoAnswer

    def _synchronise(self) -> None:
        """Only a question is answered by a number: what comes before that is of the past."""
        answer = self._insist("battery?")
        while not answer.isdecimal():
            answer = self.link.listen(QUICK, self._end)
            self._late_until = 0.0
