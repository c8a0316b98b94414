"""What a drone's skills ask of it, told by their long names: motions, waits, looks. Pure.

A drone that flies by an SDK does motions itself. What depends on a picture needs somebody who
looks at it: ``perception.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from timely_llm.language.skills import Skill, SkillSet, Value

#: SDK command of a move, and its direction (ahead, left, up).
MOVES: dict[str, tuple[str, tuple[int, int, int]]] = {
    "move_forward": ("forward", (1, 0, 0)),
    "move_backward": ("back", (-1, 0, 0)),
    "move_left": ("left", (0, 1, 0)),
    "move_right": ("right", (0, -1, 0)),
    "move_up": ("up", (0, 0, 1)),
    "move_down": ("down", (0, 0, -1)),
}
#: SDK command of a turn, and its sense; counterclockwise is positive.
TURNS = {"turn_cw": ("cw", -1), "turn_ccw": ("ccw", 1)}
MOVE_LIMITS, TURN_LIMITS = (20, 500), (1, 360)  # cm, degrees; whole numbers (SDK 2.0)
TAKEOFFS, LANDINGS = ("takeoff", "take_off"), ("land", "landing")
WAITS, SAYS = "delay", "log"
BARE = frozenset((*MOVES, *TURNS, *TAKEOFFS, *LANDINGS, WAITS, SAYS))

SIGHTS = ("object_x", "object_y", "object_width", "object_height", "object_dis")
#: The method of a perception that a skill needs.
NEEDS = {
    **dict.fromkeys((*SIGHTS, "is_visible", "scan", "goto"), "look"),
    "scan_abstract": "answer",
    "take_picture": "picture",
}
#: Skills of these that move the drone.
ROAMING = ("scan", "scan_abstract", "goto")


@dataclass(frozen=True, slots=True)
class Way:
    """What a command does to the pose: m ahead, left and up; degrees counterclockwise."""

    ahead: float = 0.0
    left: float = 0.0
    up: float = 0.0
    turn: float = 0.0

    @property
    def length(self) -> float:
        """m"""
        return (self.ahead**2 + self.left**2 + self.up**2) ** 0.5


@dataclass(frozen=True, slots=True)
class Step:
    """One command of the SDK and where it leads."""

    command: str
    way: Way


def moves(skill: Skill) -> bool:
    """Whether the skill needs a drone in the air."""
    return skill.long_name in MOVES or skill.long_name in TURNS or skill.long_name in ROAMING


def step_of(action: str, value: Value) -> Step | None:
    """The command for a move or turn by long name; None for what is neither. A ``ValueError``
    names the limit of the SDK that ``value`` breaks."""
    if action in MOVES:
        word, direction = MOVES[action]
        amount = _whole(word, value, MOVE_LIMITS, "cm")
        return Step(f"{word} {amount}", Way(*(amount / 100 * share for share in direction)))
    if action in TURNS:
        word, sense = TURNS[action]
        amount = _whole(word, value, TURN_LIMITS, "degrees")
        return Step(f"{word} {amount}", Way(turn=float(sense * amount)))
    return None


def _whole(word: str, value: Value, limits: tuple[int, int], unit: str) -> int:
    low, high = limits
    if isinstance(value, (bool, str)) or not low <= value <= high or value != int(value):
        raise ValueError(f"{word} takes whole numbers of {low} to {high} {unit}, not {value}")
    return int(value)


def missing(skills: SkillSet, perception: Any = None) -> dict[str, str]:
    """The skills that cannot be done, by long name, each with what it lacks: a method of
    ``perception``, or empty where no such thing is known. Probes and replans are not the drone's,
    and a definition asks nothing of it but what the skills in it do.
    """
    lacking = {}
    for skill in skills.skills:
        name = skill.long_name
        if skill.role or skill.definition or name in BARE:
            continue
        need = NEEDS.get(name, "")
        if not need or not _has(perception, need):
            lacking[name] = need
    return lacking


def misfits(skills: SkillSet) -> list[str]:
    """Motions and waits whose arguments are not what the drone takes, in words."""
    faults = []
    for skill in skills.skills:
        unit = _unit(skill.long_name)
        if unit and not _fits(skill.arguments, unit):
            faults.append(f"{skill.name}: must take one number of {unit}")
    return faults


def _unit(action: str) -> str:
    if action in MOVES:
        return "cm"
    return "deg" if action in TURNS else "s" if action == WAITS else ""


def _fits(arguments: Sequence[Any], unit: str) -> bool:
    return len(arguments) == 1 and arguments[0].type != "str" and arguments[0].unit in ("", unit)


def _has(perception: Any, need: str) -> bool:
    """``answer`` goes with ``look``: a scan looks first."""
    return callable(getattr(perception, need, None))
