"""The calls of one arm as a state machine: steps in, requests out, answers in. Pure.

No gRPC, no thread, no clock: ``requests`` are carried out by ``link.py``, and ``now`` in s
comes in. A move's call only queues the move, and says nothing about its end: the arm has arrived
when the controller reports, after its answer, that it stands still and where. No motion is ever
sent a second time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from robot_adapters.indy7.answers import (
    IDLE,
    MOST_ANGLE,
    RECOVERABLE,
    Look,
    Nonsense,
    look_of,
    numbers,
    refusal,
    signals_of,
    state_words,
)

LOOK_BUSY, LOOK_IDLE = 0.05, 0.25  # s, between two looks at the controller
STOP_AGAIN = 0.5  # s, until a stop that is not confirmed is said again
MAX_STOPS = 3  # of them on their way at once
STILL_LOOKS = 3  # in a row, that show an arm standing still where it should not
MOVES = ("movej", "movel")
ANGLE, DISTANCE = 0.5, 2.0  # deg and mm, how far from its target the arm may stand


@dataclass(frozen=True, slots=True)
class JointMove:
    """To ``joints`` in deg; they should bring the tool to ``tool`` (mm, deg), if that is known."""

    joints: tuple[float, ...]
    tool: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class MoveTo:
    """By the joints to a pose of the tool (mm, deg): the controller is asked for the joints."""

    tool: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """In a straight line to a pose of the tool (mm, deg)."""

    tool: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Operate:
    """A call of the SDK that moves no joint, and ``wait`` s for it to take effect."""

    method: str
    arguments: Mapping[str, Any]
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Sense:
    """Digital input ``address`` must be ``state``, or the call fails with ``words``."""

    address: int
    state: bool
    words: str


@dataclass(frozen=True, slots=True)
class Then:
    """Something to note, in no time."""

    action: Callable[[], None]


Step = JointMove | MoveTo | Line | Operate | Sense | Then


@dataclass(frozen=True, slots=True)
class Request:
    """A call of the SDK; ``look`` is several. Answered by ``on_answer`` with the same number."""

    number: int
    method: str
    arguments: Mapping[str, Any]


class Answer(NamedTuple):
    """What came of a request: the SDK's answer, or None and an error in words."""

    number: int
    answer: Mapping[str, Any] | None
    error: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in s, ``speed`` and ``acceleration`` in percent, ``stop_category`` 0 to 2."""

    stop_category: int = 2
    speed: float = 15.0
    acceleration: float = 100.0
    link_timeout: float = 2.0
    start_timeout: float = 2.0
    settle_timeout: float = 10.0
    late: float = 5.0  # that a move which was not answered may begin late


@dataclass(slots=True)
class _Job:
    """The call in progress. ``plan`` makes its steps as soon as the arm stands still."""

    plan: Callable[[Look], Sequence[Step]]
    begun: float
    planned: bool = False
    steps: list[Step] = field(default_factory=list)  # still to do
    asked: int | None = None  # the request that is to be answered
    target: JointMove | Line | None = None  # of the move that was accepted
    accepted: float = 0.0
    seen_moving: bool = False
    still: int = 0  # looks in a row
    until: float | None = None


class Arm:
    """``error`` is None while a job is in progress, empty when it was done, else why not.

    ``look`` is what the controller told last, at ``heard``; ``fault`` why it told nothing since;
    ``requests`` are to be taken out and carried out.
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
        self._nonsense = False  # is what it told last
        self._look_due = self._look_asked = -math.inf  # asked: of the last one answered
        self._stopping = False  # until the arm is known to stand still
        self._stop_again = -math.inf
        self._stop_heard: float | None = None  # when the stop that counts was answered
        self._move_answered = self._late_until = -math.inf

    # ---- for the adapter -----------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """A job is in progress, or the arm is being stopped."""
        return self._job is not None or self._stopping

    def silence(self, now: float) -> float | None:
        """s since the controller was heard; None: it never was."""
        return None if self.heard is None else now - self.heard

    def trouble(self, now: float) -> str:
        """Why nothing can be asked of the controller, or empty."""
        silence = self.silence(now)
        if silence is None or self.look is None:
            return self.fault
        if silence > self.settings.link_timeout:
            lost = f"link lost: nothing heard from the controller for {silence:.1f} s"
            return self.fault if self._nonsense else lost
        return self.look.trouble

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
        if self._job is not None or self._stopping or moving or self._asked(*MOVES):
            self.stop(now)

    def recover(self, now: float) -> str:
        """Have the controller recover; empty, or why that is not asked of it now."""
        if self._asked("recover"):
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
        if now >= self._look_due and not self._asked("look"):
            self._look_due = now + LOOK_BUSY
            self._ask("look", {}, now)
        if self._stopping and now >= self._stop_again:
            self._say_stop(now)
        job = self._job
        if job is None:
            return
        silence = self.silence(now)
        if silence is None or silence > self.settings.link_timeout:
            self._fail(self.trouble(now), now)
        elif not job.planned:
            self._settle(job, now)
        elif job.until is not None and now >= job.until:
            job.until = None
            self._advance(job, now)

    def on_answer(
        self, number: int, answer: Mapping[str, Any] | None, error: str, now: float
    ) -> None:
        """What came of a request: the SDK's answer, or None with an error."""
        if number not in self._open:
            return  # no news
        method, asked = self._open.pop(number)
        if method == "look":
            self._looked_at(answer, error, asked, now)
        elif method == "stop_motion":
            self._stop_answered(answer, asked, now)
        elif method == "recover":
            self.recovery = error if answer is None else refusal(method, answer) or "done"
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
            if moved:  # given up before it was answered: the stop must come after it
                self._begin_stop(now)
            return
        job.asked = None
        if answer is None:
            self._fail(f"{method}: {error}", now, moving=moved)
        elif reason := refusal(method, answer):
            self._fail(reason, now)
        else:
            self._step_taken(job, method, answer, now)

    def _step_taken(self, job: _Job, method: str, answer: Mapping[str, Any], now: float) -> None:
        if method in MOVES:
            job.accepted, job.seen_moving, job.still = now, False, 0
            return
        match job.steps.pop(0):
            case MoveTo(pose):
                try:
                    job.steps.insert(0, JointMove(numbers(answer, "jpos", MOST_ANGLE), pose))
                except Nonsense as fault:
                    self._fail(f"{method}: {fault}", now)
                    return
            case Sense(address, state, words):
                try:
                    held = signals_of(answer).get(address) == int(state)
                except Nonsense as fault:
                    held, words = False, f"{method}: {fault}"
                if not held:
                    self._fail(words, now)
                    return
            case Operate(wait=wait) if wait > 0:
                job.until = now + wait
                return
        self._advance(job, now)

    # ---- looking -------------------------------------------------------------------------------

    def _looked_at(
        self, answer: Mapping[str, Any] | None, error: str, asked: float, now: float
    ) -> None:
        look, self._nonsense = None, False
        if answer is not None:
            try:
                look = look_of(answer, self.look)
            except Nonsense as nonsense:
                error, self._nonsense = str(nonsense), True
        if look is None:
            self.fault = error
            return
        self.look, self.heard, self._look_asked = look, now, asked
        if not self.busy and now >= self._late_until:
            self._look_due = now + LOOK_IDLE
        if self._stopping and self._stop_heard is not None and asked >= self._stop_heard:
            self._stopping = not look.still or bool(self._asked(*MOVES))
        job = self._job
        if job is not None and job.planned:
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
        job.still = job.still + 1 if look.still else 0
        if look.still and look.reached and is_at(job.target, look):
            job.target = None
            job.steps.pop(0)
            self._advance(job, now)
        elif job.seen_moving and job.still >= STILL_LOOKS:
            self._fail("the arm stands still, but not where it should", now, moving=True)
        elif not job.seen_moving and now > job.accepted + self.settings.start_timeout:
            limit = self.settings.start_timeout
            self._fail(f"the controller took the move, but did not begin it within {limit:g} s",
                       now, moving=True)  # fmt: skip

    # ---- steps ---------------------------------------------------------------------------------

    def _settle(self, job: _Job, now: float) -> None:
        """Nothing begins before a look from after ``begin`` shows that the arm stands still."""
        look = self.look
        settled = not self._stopping and now >= self._late_until and self._look_asked >= job.begun
        if settled and look and look.trouble:
            self._fail(look.trouble, now)
        elif settled and look and look.op_state == IDLE and look.still:
            job.planned, job.steps = True, list(job.plan(look))
            self._advance(job, now)
        elif now > job.begun + self.settings.settle_timeout:
            self._fail("the arm does not come to a standstill", now)

    def _advance(self, job: _Job, now: float) -> None:
        """Ask for what the next step needs; after the last one the job is done."""
        while job.steps and isinstance(step := job.steps[0], Then):
            step.action()
            job.steps.pop(0)
        if not job.steps:
            self._job, self.error = None, ""
            return
        ratios = {"vel_ratio": self.settings.speed, "acc_ratio": self.settings.acceleration}
        match job.steps[0]:
            case JointMove(joints) as move:
                job.target = move
                job.asked = self._ask("movej", {"jtarget": list(joints), **ratios}, now)
            case Line(pose) as line:
                job.target = line
                job.asked = self._ask("movel", {"ttarget": list(pose), **ratios}, now)
            case MoveTo(pose):
                near = list(self.look.joints) if self.look else []
                job.asked = self._ask("inverse_kin", {"tpos": list(pose), "init_jpos": near}, now)
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
        if self._asked("stop_motion") < MAX_STOPS:
            self._stop_again = now + STOP_AGAIN
            self._ask("stop_motion", {"stop_category": self.settings.stop_category}, now)

    def _stop_answered(self, answer: Mapping[str, Any] | None, asked: float, now: float) -> None:
        """One said before a move was answered may have overtaken it, and does not count; a refused
        one does where the controller is in trouble, and moves nothing."""
        if answer is None or self._asked(*MOVES) or asked < self._move_answered:
            return
        if not refusal("stop_motion", answer) or (self.look and self.look.trouble):
            self._stop_heard = now

    def _asked(self, *methods: str) -> int:
        """How many requests of these methods are not answered yet."""
        return sum(method in methods for method, _ in self._open.values())

    def _ask(self, method: str, arguments: Mapping[str, Any], now: float) -> int:
        self._number += 1
        self._open[self._number] = (method, now)
        self.requests.append(Request(self._number, method, arguments))
        return self._number


def is_at(target: JointMove | Line, look: Look) -> bool:
    """Whether the arm stands where the move leads."""
    joints = zip(target.joints, look.joints, strict=True) if isinstance(target, JointMove) else ()
    if any(abs(a - b) > ANGLE for a, b in joints):
        return False
    return not target.tool or math.dist(target.tool[:3], look.tool[:3]) <= DISTANCE
