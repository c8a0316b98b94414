"""One plan's life, from the goal to the robot's last report. Values and a transition table only.

What moves a generation on is decided in ``planner.py``; here stands which moves there are. An
illegal move raises and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from timely_llm.horizon import Horizon
from timely_llm.messages import ErrorCode, PlanGoal, PlanResult, SkillCall
from timely_llm.utility import TimeUtility


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
    STOP = auto()
    END = auto()


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
    **{(state, Move.STOP): State.STOPPING for state in (*_IN_ENGINE, State.WRITTEN)},
    **{(state, Move.END): State.ENDED for state in State if state is not State.ENDED},
}


class IllegalMove(RuntimeError):
    """A move that the table does not have. A fault of ours, never of a goal or a robot."""


@dataclass(slots=True)
class Generation:
    """One goal's plan: how far it is written, sent and executed.

    ``arrival`` is when its clock started, in s; ``segments`` are the texts sent so far, which
    joined are a prefix of ``text``.
    """

    plan_id: str
    number: int
    goal: PlanGoal
    utility: TimeUtility
    arrival: float
    state: State = State.QUEUED
    replaces: bool = False  # the first segment takes the robot from another plan
    replaced: Generation | None = None  # that plan, while it still has the robot
    later: TimeUtility = field(init=False)  # of the segments behind the first

    # Written in the engine.
    submitted: bool = False
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
    withheld: list[str] = field(default_factory=list)  # cut, but sent only with the whole plan
    withheld_calls: list[SkillCall] = field(default_factory=list)
    unacknowledged: dict[int, float] = field(default_factory=dict)  # index: sent at, s
    taken: bool = False  # the robot has received a segment
    response_time: float = -1.0

    # Executed.
    horizon: Horizon = field(default_factory=Horizon)
    execution_time: float = 0.0  # s, of the calls that are over
    elapsed: float = 0.0  # s, of the call in progress, as last reported
    history: list[str] = field(default_factory=list)
    value: str = ""

    # Why and until when it is STOPPING.
    code: ErrorCode = ErrorCode.NONE
    error: str = ""
    stop_deadline: float = 0.0

    def __post_init__(self) -> None:
        self.later = self.utility.continuation()

    def move(self, move: Move) -> None:
        """Change the state as the table says, or raise ``IllegalMove`` and change nothing."""
        target = MOVES.get((self.state, move))
        if target is None:
            raise IllegalMove(f"plan {self.plan_id}: {move.name} in state {self.state.name}")
        self.state = target

    def executed(self, elapsed: float) -> None:
        """A call that took ``elapsed`` s is over."""
        self.execution_time += elapsed
        self.elapsed = 0.0

    @property
    def in_engine(self) -> bool:
        return self.state in _IN_ENGINE

    @property
    def ended(self) -> bool:
        return self.state is State.ENDED

    def result(self, code: ErrorCode, error: str, now: float) -> PlanResult:
        """The goal's result at ``now``. Waiting is the time since the clock started that the robot
        did not spend executing (TimelyLLM, section 7.1)."""
        waited, executed = now - self.arrival, self.execution_time + self.elapsed
        response = self.response_time if self.response_time >= 0 else waited
        return PlanResult(
            plan_id=self.plan_id,
            error_code=code,
            error_msg=error,
            plan="".join(self.text),
            value=self.value,
            num_segments=len(self.segments),
            response_time=self.response_time,
            waiting_time=max(0.0, waited - executed),
            execution_time=executed,
            utility=self.utility(response),
            prompt_tokens=self.prompt_tokens,
            generated_tokens=self.tokens,
        )
