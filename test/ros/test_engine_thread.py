"""The watch over the engine's loop, on times given by hand; and the queue of the events for it."""

import threading
from collections.abc import Iterator

import pytest

from timely_llm.core import events as ev
from timely_llm.core.planner import Turn
from timely_llm.core.state import Counts
from timely_llm.protocols.messages import NO_PLAN, Execution, ExecutionState
from timely_llm.ros.engine_thread import MOST_REPORTS, EngineThread, Watch


def test_a_loop_that_turns_is_never_late() -> None:
    watch = Watch(2.0, 0.5)
    assert not any(watch.look(turn, 0.5 * turn) for turn in range(100))


def test_a_loop_that_does_not_is_late_after_the_limit() -> None:
    watch = Watch(2.0, 0.5)
    looks = [watch.look(7, 0.5 * i) for i in range(7)]
    assert looks == [False] * 5 + [True] * 2
    assert not watch.look(8, 3.5)


def test_a_time_in_which_nobody_looked_is_not_the_engine_s() -> None:
    watch = Watch(2.0, 0.5)
    watch.look(7, 0.0)
    assert not watch.look(7, 1000.0)
    assert not watch.look(7, 1000.5)
    assert watch.look(7, 1001.5)


class Busy:
    """Stands in for a planner in a long step: takes the events in once it is let go."""

    failure = None

    def __init__(self) -> None:
        self.engine, self.handled = self, 0
        self.begun, self.go_on, self.done = (threading.Event() for _ in range(3))

    def handle(self, event: ev.Event, now: float) -> list[ev.Command]:
        self.begun.set()
        self.go_on.wait()
        self.handled += 1
        if isinstance(event, ev.Activate):
            self.done.set()
        return []

    def run_once(self, now: float) -> Turn:
        return Turn([], False)

    def counts(self) -> Counts:
        return Counts()

    def close(self) -> None:
        pass


@pytest.fixture
def busy() -> Busy:
    return Busy()


@pytest.fixture
def thread(busy: Busy) -> Iterator[EngineThread]:
    made = EngineThread(lambda: busy, lambda: 0.0, lambda *_: None, lambda error: None)
    made.start()
    yield made
    busy.go_on.set()
    made.stop()
    made.join()


def report(robot_id: str, sequence: int) -> ev.ExecutionArrived:
    return ev.ExecutionArrived(robot_id, Execution(1, sequence, NO_PLAN, ExecutionState.IDLE))


def test_a_robot_that_floods_the_planner_with_reports_loses_its_own(
    busy: Busy, thread: EngineThread
) -> None:
    thread.put(ev.KeepTimes())
    busy.begun.wait()
    taken = [thread.put(report("r1", number)) for number in range(MOST_REPORTS + 5)]
    assert taken == [True] * MOST_REPORTS + [False] * 5
    assert not thread.put(ev.ReportInvalid("r1", 1, "a test"))
    assert thread.put(report("r2", 0)) and thread.put(ev.Activate())
    busy.go_on.set()
    busy.done.wait()
    assert busy.handled == MOST_REPORTS + 3
    assert thread.put(report("r1", 9999))
