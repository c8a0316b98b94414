"""One plan being carried out on an adapter: the call in progress, its limits, what is left. Pure.

``executor/executor.py`` decides what happens next; this file holds what it decides on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from robot_adapters.adapter import Adapter, Progress
from robot_adapters.executor.interpreter import Interpreter, Opened, StartCall


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


def guarded(action: Callable[..., Any], *arguments: Any) -> str:
    """Call into an adapter; what it raises comes back in words, and ends nothing else."""
    try:
        action(*arguments)
    except Exception as error:
        return f"adapter: {error}"
    return ""


class PlanRun:
    """``step`` is the call in progress, None between two calls; ``question`` a probe's. ``opened``
    is the call of the plan that has a definition, while the robot does the calls of that."""

    def __init__(
        self, plan_id: str, adapter: Adapter, timing: Timing, now: float, first_call: int = 0
    ) -> None:
        self.plan_id = plan_id
        self.interpreter = Interpreter(adapter.skills)
        self.step: StartCall | None = None
        self.question: Question | None = None
        self.opened: Opened | None = None
        self.dry = False
        self._adapter = adapter
        self._timing = timing
        self._started = now
        self._step_started = now
        self._travel = 0.0
        self._calls = first_call  # that have ended, with those of the goal's earlier plans
        self._call_started = now

    def open(self, step: Opened, now: float) -> None:
        """What comes next is the definition of ``step``."""
        self.opened, self._call_started = step, now

    def close(self) -> None:
        """The call that was opened has ended."""
        self.opened, self._calls = None, self._calls + 1

    def enter(self, step: StartCall, now: float) -> str:
        """Make ``step`` the call in progress. What it would break, in words; empty: it may start.

        Everything is checked on the evaluated arguments and before any motion.
        """
        self.step, self._step_started = step, now
        if self.opened is None:
            self._call_started = now
        call, bounds = step.call, self._adapter.skills.bounds
        if now - self._started + max(0.0, call.expected_duration) > bounds.max_time:
            return f"the plan would take longer than max_time, {bounds.max_time:g} s"
        try:
            self._travel += self._adapter.travel(call)
            reason = self._adapter.check(call)
        except Exception as error:  # a fault of the adapter must not end in a motion
            return f"adapter: {error}"
        if self._travel > bounds.max_travel:
            return f"the plan would travel further than max_travel, {bounds.max_travel:g} m"
        return reason or ""

    def start(self, ask: Callable[[Question], None] | None, now: float) -> str:
        """Let the robot do the call, or ``ask`` the model; empty, or what went wrong at once."""
        call = self.step.call
        if ask is None or self._adapter.skills[call.name].role != "probe":
            return guarded(self._adapter.start, call, now)
        return guarded(self._question, ask, " ".join(call.evaluated))

    def _question(self, ask: Callable[[Question], None], text: str) -> None:
        scene, timeout = self._adapter.observe(), self._timing.probe_timeout
        self.question = Question(self.plan_id, self._calls, text, scene, timeout)
        ask(self.question)

    def leave(self, progress: Progress) -> None:
        """The call in progress is done; its value goes to the plan."""
        self.step = self.question = None
        if self.opened is None:
            self._calls += 1
        self.interpreter.complete(progress.value)

    def progress(self, now: float) -> Progress:
        """Of the call in progress; over its time limit it is done with an error."""
        elapsed = now - self._step_started if self.step else 0.0
        if self.question is None:
            try:
                progress = self._adapter.poll(now)
            except Exception as error:
                return Progress(True, error=f"adapter: {error}", elapsed=elapsed)
        else:
            expected = max(0.0, self.step.call.expected_duration)
            progress = Progress(False, elapsed=elapsed, remaining=max(0.0, expected - elapsed))
        if not progress.done and now >= self.deadline:
            return Progress(True, error=f"not done after {elapsed:.3g} s", elapsed=elapsed)
        return progress

    def elapsed(self, now: float) -> float:
        """s since the plan's call in progress began; 0 between two calls."""
        return now - self._call_started if self.opened or self.step else 0.0

    @property
    def deadline(self) -> float:
        """When the call in progress fails."""
        if self.question:
            return self._step_started + self.question.timeout
        expected = max(0.0, self.step.call.expected_duration)
        return self._step_started + self._timing.overtime * expected + self._timing.patience

    @property
    def next_call(self) -> int:
        """The number behind those of all calls that were begun."""
        return self._calls + (self.opened is not None or self.step is not None)

    def call_fields(self) -> dict[str, Any]:
        """The plan's call in progress, as ``Execution`` has it."""
        step = self.opened or self.step
        if step is None:
            return {}
        return {"segment": step.segment, "call": step.call, "call_number": self._calls}

    def remaining_fields(self, of_step: float, now: float) -> dict[str, float]:
        """``skill_remaining`` and ``total_remaining``: with all that is held. ``of_step``: what the
        robot has yet to do of the call that it carries out."""
        of_call = max(0.0, of_step)
        if self.opened:
            of_call = max(of_call, self.opened.call.expected_duration - self.elapsed(now))
        held = self.interpreter.held_duration()
        return {"skill_remaining": of_call, "total_remaining": of_call + held}
