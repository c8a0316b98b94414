"""The robot's side of a plan: segments in, skill calls one after another, reports out.

Sans-IO: no ROS, no clock, no thread. Every ``on_...`` method and ``tick`` take the robot's time
``now`` in s and return the ``Execution`` messages to publish, in order; ``next_wake`` says when to
tick again. ``delivery.py`` decides which segments are taken, ``interpreter.py`` what a plan does,
the adapter how the robot moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from robot_adapters.adapter import Adapter, Notice, Progress
from robot_adapters.executor.delivery import Delivery, Ignore, Reject, Take
from robot_adapters.executor.guard import CallFault, GuardedAdapter, attempt
from robot_adapters.executor.interpreter import (
    LONGEST,
    Closed,
    Fault,
    Interpreter,
    NeedText,
    Opened,
    Paused,
    Refused,
    Replan,
    Returned,
    StartCall,
)
from timely_llm.language.skills import Value, value_text
from timely_llm.protocols.messages import (
    NO_PLAN,
    Execution,
    ExecutionState,
    Segment,
    SegmentCommand,
)

State = ExecutionState
STOPPED = "stopped"  # until ``on_rearm``; IDLE carries it as its error
PLANNER_LOST = "planner lost"
SESSION_OVER = "the planner has ended the session"
ENDS = "the robot node ends"
STEPS_PER_TURN = 50  # of a plan, before whatever else waits (a stop) has its turn
INSTRUCTIONS_PER_STEP = 500


@dataclass(frozen=True, slots=True)
class Timing:
    """All in s but ``overtime``. A call fails when it takes longer than ``overtime`` times its
    expected duration and ``patience`` more."""

    heartbeat_period: float = 0.2  # the longest silence of the robot
    planner_timeout: float = 2.0  # the longest silence of the planner
    probe_timeout: float = 10.0
    patience: float = 15.0
    overtime: float = 3.0


@dataclass(frozen=True, slots=True)
class Question:
    """A probe for the model: answered by ``on_answer`` with the same plan and call number."""

    plan_id: str
    call_number: int
    text: str
    scene: str
    timeout: float  # s


Ask = Callable[[Question], None]


class ReportWriter:
    """The messages of one robot in order. ``session`` is None until the robot is registered."""

    def __init__(self) -> None:
        self.session: int | None = None
        self.sent = 0.0  # s, when the last message was made
        self._sequence = 0
        self._messages: list[Execution] = []

    def add(self, state: ExecutionState, now: float, plan_id: str, **fields: Any) -> None:
        """One more message; ``fields`` are those of ``Execution``."""
        self._messages.append(
            Execution(self.session or 0, self._sequence, plan_id, state, stamp=now, **fields)
        )
        self._sequence += 1
        self.sent = now

    def flush(self) -> list[Execution]:
        """The messages made since the last flush."""
        messages, self._messages = self._messages, []
        return messages


class PlanRun:
    """One plan in progress: its current call, what limits it, what is left to do.

    ``step`` is the call in progress, None between two calls, and ``deadline`` (s) when it fails;
    ``question`` is that of a probe. ``opened`` is the call of the plan that has a definition, while
    the robot carries out the calls of the definition. ``starved``: the robot waits for text.
    """

    def __init__(
        self, plan_id: str, adapter: GuardedAdapter, timing: Timing, now: float, first_call: int
    ) -> None:
        self.plan_id = plan_id
        self.interpreter = Interpreter(adapter.skills)
        self.step: StartCall | None = None
        self.question: Question | None = None
        self.opened: Opened | None = None
        self.starved = False
        self.deadline = 0.0
        self._adapter = adapter
        self._timing = timing
        self._started = now
        self._step_started = self._call_started = now
        self._travel = 0.0
        self._entered = False  # the step in progress was not refused
        self._calls = first_call  # that have ended, with those of the goal's earlier plans

    def open(self, step: Opened, now: float) -> None:
        """What comes next is the definition of ``step``."""
        self.opened, self._call_started = step, now

    def close(self) -> None:
        """The call that was opened has ended."""
        self.opened, self._calls = None, self._calls + 1

    def enter(self, step: StartCall, now: float) -> None:
        """Make ``step`` the call in progress; ``CallFault`` if it must not start.

        Everything is checked on the evaluated arguments and before any motion.
        """
        self.step, self._step_started = step, now
        if self.opened is None:
            self._call_started = now
        bounds, expected = self._adapter.skills.bounds, max(0.0, step.call.expected_duration)
        self.deadline = now + self._timing.overtime * expected + self._timing.patience
        if now - self._started + expected > bounds.max_time:
            raise CallFault(f"the plan would take longer than max_time, {bounds.max_time:g} s")
        self._travel += self._adapter.travel(step.call)
        reason = self._adapter.check(step.call)
        if self._travel > bounds.max_travel:
            raise CallFault(
                f"the plan would travel further than max_travel, {bounds.max_travel:g} m"
            )
        if reason:
            raise CallFault(reason)
        self._entered = True

    def start(self, step: StartCall, ask: Ask | None, now: float) -> None:
        """Let the robot do the call, or ``ask`` the model; ``CallFault`` if that goes wrong."""
        if ask is None or self._adapter.skills[step.call.name].role != "probe":
            self._adapter.start(step.call, now)
            return
        scene, timeout = self._adapter.observe(), self._timing.probe_timeout
        text = " ".join(step.call.evaluated)
        self.question = Question(self.plan_id, self._calls, text, scene, timeout)
        self.deadline = self._step_started + timeout
        attempt(ask, self.question)

    def leave(self, value: Value | None) -> None:
        """The call in progress is done; its value goes to the plan."""
        self.step, self.question, self._entered = None, None, False
        if self.opened is None:
            self._calls += 1
        self.interpreter.complete(value)

    def progress(self, now: float) -> Progress:
        """Of the call in progress; after its deadline it is done with an error."""
        elapsed = now - self._step_started if self.step else 0.0
        if self.step and self.question:
            left = max(0.0, max(0.0, self.step.call.expected_duration) - elapsed)
            progress = Progress(False, elapsed=elapsed, remaining=left)
        else:
            try:
                progress = self._adapter.poll(now)
            except CallFault as fault:
                return Progress(True, error=str(fault), elapsed=elapsed)
        if not progress.done and now >= self.deadline:
            return Progress(True, error=f"not done after {elapsed:.3g} s", elapsed=elapsed)
        return progress

    def elapsed(self, now: float) -> float:
        """s since the plan's call in progress began; 0 between two calls."""
        return now - self._call_started if self.opened or self.step else 0.0

    @property
    def begun_calls(self) -> int:
        """How many calls were begun, those of the goal's earlier plans included."""
        return self._calls + (self.opened is not None or self._entered)

    def call_fields(self) -> dict[str, Any]:
        """The plan's call in progress, as ``Execution`` has it."""
        step = self.opened or self.step
        if step is None:
            return {}
        return {"segment": step.segment, "call": step.call, "call_number": self._calls}

    def remaining_fields(self, of_step: float, now: float) -> dict[str, float]:
        """``skill_remaining`` and ``total_remaining`` (with all text that is held), in s.

        ``of_step`` is what the robot has yet to do of the call that it carries out.
        """
        of_call = max(0.0, of_step)
        if self.opened:
            of_call = max(of_call, self.opened.call.expected_duration - self.elapsed(now))
        held = self.interpreter.held_duration()
        return {"skill_remaining": of_call, "total_remaining": of_call + held}


class RobotExecutor:
    """Carries out one plan at a time on one adapter.

    ``ask`` takes a probe to the planner; without it the adapter answers probes.
    """

    def __init__(
        self, adapter: Adapter, timing: Timing | None = None, ask: Ask | None = None
    ) -> None:
        self.adapter = GuardedAdapter(adapter)
        self.timing = timing or Timing()
        self.stopped = False
        self.lost = False  # the planner of this session is
        self.closed = False  # the adapter is: nothing moves any more
        self._ask = ask
        self._delivery = Delivery()
        self._reports = ReportWriter()
        self._planner = ""  # instance of the session's planner
        self._heard = 0.0  # s, when the planner was heard last
        self._listed = ("", 0, True)  # by which planner, in which session, whether as alive
        self._plan: PlanRun | None = None
        self._last = (NO_PLAN, 0)  # the plan before, and the calls that were begun for it
        self._paused = False  # the plan can go on at once

    @property
    def plan_id(self) -> str:
        """The plan in progress, or ``NO_PLAN``."""
        return self._plan.plan_id if self._plan else NO_PLAN

    @property
    def needs_registration(self) -> bool:
        """There is no session, or its planner was lost and the robot stands still now."""
        return self._reports.session is None or (self.lost and self._plan is None)

    @property
    def _heartbeat_due(self) -> float | None:
        """s; None: no planner waits for one."""
        if self.needs_registration:
            return None
        return self._reports.sent + self.timing.heartbeat_period

    @property
    def _planner_due(self) -> float | None:
        """s, when the planner counts as lost unless it is heard; None: there is none to lose."""
        if self._reports.session is None or self.lost:
            return None
        return self._heard + self.timing.planner_timeout

    @property
    def _refusal(self) -> str:
        """Why no plan may begin or go on; empty: it may."""
        return ENDS if self.closed else self._idle_error

    @property
    def _idle_error(self) -> str:
        why = STOPPED if self.stopped else PLANNER_LOST if self.lost else ""
        return self._with_undone(why)

    def _with_undone(self, words: str) -> str:
        """``words``, and what the robot has not confirmed."""
        return "; ".join(filter(None, (words, self.adapter.unconfirmed)))

    # ---- what comes in -------------------------------------------------------------------------

    def new_session(self, session: int, now: float, planner: str = "") -> list[Execution]:
        """Registered with the planner of instance ``planner``; an earlier plan is over."""
        if self.closed:
            return []
        if self._plan:
            self._drop("registered again", now)
        self._reports.session, self._planner, self._heard = session, planner, now
        self._delivery, self.lost = Delivery(), False
        self.adapter.resume(now)
        self._idle(now)
        return self._reports.flush()

    def on_planner_heartbeat(self, instance: str, now: float) -> list[Execution]:
        """A planner is alive. One of another instance knows nothing of this robot's plan: where its
        own is silent, it was started again; else the robot keeps to its own."""
        if self._planner_due is not None:
            self._planner = self._planner or instance
            if instance == self._planner:
                if self._listed != (instance, self._reports.session, False):
                    self._heard = now
            elif now >= self._heard + self.timing.planner_timeout / 2:
                self._lose(now)
        return self._reports.flush()

    def on_listed(self, instance: str, session: int, alive: bool, now: float) -> list[Execution]:
        """The planner's list of robots has this one in ``session`` (0: not at all). Where it has
        ended the session, so is the plan; where it does not hear the robot, it counts as silent
        until it does. A list from before the session says nothing."""
        own, before = self._reports.session, self._listed
        self._listed = (instance, session, alive)
        if own is None or self.lost or instance != self._planner:
            return []
        if session > own or (session < own and before[:2] == (instance, own)):
            self.lost = True
            self._drop(SESSION_OVER, now)
        return self._reports.flush()

    def on_segment(self, segment: Segment, now: float) -> list[Execution]:
        """Take, refuse or ignore one segment; what it makes possible begins at once."""
        if segment.command is SegmentCommand.STOP:  # whoever sends it: a stop moves nothing
            return self.on_stop(now)
        current, waits = (self._plan.plan_id, self._plan.starved) if self._plan else (None, False)
        session, refusal = self._reports.session, self._refusal
        match self._delivery.judge(segment, session, current, refusal, waits):
            case Reject(reason):
                self._refuse(segment, State.REJECTED, reason, now)
            case Take() if segment.command is SegmentCommand.CANCEL:
                self._cancel(segment, now)
            case Take(begins):
                plan = self._plan if self._plan and not begins else self._begin(segment, now)
                self._feed(plan, segment, now)
            case Ignore():
                pass
        return self._reports.flush()

    def on_answer(
        self, plan_id: str, call_number: int, answer: str | None, error: str, now: float
    ) -> list[Execution]:
        """The answer to a probe, None with an error; what comes late is ignored."""
        plan = self._plan
        question = plan.question if plan else None
        if plan and question and (question.plan_id, question.call_number) == (plan_id, call_number):
            error = "" if answer is not None else error or "no answer"
            self._settle(plan, Progress(True, answer, error, plan.elapsed(now)), now)
            self._work(now)
        return self._reports.flush()

    def on_stop(self, now: float) -> list[Execution]:
        """Halt, drop everything, refuse plans until ``on_rearm``. Needs no planner."""
        if self.closed:
            return []
        self.stopped = True
        self._drop(STOPPED, now)
        self.adapter.notice(Notice.STOPPED, now)
        return self._reports.flush()

    def on_rearm(self, now: float) -> list[Execution]:
        """Take plans again; nothing that was dropped comes back."""
        if self.closed:
            return []
        self.stopped = False
        self.adapter.notice(Notice.REARMED, now)
        self._idle(now)
        return self._reports.flush()

    def tick(self, now: float) -> list[Execution]:
        """Progress, time limits and heartbeat. Due at ``next_wake``; harmless at any time."""
        undone = self.adapter.unconfirmed
        self.adapter.retry(now)
        if self.closed:
            return []
        if undone and not self.adapter.unconfirmed:
            self._idle(now)
        if self._planner_due is not None and now >= self._planner_due:
            self._lose(now)
        if self._plan is None:
            self.adapter.idle(now)
        self._work(now)
        if self._heartbeat_due is not None and now >= self._heartbeat_due:
            self._heartbeat(now)
        return self._reports.flush()

    def shutdown(self, now: float) -> list[Execution]:
        """The node ends: halt, and the plan is over. What comes afterwards moves nothing."""
        self._drop(ENDS, now)
        self.closed = True
        self.adapter.close(now)
        return self._reports.flush()

    def next_wake(self, now: float) -> float | None:
        """When to tick next, in s; None: only an input can change anything."""
        poll = self.adapter.next_poll(now)
        if self.closed:
            return poll
        if self._plan and self._paused:
            return now
        deadline = self._plan.deadline if self._plan and self._plan.step else None
        times = (poll, self._heartbeat_due, self._planner_due, deadline)
        return min((time for time in times if time is not None), default=None)

    # ---- a plan's life -------------------------------------------------------------------------

    def _begin(self, segment: Segment, now: float) -> PlanRun:
        if self._plan and self._plan.plan_id == segment.plan_id:  # the rest of it was refused
            self._last = self._plan.plan_id, self._plan.begun_calls
        elif self._plan:  # only a REPLACE gets here with another plan in progress
            self._drop("replaced", now, idle=False)
        before, calls = self._last
        first_call = calls if before == segment.plan_id else 0  # a replan goes on counting
        self._plan = PlanRun(segment.plan_id, self.adapter, self.timing, now, first_call)
        return self._plan

    def _feed(self, plan: PlanRun, segment: Segment, now: float) -> None:
        plan.interpreter.feed(segment.text, segment.index, segment.last)
        plan.starved = False
        remaining = plan.remaining_fields(plan.progress(now).remaining if plan.step else 0.0, now)
        self._reports.add(State.RECEIVED, now, plan.plan_id, segment=segment.index, **remaining)
        self._work(now)

    def _cancel(self, segment: Segment, now: float) -> None:
        """Always answered: the planner waits for the robot to stand still."""
        if self._plan and self._plan.plan_id == segment.plan_id:
            self._drop("canceled", now)
        else:
            words = self._with_undone("canceled: it is not being carried out")
            self._refuse(segment, self._still(State.ABORTED), words, now)

    def _work(self, now: float) -> None:
        """Go on until a call takes its time, text is missing, the turn or the plan is over."""
        self._paused = False
        for _ in range(STEPS_PER_TURN):
            plan = self._plan
            if plan is None:
                return
            if plan.step:
                progress = plan.progress(now)
                if not progress.done:
                    return
                self._settle(plan, progress, now)
            elif self.lost:
                self._end(plan, State.ABORTED, now, error=PLANNER_LOST)
            elif not self._advance(plan, now):
                return
        self._paused = True

    def _advance(self, plan: PlanRun, now: float) -> bool:
        """One step of the interpreter; False: it is out of text, or its turn is over."""
        match plan.interpreter.advance(INSTRUCTIONS_PER_STEP):
            case StartCall() as step:
                self._start(plan, step, now)
            case Opened() as step:
                plan.open(step, now)
                self._started(plan, step, now)
            case Closed(value):
                self._succeeded(plan, value, plan.elapsed(now), now)
                plan.close()
            case NeedText():
                if not plan.starved:
                    plan.starved = True
                    self._idle(now)
                return False
            case Paused():
                self._paused = True
                return False
            case Returned(value):
                self._end(plan, State.PLAN_RETURNED, now, **_value_fields(value))
            case Replan():
                self._end(plan, State.REPLAN_REQUESTED, now)
            case Refused(reason):
                self._end(plan, State.REFUSED, now, error=reason)
            case Fault(error):
                self._fail(plan, error, now)
        return True

    def _start(self, plan: PlanRun, step: StartCall, now: float) -> None:
        try:
            plan.enter(step, now)
            if not step.opened:
                self._started(plan, step, now)
            elif self.adapter.skills[step.call.name].timed:  # how long was not known before
                self._running(plan, plan.elapsed(now), step.call.expected_duration, now)
            plan.start(step, self._ask, now)
        except CallFault as fault:
            self._fail(plan, str(fault), now)

    def _settle(self, plan: PlanRun, progress: Progress, now: float) -> None:
        """The call in progress has ended, well or not."""
        if progress.error:
            elapsed = plan.elapsed(now) if plan.opened else progress.elapsed
            self._fail(plan, progress.error, now, elapsed)
            return
        if plan.opened is None:
            self._succeeded(plan, progress.value, progress.elapsed, now)
        plan.leave(progress.value)

    def _fail(self, plan: PlanRun, reason: str, now: float, elapsed: float = 0.0) -> None:
        self.adapter.halt(now)
        error = f"{plan.step.call.name}: {reason}" if plan.step else reason
        self._end(plan, State.FAILED, now, error=error, elapsed=elapsed)

    def _drop(self, reason: str, now: float, idle: bool = True) -> None:
        """Halt, whatever is going on; a plan ends as aborted."""
        self.adapter.halt(now)
        if plan := self._plan:
            self._end(plan, State.ABORTED, now, idle, error=reason, elapsed=plan.elapsed(now))
        else:
            self._rest(now)

    def _end(
        self, plan: PlanRun, state: ExecutionState, now: float, idle: bool = True, **fields: Any
    ) -> None:
        if "error" in fields:
            fields["error"] = self._with_undone(fields["error"])
        self._report(plan, self._still(state), now, **fields)
        self._delivery.over(plan.plan_id, state)
        self._last, self._plan = (plan.plan_id, plan.begun_calls), None
        if idle:
            self.adapter.notice(Notice.PLAN_OVER, now)
            self._rest(now)

    def _still(self, state: ExecutionState) -> ExecutionState:
        """ABORTED says that the robot stands still: one that did not halt has failed."""
        return State.FAILED if state is State.ABORTED and self.adapter.unconfirmed else state

    def _rest(self, now: float) -> None:
        """Nothing is left to do. Without a planner the robot holds, however it came to that: a
        drone must not stay in the air for ever."""
        self._idle(now)
        if self.lost:
            self.adapter.hold(now)

    def _lose(self, now: float) -> None:
        """The planner is silent or another one: finish the current call, then hold."""
        self.lost = True
        if self._plan is None:
            self.adapter.hold(now)
        else:
            self.adapter.notice(Notice.PLANNER_LOST, now)
        self._work(now)

    # ---- what goes out -------------------------------------------------------------------------

    def _report(self, plan: PlanRun, state: ExecutionState, now: float, **fields: Any) -> None:
        self._reports.add(state, now, plan.plan_id, **(plan.call_fields() | fields))

    def _started(self, plan: PlanRun, step: StartCall | Opened, now: float) -> None:
        remaining = plan.remaining_fields(step.call.expected_duration, now)
        self._report(plan, State.STARTED, now, **remaining)

    def _running(self, plan: PlanRun, elapsed: float, of_step: float, now: float) -> None:
        remaining = plan.remaining_fields(of_step, now)
        self._report(plan, State.RUNNING, now, elapsed=elapsed, **remaining)

    def _succeeded(self, plan: PlanRun, value: Value | None, elapsed: float, now: float) -> None:
        fields = _value_fields(value) | {"elapsed": elapsed}
        held = plan.interpreter.held_duration()
        self._report(plan, State.SUCCEEDED, now, total_remaining=held, **fields)

    def _refuse(self, segment: Segment, state: ExecutionState, reason: str, now: float) -> None:
        self._reports.add(state, now, segment.plan_id, segment=segment.index, error=reason)

    def _idle(self, now: float) -> None:
        if self._reports.session is not None:
            self._reports.add(State.IDLE, now, self.plan_id, error=self._idle_error)

    def _heartbeat(self, now: float) -> None:
        plan = self._plan
        if plan is None or plan.step is None:
            self._idle(now)
            return
        progress = plan.progress(now)
        elapsed = plan.elapsed(now) if plan.opened else progress.elapsed
        self._running(plan, elapsed, progress.remaining, now)


def _value_fields(value: Value | None) -> dict[str, Any]:
    """``has_value`` and ``value`` of an ``Execution``; no longer than a plan may take it."""
    return {"has_value": value is not None, "value": value_text(value)[:LONGEST]}
