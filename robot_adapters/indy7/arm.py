"""The calls of one arm as a state machine: requests out, answers in. Pure.

No gRPC, no thread, no clock: ``requests`` are carried out by ``link.py``, and ``now`` in s
comes in. A move's call only queues it, and says nothing about its end: it has arrived when the
controller reports, later than its answer, that it stands still and where. No motion is ever sent a
second time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robot_adapters.indy7.steps import (
    JointMove,
    Line,
    MoveTo,
    Operate,
    Request,
    Sense,
    Settings,
    Step,
    Then,
    is_at,
)
from robot_adapters.indy7.words import (
    IDLE,
    RECOVERABLE,
    Look,
    Nonsense,
    look_of,
    numbers,
    refusal,
    state_words,
)

LOOK_BUSY, LOOK_IDLE = 0.05, 0.25  # s, between two looks at the controller
STOP_AGAIN = 0.5  # s, until a stop that is not confirmed is said again
MAX_STOPS = 3  # of them on their way at once
STILL_LOOKS = 3  # in a row, that show an arm standing still where it should not
MOVES = ("movej", "movel")


@dataclass(slots=True)
class _Job:
    """The call in progress. ``plan`` makes its steps as soon as the arm stands still."""

    plan: Callable[[Look], Sequence[Step]]
    begun: float
    steps: list[Step] | None = None
    asked: int | None = None  # the request that is to be answered
    target: JointMove | Line | None = None  # of the move that was accepted
    accepted: float = 0.0
    seen_moving: bool = False
    still: int = 0  # looks in a row
    until: float | None = None


class Arm:
    """``error`` is None while a job is in progress, empty when it was done, else why not.

    ``look`` is what the controller told last, at ``heard``; ``fault`` why it did not; ``requests``
    are to be taken out and carried out.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.look: Look | None = None
        self.heard: float | None = None
        self.fault = "the controller has not answered yet"
        self.error: str | None = ""
        self.recovery = ""
        self.requests: list[Request] = []
        self._job: _Job | None = None
        self._number = 0
        self._open: dict[int, tuple[str, float]] = {}  # by number: method, when it was asked for
        self._look_due = self._look_asked = -math.inf  # asked: of the last one answered
        self._stopping = False  # until the arm is known to stand still
        self._stop_again = -math.inf
        self._stop_heard: float | None = None  # when the stop that counts was answered
        self._move_answered = self._late_until = -math.inf

    # ---- for the adapter -----------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self._job is not None or self._stopping

    def silence(self, now: float) -> float | None:
        return None if self.heard is None else now - self.heard

    def trouble(self, now: float) -> str:
        """Why nothing can be asked of the controller, or empty."""
        silence = self.silence(now)
        if silence is None:
            return self.fault
        if silence > self.settings.link_timeout:
            return f"link lost: nothing heard from the controller for {silence:.1f} s"
        return self.look.trouble if self.look else self.fault

    def begin(self, plan: Callable[[Look], Sequence[Step]], now: float) -> None:
        """Carry out the steps that ``plan`` makes of where the arm stands still."""
        self._job, self.error, self._look_due = _Job(plan, now), None, now
        self.tick(now)

    def stop(self, now: float) -> None:
        """Give up the job, if any; stop, and go on saying so until the arm stands still."""
        self._job, self.error = None, ""
        self._begin_stop(now)

    def drop(self, now: float) -> None:
        """As ``stop``, where anything may move."""
        moving = self.look is not None and not self.look.still
        if self._job is not None or self._stopping or moving or self._move_open():
            self.stop(now)

    def recover(self, now: float) -> str:
        """Have the controller recover; empty, or why that is not asked of it now."""
        if any(method == "recover" for method, _ in self._open.values()):
            return "is recovering already"
        if self.look is None:
            return self.fault
        if self.look.op_state not in RECOVERABLE:
            return f"nothing to recover from: {state_words(self.look.op_state)}"
        self.recovery = "asked for"
        self._ask("recover", {}, now)
        return ""

    # ---- time and answers ----------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Whatever time makes due."""
        if now >= self._look_due and not self._is_open("look"):
            self._look_due = now + LOOK_BUSY
            self._ask("look", {}, now)
        if self._stopping and now >= self._stop_again and self._stop_heard is None:
            self._say_stop(now)
        job = self._job
        if job is None:
            return
        silence = self.silence(now)
        if silence is None or silence > self.settings.link_timeout:
            self._fail(self.trouble(now), now)
        elif job.steps is None:
            self._settle(job, now)
        elif job.until is not None and now >= job.until:
            job.until = None
            self._advance(job, now)

    def on_answer(
        self, number: int, answer: Mapping[str, Any] | None, error: str, now: float
    ) -> None:
        """What came of a request: the SDK's answer, or None with an error."""
        method, asked = self._open.pop(number)
        if answer is not None:
            self.heard = now
        if method == "look":
            self._looked_at(answer, error, asked, now)
        elif method == "stop_motion":
            self._stop_answered(answer, asked, now)
        elif method == "recover":
            self.recovery = error or refusal(method, answer) or "done"
        else:
            self._step_answered(number, method, answer, error, now)
        self.tick(now)

    def _step_answered(
        self, number: int, method: str, answer: Mapping[str, Any] | None, error: str, now: float
    ) -> None:
        moved = method in MOVES
        if moved:
            self._move_answered = now
        if moved and answer is None:
            self._late_until = now + self.settings.late  # it may have been taken all the same
        job = self._job
        if job is None or job.asked != number:
            if moved:  # given up before it was answered: the stop must come behind it
                self._begin_stop(now)
            return
        job.asked = None
        reason = f"{method}: {error}" if answer is None else refusal(method, answer)
        if reason:
            self._fail(reason, now, moving=moved and answer is None)
        else:
            self._step_taken(job, method, answer, now)

    def _step_taken(self, job: _Job, method: str, answer: Mapping[str, Any], now: float) -> None:
        step = job.steps[0]
        if method in MOVES:
            job.accepted, job.seen_moving, job.still = now, False, 0
        elif method == "inverse_kin":
            try:
                joints = numbers(answer["jpos"])
            except (KeyError, Nonsense) as fault:
                self._fail(f"inverse_kin: {fault}", now)
                return
            job.steps[0] = JointMove(joints)
            self._send(job, now)
        elif isinstance(step, Sense):
            signals = {int(s["address"]): int(s["state"]) for s in answer.get("signals", ())}
            if signals.get(step.address) != int(step.state):
                self._fail(step.words, now)
            else:
                self._done(job, now)
        elif isinstance(step, Operate) and step.wait > 0:
            job.until = now + step.wait
            job.steps.pop(0)
        else:
            self._done(job, now)

    # ---- looking -------------------------------------------------------------------------------

    def _looked_at(
        self, answer: Mapping[str, Any] | None, error: str, asked: float, now: float
    ) -> None:
        try:
            look = look_of(answer) if answer is not None else None
        except Nonsense as nonsense:
            look, error = None, str(nonsense)
        if look is None:
            self.fault = error
            return
        self.look, self._look_asked = look, asked
        if not self.busy and now >= self._late_until:
            self._look_due = now + LOOK_IDLE
        if self._stopping and self._stop_heard is not None and asked >= self._stop_heard:
            if look.still and not self._move_open():
                self._stopping = False
            else:
                self._stop_heard = None  # it did not help: say it again
        job = self._job
        if job is not None and job.steps is not None:
            self._watch(job, look, asked, now)
        elif not self._stopping and not look.still and now < self._late_until:
            self._begin_stop(now)  # a move that was given up has begun after all

    def _watch(self, job: _Job, look: Look, asked: float, now: float) -> None:
        """The job goes on where it can, and ends where the controller is in trouble."""
        if look.trouble:
            self._fail(look.trouble, now, moving=job.target is not None)
            return
        if job.target is None or job.asked is not None or asked < job.accepted:
            return
        job.seen_moving = job.seen_moving or not look.still
        at_target = is_at(job.target, look)
        job.still = job.still + 1 if look.still else 0
        if look.still and look.reached and at_target:
            job.target = None
            self._done(job, now)
        elif job.seen_moving and job.still >= STILL_LOOKS:
            self._fail("the arm stands still, but not where it should", now, moving=True)
        elif not job.seen_moving and now > job.accepted + self.settings.start_timeout:
            limit = self.settings.start_timeout
            self._fail(f"the controller took the move, but did not begin it within {limit:g} s",
                       now, moving=True)  # fmt: skip

    # ---- steps ---------------------------------------------------------------------------------

    def _settle(self, job: _Job, now: float) -> None:
        """Nothing begins before the arm is known to stand still, by a look from after now."""
        settled = not self._stopping and now >= self._late_until and self._look_asked >= job.begun
        if settled and self.look.trouble:
            self._fail(self.look.trouble, now)
        elif settled and self.look.op_state == IDLE and self.look.still:
            job.steps = list(job.plan(self.look))
            self._send(job, now)
        elif now > job.begun + self.settings.settle_timeout:
            self._fail("the arm does not come to a standstill", now)

    def _done(self, job: _Job, now: float) -> None:
        """The first step is."""
        job.steps.pop(0)
        self._advance(job, now)

    def _advance(self, job: _Job, now: float) -> None:
        if job.steps:
            self._send(job, now)
        else:
            self._job, self.error = None, ""

    def _send(self, job: _Job, now: float) -> None:
        """Ask for what the next step needs."""
        while job.steps and isinstance(job.steps[0], Then):
            job.steps.pop(0).action()
        if not job.steps:
            self._advance(job, now)
            return
        ratios = {"vel_ratio": self.settings.speed, "acc_ratio": self.settings.acceleration}
        match job.steps[0]:
            case JointMove(joints) as step:
                job.target = step
                job.asked = self._ask("movej", {"jtarget": list(joints), **ratios}, now)
            case Line(pose) as step:
                job.target = step
                job.asked = self._ask("movel", {"ttarget": list(pose), **ratios}, now)
            case MoveTo(pose):
                given = {"tpos": list(pose), "init_jpos": list(self.look.joints)}
                job.asked = self._ask("inverse_kin", given, now)
            case Operate(method, arguments):
                job.asked = self._ask(method, dict(arguments), now)
            case Sense():
                job.asked = self._ask("get_di", {}, now)

    def _fail(self, reason: str, now: float, moving: bool = False) -> None:
        moving = moving or (self._job is not None and self._job.target is not None)
        self._job, self.error = None, reason
        if moving:
            self._begin_stop(now)

    # ---- stopping ------------------------------------------------------------------------------

    def _begin_stop(self, now: float) -> None:
        self._stopping, self._stop_heard = True, None
        self._say_stop(now)

    def _say_stop(self, now: float) -> None:
        if sum(method == "stop_motion" for method, _ in self._open.values()) < MAX_STOPS:
            self._stop_again = now + STOP_AGAIN
            self._ask("stop_motion", {"stop_category": self.settings.stop_category}, now)

    def _stop_answered(self, answer: Mapping[str, Any] | None, asked: float, now: float) -> None:
        """One said before a move was answered may have overtaken it, and does not count; a refused
        one does where the controller is in trouble, and moves nothing."""
        if answer is None or self._move_open() or asked < self._move_answered:
            return
        if not refusal("stop_motion", answer) or (self.look and self.look.trouble):
            self._stop_heard = now

    def _move_open(self) -> bool:
        return any(method in MOVES for method, _ in self._open.values())

    def _is_open(self, wanted: str) -> bool:
        return any(method == wanted for method, _ in self._open.values())

    def _ask(self, method: str, arguments: Mapping[str, Any], now: float) -> int:
        self._number += 1
        self._open[self._number] = (method, now)
        self.requests.append(Request(self._number, method, arguments))
        return self._number
