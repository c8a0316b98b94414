"""One request: a goal and its plan, up to the robot's last report. Values and moves only.

Who moves a request is up to ``state.py``; here stands which moves there are and what each changes.
An illegal move raises and changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from timely_llm.estimation.horizon import Horizon
from timely_llm.prompts.history import Attempt, Done
from timely_llm.protocols.messages import (
    ErrorCode,
    Execution,
    FeedbackState,
    PlanGoal,
    PlanResult,
    SkillCall,
)
from timely_llm.protocols.utility import TimeUtility


class State(Enum):
    QUEUED = auto()  # the robot has other work first
    WAITING = auto()  # submitted, nothing computed yet
    RUNNING = auto()  # in the engine's run set
    SUSPENDED = auto()  # keeps its KV blocks
    EVICTED = auto()  # gave them up, to be computed again
    WRITTEN = auto()  # written to the end; the robot executes
    STOPPING = auto()  # over, but the robot has yet to confirm that it stands still
    ENDED = auto()


class Move(Enum):
    START = auto()
    RUN = auto()
    SUSPEND = auto()
    EVICT = auto()
    FINISH = auto()
    REPLAN = auto()
    STOP = auto()
    END = auto()


FEEDBACK = {
    State.QUEUED: FeedbackState.QUEUED,
    State.WAITING: FeedbackState.WAITING,
    State.RUNNING: FeedbackState.GENERATING,
    State.SUSPENDED: FeedbackState.SUSPENDED,
    State.EVICTED: FeedbackState.SUSPENDED,
    State.WRITTEN: FeedbackState.EXECUTING,
    State.STOPPING: FeedbackState.STOPPING,
}
"""How a goal's client is told of its state, before it has ended."""

MOST_DONE = 40
"""Calls of a plan that are remembered, the last ones; a loop may do any number of them."""

_IN_ENGINE = (State.WAITING, State.RUNNING, State.SUSPENDED, State.EVICTED)

MOVES: dict[tuple[State, Move], State] = {
    (State.QUEUED, Move.START): State.WAITING,
    (State.WAITING, Move.RUN): State.RUNNING,
    (State.SUSPENDED, Move.RUN): State.RUNNING,
    (State.EVICTED, Move.RUN): State.RUNNING,
    (State.RUNNING, Move.SUSPEND): State.SUSPENDED,
    (State.RUNNING, Move.EVICT): State.EVICTED,
    (State.SUSPENDED, Move.EVICT): State.EVICTED,
    # A token may still be on its way when a generation is suspended, and it may be the last one.
    (State.RUNNING, Move.FINISH): State.WRITTEN,
    (State.SUSPENDED, Move.FINISH): State.WRITTEN,
    (State.EVICTED, Move.FINISH): State.WRITTEN,
    # What was begun has failed on the robot: another plan is to be written for the same goal.
    **{
        (state, Move.REPLAN): State.WAITING
        for state in (State.RUNNING, State.SUSPENDED, State.EVICTED, State.WRITTEN)
    },
    **{(state, Move.STOP): State.STOPPING for state in (*_IN_ENGINE, State.WRITTEN)},
    **{(state, Move.END): State.ENDED for state in State if state is not State.ENDED},
}


class IllegalMove(RuntimeError):
    """A move that the table does not have. A fault of ours, never of a goal or a robot."""


@dataclass(slots=True)
class Request:
    """One goal's plan: how far it is written, sent and executed.

    ``arrival`` is when its clock started, in s. ``segments`` are the texts sent so far; those from
    ``first_index`` on, joined, are a prefix of ``text``. The earlier ones are of ``attempts``,
    plans for the same goal that have failed: the present one is ``asked`` for since then, in s.
    """

    plan_id: str
    number: int
    goal: PlanGoal
    utility: TimeUtility
    arrival: float
    state: State = State.QUEUED
    replaces: bool = False  # the first segment takes the robot from another plan
    replaced: Request | None = None  # that plan, while it still has the robot
    later: TimeUtility = field(init=False)  # of the segments behind the first
    attempts: list[Attempt] = field(default_factory=list)
    asked: float = field(init=False)

    # Written in the engine.
    begun: bool = False
    text: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    uncached: int = 0  # prompt tokens that the engine has yet to compute
    tokens: int = 0
    first_token: float = -1.0  # when it came, s
    last_token: float = -1.0
    predicted: float = -1.0  # tokens of the whole plan, as last predicted; below 0: not asked
    predict_at: int = 0  # tokens at which to ask again
    segment_tokens: int = 0
    step_times: list[float] = field(default_factory=list)
    recomputed_tokens: int = 0

    # Sent to the robot.
    segments: list[str] = field(default_factory=list)
    first_index: int = 0
    withheld: list[str] = field(default_factory=list)  # cut, but sent only with the whole plan
    withheld_calls: list[SkillCall] = field(default_factory=list)
    unacknowledged: dict[int, float] = field(default_factory=dict)  # index: sent at, s
    taken: bool = False  # the robot has received a segment
    response_time: float = -1.0
    slowest_response: float = -1.0  # of this and the earlier attempts

    # Executed.
    horizon: Horizon = field(default_factory=Horizon)
    execution_time: float = 0.0  # s, of the calls that are over
    elapsed: float = 0.0  # s, of the call in progress, as last reported
    history: deque[Done] = field(default_factory=lambda: deque(maxlen=MOST_DONE))
    value: str = ""
    refused: str = ""  # why there is no more of the plan: its check refused what came next

    # Why and until when it is STOPPING.
    code: ErrorCode = ErrorCode.NONE
    error: str = ""
    stop_deadline: float = 0.0

    def __post_init__(self) -> None:
        self.later = self.utility.continuation()
        self.asked = self.arrival

    def move(self, move: Move) -> None:
        """Change the state as the table says, or raise ``IllegalMove`` and change nothing."""
        target = MOVES.get((self.state, move))
        if target is None:
            raise IllegalMove(f"plan {self.plan_id}: {move.name} in state {self.state.name}")
        self.state = target

    def starts(self, now: float) -> None:
        """The goal's clock starts."""
        self.arrival = self.asked = now

    def wrote(self, text: str, tokens: int, durations: Sequence[float], now: float) -> None:
        """Engine steps that took ``durations`` s, the last until ``now``, gave ``tokens`` more."""
        self.text.append(text)
        if tokens and not self.tokens:
            self.first_token = now
        self.tokens += tokens
        self.segment_tokens += tokens
        self.step_times.extend(durations)
        self.last_token = now
        # A token may come out of an engine that has evicted the request since.
        self.uncached = self.uncached + tokens if self.state is State.EVICTED else 0

    def computed(self, count: int) -> None:
        """The engine has computed ``count`` tokens of its prompt, or of what was lost."""
        self.uncached = max(0, self.uncached - count)

    def recomputed(self, count: int) -> None:
        """``count`` tokens of it were computed again, after an eviction."""
        self.recomputed_tokens += count

    def predict(self, remaining: float, again: int) -> None:
        """``remaining`` tokens are predicted to come; ask again after ``again`` more."""
        self.predicted, self.predict_at = self.tokens + remaining, self.tokens + again

    def withhold(self, text: str, calls: Sequence[SkillCall]) -> tuple[str, tuple[SkillCall, ...]]:
        """Keep a segment until the plan is whole; all that is kept by now."""
        self.withheld.append(text)
        self.withheld_calls.extend(calls)
        return "".join(self.withheld), tuple(self.withheld_calls)

    def sent(self, text: str, calls: Sequence[SkillCall], now: float, network: float) -> None:
        """The next segment goes to the robot, which has it ``network`` s later."""
        if self.unsent:
            self._responded(now)
        index = len(self.segments)
        self.segments.append(text)
        self.unacknowledged[index] = now
        self.horizon.sent(index, calls, now + network)

    def _responded(self, now: float) -> None:
        """The first segment of the present plan is sent."""
        response = now - self.asked
        if self.response_time < 0:
            self.response_time = response
        self.slowest_response = max(self.slowest_response, response)

    def received(self, report: Execution, now: float) -> None:
        """The robot holds the report's segment."""
        self.taken = True
        self.unacknowledged.pop(report.segment, None)
        self.horizon.received(report, now)

    def progressed(self, report: Execution, now: float) -> None:
        """The robot executes a call, and says how long it has done so."""
        self.elapsed = report.elapsed
        self.horizon.reported(report, now)

    def executed(self, elapsed: float) -> None:
        """A call that took ``elapsed`` s is over, whatever came of it."""
        self.execution_time += elapsed
        self.elapsed = 0.0

    def remember(self, done: Done) -> None:
        """A call of the plan is done, for prompts that tell of the last ones."""
        self.history.append(done)

    def returned(self, value: str) -> None:
        """The robot is through with the plan, which has this value."""
        self.value = value

    def refuse(self, error: str) -> None:
        """What was written next is refused: the plan ends with what the robot has of it."""
        self.move(Move.FINISH)
        self.refused = error

    def stopping(self, code: ErrorCode, error: str, deadline: float) -> None:
        """It is over for this reason once the robot stands still, at ``deadline`` (s) at last."""
        self.move(Move.STOP)
        self.code, self.error, self.stop_deadline = code, error, deadline

    def replan(self, attempt: Attempt, number: int, now: float) -> None:
        """What was begun has failed: the same goal is planned again, as one that arrives now."""
        self.move(Move.REPLAN)
        self.attempts.append(attempt)
        self.number, self.asked, self.begun = number, now, False
        self.first_token = self.last_token = self.predicted = -1.0
        self.prompt_tokens = self.uncached = self.tokens = self.segment_tokens = 0
        self.predict_at, self.first_index = 0, len(self.segments)
        self.taken, self.value, self.elapsed, self.refused = False, "", 0.0, ""
        for pieces in (self.text, self.withheld, self.withheld_calls, self.step_times):
            pieces.clear()
        self.history.clear()
        self.unacknowledged.clear()
        self.horizon = Horizon()

    @property
    def unsent(self) -> bool:
        """Nothing of the present plan is on its way to the robot: it does nothing for it."""
        return len(self.segments) == self.first_index

    @property
    def in_engine(self) -> bool:
        return self.state in _IN_ENGINE

    @property
    def ended(self) -> bool:
        return self.state is State.ENDED

    def result(self, code: ErrorCode, error: str, now: float) -> PlanResult:
        """The goal's result at ``now``. Waiting is the time since the clock started that the robot
        did not spend executing (TimelyLLM, section 7.1). The utility is that of the slowest
        response of all attempts."""
        waited, executed = now - self.arrival, self.execution_time + self.elapsed
        response = max(self.slowest_response, now - self.asked if self.unsent else 0.0)
        texts = [attempt.written for attempt in self.attempts]
        if present := "".join(self.text):
            texts.append(present)
        return PlanResult(
            plan_id=self.plan_id,
            error_code=code,
            error_msg=error,
            plan="\n".join(texts),
            value=self.value,
            num_segments=len(self.segments),
            response_time=self.response_time,
            waiting_time=max(0.0, waited - executed),
            execution_time=executed,
            utility=self.utility(response),
            prompt_tokens=self.prompt_tokens + sum(old.prompt_tokens for old in self.attempts),
            generated_tokens=self.tokens + sum(old.tokens for old in self.attempts),
            replans=len(self.attempts),
        )
