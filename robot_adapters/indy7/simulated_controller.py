"""A simulated Indy7 controller: what it makes of the calls of its clients. Pure.

Time comes in as ``now`` in s. ``grpc_simulator.py`` serves it by gRPC. As on the controller, a
move's call only queues the move, which begins a little later; until then the motion data are those
of the last one. Operation states are numbered as the controller's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robot_adapters.indy7.cell import Cell, Object
from robot_adapters.indy7.kinematics import (
    HOME,
    Joints,
    Unreachable,
    Way,
    joint_way,
    joints_for,
    straight_way,
    tool,
    within_limits,
)
from robot_adapters.simulated.faults import Fault, FaultError, Kind, PendingFaults, parse_fault

VIOLATE, IDLE, MOVING, COLLISION, STOP_AND_OFF = 2, 5, 6, 8, 9
STATES = {VIOLATE: "VIOLATE", IDLE: "IDLE", MOVING: "MOVING", COLLISION: "COLLISION",
          STOP_AND_OFF: "STOP_AND_OFF"}  # fmt: skip
QUEUE_DELAY = 0.05  # s, from a move's answer to its beginning
STOP_TIME = (0.05, 0.2, 0.2)  # s to stand still, by category: brakes, slow and brakes, slow
MAX_QUEUE = 100
FINGERS = 20.0  # mm, how far off the gripper may close and still hold a thing
OK, REFUSED = 0, -1

KINDS = {
    "hang": Kind("for S s calls are carried out, but not answered"),
    "loss": Kind("for S s nothing gets through in either direction"),
    "deny": Kind("for S s it says that it stands still, whatever it does"),
    "nonsense": Kind("for S s it tells joints that are no numbers"),
    "mute": Kind("the next N moves are carried out, but not answered", 1, 1000, 1),
    "late": Kind("the next move reaches the arm S s late"),
    "reject": Kind("the next move is refused", 1, 1, 1),
    "drop": Kind("the next move is answered as taken, and never begun", 1, 1, 1),
    "short": Kind("the next move ends half-way, without a word", 1, 1, 1),
    "collision": Kind("in the middle of the next move the arm collides", 1, 1, 1),
    "violation": Kind("in the middle of the next move a joint violates its limit", 1, 1, 1),
    "deaf": Kind("the next N stops are neither carried out nor answered", 1, 1000, 1),
    "shrug": Kind("the next N stops are answered, and not carried out", 1, 1000, 1),
    "output": Kind("the next call of the gripper is refused", 1, 1, 1),
    "slip": Kind("the gripper holds nothing when it closes next", 1, 1, 1),
}
#: What a move that is cut short by a fault ends in; idle: without a word.
_ENDS = {"collision": COLLISION, "violation": VIOLATE, "short": IDLE}

Reply = tuple[int, str]  # code, words


@dataclass(frozen=True, slots=True)
class _Motion:
    """``ends`` early with ``trouble`` (VIOLATE, COLLISION, IDLE for no word), if there is some."""

    way: Way
    begins: float
    ends: float
    trouble: int = 0

    def share(self, now: float) -> float:
        """Of its time, which is over; below 0 before it begins."""
        return (now - self.begins) / self.way.duration if self.way.duration else 1.0

    def joints(self, now: float) -> Joints:
        return self.way.at(self.share(now))


@dataclass(frozen=True, slots=True)
class _Braking:
    """From ``here`` to ``there``, from ``begins`` to ``ends``."""

    here: Joints
    there: Joints
    begins: float
    ends: float
    category: int

    def joints(self, now: float) -> Joints:
        share = min(1.0, (now - self.begins) / (self.ends - self.begins))
        return tuple(a + (b - a) * share for a, b in zip(self.here, self.there, strict=True))


class SimIndy:
    """One arm. ``cell`` is what it stands in, if there is more than air; when nobody has called for
    ``tidy`` s (0: never mind), its things are put back where they were.

    ``log`` holds what was asked (``<``), refused (``>``) and what happened (``*``), with times.
    """

    def __init__(self, cell: Cell | None = None, home: Joints = HOME, tidy: float = 0.0) -> None:
        self.cell = self._at_first = cell
        self._tidy, self._called = tidy, 0.0
        self.op_state = IDLE
        self.violation: tuple[int, int, str] = (0, 0, "")  # code, joint, words
        self.holds = ""
        self.outputs: dict[int, int] = {}
        self.log: deque[tuple[float, str, str]] = deque(maxlen=10_000)
        self._joints = home
        self._current: _Motion | None = None
        self._queue: list[Way] = []
        self._moves = 0
        self._reached = True
        self._braking: _Braking | None = None
        self.faults = PendingFaults()
        self._until = dict.fromkeys(("hang", "loss", "deny", "nonsense"), -math.inf)

    # ---- calls ---------------------------------------------------------------------------------

    def hear(self, now: float) -> None:
        """Somebody calls, whatever it is."""
        if self._tidy and now > self._called + self._tidy and self.cell is not self._at_first:
            self.cell, self.holds = self._at_first, ""
            self._event(now, "things are put back")
        self._called = now

    def move(
        self, kind: str, target: Sequence[float], now: float, speed: float = 15.0,
        acceleration: float = 100.0, time: float = 0.0, relative: bool = False,
    ) -> Reply:  # fmt: skip
        """``joint`` or ``line``, in percent of the full speed, or in ``time`` s."""
        self.advance(now)
        words = ", ".join(f"{value:.4g}" for value in target)
        self.log.append((now, "<", f"{kind} {words}"))
        if self.op_state not in (IDLE, MOVING) or self._braking:
            return self._refuse(f"not ready to move: {STATES[self.state(now)]}", now)
        if len(self._queue) >= MAX_QUEUE:
            return self._refuse("the motion queue is full", now)
        if self.faults.take("reject"):
            return self._refuse("invalid motion parameter", now)
        try:
            way = self._way(kind, target, speed, acceleration, time, relative)
        except Unreachable as reason:
            return self._refuse(f"inverse kinematics failed: {reason}", now)
        if not self.faults.take("drop"):
            self._queue.append(way)
            if self._current is None:
                self._begin_next(now)
        return OK, "accepted"

    def stop(self, category: int, now: float) -> Reply:
        """Drop the queue and brake: 0 at once, 1 and 2 slowly; 0 and 1 put the brakes on."""
        self.advance(now)
        self.log.append((now, "<", f"stop {category}"))
        if self.faults.take("shrug"):
            return OK, "stopped"
        self._queue.clear()
        if self._current is not None:
            span = STOP_TIME[category]
            here, there = self._current.joints(now), self._current.joints(now + span / 2)
            self._braking = _Braking(here, there, now, now + span, category)
            self._current, self._reached = None, False
        elif category < 2 and self.op_state == IDLE:
            self.op_state = STOP_AND_OFF
        return OK, "stopped"

    def recover(self, now: float) -> Reply:
        """Out of a violation, a collision, or a stop that put the brakes on."""
        self.advance(now)
        self.log.append((now, "<", "recover"))
        if self.op_state not in (VIOLATE, COLLISION, STOP_AND_OFF):
            return self._refuse(f"nothing to recover from: {STATES[self.op_state]}", now)
        self.op_state, self.violation = IDLE, (0, 0, "")
        self._event(now, "recovered")
        return OK, "recovered"

    def operate(self, method: str, arguments: Mapping[str, Any], now: float) -> Reply:
        """An output, a tool or the gripper: ``method`` of the SDK."""
        self.advance(now)
        self.log.append((now, "<", f"{method} {list(arguments.values())}"))
        if self.faults.take("output"):
            return self._refuse("device error", now)
        if method == "set_do":
            self.outputs.update(arguments["do_signal_list"])
        if self.cell and (method, arguments) == self.cell.gripper.close:
            self._grip(self.cell, now)
        elif self.cell and (method, arguments) == self.cell.gripper.open:
            self._release(self.cell, now)
        elif method != "set_do":
            return self._refuse(f"{method}: unknown", now)
        return OK, ""

    def inputs(self) -> dict[int, int]:
        """Digital inputs by address."""
        sensor = self.cell.gripper.sensor if self.cell else None
        return {} if sensor is None else {sensor[0]: int(bool(self.holds) == sensor[1])}

    # ---- what it tells -------------------------------------------------------------------------

    def joints(self, now: float) -> Joints:
        """Where the joints are, in deg."""
        self.advance(now)
        motion = self._braking or self._moving(now)
        return motion.joints(now) if motion else self._joints

    def told(self, now: float) -> Joints:
        """Where it says they are."""
        return (math.nan,) * 6 if now < self._until["nonsense"] else self.joints(now)

    def motion(self, now: float) -> dict[str, Any]:
        """As ``get_motion_data`` has it."""
        self.advance(now)
        if denied := now < self._until["deny"]:
            motion, braking = None, False
        else:
            motion, braking = self._moving(now), self._braking is not None
        moving = motion is not None
        share = motion.share(now) if motion else float(self._reached)
        return {
            "is_in_motion": moving or braking,
            "is_target_reached": denied or (self._reached and not moving),
            "is_stopping": braking,
            "has_motion": moving or braking,
            "motion_id": self._moves,
            "motion_queue_size": len(self._queue),
            "traj_progress": round(100 * share),
        }

    def state(self, now: float) -> int:
        """The operation state."""
        self.advance(now)
        moving = now >= self._until["deny"] and (self._moving(now) or self._braking)
        return MOVING if moving and self.op_state == IDLE else self.op_state

    # ---- faults --------------------------------------------------------------------------------

    def ask(self, text: str, now: float) -> Reply:
        """A fault, in so many s where it has a time: ``collision``, ``loss=2@5``."""
        try:
            fault = parse_fault(text, KINDS)
        except FaultError as error:
            return REFUSED, str(error)
        self.inject(replace(fault, at=now + fault.at), now)
        return OK, ""

    def inject(self, fault: Fault, now: float) -> None:
        """A fault begins, now or at its time."""
        self.advance(now)
        self.faults.schedule(fault, now)
        self.advance(now)

    def lost(self, now: float) -> bool:
        """Nothing gets through."""
        self.advance(now)
        return now < self._until["loss"]

    def silent(self, now: float) -> bool:
        """Calls are not answered."""
        return self.lost(now) or now < self._until["hang"]

    # ---- time ----------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Let everything happen that happens until ``now``, in order."""
        while (at := min(self._times(), default=math.inf)) <= now:
            self._happen(at)

    def _times(self) -> list[float]:
        """When something begins or ends by itself."""
        motions = (self._current, self._braking)
        return [*self.faults.times, *(motion.ends for motion in motions if motion)]

    def _happen(self, now: float) -> None:
        for fault in self.faults.due(now):
            self._begin_fault(fault, now)
        if self._braking is not None and self._braking.ends <= now:
            self._joints = self._braking.there
            if self._braking.category < 2:
                self.op_state = STOP_AND_OFF
            self._braking = None
            self._event(now, "stands still")
        elif self._current is not None and self._current.ends <= now:
            self._arrive(self._current, now)

    def _arrive(self, motion: _Motion, now: float) -> None:
        self._joints, self._current = motion.joints(now), None
        self._reached = not motion.trouble
        if motion.trouble in (VIOLATE, COLLISION):
            self.op_state = motion.trouble
            self._queue.clear()
            self.violation = {
                VIOLATE: (0x20, 2, "joint 3 exceeds its velocity limit"),
                COLLISION: (0x40, 1, "collision detected at joint 2"),
            }[motion.trouble]
            self._event(now, self.violation[2])
        elif self._queue:
            self._begin_next(now)

    def _begin_next(self, now: float) -> None:
        way, begins = self._queue.pop(0), now + QUEUE_DELAY
        fault = self.faults.take(*_ENDS)
        ends = begins + (way.duration / 2 if fault else way.duration)
        self._moves += 1
        self._current = _Motion(way, begins, ends, _ENDS[fault.kind] if fault else 0)

    def _moving(self, now: float) -> _Motion | None:
        """The motion in progress, once it has begun."""
        return self._current if self._current and now >= self._current.begins else None

    # ---- the rest ------------------------------------------------------------------------------

    def _way(
        self, kind: str, target: Sequence[float], speed: float, acceleration: float, time: float,
        relative: bool,
    ) -> Way:  # fmt: skip
        last = self._queue[-1] if self._queue else self._current.way if self._current else None
        begin = last.end if last else self._joints
        if len(target) != 6:
            raise Unreachable(f"a target has 6 numbers, not {len(target)}")
        if not (0 < speed <= 100 and 0 < acceleration <= 900 and time >= 0):
            raise Unreachable("speed is 1 to 100 %, acceleration 1 to 900 %")
        start = begin if kind == "joint" else tool(begin)
        goal = [a + b for a, b in zip(start, target, strict=True)] if relative else target
        if kind == "joint":
            way = joint_way(begin, within_limits(goal), speed, acceleration)
        else:
            way = straight_way(begin, joints_for(goal, begin), speed, acceleration)
        return replace(way, duration=time) if time else way

    def _grip(self, cell: Cell, now: float) -> None:
        x, y, z = tool(self.joints(now))[:3]
        near = [thing for thing in cell if _between(thing, x, y, z)]
        if near and not self.holds and not self.faults.take("slip"):
            self.holds = min(near, key=lambda t: math.dist(t.position, (x, y, z))).name
            self._event(now, f"holds {self.holds}")

    def _release(self, cell: Cell, now: float) -> None:
        if self.holds:
            x, y, z = tool(self.joints(now))[:3]
            thing = cell[self.holds]
            spot = (x, y, max(0.0, z - thing.grip))
            self.cell, self.holds = cell.moved(thing.name, spot), ""
            self._event(now, f"released {thing.name} at {x:.0f} {y:.0f} {spot[2]:.0f}")

    def _begin_fault(self, fault: Fault, now: float) -> None:
        self._event(now, f"fault: {fault.kind}")
        if fault.kind in self._until:
            self._until[fault.kind] = now + fault.value
        else:
            self.faults.wait(
                fault, int(fault.value) if fault.kind in ("mute", "deaf", "shrug") else 1
            )

    def _refuse(self, words: str, now: float) -> Reply:
        self.log.append((now, ">", words))
        return REFUSED, words

    def _event(self, now: float, text: str) -> None:
        self.log.append((now, "*", text))


def _between(thing: Object, x: float, y: float, z: float) -> bool:
    """Whether the thing is between fingers that close there."""
    near = math.hypot(x - thing.position[0], y - thing.position[1]) <= FINGERS
    return near and thing.position[2] <= z <= thing.top + 1e-6
