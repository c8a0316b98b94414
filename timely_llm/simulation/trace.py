"""What is replayed: tasks, when they arrive at which robot, and how long its skills really take.

Values only. A trace fixes everything that a policy cannot change, so that two policies on one trace
are compared pair by pair: arrivals, answers token by token, and the durations of all calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from timely_llm.protocols.utility import TimeUtility, Urgency


@dataclass(frozen=True, slots=True)
class Task:
    """What a goal asks for and what the model answers.

    ``tokens`` joined are the answer. A goal's prompt has ``system_tokens``, the same for all of its
    ``kind`` and cached, and ``prompt_tokens`` of its own. ``ttft`` (s), ``tpot`` (s per token) and
    ``time_budget`` (s, until the whole answer is written) are targets; 0: none.
    """

    name: str
    kind: str  # of robot: a skill set, or a text kind
    instruction: str
    tokens: tuple[str, ...]
    utility: TimeUtility
    urgency: Urgency
    scene: str = ""
    system_tokens: int = 0
    prompt_tokens: int = 1
    ttft: float = 0.0
    tpot: float = 0.0
    time_budget: float = 0.0

    @property
    def plan(self) -> str:
        return "".join(self.tokens)


@dataclass(frozen=True, slots=True)
class Arrival:
    """``task`` reaches the planner ``at`` s for ``robot_id``. ``durations`` (s) are how long the
    calls of its plan really take, one each in order of the text; no policy sees them."""

    at: float
    robot_id: str
    task: Task
    durations: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """Arrivals in order of time. ``source`` says where tasks and times are from."""

    name: str
    arrivals: tuple[Arrival, ...]
    source: str = ""
