"""An adapter at fault: what it raises or answers that cannot be, and a robot that does not halt."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from executor_rig import CANCEL, REPLACE, A, B, Desk

from robot_adapters.adapter import Progress
from timely_llm.protocols.messages import NO_PLAN

LONE = "\ud800"  # half a character, which no message can hold
MOTION = ["0 start go(9)"]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def broken(*arguments: Any) -> Any:
    raise RuntimeError("out of order")


def goes_on(desk: Desk) -> None:
    """Whatever happened, the robot is whole again: the next plan runs to its end."""
    vars(desk.robot).pop("poll", None)
    desk.told()
    desk.send(0, "go(1);", last=True, plan=B)
    desk.run(desk.now + 3.0)
    assert desk.told()[-2] == "PLAN_RETURNED"


# ---- answers that cannot be ----------------------------------------------------------------------


@pytest.mark.parametrize("way", [math.nan, math.inf, -1.0, None, "far", True, 10**400])
def test_a_travel_that_cannot_be_moves_nothing(desk: Desk, way: Any) -> None:
    desk.robot.travel = lambda call: way
    desk.send(0, "go(9)")
    assert desk.told()[-2].startswith("FAILED go(9): go: adapter: travel: ")
    assert desk.robot.log[1:] == ["0 halt"]


@pytest.mark.parametrize("why", [True, 7, b"wall"])
def test_a_check_that_answers_no_text_moves_nothing(desk: Desk, why: Any) -> None:
    desk.robot.check = lambda call: why
    desk.send(0, "go(9)")
    assert desk.told()[-2].startswith("FAILED go(9): go: adapter: check: ")
    assert desk.robot.log[1:] == ["0 halt"]


IMPOSSIBLE = {
    "none": None,
    "no progress": (True, None),
    "done": Progress(1),
    "error": Progress(True, error=None),
    "value": Progress(True, [1]),
    "value nan": Progress(True, math.nan),
    "value large": Progress(True, 10**5000),
    "value lone": Progress(True, LONE),
    "elapsed nan": Progress(False, elapsed=math.nan),
    "elapsed large": Progress(False, elapsed=1e308),
    "remaining large": Progress(False, remaining=1e308),
    "elapsed inf": Progress(False, elapsed=math.inf),
    "elapsed negative": Progress(False, elapsed=-1.0),
    "elapsed text": Progress(False, elapsed="1"),
    "remaining nan": Progress(False, remaining=math.nan),
    "remaining inf": Progress(False, remaining=math.inf),
    "remaining none": Progress(False, remaining=None),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_a_progress_that_cannot_be_fails_the_call_and_halts(desk: Desk, case: str) -> None:
    desk.robot.poll = lambda now: IMPOSSIBLE[case]
    desk.send(0, "go(9)")
    desk.run(1.0)
    (failed,) = (line for line in desk.told() if line.startswith("FAILED"))
    assert failed.startswith("FAILED go(9): go: adapter: poll: ")
    assert desk.robot.log[1:] == [*MOTION, "0 halt"]
    goes_on(desk)


def test_a_call_that_is_overdue_has_nothing_remaining(desk: Desk) -> None:
    """The simplest estimate, what was expected less what has passed, falls below 0."""
    desk.robot.poll = lambda now: Progress(False, elapsed=now, remaining=-2.0)
    desk.send(0, "go(9)")
    desk.run(1.0)
    assert {report.skill_remaining for report in desk.reports[2:]} == {0.0}


@pytest.mark.parametrize("when", [math.nan, math.inf, -math.inf, "soon", True, 10**400])
def test_a_robot_that_cannot_say_when_is_looked_at_again(desk: Desk, when: Any) -> None:
    desk.robot.next_poll = lambda now: when
    desk.send(0, "go(1);", last=True)
    assert 0.0 < desk.executor.next_wake(0.0) <= 0.5
    desk.run(2.0)
    assert "PLAN_RETURNED" in desk.told()


@pytest.mark.parametrize("scene", [None, 7, "x" * 1_000_000, LONE])
def test_a_scene_that_cannot_be_sent_fails_the_probe(scene: Any) -> None:
    questions: list = []
    desk = Desk(ask=questions.append)
    desk.robot.observe = lambda: scene
    desk.send(0, "_1=ask('x');")
    assert questions == []
    assert desk.told()[-2].startswith("FAILED ask(x): ask: adapter: observe: ")


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize("error", [f"motor{LONE}", "x" * 1_000_000])
@pytest.mark.parametrize("how", ["check", "poll", "start"])
def test_an_error_in_whatever_words_can_be_sent(desk: Desk, how: str, error: str) -> None:
    def raises(*arguments: Any) -> None:
        raise RuntimeError(error)

    if how == "check":
        desk.robot.refusals["go"] = error
    elif how == "poll":
        desk.robot.poll = lambda now: Progress(True, error=error)
    else:
        desk.robot.start = raises
    desk.send(0, "go(1)")
    words = desk.reports[-2].error
    assert words.startswith("go: ") and len(words.encode()) < 2000


@pytest.mark.parametrize("error", [Mute, SystemExit, asyncio.CancelledError])
def test_an_exception_of_whatever_kind_fails_the_call(desk: Desk, error: Any) -> None:
    def raises(*arguments: Any) -> None:
        raise error

    desk.robot.start = raises
    desk.send(0, "go(1)")
    assert desk.told()[-2] == f"FAILED go(1): go: adapter: {error.__name__}"


def test_diagnostics_that_fail_say_so(desk: Desk) -> None:
    assert desk.executor.adapter.diagnostics() == {}
    desk.robot.diagnostics = broken
    faults = {"fault of diagnostics": "adapter: out of order"}
    assert desk.executor.adapter.diagnostics() == faults
    desk.robot.diagnostics = lambda: {"pose": LONE, 7: 1.5}
    assert desk.executor.adapter.diagnostics() == {"pose": "?", "7": "1.5"}


# ---- a robot that does not halt ------------------------------------------------------------------

UNCONFIRMED = "the robot did not confirm the halt: adapter: out of order"


class Stuck:
    """Has ``method`` of the desk's robot fail so many times, and counts when it is called."""

    def __init__(self, desk: Desk, method: str = "halt", times: int = 10**9) -> None:
        self.tries: list[float] = []
        works = getattr(desk.robot, method)

        def fails(now: float) -> None:
            self.tries.append(round(now, 3))
            if len(self.tries) <= times:
                raise RuntimeError("out of order")
            works(now)

        setattr(desk.robot, method, fails)


def stop(desk: Desk) -> None:
    desk.take(desk.executor.on_stop(desk.now))


def cancel(desk: Desk) -> None:
    desk.send(0, command=CANCEL)


def fail(desk: Desk) -> None:
    desk.robot.errors["go"] = "motor"
    desk.robot.durations["go"] = 0.0
    desk.take(desk.executor.tick(desk.now))


def register(desk: Desk) -> None:
    desk.take(desk.executor.new_session(1, desk.now, "p"))


ENDS = {
    stop: (f"stopped; {UNCONFIRMED}", f"stopped; {UNCONFIRMED}", "stopped"),
    cancel: (f"canceled; {UNCONFIRMED}", UNCONFIRMED, ""),
    fail: (f"go: motor; {UNCONFIRMED}", UNCONFIRMED, ""),
    register: (f"registered again; {UNCONFIRMED}", UNCONFIRMED, ""),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_halt_that_fails_is_told_and_tried_again_until_it_is_done(desk: Desk, end: Any) -> None:
    """ABORTED would say that the robot stands still."""
    desk.send(0, "go(9)")
    desk.told()
    stuck = Stuck(desk, times=4)
    end(desk)
    failed, idle, then = ENDS[end]
    assert desk.told() == [f"FAILED go(9): {failed}", f"IDLE: {idle}"]
    assert desk.executor.adapter.unconfirmed == UNCONFIRMED
    desk.run(5.0)
    assert stuck.tries == [0.0, 0.2, 0.4, 0.6, 0.8]
    assert desk.told() == [f"IDLE: {idle}", f"IDLE: {then}" if then else "IDLE"]
    assert desk.executor.adapter.unconfirmed == ""


def test_while_the_robot_has_not_halted_no_plan_begins(desk: Desk) -> None:
    desk.send(0, "go(9)")
    stuck = Stuck(desk)
    fail(desk)
    desk.told()
    desk.send(0, "go(1)", plan=B)
    assert desk.told() == [f"REJECTED: {UNCONFIRMED}"]
    desk.send(0, command=CANCEL)
    assert desk.told()[0] == f"FAILED: canceled: it is not being carried out; {UNCONFIRMED}"
    assert desk.robot.log[1:] == MOTION
    stuck.tries.clear()
    desk.run(20.0)
    assert 99 <= len(stuck.tries) <= 101  # however long it takes, and no faster


def test_a_replacement_does_not_start_before_the_halt(desk: Desk) -> None:
    desk.send(0, "go(9)")
    desk.told()
    Stuck(desk)
    desk.send(0, "go(1)", plan=B, command=REPLACE)
    assert desk.told() == [
        f"FAILED go(9): replaced; {UNCONFIRMED}", "RECEIVED",
        "STARTED go(1)", f"FAILED go(1): go: {UNCONFIRMED}; {UNCONFIRMED}", f"IDLE: {UNCONFIRMED}",
    ]  # fmt: skip
    assert desk.robot.log[1:] == MOTION


def test_a_call_out_of_time_is_halted_at_last(desk: Desk) -> None:
    desk.robot.durations["go"] = 1000.0
    desk.send(0, "go(3)")
    stuck = Stuck(desk, times=3)
    desk.run(20.0)
    assert stuck.tries == [10.0, 10.2, 10.4, 10.6]
    assert f"FAILED go(3): go: not done after 10 s; {UNCONFIRMED}" in desk.told()


def test_a_hold_that_fails_is_tried_again_until_it_is_done_or_over(desk: Desk) -> None:
    stuck = Stuck(desk, "hold", times=2)
    desk.run(5.0, alive=False)
    assert stuck.tries == [3.0, 3.2, 3.4]
    assert desk.robot.log[1:] == ["3.4 hold"]
    words = "planner lost; the robot did not confirm the hold: adapter: out of order"
    assert f"IDLE: {words}" not in desk.told()  # nobody is there to be told
    Stuck(desk, "hold")
    desk.take(desk.executor.new_session(2, desk.now, "p"))
    desk.run(9.0, alive=False)
    assert desk.executor.adapter.unconfirmed.startswith("the robot did not confirm the hold: ")
    desk.take(desk.executor.new_session(3, desk.now, "p"))
    assert desk.executor.adapter.unconfirmed == ""
    assert not desk.executor.needs_registration


def test_a_close_that_fails_is_tried_again(desk: Desk) -> None:
    desk.send(0, "go(9)")
    desk.told()
    halts, closes = Stuck(desk), Stuck(desk, "close", times=1)
    desk.take(desk.executor.shutdown(desk.now))
    assert desk.told()[0] == f"FAILED go(9): the robot node ends; {UNCONFIRMED}"
    assert desk.executor.adapter.unconfirmed
    desk.run(5.0)
    assert (halts.tries, closes.tries) == ([0.0, 0.2], [0.0, 0.2])
    assert desk.executor.adapter.unconfirmed == ""  # it has let go of a robot that stands
    assert desk.told() == []


def test_a_stop_that_the_planner_repeats_is_tried_at_once(desk: Desk) -> None:
    stuck = Stuck(desk)
    stop(desk)
    desk.now = 0.1
    stop(desk)
    assert stuck.tries == [0.0, 0.1]
    assert desk.told()[-1] == f"IDLE: stopped; {UNCONFIRMED}"
    assert desk.reports == [] and desk.executor.plan_id == NO_PLAN != A
