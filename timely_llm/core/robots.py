"""The robots a planner knows: sessions, who is alive, whose turn it is on each robot. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from timely_llm.core.request import Request
from timely_llm.estimation.learned_times import RobotTimes, Times
from timely_llm.estimation.segment_length import SegmentLength
from timely_llm.language.loader import read_skill_set
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.fixed import FixedPrompt
from timely_llm.protocols.messages import ErrorCode, Execution, ExecutionState, RobotInfo
from timely_llm.validation.names import hint
from timely_llm.validation.reader import FileError

MOST_ROBOTS = 1000
MOST_KINDS = 1000  # since the start; what is learned of one stays when its robots are gone
STOPPED = "stopped"  # the error of IDLE while the stop is latched; with more, it does not stand yet


MOST_LEAP = 1_000_000  # of a sequence number: more reports than can be lost in one session


class Refused(Exception):
    """A request that cannot be met, with its code and words that name the field or the robot."""

    def __init__(self, code: ErrorCode, error: str) -> None:
        super().__init__(error)
        self.code, self.error = code, error


@dataclass(slots=True)
class Robot:
    """One registered robot. ``current`` is the request it works on, ``queue`` those after it."""

    robot_id: str
    skills: SkillSet
    fixed: FixedPrompt
    prefix: str  # id of the request that keeps it computed
    namespace: str
    session: int
    instance: str
    registered: float
    lengths: SegmentLength
    last_heard: float
    last_sequence: int = -1
    alive: bool = True
    stopped: bool = False
    stop_sent: float | None = None  # s, when; None once it is confirmed
    current: Request | None = None
    queue: deque[Request] = field(default_factory=deque)
    choosing: bool = False  # the next one of the queue is being started
    times: RobotTimes | None = None  # None: the skill set's durations stand

    def info(self) -> RobotInfo:
        return RobotInfo(
            self.robot_id,
            self.skills.kind,
            self.namespace,
            self.session,
            self.skills.text,
            self.alive,
            self.stopped,
            self.registered,
        )

    @property
    def spoke(self) -> bool:
        """Whether it has reported in its session: only then can anything reach it."""
        return self.last_sequence >= 0

    def follow(self, report: Execution) -> bool:
        """Alive again, stopped or rearmed, as its report says; whether any of that is news. While a
        stop is not confirmed, an IDLE does not rearm it: it may be from before."""
        stopped = self.stopped
        if report.state is ExecutionState.IDLE:
            if report.error == STOPPED:
                self.stop_sent = None
            stopped = report.error.startswith(STOPPED) or self.stop_sent is not None
        news = not self.alive or stopped != self.stopped
        self.alive, self.stopped = True, stopped
        return news

    def heard(self, execution: Execution, now: float) -> bool:
        """Whether ``execution`` is news of this session; a repeat or a stranger is not."""
        leap = execution.sequence - self.last_sequence
        if execution.session != self.session or leap < 1 or (self.spoke and leap > MOST_LEAP):
            return False
        self.last_sequence = execution.sequence
        self.last_heard = now
        return True


class Fleet:
    """All robots by id. ``kinds`` are the skill sets known by name; ``sessions`` yields session
    ids that no other start of the planner gives out. Robots of one kind share what is learned about
    the lengths of their segments. Without ``times`` nothing is learned about durations."""

    def __init__(
        self,
        kinds: Mapping[str, SkillSet],
        sessions: Callable[[], int],
        times: Times | None = None,
    ) -> None:
        self.kinds = dict(kinds)
        self.times = times
        self.robots: dict[str, Robot] = {}
        self._sessions = sessions
        self._lengths: dict[str, SegmentLength] = {}

    def __iter__(self) -> Iterator[Robot]:
        return iter(self.robots.values())

    def find(self, robot_id: str) -> Robot:
        """The robot, or ``Refused`` with the nearest known id."""
        robot = self.robots.get(robot_id)
        if robot is None:
            known = hint(robot_id, self.robots, "registered")
            raise Refused(
                ErrorCode.UNKNOWN_ROBOT, f"robot_id {robot_id!r} is not registered{known}"
            )
        return robot

    def skills_of(self, kind: str, skill_set: str, robot_id: str) -> SkillSet:
        """The skill set of a registration: its own text, or a kind's. ``Refused`` where neither."""
        if skill_set:
            try:
                skills = read_skill_set(skill_set, source=f"skill_set of {robot_id}")
            except FileError as error:
                raise Refused(ErrorCode.INVALID_SKILL_SET, str(error)) from error
            if kind and kind != skills.kind:
                raise Refused(
                    ErrorCode.INVALID_SKILL_SET,
                    f"kind is {kind!r} but the skill set's is {skills.kind!r}: leave one out",
                )
            if skills.kind not in self._lengths and len(self._lengths) >= MOST_KINDS:
                words = f"kind {skills.kind!r} is new, and {len(self._lengths)} kinds are known"
                raise Refused(ErrorCode.OVERLOADED, f"{words}: at most {MOST_KINDS}")
            return skills
        if kind not in self.kinds:
            known = ", ".join(sorted(self.kinds))
            raise Refused(
                ErrorCode.INVALID_SKILL_SET,
                f"kind {kind!r} is unknown and no skill_set is given (known: {known})",
            )
        return self.kinds[kind]

    def may_register(self, robot_id: str, instance: str) -> Robot | None:
        """The robot that this registration replaces, or None. ``Refused`` while another adapter of
        the same id is alive."""
        if not robot_id or len(robot_id) > 64 or not robot_id.isprintable():
            raise Refused(
                ErrorCode.INVALID_GOAL, f"robot_id {robot_id!r}: must be 1 to 64 printable letters"
            )
        known = self.robots.get(robot_id)
        if known is None and len(self.robots) >= MOST_ROBOTS:
            words = (
                f"{len(self.robots)} robots are registered: at most {MOST_ROBOTS}; unregister one"
            )
            raise Refused(ErrorCode.OVERLOADED, words)
        if known and known.alive and known.instance != instance:
            raise Refused(
                ErrorCode.ROBOT_EXISTS,
                f"robot_id {robot_id!r} is registered by another adapter that is alive",
            )
        return known

    def add(self, *, skills: SkillSet, **fields: Any) -> Robot:
        """Make a robot known under a new session."""
        kind = skills.kind
        lengths = self._lengths.setdefault(kind, SegmentLength())
        robot = Robot(session=self._sessions(), lengths=lengths, skills=skills, **fields)
        self.robots[robot.robot_id] = robot
        if self.times is not None and robot.skills.reading is None:
            robot.times = self.times.robot(robot.robot_id, robot.skills)
        return robot

    def infos(self) -> tuple[RobotInfo, ...]:
        return tuple(robot.info() for _, robot in sorted(self.robots.items()))
