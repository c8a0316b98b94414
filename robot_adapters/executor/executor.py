"""The robot's side of a plan: segments in, skill calls one after another, reports out.

Sans-IO: no ROS, no clock, no thread. Every ``on_...`` method and ``tick`` take the robot's time
``now`` in s and return the ``Execution`` messages to publish, in order; ``next_wake`` says when to
tick again. Which segments are taken is decided in ``executor/delivery.py``, what a plan does in
``minispec.py``, how a robot moves in its adapter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robot_adapters.adapter import Adapter, Notice, Notified, Progress
from robot_adapters.executor.delivery import Delivery, Ignore, Reject, Take
from robot_adapters.executor.interpreter import (
    Closed,
    Fault,
    NeedText,
    Opened,
    Replan,
    Returned,
    StartCall,
)
from robot_adapters.executor.plan_run import PlanRun, Question, Timing, guarded
from robot_adapters.executor.reports import Reports, value_fields
from timely_llm.language.skills import Value
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
ENDS = "the robot node ends"


class RobotExecutor:
    """Carries out one plan at a time on one adapter.

    ``ask`` takes a probe to the planner; without it the adapter answers probes.
    """

    def __init__(
        self,
        adapter: Adapter,
        timing: Timing | None = None,
        ask: Callable[[Question], None] | None = None,
    ) -> None:
        self.adapter = adapter
        self.timing = timing or Timing()
        self.stopped = False
        self.lost = False  # the planner of this session is
        self.closed = False  # the adapter is: nothing moves any more
        self._ask = ask
        self._delivery = Delivery()
        self._reports = Reports()
        self._planner = ""  # instance that the session is of
        self._heard = 0.0
        self._plan: PlanRun | None = None
        self._last = (NO_PLAN, 0)  # the plan before, and the calls that were begun for it

    @property
    def plan_id(self) -> str:
        return self._plan.plan_id if self._plan else NO_PLAN

    @property
    def needs_registration(self) -> bool:
        """There is no session, or its planner was lost and the robot stands still now."""
        return self._reports.session is None or (self.lost and self._plan is None)

    @property
    def _heartbeat_due(self) -> float | None:
        """None: this robot is nobody's (any more)."""
        if self.needs_registration:
            return None
        return self._reports.sent + self.timing.heartbeat_period

    # ---- what comes in -------------------------------------------------------------------------

    def new_session(self, session: int, now: float, planner: str = "") -> list[Execution]:
        """Registered with the planner of instance ``planner``; a plan of before is over."""
        if self.closed:
            return []
        if self._plan:
            self._drop("registered again", now)
        self._reports.session, self._planner, self._heard = session, planner, now
        self._delivery, self.lost = Delivery(), False
        guarded(self.adapter.resume, now)
        self._idle(now)
        return self._reports.flush()

    def on_planner_heartbeat(self, instance: str, now: float) -> list[Execution]:
        """The planner is alive. One of another instance knows nothing of this robot's plan."""
        if self._reports.session is not None and not self.lost:
            self._planner = self._planner or instance
            if instance == self._planner:
                self._heard = now
            else:
                self._lose(now)
        return self._reports.flush()

    def on_segment(self, segment: Segment, now: float) -> list[Execution]:
        """Take, refuse or ignore one segment; what it makes possible begins at once."""
        if segment.command is SegmentCommand.STOP:  # whoever sends it: a stop moves nothing
            return self.on_stop(now)
        current = self._plan.plan_id if self._plan else None
        refusal = STOPPED if self.stopped else PLANNER_LOST if self.lost else ""
        if self.closed:
            refusal = ENDS
        match self._delivery.judge(segment, self._reports.session, current, refusal):
            case Reject(reason):
                self._refuse(segment, State.REJECTED, reason, now)
            case Take() if segment.command is SegmentCommand.CANCEL:
                self._cancel(segment, now)
            case Take(begins):
                if begins:
                    self._begin(segment, now)
                self._feed(segment, now)
            case Ignore():
                pass
        return self._reports.flush()

    def on_answer(
        self, plan_id: str, call_number: int, answer: str | None, error: str, now: float
    ) -> list[Execution]:
        """The answer to a probe, None with an error; what comes late is ignored."""
        question = self._plan.question if self._plan else None
        if question and (question.plan_id, question.call_number) == (plan_id, call_number):
            error = "" if answer is not None else error or "no answer"
            self._settle(Progress(True, answer, error, self._plan.elapsed(now)), now)
            self._work(now)
        return self._reports.flush()

    def on_stop(self, now: float) -> list[Execution]:
        """Halt, drop everything, refuse plans until ``on_rearm``. Needs no planner."""
        if self.closed:
            return []
        self.stopped = True
        self._drop(STOPPED, now)
        self._notify(Notice.STOPPED, now)
        return self._reports.flush()

    def on_rearm(self, now: float) -> list[Execution]:
        """Take plans again; nothing that was dropped comes back."""
        if self.closed:
            return []
        self.stopped = False
        self._notify(Notice.REARMED, now)
        self._idle(now)
        return self._reports.flush()

    def tick(self, now: float) -> list[Execution]:
        """Progress, time limits and heartbeat. Due at ``next_wake``; harmless at any time."""
        if self.closed:
            return []
        registered = self._reports.session is not None
        if registered and not self.lost and now >= self._heard + self.timing.planner_timeout:
            self._lose(now)
        if self._plan is None:
            guarded(self.adapter.poll, now)
        self._work(now)
        if self._heartbeat_due is not None and now >= self._heartbeat_due:
            self._heartbeat(now)
        return self._reports.flush()

    def shutdown(self, now: float) -> list[Execution]:
        """The node ends: halt, and the plan is over. What comes afterwards moves nothing."""
        self._drop(ENDS, now)
        self.closed = True
        guarded(self.adapter.close, now)
        return self._reports.flush()

    def next_wake(self, now: float) -> float | None:
        """When to tick next, in s; None: only an input can change anything."""
        times = [self._next_poll(now), self._heartbeat_due]
        if self._reports.session is not None and not self.lost:
            times.append(self._heard + self.timing.planner_timeout)
        if self._plan and self._plan.step:
            times.append(self._plan.deadline)
        return min((time for time in times if time is not None), default=None)

    def _next_poll(self, now: float) -> float | None:
        try:
            return self.adapter.next_poll(now)
        except Exception:  # then poll will say what is wrong, with the next heartbeat
            return now + self.timing.heartbeat_period

    # ---- a plan's life -------------------------------------------------------------------------

    def _begin(self, segment: Segment, now: float) -> None:
        if self._plan:  # only a REPLACE gets here with another plan in progress
            self._drop("replaced", now, idle=False)
        before, calls = self._last
        first_call = calls if before == segment.plan_id else 0  # planned again: it goes on counting
        self._plan = PlanRun(segment.plan_id, self.adapter, self.timing, now, first_call)

    def _feed(self, segment: Segment, now: float) -> None:
        plan = self._plan
        plan.interpreter.feed(segment.text, segment.index, segment.last)
        plan.dry = False
        of_step = plan.progress(now).remaining if plan.step else 0.0
        remaining = plan.remaining_fields(of_step, now)
        fields = {"segment": segment.index} | remaining
        self._reports.add(State.RECEIVED, now, plan.plan_id, **fields)
        self._work(now)

    def _cancel(self, segment: Segment, now: float) -> None:
        """Always answered: the planner waits for the robot to stand still."""
        if self._plan and self._plan.plan_id == segment.plan_id:
            self._drop("canceled", now)
        else:
            self._refuse(segment, State.ABORTED, "canceled: it is not being carried out", now)

    def _work(self, now: float) -> None:
        """Go on until a call takes its time, text is missing, or the plan is over."""
        while (plan := self._plan) is not None:
            if plan.step:
                progress = plan.progress(now)
                if not progress.done:
                    return
                self._settle(progress, now)
            elif self.lost:
                self._end(State.ABORTED, now, error=PLANNER_LOST)
            elif not self._advance(plan, now):
                return

    def _advance(self, plan: PlanRun, now: float) -> bool:
        """One step of the interpreter; False: it is out of text."""
        match plan.interpreter.advance():
            case StartCall() as step:
                self._start(plan, step, now)
            case Opened() as step:
                plan.open(step, now)
                self._started(plan, step, now)
            case Closed(value):
                self._succeeded(value, plan.elapsed(now), now)
                plan.close()
            case NeedText():
                if not plan.dry:
                    plan.dry = True
                    self._idle(now)
                return False
            case Returned(value):
                self._end(State.PLAN_RETURNED, now, **value_fields(value))
            case Replan():
                self._end(State.REPLAN_REQUESTED, now)
            case Fault() as fault:
                self._fail(fault.error, now)
        return True

    def _start(self, plan: PlanRun, step: StartCall, now: float) -> None:
        if error := plan.enter(step, now):
            self._fail(error, now)
            return
        if not step.opened:
            self._started(plan, step, now)
        elif self.adapter.skills[step.call.name].timed:  # how long it takes was not known before
            fields = plan.remaining_fields(step.call.expected_duration, now)
            self._report(State.RUNNING, now, elapsed=plan.elapsed(now), **fields)
        if error := plan.start(self._ask, now):
            self._fail(error, now)

    def _settle(self, progress: Progress, now: float) -> None:
        """The call in progress has ended, well or not."""
        plan = self._plan
        if progress.error:
            elapsed = plan.elapsed(now) if plan.opened else progress.elapsed
            self._fail(progress.error, now, elapsed)
            return
        if plan.opened is None:
            self._succeeded(progress.value, progress.elapsed, now)
        plan.leave(progress)

    def _fail(self, reason: str, now: float, elapsed: float = 0.0) -> None:
        step = self._plan.step
        guarded(self.adapter.halt, now)
        error = f"{step.call.name}: {reason}" if step else reason
        self._end(State.FAILED, now, error=error, elapsed=elapsed)

    def _drop(self, reason: str, now: float, idle: bool = True) -> None:
        """Halt, whatever is going on; a plan ends as aborted."""
        guarded(self.adapter.halt, now)
        if self._plan:
            elapsed = self._plan.elapsed(now)
            self._end(State.ABORTED, now, idle=idle, error=reason, elapsed=elapsed)
        else:
            self._rest(now)

    def _end(self, state: ExecutionState, now: float, idle: bool = True, **fields: Any) -> None:
        self._report(state, now, **fields)
        self._delivery.over(self._plan.plan_id, state)
        self._last = (self._plan.plan_id, self._plan.next_call)
        self._plan = None
        if idle:
            self._notify(Notice.PLAN_OVER, now)
            self._rest(now)

    def _rest(self, now: float) -> None:
        """Nothing is left to do. Without a planner it holds, however it came to that: a drone must
        not stay in the air for ever."""
        self._idle(now)
        if self.lost:
            guarded(self.adapter.hold, now)

    def _lose(self, now: float) -> None:
        """The planner is silent or another one: the current call is finished, then hold."""
        self.lost = True
        if self._plan is None:
            guarded(self.adapter.hold, now)
        else:
            self._notify(Notice.PLANNER_LOST, now)
        self._work(now)

    def _notify(self, notice: Notice, now: float) -> None:
        if isinstance(self.adapter, Notified):
            guarded(self.adapter.notice, notice, now)

    # ---- what goes out -------------------------------------------------------------------------

    def _report(self, state: ExecutionState, now: float, **fields: Any) -> None:
        self._reports.add(state, now, self._plan.plan_id, **(self._plan.call_fields() | fields))

    def _started(self, plan: PlanRun, step: StartCall | Opened, now: float) -> None:
        fields = plan.remaining_fields(step.call.expected_duration, now)
        self._report(State.STARTED, now, **fields)

    def _succeeded(self, value: Value | None, elapsed: float, now: float) -> None:
        held = self._plan.interpreter.held_duration()
        fields = value_fields(value) | {"elapsed": elapsed, "total_remaining": held}
        self._report(State.SUCCEEDED, now, **fields)

    def _refuse(self, segment: Segment, state: ExecutionState, reason: str, now: float) -> None:
        self._reports.add(state, now, segment.plan_id, segment=segment.index, error=reason)

    def _idle(self, now: float) -> None:
        if self._reports.session is not None:
            error = STOPPED if self.stopped else PLANNER_LOST if self.lost else ""
            self._reports.add(State.IDLE, now, self.plan_id, error=error)

    def _heartbeat(self, now: float) -> None:
        plan = self._plan
        if plan is None or plan.step is None:
            self._idle(now)
            return
        progress = plan.progress(now)
        fields = plan.remaining_fields(progress.remaining, now)
        elapsed = plan.elapsed(now) if plan.opened else progress.elapsed
        self._report(State.RUNNING, now, elapsed=elapsed, **fields)
