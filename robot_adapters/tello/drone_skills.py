"""What a drone's skills ask of it, by their long names: motions, waits, looks. Pure.

A drone that flies by an SDK does motions itself. What depends on a picture needs somebody who
looks at it: ``perception.py``.
"""

from __future__ import annotations

from robot_adapters.perception import SIGHTS, Answers, Looks, TakesPictures
from robot_adapters.tello.dead_reckoning import Step, Way
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
#: Skills that take one number, and its unit.
UNITS = {**dict.fromkeys(MOVES, "cm"), **dict.fromkeys(TURNS, "deg"), WAITS: "s"}
BARE = frozenset((*UNITS, *TAKEOFFS, *LANDINGS, SAYS))

#: The method of a perception that a skill needs.
NEEDS = {
    **dict.fromkeys((*SIGHTS, "is_visible", "scan", "goto"), "look"),
    "scan_abstract": "answer",
    "take_picture": "picture",
}
_PROTOCOLS = {"look": Looks, "answer": Answers, "picture": TakesPictures}
#: Skills that need a drone in the air.
_AIRBORNE = (*MOVES, *TURNS, "scan", "scan_abstract", "goto")


def moves(skill: Skill) -> bool:
    """Whether the skill needs a drone in the air."""
    return skill.long_name in _AIRBORNE


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


def missing(skills: SkillSet, perception: object = None) -> dict[str, str]:
    """The skills that cannot be done, by long name, each with what it lacks: a method of
    ``perception``, or empty where no such method is known. Probes and replans are not the drone's,
    and a definition asks nothing of it but what the skills in it do.
    """
    own = (s.long_name for s in skills.skills if not s.role and not s.definition)
    needs = {name: NEEDS.get(name, "") for name in own if name not in BARE}
    return {
        name: need
        for name, need in needs.items()
        if not need or not isinstance(perception, _PROTOCOLS[need])
    }


def misfits(skills: SkillSet) -> list[str]:
    """Motions and waits whose arguments are not what the drone takes, in words."""
    faults = []
    for skill in skills.skills:
        unit = UNITS.get(skill.long_name)
        types = [a.type for a in skill.arguments if a.unit in ("", unit)]
        if unit and (len(skill.arguments) != 1 or types not in (["int"], ["float"])):
            faults.append(f"{skill.name}: must take one number of {unit}")
    return faults
