"""The thread that runs the planner's loop. Nobody else touches the planner's state: events come in
through one queue, commands go out through one function."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import fmean

from timely_llm.core import events as ev
from timely_llm.core.planner import Planner, Turn
from timely_llm.core.state import Counts
from timely_llm.protocols.messages import ErrorCode

MOST_REPORTS = 1000  # of one robot that may wait for the loop
_IDLE_WAIT = 0.5  # s; with simulated time the wall clock says nothing about when to wake
_SNAPSHOT_PERIOD = 0.1  # s, while the engine is busy


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the loop shows to other threads. Step time and our own share of it are means in s."""

    counts: Counts = field(default_factory=Counts)
    step_time: float = 0.0
    overhead: float = 0.0


class Watch:
    """Whether a loop still turns, judged by its count of turns. A time in which nobody looked
    counts for at most two ``period``: then this whole process hung, or was stopped. Times in s."""

    def __init__(self, limit: float, period: float) -> None:
        self._limit, self._period = limit, period
        self._turns, self._looked, self._silent = -1, 0.0, 0.0

    def look(self, turns: int, now: float) -> bool:
        """True: it has not turned for longer than the limit."""
        if turns != self._turns:
            self._turns, self._silent = turns, 0.0
        else:
            self._silent += min(now - self._looked, 2.0 * self._period)
        self._looked = now
        return self._silent > self._limit


_Received = tuple[float, ev.Event] | None  # when, s, and what; None ends the loop


class EngineThread(threading.Thread):
    """Runs a planner until ``stop``. ``make`` builds it inside the thread, where its engine lives;
    ``clock`` gives the planner's time in s; ``carry_out`` gets, in this thread, the commands of
    each turn and whether the engine rests now.

    After a failure of the loop every goal is ended, then ``failed`` is called.
    """

    def __init__(
        self,
        make: Callable[[], Planner],
        clock: Callable[[], float],
        carry_out: Callable[[list[ev.Command], bool], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        super().__init__(name="engine", daemon=True)
        self._make, self._clock, self._carry_out, self._failed = make, clock, carry_out, failed
        self._inbox: queue.SimpleQueue[_Received] = queue.SimpleQueue()
        self._reports: Counter[str] = Counter()  # in the inbox, by robot
        self._lock = threading.Lock()
        self._built: Future[Planner] = Future()
        self._step_times: deque[float] = deque(maxlen=100)
        self._overheads: deque[float] = deque(maxlen=100)
        self._shown = 0.0
        self.turns = 0  # of the loop so far; an engine whose step does not end adds none
        self.snapshot = Snapshot()

    def put(self, event: ev.Event) -> bool:
        """Hand ``event``, received now, to the planner; from any thread, returns at once. False: it
        is a report of a robot of which ``MOST_REPORTS`` wait already, and is dropped."""
        if isinstance(event, ev.ExecutionArrived | ev.ReportInvalid):
            with self._lock:
                if self._reports[event.robot_id] >= MOST_REPORTS:
                    return False
                self._reports[event.robot_id] += 1
        self._inbox.put((self._clock(), event))
        return True

    def stop(self) -> None:
        """Finish the step under way, close the engine and end; from any thread."""
        self._inbox.put(None)

    @property
    def planner(self) -> Planner:
        """Waits until the planner is built; raises what building it raised."""
        return self._built.result()

    def run(self) -> None:
        try:
            planner = self._make()
        except BaseException as error:
            self._built.set_exception(error)
            return
        self._built.set_result(planner)
        try:
            self._loop(planner)
        except BaseException as error:
            self._give_up(planner, error)
        finally:
            planner.engine.close()

    def _loop(self, planner: Planner) -> None:
        wait = 0.0
        while True:
            for received in self._events(wait):
                if received is None:
                    return
                at, event = received
                self._carry_out(planner.handle(event, at), False)
                self._taken(event)
            self.turns += 1
            begun = time.perf_counter()
            turn = planner.run_once(self._clock())
            self._carry_out(turn.commands, not turn.busy)
            if planner.failure is not None:
                raise planner.failure
            if turn.busy:
                self._measured(planner, turn.duration, time.perf_counter() - begun - turn.duration)
            self._show(planner, turn)
            wait = 0.0 if turn.busy else self._until(turn)

    def _measured(self, planner: Planner, step_time: float, overhead: float) -> None:
        self._step_times.append(step_time)
        self._overheads.append(overhead)

    def _events(self, wait: float) -> list[_Received]:
        """All events there are; waits up to ``wait`` s for the first one."""
        events = []
        with suppress(queue.Empty):
            events.append(self._inbox.get(wait > 0, wait or None))
            while True:
                events.append(self._inbox.get_nowait())
        return events

    def _taken(self, event: ev.Event) -> None:
        if isinstance(event, ev.ExecutionArrived | ev.ReportInvalid):
            with self._lock:
                self._reports[event.robot_id] -= 1
                if not self._reports[event.robot_id]:
                    del self._reports[event.robot_id]

    def _until(self, turn: Turn) -> float:
        if turn.wake_at is None:
            return _IDLE_WAIT
        return min(_IDLE_WAIT, max(1e-3, turn.wake_at - self._clock()))

    def _show(self, planner: Planner, turn: Turn) -> None:
        now = time.monotonic()
        if turn.busy and now < self._shown + _SNAPSHOT_PERIOD:
            return
        self._shown = now
        self.snapshot = Snapshot(
            planner.counts(),
            fmean(self._step_times) if self._step_times else 0.0,
            fmean(self._overheads) if self._overheads else 0.0,
        )

    def _give_up(self, planner: Planner, error: BaseException) -> None:
        words = f"the engine failed: {error}"
        try:
            event = ev.Deactivate(words, ErrorCode.ENGINE_FAILED)
            self._carry_out(planner.handle(event, self._clock()), True)
        finally:
            self._failed(error)
