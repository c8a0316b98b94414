"""What planner and robots tell each other, as plain values.

Field by field these are the ROS messages of the same names (``msg/``, ``action/``), which document
them; ``ros/conversions.py`` is the only place that knows both. Times are seconds, plan ids are the
32 hexadecimal digits of the goal's UUID.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from timely_llm.protocols.utility import TimeUtility, Urgency

NO_PLAN = "0" * 32

# Limits of what comes from outside; texts in characters.
LONGEST_TIME = 1e6  # s, that a goal or a report speaks of
MOST_NUMBER = 1e15  # of any other number
LONGEST_NAME = 256  # ids, kinds, names
LONGEST_VALUE = 8192  # an argument, or what a call returns
LONGEST_WORDS = 4096  # kept of what somebody says went wrong
LONGEST_REQUEST = 1 << 20  # an instruction, a scene
LONGEST_SKILL_SET = 1 << 17
LONGEST_TEXT = 1 << 24  # any other


class ErrorCode(IntEnum):
    """Why a goal or a request ended as it did; values as in ``action/Plan``."""

    NONE = 0
    UNKNOWN_ROBOT = 100
    INVALID_GOAL = 101
    ROBOT_BUSY = 102
    OUTRANKED = 103
    CANCELED = 104
    PREEMPTED = 105
    OVERLOADED = 106
    INVALID_PLAN = 200
    PLAN_TRUNCATED = 201
    REFUSED = 202
    SKILL_FAILED = 300
    SEGMENT_REFUSED = 301
    DELIVERY_FAILED = 302
    ROBOT_LOST = 303
    ROBOT_RESTARTED = 304
    ROBOT_STOPPED = 305
    INVALID_SKILL_SET = 306
    ROBOT_EXISTS = 307
    INVALID_SESSION = 308
    ENGINE_FAILED = 400
    PLANNER_INACTIVE = 401
    TIMEOUT = 402


class WhenBusy(IntEnum):
    """What happens to a goal whose robot has a plan already."""

    QUEUE = 0
    PREEMPT = 1
    REJECT = 2


class OnFailure(IntEnum):
    """What happens to a goal whose plan failed on its robot."""

    ABORT = 0
    REPLAN = 1


class SegmentCommand(IntEnum):
    """What a robot does with a segment."""

    RUN = 0
    REPLACE = 1
    CANCEL = 2
    STOP = 3


class ExecutionState(IntEnum):
    """What a robot reports of a call, of a plan, or of itself (IDLE)."""

    RECEIVED = 0
    STARTED = 1
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    ABORTED = 5
    REJECTED = 6
    PLAN_RETURNED = 7
    REPLAN_REQUESTED = 8
    IDLE = 9
    REFUSED = 10


class PlanEventType(IntEnum):
    """What happened to a plan."""

    ACCEPTED = 0
    QUEUED = 1
    STARTED = 2
    SEGMENT = 3
    SUSPENDED = 4
    RESUMED = 5
    EVICTED = 6
    PREEMPTED = 7
    REFUSED = 8
    RETURNED = 9
    ENDED = 10
    REPLANNED = 11


class FeedbackState(IntEnum):
    """Where a goal stands."""

    QUEUED = 0
    WAITING = 1
    GENERATING = 2
    SUSPENDED = 3
    EXECUTING = 4
    STOPPING = 5


def head(text: str, most: int) -> str:
    """The text, or its first ``most`` characters and how many it had."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class SkillCall:
    """One call of a skill. ``arguments`` are as the plan writes them; ``evaluated`` are the values
    that the robot computed, empty before that. ``expected_duration`` is in s; below 0: not
    known."""

    name: str
    arguments: tuple[str, ...] = ()
    evaluated: tuple[str, ...] = ()
    expected_duration: float = -1.0


@dataclass(frozen=True, slots=True)
class Segment:
    """Planner to robot: ``text`` is part ``index`` of a plan, counted from 0 without gaps,
    ``calls`` those complete in it. With ``last`` none follows. ``stamp`` is in s."""

    session: int
    plan_id: str
    index: int
    command: SegmentCommand = SegmentCommand.RUN
    text: str = ""
    calls: tuple[SkillCall, ...] = ()
    last: bool = False
    stamp: float = 0.0


@dataclass(frozen=True, slots=True)
class Execution:
    """Robot to planner, and the robot's heartbeat. ``sequence`` counts its messages,
    ``call_number`` the calls carried out for this goal. All times are in s: ``elapsed`` of this
    call, how much of it is left, and how long the robot can go on with what it holds."""

    session: int
    sequence: int
    plan_id: str
    state: ExecutionState
    segment: int = 0
    call: SkillCall = SkillCall("")
    call_number: int = 0
    elapsed: float = 0.0
    skill_remaining: float = 0.0
    total_remaining: float = 0.0
    has_value: bool = False
    value: str = ""
    error: str = ""
    stamp: float = 0.0


@dataclass(frozen=True, slots=True)
class PlanGoal:
    """What a client asks for. ``utility`` None is the preset of the ``urgency``. ``ttft`` (until
    the first segment), ``tpot`` (a token) and ``time_budget`` (until the plan is written) are
    targets in s; 0: none."""

    robot_id: str
    instruction: str
    scene: str = ""
    urgency: Urgency = Urgency.UNSPECIFIED
    utility: TimeUtility | None = None
    ttft: float = 0.0
    tpot: float = 0.0
    time_budget: float = 0.0
    when_busy: WhenBusy = WhenBusy.QUEUE
    on_failure: OnFailure = OnFailure.ABORT
    max_replans: int = 0


@dataclass(frozen=True, slots=True)
class PlanResult:
    """How a goal ended. Times are in s: ``response_time`` until the first segment was sent (-1:
    there was none), ``waiting_time`` that the robot stood still for want of plan."""

    plan_id: str
    error_code: ErrorCode = ErrorCode.NONE
    error_msg: str = ""
    plan: str = ""
    value: str = ""
    num_segments: int = 0
    response_time: float = -1.0
    waiting_time: float = 0.0
    execution_time: float = 0.0
    utility: float = 0.0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    replans: int = 0


@dataclass(frozen=True, slots=True)
class PlanFeedback:
    """``estimated_time_remaining``: s until the robot has nothing left to do of what it holds."""

    plan_id: str
    state: FeedbackState
    queue_position: int = 0
    segment: int = 0
    text: str = ""
    estimated_time_remaining: float = 0.0


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """Every change of a plan's state; which fields count depends on the ``type``. ``step_times``
    (s) are of the engine steps that wrote a segment; ``horizon`` is s until the robot is starved,
    below 0: it is."""

    plan_id: str
    robot_id: str
    type: PlanEventType
    stamp: float = 0.0
    goal: PlanGoal | None = None
    cached_tokens: int = 0
    segment: int = 0
    text: str = ""
    last: bool = False
    tokens: int = 0
    step_times: tuple[float, ...] = ()
    horizon: float = -1.0
    result: PlanResult | None = None
    recomputed_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RobotInfo:
    """A registered robot. ``skill_set`` is the YAML it registered with; ``stopped`` is a latched
    stop."""

    robot_id: str
    kind: str
    robot_namespace: str
    session: int
    skill_set: str = field(repr=False)
    alive: bool = True
    stopped: bool = False
    registered: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannerStatus:
    """The planner's heartbeat: plans by what they wait for, KV blocks, and in s ``step_time`` and
    ``overhead``, our own share of it, means over the last 100 engine steps."""

    instance: str = ""
    policy: str = ""
    model: str = ""
    engine: str = ""
    pace: str = ""
    robots: int = 0
    waiting: int = 0
    running: int = 0
    suspended: int = 0
    executing: int = 0
    kv_blocks_used: int = 0
    kv_blocks_total: int = 0
    step_time: float = 0.0
    overhead: float = 0.0
    prompt_tokens_recomputed: int = 0
    stamp: float = 0.0
