"""What a plan is made of once it is read: instructions of a small stack machine. Values only.

``parser.py`` writes them in the order of the text, while it grows; the robot's interpreter runs
them. A target that is None is in text that has not come yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from timely_llm.language.skills import Skill, Value


@dataclass(frozen=True, slots=True)
class Call:
    """One skill call of a plan. ``name`` is the skill's short name.

    ``arguments`` are as written, ``values`` what is known of them: literals, else None. ``start``
    and ``end`` are offsets in the plan, around the call with its parentheses.
    """

    name: str
    arguments: tuple[str, ...] = ()
    values: tuple[Value | None, ...] = ()
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Push:
    """Put a literal on the stack."""

    value: Value


@dataclass(frozen=True, slots=True)
class Load:
    """Put a variable on the stack."""

    variable: str
    position: int


@dataclass(frozen=True, slots=True)
class Store:
    """Take the top into a variable."""

    variable: str
    position: int


@dataclass(frozen=True, slots=True)
class Apply:
    """Replace the two upper values by ``left operator right``."""

    operator: str
    position: int


@dataclass(frozen=True, slots=True)
class Negate:
    """Replace the top by its negative."""

    position: int


@dataclass(frozen=True, slots=True)
class Invoke:
    """Take the arguments, call the skill, put its value on the stack unless it is ``dropped``.

    ``index`` counts the calls of the text.
    """

    skill: Skill
    call: Call
    index: int
    dropped: bool


@dataclass(slots=True)
class Skip:
    """Inside a condition: on a top that is ``when``, keep it and go to ``target``; else drop it."""

    when: bool
    target: int | None = None


@dataclass(slots=True)
class Enter:
    """After a condition: take the top; if it is false, go to ``target``, after the block."""

    target: int | None = None


@dataclass(frozen=True, slots=True)
class Repeat:
    """Begin a loop of ``count`` passes."""

    count: int
    position: int


@dataclass(frozen=True, slots=True)
class Again:
    """The end of a pass: go to ``start`` unless it was the last one."""

    start: int
    position: int


@dataclass(frozen=True, slots=True)
class Return:
    """The plan is over; the top is its value."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The plan is over: the robot is not to do what was asked, for this reason."""

    reason: str


Instruction = (
    Push | Load | Store | Apply | Negate | Invoke | Skip | Enter | Repeat | Again | Return | Refuse
)
