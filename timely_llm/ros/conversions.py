"""ROS messages to plain values and back: the only place that knows both.

``to_ros`` and ``from_ros`` go by tables: which message a dataclass is, and how a field of a given
kind is written. A message whose value makes no sense (a number that names no constant, a utility
that is not one, a number or a text beyond its limit) is a ``ValueError`` that names the field, and
so is an id that is none; nothing else is checked here.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from builtin_interfaces.msg import Time
from unique_identifier_msgs.msg import UUID

from timely_llm.action import Plan
from timely_llm.msg import (
    Execution,
    PlanEvent,
    PlannerStatus,
    RobotInfo,
    RobotList,
    Segment,
    SkillCall,
)
from timely_llm.msg import TimeUtility as RosTimeUtility
from timely_llm.protocols import messages as values
from timely_llm.protocols.utility import TimeUtility, Urgency

# ---- single values -------------------------------------------------------------------------------


def time_to_ros(seconds: float) -> Time:
    """s since the epoch, rounded to 1 ns; a float holds today's time to about 0.2 us."""
    whole = math.floor(seconds)
    nanoseconds = round((seconds - whole) * 1e9)
    return Time(sec=whole + nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def time_from_ros(time: Time) -> float:
    """s since the epoch."""
    return (time.sec * 1_000_000_000 + time.nanosec) / 1_000_000_000  # rounded once


def uuid_to_ros(plan_id: str) -> UUID:
    """From 32 hexadecimal digits."""
    return UUID(uuid=instance_to_ros(plan_id))


def uuid_from_ros(uuid: UUID) -> str:
    """32 hexadecimal digits."""
    return instance_from_ros(uuid.uuid)


def instance_to_ros(instance: str) -> list[int]:
    """16 bytes (of a planner, an adapter or a UUID) from 32 hexadecimal digits; "": zeros."""
    data = bytes.fromhex(instance) if instance else bytes(16)
    if len(data) != 16:
        raise ValueError(f"{instance!r}: must be 32 hexadecimal digits")
    return list(data)


def instance_from_ros(data: Any) -> str:
    """32 hexadecimal digits from 16 bytes."""
    return bytes(data).hex()


def utility_to_ros(utility: TimeUtility | None) -> RosTimeUtility:
    """None, the preset of the goal's urgency, is all zero."""
    if utility is None:
        return RosTimeUtility()
    return RosTimeUtility(ert=utility.ert, alpha=utility.alpha, beta=utility.beta)


def utility_from_ros(message: RosTimeUtility) -> TimeUtility | None:
    """``ValueError`` names the field that is not finite or has the wrong sign."""
    if message.ert == message.alpha == message.beta == 0.0:
        return None
    return TimeUtility(message.ert, message.alpha, message.beta)


# ---- limits --------------------------------------------------------------------------------------

#: The most of a field, by its name: the magnitude of a number, the characters of a text.
_MOST: dict[str, float] = {
    **dict.fromkeys(("elapsed", "skill_remaining", "total_remaining"), values.LONGEST_TIME),
    **dict.fromkeys(("expected_duration", "timeout"), values.LONGEST_TIME),
    **dict.fromkeys(("ttft", "tpot", "time_budget"), values.LONGEST_TIME),
    **dict.fromkeys(("robot_id", "kind", "name", "robot_namespace"), values.LONGEST_NAME),
    **dict.fromkeys(("arguments", "evaluated", "value", "question"), values.LONGEST_VALUE),
    **dict.fromkeys(("instruction", "scene"), values.LONGEST_REQUEST),
    "skill_set": values.LONGEST_SKILL_SET,
}
_DEFAULT = {
    "double": values.MOST_NUMBER,
    "string": values.LONGEST_TEXT,
    "sequence<string>": values.LONGEST_TEXT,
}


@functools.cache
def _limits(message_type: Any) -> tuple[tuple[str, str, float], ...]:
    """Name, kind and most of the fields of a message that have a limit."""
    fields = message_type.get_fields_and_field_types().items()
    return tuple(
        (name, kind, _MOST.get(name, _DEFAULT[kind])) for name, kind in fields if kind in _DEFAULT
    )


def check(message: Any) -> None:
    """``ValueError`` that names the field and the limit, unless every number is finite and every
    number and text within its limit. What lies deeper in the message is not looked at."""
    message_type: Any = type(message)
    for name, kind, most in _limits(message_type):
        value = getattr(message, name)
        if kind == "double":
            if not abs(value) <= most:
                raise ValueError(f"{name} is {value}: must be finite, {-most:g} to {most:g}")
        elif (
            length := len(value) if kind == "string" else sum(map(len, value), len(value))
        ) > most:
            raise ValueError(f"{name} has {length} characters: at most {most:.0f}")


# ---- fields --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """How a field is written and read. ``read`` gets the field's name for its errors."""

    write: Callable[[Any], Any]
    read: Callable[[Any, str], Any]


def _enum(cls: type[IntEnum]) -> _Kind:
    def read(value: int, field: str) -> IntEnum:
        try:
            return cls(value)
        except ValueError:
            known = ", ".join(f"{member.value} {member.name}" for member in cls)
            raise ValueError(f"{field} is {value}: must be one of {known}") from None

    return _Kind(int, read)


def _nested(many: bool = False) -> _Kind:
    if many:
        return _Kind(
            lambda items: [to_ros(item) for item in items],
            lambda items, field: tuple(from_ros(item) for item in items),
        )
    return _Kind(lambda item: to_ros(item), lambda item, field: from_ros(item))


def _writable(text: str) -> str:
    """A text as a message can carry it: no half of a surrogate pair, but its escape."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


_PLAIN = _Kind(
    lambda value: _writable(value) if type(value) is str else value, lambda value, field: value
)
_WORDS = _Kind(_writable, lambda value, field: values.head(value, values.LONGEST_WORDS))
_TIME = _Kind(time_to_ros, lambda value, field: time_from_ros(value))
_UUID = _Kind(uuid_to_ros, lambda value, field: uuid_from_ros(value))
_INSTANCE = _Kind(instance_to_ros, lambda value, field: instance_from_ros(value))
_UTILITY = _Kind(utility_to_ros, lambda value, field: utility_from_ros(value))
_TUPLE = _Kind(lambda texts: list(map(_writable, texts)), lambda value, field: tuple(value))

#: Message of each dataclass, and the fields that are not written as they are.
_TABLE: dict[type, tuple[type, dict[str, _Kind]]] = {
    values.SkillCall: (SkillCall, {"arguments": _TUPLE, "evaluated": _TUPLE}),
    values.Segment: (
        Segment,
        {
            "plan_id": _UUID,
            "command": _enum(values.SegmentCommand),
            "calls": _nested(many=True),
            "stamp": _TIME,
        },
    ),
    values.Execution: (
        Execution,
        {
            "plan_id": _UUID,
            "state": _enum(values.ExecutionState),
            "call": _nested(),
            "error": _WORDS,
            "stamp": _TIME,
        },
    ),
    values.PlanGoal: (
        Plan.Goal,
        {
            "urgency": _enum(Urgency),
            "utility": _UTILITY,
            "when_busy": _enum(values.WhenBusy),
            "on_failure": _enum(values.OnFailure),
        },
    ),
    values.PlanResult: (Plan.Result, {"plan_id": _UUID, "error_code": _enum(values.ErrorCode)}),
    values.PlanFeedback: (Plan.Feedback, {"plan_id": _UUID, "state": _enum(values.FeedbackState)}),
    values.RobotInfo: (RobotInfo, {"registered": _TIME}),
    values.PlannerStatus: (PlannerStatus, {"instance": _INSTANCE, "stamp": _TIME}),
}
_BY_MESSAGE = {message: value for value, (message, _) in _TABLE.items()}


def to_ros(value: Any) -> Any:
    """The ROS message of a dataclass of ``messages.py`` (a ``PlanEvent``: ``event_to_ros``)."""
    message_type, kinds = _TABLE[type(value)]
    message = message_type()
    for field in dataclasses.fields(value):
        kind = kinds.get(field.name, _PLAIN)
        setattr(message, field.name, kind.write(getattr(value, field.name)))
    return message


def from_ros(message: Any) -> Any:
    """The dataclass of a ROS message (of a ``PlanEvent``: ``event_from_ros``)."""
    check(message)
    value_type = _BY_MESSAGE[type(message)]
    kinds = _TABLE[value_type][1]
    return value_type(
        **{
            field.name: kinds.get(field.name, _PLAIN).read(getattr(message, field.name), field.name)
            for field in dataclasses.fields(value_type)
        }
    )


# ---- messages of another shape -------------------------------------------------------------------

#: Fields of a goal in a PlanEvent: all, under the same names.
_GOAL_FIELDS = tuple(
    field.name for field in dataclasses.fields(values.PlanGoal) if field.name != "robot_id"
)
#: Fields of a result in a PlanEvent, by their names there.
_RESULT_FIELDS = {
    "error_code": "error_code",
    "error_msg": "error_msg",
    "value": "value",
    "response_time": "response_time",
    "waiting_time": "waiting_time",
    "execution_time": "execution_time",
    "utility_value": "utility",
    "prompt_tokens": "prompt_tokens",
    "generated_tokens": "generated_tokens",
    "replans": "replans",
}
_PLAIN_EVENT_FIELDS = (
    *("robot_id", "cached_tokens", "segment", "text", "last", "tokens", "recomputed_tokens"),
)
_WITH_RESULT = (
    values.PlanEventType.RETURNED,
    values.PlanEventType.ENDED,
    values.PlanEventType.REFUSED,
    values.PlanEventType.REPLANNED,
)


def event_to_ros(event: values.PlanEvent, instance: str) -> PlanEvent:
    """``instance`` is the planner's. The fields of the goal and of the result are fields of the
    message."""
    message = PlanEvent(
        stamp=time_to_ros(event.stamp),
        instance=instance_to_ros(instance),
        plan_id=uuid_to_ros(event.plan_id),
        type=int(event.type),
        step_times=list(event.step_times),
        horizon=event.horizon,
    )
    for name in _PLAIN_EVENT_FIELDS:
        setattr(message, name, _PLAIN.write(getattr(event, name)))
    if event.goal is not None:
        goal = to_ros(event.goal)
        for name in _GOAL_FIELDS:
            setattr(message, name, getattr(goal, name))
    if event.result is not None:
        result = to_ros(event.result)
        for name, field in _RESULT_FIELDS.items():
            setattr(message, name, getattr(result, field))
    return message


def event_from_ros(message: PlanEvent) -> values.PlanEvent:
    """The event; a result holds what the message has of it (``num_segments`` and ``plan``
    are not in it)."""
    kind = _enum(values.PlanEventType).read(message.type, "type")
    check(message)
    plan_id = uuid_from_ros(message.plan_id)
    goal = result = None
    if kind is values.PlanEventType.ACCEPTED:
        fields = {name: getattr(message, name) for name in _GOAL_FIELDS}
        goal = from_ros(Plan.Goal(robot_id=message.robot_id, **fields))
    if kind in _WITH_RESULT:
        fields = {field: getattr(message, name) for name, field in _RESULT_FIELDS.items()}
        result = from_ros(Plan.Result(plan_id=message.plan_id, **fields))
    return values.PlanEvent(
        plan_id=plan_id,
        type=kind,
        stamp=time_from_ros(message.stamp),
        goal=goal,
        result=result,
        step_times=tuple(message.step_times),
        horizon=message.horizon,
        **{name: getattr(message, name) for name in _PLAIN_EVENT_FIELDS},
    )


def robots_to_ros(robots: tuple[values.RobotInfo, ...], instance: str, stamp: float) -> RobotList:
    """The latched list of robots; ``stamp`` in s."""
    return RobotList(
        stamp=time_to_ros(stamp),
        instance=instance_to_ros(instance),
        robots=[to_ros(robot) for robot in robots],
    )
