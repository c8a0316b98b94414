"""What goes into the planner and what comes out of it. Plain values.

``Planner.handle`` takes in every event (its table says which function does); every command is
carried out by the node (or the simulator) that drives the planner. Times are s.
"""

from __future__ import annotations

from dataclasses import dataclass

from timely_llm.estimation.learned_times import Learned
from timely_llm.protocols.messages import (
    ErrorCode,
    Execution,
    PlanEvent,
    PlanFeedback,
    PlanGoal,
    PlanResult,
    RobotInfo,
    Segment,
)


@dataclass(frozen=True, slots=True)
class GoalArrived:
    """``plan_id`` is the goal's UUID as 32 hexadecimal digits. It always ends in an ``EndGoal``."""

    plan_id: str
    goal: PlanGoal


@dataclass(frozen=True, slots=True)
class GoalInvalid:
    """A goal that could not even be read; ``reason`` names the field and the limit."""

    plan_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class GoalCanceled:
    plan_id: str


@dataclass(frozen=True, slots=True)
class ExecutionArrived:
    robot_id: str
    execution: Execution


@dataclass(frozen=True, slots=True)
class ReportInvalid:
    """A report of the robot's that could not be read; ``reason`` names the field and the limit."""

    robot_id: str
    session: int
    reason: str


@dataclass(frozen=True, slots=True)
class RegisterRobot:
    """``ticket`` comes back with the answer, ``Registered``. ``instance`` is the adapter's own."""

    ticket: int
    robot_id: str
    kind: str = ""
    skill_set: str = ""
    robot_namespace: str = ""
    instance: str = ""


@dataclass(frozen=True, slots=True)
class UnregisterRobot:
    """``session`` 0: whatever it is. Answered with ``Answered``."""

    ticket: int
    robot_id: str
    session: int = 0


@dataclass(frozen=True, slots=True)
class StopRobots:
    """Stop one robot; an empty id: all. Answered with ``Answered``."""

    ticket: int
    robot_id: str = ""


@dataclass(frozen=True, slots=True)
class AskProbe:
    """A question to the model from inside a running plan. Answered with ``Probed``; ``timeout`` in
    s, 0: the planner's default."""

    ticket: int
    robot_id: str
    session: int
    question: str
    scene: str = ""
    timeout: float = 0.0


@dataclass(frozen=True, slots=True)
class Deactivate:
    """End every goal with ``code``; robots stand still."""

    reason: str = "the planner was deactivated"
    code: ErrorCode = ErrorCode.PLANNER_INACTIVE


@dataclass(frozen=True, slots=True)
class Activate:
    """Goals are accepted from now on."""


@dataclass(frozen=True, slots=True)
class KeepTimes:
    """What is learned about durations is to be kept. Answered with ``TimesLearned`` if there is
    anything new since the last time."""


Event = (
    GoalArrived
    | GoalInvalid
    | GoalCanceled
    | ExecutionArrived
    | ReportInvalid
    | RegisterRobot
    | UnregisterRobot
    | StopRobots
    | AskProbe
    | Deactivate
    | Activate
    | KeepTimes
)


@dataclass(frozen=True, slots=True)
class SendSegment:
    robot_id: str
    segment: Segment


@dataclass(frozen=True, slots=True)
class EmitEvent:
    event: PlanEvent


@dataclass(frozen=True, slots=True)
class EmitFeedback:
    feedback: PlanFeedback


@dataclass(frozen=True, slots=True)
class EndGoal:
    result: PlanResult


@dataclass(frozen=True, slots=True)
class Registered:
    ticket: int
    session: int = 0
    code: ErrorCode = ErrorCode.NONE
    error: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """``robots`` are the ids that the request reached."""

    ticket: int
    code: ErrorCode = ErrorCode.NONE
    error: str = ""
    robots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Probed:
    ticket: int
    code: ErrorCode = ErrorCode.NONE
    error: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class RobotsChanged:
    robots: tuple[RobotInfo, ...]


@dataclass(frozen=True, slots=True)
class RobotFaulted:
    """A robot was given up for a report of its; ``words`` are for the log."""

    robot_id: str
    words: str


@dataclass(frozen=True, slots=True)
class SkillDrifted:
    """A robot's skill takes ``factor`` times as long as it used to; 1: as long as it used to."""

    robot_id: str
    skill: str
    factor: float


@dataclass(frozen=True, slots=True)
class TimesLearned:
    learned: Learned


Command = (
    SendSegment
    | EmitEvent
    | EmitFeedback
    | EndGoal
    | Registered
    | Answered
    | Probed
    | RobotsChanged
    | RobotFaulted
    | SkillDrifted
    | TimesLearned
)
