"""The protocol between a robot and its executor, and the adapters known by name.

Pure: no ROS and no robot SDK here. An adapter of a real robot lives in a file of its own, which is
imported only when its name is asked for. ``docs/your_robot.md`` tells how to write one.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from timely_llm.language.skills import SkillSet
from timely_llm.protocols.messages import SkillCall
from timely_llm.validation.names import hint


class AdapterError(ValueError):
    """An adapter cannot be made: unknown name, unknown or wrong parameter, broken world file."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the call that was started last has come. Times in s on the robot's clock.

    ``remaining`` is what the robot can know, and a lower estimate where it cannot: the planner
    resumes a plan by it, and too late is worse than too early. Below 0 (overdue) it counts as 0.
    """

    done: bool
    value: bool | int | float | str | None = None
    error: str = ""
    elapsed: float = 0.0
    remaining: float = 0.0


@dataclass(frozen=True, slots=True)
class AdapterParameter:
    """A parameter of an adapter; the robot node declares it under this name."""

    name: str
    default: bool | int | float | str
    description: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None


@runtime_checkable
class Adapter(Protocol):
    """One robot. Every method returns at once; whatever takes time is seen through ``poll``.

    ``now`` is the robot's clock in s. A method may raise: the executor then fails the call and
    halts the robot. ``halt``, ``hold`` and ``close`` must work in every state, repeatedly: where
    one raises, the robot has not confirmed it, and it is called again until it returns. A class
    that derives from this one need not have the methods that have an answer here.
    """

    PARAMETERS: ClassVar[tuple[AdapterParameter, ...]]
    skills: SkillSet

    def check(self, call: SkillCall) -> str | None:
        """Why the call must not be carried out from here (geofence, reach, state), or None.

        Called right before ``start`` with the evaluated arguments.
        """
        return None

    def travel(self, call: SkillCall) -> float:
        """How far the body would move, in m; counted against the skill set's travel bound."""
        return 0.0

    def start(self, call: SkillCall, now: float) -> None:
        """Begin the call. There is never more than one; ``poll`` follows at once."""
        ...

    def poll(self, now: float) -> Progress:
        """Progress of the call; one that is done stays done until the next ``start``.

        Also called without a call, so that a hold can go on (land).
        """
        ...

    def next_poll(self, now: float) -> float | None:
        """When ``poll`` has something to see or do at the soonest; None: not before a ``start``."""
        ...

    def halt(self, now: float) -> None:
        """Stop all motion now and stay where it stopped. The call, if any, is given up."""
        ...

    def hold(self, now: float) -> None:
        """Nobody plans for this robot any more: stay safe (a drone hovers, then lands)."""
        ...

    def resume(self, now: float) -> None:
        """A planner is there (again): ends ``hold``; moves nothing."""
        return None

    def observe(self) -> str:
        """The scene as the robot sees it, as prompts have it: ``[cat x:0.48 y:0.5 ...]``."""
        return "[]"

    def diagnostics(self) -> Mapping[str, str]:
        """State for people: battery, pose, mode."""
        return {}

    def close(self, now: float) -> None:
        """The node ends: halt and let go of the robot. The one method that may take a second."""
        self.halt(now)


#: What an adapter's class must have, and of these what has no answer in ``Adapter``. Its
#: ``__init__`` takes the robot's id, the skills and the parameters, and sets ``skills``.
PARTS = ("PARAMETERS", *sorted(name for name in vars(Adapter) if not name.startswith("_")))
OWN = ("start", "poll", "next_poll", "halt", "hold")


class Notice(enum.Enum):
    """What calls alone do not show; see ``Notified``."""

    STOPPED = "stopped, until rearmed"
    REARMED = "takes plans again"
    PLAN_OVER = "the plan in progress has ended, whatever its end"
    PLANNER_LOST = "the planner was lost in the middle of a call; hold follows after it"


@runtime_checkable
class Notified(Protocol):
    """An adapter may have this method too. It is called after ``halt`` or ``hold`` where these are
    called as well, and must move nothing at once."""

    def notice(self, notice: Notice, now: float) -> None: ...


@runtime_checkable
class Recoverable(Protocol):
    """An adapter may have this method too: it has the robot's controller recover from a fault of
    its own, and returns at once why it does not, or nothing. The node makes a service of it."""

    def recover(self, now: float) -> str: ...


@runtime_checkable
class OnNode(Protocol):
    """An adapter may have this method too: it is called once, before all others, with the robot's
    ROS node, for topics and services of its own. What they call comes between the other methods,
    never during one of them, so that no lock is needed."""

    def attach(self, node: Any) -> None: ...


#: Adapters by name: ``module:class``. Imported when asked for, so that no SDK is needed unused.
ADAPTERS: dict[str, str] = {
    "simulated": "robot_adapters.simulated.adapter:SimulatedAdapter",
    "tello": "robot_adapters.tello.adapter:TelloAdapter",
    "indy7": "robot_adapters.indy7.adapter:Indy7Adapter",
    "rover": "robot_adapters.rover:RoverAdapter",
}


def load_class(path: str, what: str) -> type[Any]:
    """The class ``module:class``; ``AdapterError`` says of ``what`` why it cannot be had."""
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise AdapterError(f"{what}: {error}") from error


def adapter_class(name: str) -> type[Any]:
    """The adapter class of a registered name, or of ``module:class`` for one of your own.

    Raises AdapterError for an unknown name, a module that cannot be imported, and a class that
    lacks a part of the protocol.
    """
    path = name if ":" in name else ADAPTERS.get(name)
    if path is None:
        raise AdapterError(f"adapter: unknown name {name!r}{hint(name, ADAPTERS)}")
    found = load_class(path, f"adapter {name!r}")
    missing = [part for part in PARTS if part not in dir(found)]
    missing += [part for part in OWN if getattr(found, part, None) is getattr(Adapter, part)]
    if missing:
        raise AdapterError(
            f"adapter {name!r}: {path.rpartition(':')[2]} lacks {', '.join(missing)}"
        )
    return found


def make_adapter(name: str, robot_id: str, skills: SkillSet, **parameters: Any) -> Adapter:
    """An adapter by name; refuses parameters that it does not have, with the nearest known name."""
    cls = adapter_class(name)
    known = {parameter.name for parameter in cls.PARAMETERS}
    for parameter in parameters:
        if parameter not in known:
            raise AdapterError(
                f"adapter {name!r}: unknown parameter {parameter!r}{hint(parameter, known)}"
            )
    return cls(robot_id, skills, **parameters)
