"""The flight of one Tello: jobs one after another in a thread, on a link that is kept in step.

What takes time happens here; the adapter only looks. A job that is given up ends at once, and the
next one begins only when the drone has confirmed that it stands still and has answered whatever it
was still asked. Answers have no numbers: what ends a motion, a take-off or a landing is an ``ok``
and state lines from after it that show the same. The part that runs in the thread is marked.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from robot_adapters.tello.dead_reckoning import DeadReckoning, Step
from robot_adapters.tello.link import GivenUp, NoAnswer, TelloLink
from robot_adapters.tello.state import NEEDED, Line, airborne, moves
from timely_llm.language.skills import Value

TRIES = 3  # of what may be said twice: never of a motion
QUICK = 1.0  # s, for an answer that takes no motion
LATE = 5.0  # s, that an answer may be late
STATE_WAIT = 2.0  # s, from "command" to the first state line
STATE_LOOK = 0.05  # s, between two looks for it
STOP_AGAIN = 0.5  # s, after a stop that was answered, to come to rest
LINE_LOOK = 0.02  # s, between two looks for the next one
IDLE_WAKE = 0.5  # s, between two looks while there is nothing to do
TAKEOFF_HEIGHT = 0.8  # m, about; the drone tells its own afterwards
TAKEOFF_TIMEOUT, LANDING_TIMEOUT = 20.0, 20.0  # s; the SDK waits so long for a take-off
PARTING = 0.3  # s, between the first and the second time that the last landing is said
SETTLED = 0.3  # s after a motion's answer; a state line read before may be of its middle
_BATTERY = re.compile(r"[0-9]{1,3}")


Expected = Callable[[Mapping[str, Any]], bool]


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


class Rest:
    """Whether the state lines from ``since`` (s) on show that the drone is at rest, and nothing
    that ``expected`` does not hold of."""

    def __init__(self, link: TelloLink, since: float, expected: Expected = bool) -> None:
        self._link, self._since, self._expected = link, since, expected
        self._last: Line | None = None

    def seen(self) -> bool:
        """By the last two lines."""
        line, before = self._link.line, self._last
        if line is None or line.at <= self._since or line is before:
            return False
        self._last = line
        rests = before is not None and not moves(before.state, line.state)
        return rests and self._expected(line.state)


class Flight:
    """``flying`` is whether the drone may be in the air, by its commands and its state lines, which
    are believed in both directions. A stop is sent whatever it is. ``silent``: say nothing that
    keeps it in the air. ``trouble`` is why it is not connected.

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
            self._unsettled = "stop"
        self._wake.set()
        with contextlib.nullcontext() if moving else contextlib.suppress(OSError):
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
        line, silence = self.link.line, self.link.silence()
        if line is None or silence is None or silence >= QUICK or self.busy:
            return
        if self._in_use is None:
            return  # not met yet
        if line.at > self._moved_at + SETTLED:
            self._learn(line)

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
            answer = self._carry_out(
                step.command, 2 * expected + self._answer_timeout, earliest=expected / 2
            )
        except FlightError:
            self.dead_reckoning.interrupted(step.way)
            raise
        except GivenUp as given_up:
            if given_up.sent:
                self.dead_reckoning.interrupted(step.way)
            raise
        if answer == "ok":
            self.dead_reckoning.arrived(step.way)
            return
        if "error" in answer.lower() or "stop" in answer.lower():
            self.dead_reckoning.interrupted(step.way)
        self._refused = True
        raise FlightError(answer)

    def take_off(self) -> None:
        """Nothing where it flies already."""
        if not self.connected:
            raise FlightError(self.trouble)
        if self._flies():
            return
        self._rearm()
        self.flying = True  # until its state says otherwise, whatever it answers
        answer = self._carry_out(
            "takeoff", TAKEOFF_TIMEOUT, lambda state: airborne(state) is not False
        )
        if answer != "ok":
            self._refused = True
            raise FlightError(f"takeoff: {answer}")
        self.dead_reckoning.at_height(TAKEOFF_HEIGHT)
        if (line := self.link.line) and airborne(line.state):
            self._learn(line)

    def _flies(self) -> bool:
        """Where its lines have begun to say that it does not, they are heard to the end."""
        while self.flying and (line := self.link.line) and airborne(line.state) is False:
            self._learn(line)
            if self._abort.wait(STATE_LOOK):
                raise GivenUp(sent=False)
        return self.flying

    def land(self) -> None:
        """Nothing where it has landed already."""
        for _ in range(TRIES):
            if not self.flying:
                return
            timeout = LANDING_TIMEOUT if self.connected else LATE
            try:
                answer = self._carry_out("land", timeout, lambda state: not airborne(state))
            except FlightError:
                continue
            if answer == "ok" or airborne(self.link.state()) is False:
                self._landed()
                return
        raise FlightError("land: not confirmed")

    def _part(self) -> None:
        """The last landing: said twice, but not waited for."""
        for _ in range(2):
            with contextlib.suppress(NoAnswer):
                self.link.ask("land", PARTING, threading.Event())

    def _carry_out(
        self, command: str, timeout: float, expected: Expected = bool, earliest: float = 0.0
    ) -> str:
        """Send it once; ``ok``, or what the drone answers instead. An ``ok`` may be another
        command's: it counts when ``earliest`` s are over and the state lines from then on show a
        drone at rest and as ``expected``; an answer that comes until then counts instead."""
        try:
            answer = self._ask(command, timeout)
            rest = Rest(self.link, max(time.monotonic(), self.link.asked_at + earliest), expected)
            self.link.asking = True  # still: nothing is said in between
            while answer.lower() == "ok" and not rest.seen():
                if time.monotonic() >= self.link.asked_at + timeout:
                    self._missed(command)
                    raise FlightError(f"{command}: ok, but not done within {timeout:.3g} s")
                with contextlib.suppress(NoAnswer):
                    answer = self.link.listen(LINE_LOOK, self._abort)
        except GivenUp as given_up:
            if given_up.sent and command in ("takeoff", "land"):  # it may say so when it is done
                self._late_until = time.monotonic() + LATE
            raise
        finally:
            self.link.asking, self._moved_at = False, time.monotonic()
        return "ok" if answer.lower() == "ok" else answer

    def _ask(self, command: str, timeout: float) -> str:
        """Send it once; the answer, or a ``FlightError``."""
        try:
            return self.link.ask(command, timeout, self._abort)
        except NoAnswer as error:
            self._missed(command)
            raise FlightError(f"{command}: no answer within {timeout:.3g} s") from error
        except OSError as error:
            raise FlightError(f"{command}: {error.strerror or error}") from error

    def _missed(self, command: str) -> None:
        """Its answer has not come, and may still."""
        self._unsettled = "ask" if command == "land" else "stop"  # a landing may go on
        self._late_until = time.monotonic() + LATE

    def _rearm(self) -> None:
        """After an error some drones have left SDK mode."""
        if self._refused:
            self._refused = False
            self._ask("command", QUICK)

    # ---- the thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._end.is_set():
            try:
                if not self.connected and not self.silent:
                    self._connect()
                if self._unsettled and self.connected:
                    self._settle()
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
        while lacking := _lacking(line := self.link.line):
            if time.monotonic() >= deadline:
                self.flying = True  # for all that is known
                self.trouble = f"the drone at {self._where} answers, but its state {lacking}"
                return
            self._end.wait(STATE_LOOK)
        assert line is not None, "it lacks nothing"
        self.connected, self.trouble = True, ""
        self.met(line.state)

    def _settle(self) -> None:
        """After a motion that was given up or not answered: make sure that the drone stands still
        and that no answer is on its way. Until it has confirmed that, this is done again."""
        unsettled, self._unsettled = self._unsettled, ""
        try:
            if unsettled == "stop":
                self._stop()
            self._synchronise()
        except (NoAnswer, OSError):
            self._unsettled = self._unsettled or unsettled
            self.lose(f"the drone at {self._where} does not answer")
            return
        wait = self._late_until - time.monotonic()
        if wait > 0:
            with contextlib.suppress(NoAnswer):
                self.link.listen(wait, self._end)
            self._late_until = 0.0
        self.link.forget()

    def _stop(self) -> None:
        """An answer may be another command's: stop again while it moves, but not for ever, as it
        may be the wind that moves it."""
        deadline = time.monotonic() + TRIES * QUICK
        while time.monotonic() < deadline:
            self._insist("stop")
            rest, again = Rest(self.link, time.monotonic()), time.monotonic() + STOP_AGAIN
            while time.monotonic() < again:
                if rest.seen():
                    return
                self._end.wait(LINE_LOOK)

    def _insist(self, command: str) -> str:
        for _ in range(TRIES):
            with contextlib.suppress(NoAnswer):
                return self.link.ask(command, QUICK, self._end)
        raise NoAnswer

    def _synchronise(self) -> None:
        """Only a question is answered by a number: what comes before that is an old answer."""
        answer, deadline = self._insist("battery?"), time.monotonic() + LATE
        while not _BATTERY.fullmatch(answer):
            if time.monotonic() >= deadline:
                raise NoAnswer
            answer = self.link.listen(QUICK, self._end)
            self._late_until = 0.0

    # ---- what the state tells ------------------------------------------------------------------

    def met(self, state: Mapping[str, Any]) -> None:
        """The link is up, for the first time or again; ``state`` is what the drone tells."""
        if self._in_use is None or state["time"] < self._in_use:  # switched on since
            self.dead_reckoning.calibrate(state["yaw"])
        self._in_use = state["time"]
        self.flying = airborne(state) is not False
        self._grounded_since = None

    def _learn(self, line: Line) -> None:
        state = line.state
        height = state.get("h")
        self._in_use = state.get("time", self._in_use)
        self.dead_reckoning.observe(None if height is None else height / 100, state.get("yaw"))
        seems = airborne(state)
        if seems:
            self.flying = True  # by whatever command
        if seems is not False:
            self._grounded_since = None
            return
        if self._grounded_since is None:
            self._grounded_since = line.at
        if self.flying and line.at > self._grounded_since + QUICK:
            self._landed()  # by itself

    def _landed(self) -> None:
        self.flying = False
        self.dead_reckoning.at_height(0.0)


def _lacking(line: Line | None) -> str:
    """What is wrong with the last line as one to begin with, or empty."""
    if line is None or time.monotonic() - line.at >= QUICK:
        return "does not arrive"
    missing = ", ".join(name for name in NEEDED if name not in line.state)
    return f"lacks {missing}" if missing else ""
