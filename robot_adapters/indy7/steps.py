"""What a call of an arm is made of, and what is asked of the controller for it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from robot_adapters.indy7.words import Look

ANGLE, DISTANCE = 0.5, 2.0  # deg and mm, how far from its target the arm may stand


@dataclass(frozen=True, slots=True)
class JointMove:
    """To ``joints`` in deg."""

    joints: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class MoveTo:
    """By the joints to a pose of the tool (mm, deg): the controller is asked for the joints."""

    tool: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """In a straight line to a pose of the tool (mm, deg)."""

    tool: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Operate:
    """A call of the SDK that moves no joint, and ``wait`` s for it to take effect."""

    method: str
    arguments: Mapping[str, Any]
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Sense:
    """Digital input ``address`` must be ``state``, or the call fails with ``words``."""

    address: int
    state: bool
    words: str


@dataclass(frozen=True, slots=True)
class Then:
    """Something to note, in no time."""

    action: Callable[[], None]


Step = JointMove | MoveTo | Line | Operate | Sense | Then


@dataclass(frozen=True, slots=True)
class Request:
    """A call of the SDK; ``look`` is several. Answered by ``on_answer`` with the same number."""

    number: int
    method: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in s, ``speed`` and ``acceleration`` in percent, ``stop_category`` 0 to 2."""

    stop_category: int = 2
    speed: float = 15.0
    acceleration: float = 100.0
    link_timeout: float = 2.0
    start_timeout: float = 2.0
    settle_timeout: float = 10.0
    late: float = 5.0  # that a move which was not answered may begin late


def is_at(target: JointMove | Line, look: Look) -> bool:
    """Whether the arm stands where the move leads."""
    if isinstance(target, JointMove):
        pairs = zip(target.joints, look.joints, strict=True)
        return max(abs(a - b) for a, b in pairs) <= ANGLE
    pairs = zip(target.tool[:3], look.tool[:3], strict=True)
    return sum((a - b) ** 2 for a, b in pairs) ** 0.5 <= DISTANCE
