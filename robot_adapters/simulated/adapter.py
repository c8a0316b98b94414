"""The simulated robot: a body in a world whose calls take the published times. Pure.

Durations are drawn from the skills' time models with a seed of the robot's own, so that a run can
be repeated. What remains is reported from the expected duration, as a real robot would do: a scan
does not know beforehand at which step it finds something.
"""

from __future__ import annotations

import os.path
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from robot_adapters.adapter import Adapter, AdapterError, AdapterParameter, Progress
from robot_adapters.perception import Pose
from robot_adapters.simulated.bodies import Arm, Body, Drone, Move, Refusal
from robot_adapters.simulated.world import World
from timely_llm.language.skills import Skill, SkillSet, Value
from timely_llm.paths import share
from timely_llm.protocols.messages import SkillCall
from timely_llm.validation.names import hint

TAKEOFF_TIME = 3.0  # s, before the first timed call of a drone that has landed
LANDING_SPEED = 0.5  # m/s
LOWEST_HOVER = 0.2  # m
_BODIES = ("auto", "drone", "arm")
_WORLDS = {"drone": "house", "arm": "workcell"}
#: What a skill yields that no body knows; it only takes its time.
_NEUTRAL: dict[str, Value | None] = {
    "none": None, "bool": False, "int": 0, "float": 0.0, "str": "",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Call:
    """The call in progress. ``legs`` are ways with the share of them: (until, from, to), in s from
    ``started``."""

    started: float
    duration: float
    expected: float
    move: Move
    legs: tuple[tuple[float, Pose, Pose], ...]

    def pose(self, now: float) -> Pose:
        elapsed, since = now - self.started, 0.0
        for until, start, end in self.legs:
            if elapsed < until:
                return start.toward(end, (elapsed - since) / (until - since))
            since = until
        return self.legs[-1][2]


class SimulatedAdapter(Adapter):
    """A drone (or any robot that moves about) or an arm, by its skills. ``Adapter`` documents the
    methods."""

    PARAMETERS: ClassVar[tuple[AdapterParameter, ...]] = (
        AdapterParameter(
            "world", "", "YAML file, or name of a bundled world; empty: the body's own"
        ),
        AdapterParameter("body", "auto", "drone or arm; auto: an arm if the skills can pick"),
        AdapterParameter("seed", 0, "of the durations, together with the robot's id"),
        AdapterParameter("x", 0.0, "where the robot starts", "m", -1000.0, 1000.0),
        AdapterParameter("y", 0.0, "where the robot starts", "m", -1000.0, 1000.0),
        AdapterParameter("z", 1.0, "height a drone starts at; an arm is at 0", "m", 0.0, 1000.0),
        AdapterParameter("yaw", 0.0, "where it faces, counterclockwise", "deg", -360.0, 360.0),
        AdapterParameter(
            "hover_time", 5.0, "a drone without planner hovers, then lands", "s", 0.0, 3600.0
        ),
    )

    def __init__(
        self,
        robot_id: str,
        skills: SkillSet,
        *,
        world: str | World = "",
        body: str = "auto",
        seed: int = 0,
        x: float = 0.0,
        y: float = 0.0,
        z: float = 1.0,
        yaw: float = 0.0,
        hover_time: float = 5.0,
    ) -> None:
        self.skills = skills
        self.body = _make_body(skills, body, world, Pose(x, y, z, yaw))
        self._rng = random.Random(f"{seed}:{robot_id}")
        self._hover_time = hover_time
        self._call: _Call | None = None
        self._last = Progress(done=True)
        self._hold: tuple[float, Pose] | None = None  # since when and where
        self._landed = False
        self._height = self.body.pose.z  # to take off to

    def check(self, call: SkillCall) -> str | None:
        try:
            self._move(call)
        except Refusal as refusal:
            return str(refusal)
        return None

    def travel(self, call: SkillCall) -> float:
        try:
            end = self._move(call).end
        except Refusal:
            return 0.0
        pairs = zip(end.point, self._start_of(self.skills[call.name]).point, strict=True)
        return sum((a - b) ** 2 for a, b in pairs) ** 0.5

    def start(self, call: SkillCall, now: float) -> None:
        skill = self.skills[call.name]
        move, start = self._move(call), self._start_of(skill)
        duration = skill.sample_duration(skill.parse_values(call.evaluated), self._rng)
        lift = TAKEOFF_TIME if start != self.body.pose else 0.0
        legs = ((lift, self.body.pose, start), (lift + duration, start, move.end))
        expected = lift + max(0.0, call.expected_duration)
        self._landed = self._landed and not lift
        self._call = _Call(now, lift + duration, expected, move, legs)

    def poll(self, now: float) -> Progress:
        self._descend(now)
        call = self._call
        if call is None:
            return self._last
        elapsed = now - call.started
        self.body.pose = call.pose(now)
        if now < call.started + call.duration:
            remaining = max(0.0, call.expected - elapsed)
            return Progress(False, elapsed=elapsed, remaining=remaining)
        self.body.pose = call.move.end
        if call.move.arrive is not None:
            call.move.arrive()
        self._call, self._last = None, Progress(True, call.move.value, elapsed=elapsed)
        return self._last

    def next_poll(self, now: float) -> float | None:
        if self._call is not None:
            return self._call.started + self._call.duration
        if self._hold is not None and not self._landed:
            since, pose = self._hold
            return since + self._hover_time + pose.z / LANDING_SPEED
        return None

    def halt(self, now: float) -> None:
        self._descend(now)
        if self._call is not None:
            self.body.pose = self._call.pose(now)
        self._call, self._last, self._hold = None, Progress(done=True), None

    def hold(self, now: float) -> None:
        if self._hold is None:
            self.halt(now)
            if self.body.lands and not self._landed:
                self._hold, self._height = (now, self.body.pose), self.body.pose.z

    def resume(self, now: float) -> None:
        self._descend(now)
        self._hold = None
        if self.body.lands and self.body.pose.z < LOWEST_HOVER:
            self._touch_down()

    def observe(self) -> str:
        return self.body.observe()

    def diagnostics(self) -> Mapping[str, str]:
        state = "busy" if self._call else "landed" if self._landed else "idle"
        if self._hold and not self._landed:
            state = "without planner: hovers, then lands"
        facts = {"state": state, "pose": str(self.body.pose)}
        return facts | ({"holds": self.body.holds} if self.body.holds else {})

    def _move(self, call: SkillCall) -> Move:
        """What the call does; ``Refusal`` if it cannot. Changes nothing."""
        skill = self.skills[call.name]
        pose = self.body.pose
        self.body.pose = self._start_of(skill)
        try:
            move = self.body.move(skill.long_name, skill.parse_values(call.evaluated))
            return move or Move(self.body.pose, _NEUTRAL[skill.returns])
        finally:
            self.body.pose = pose

    def _start_of(self, skill: Skill) -> Pose:
        """A drone that has landed takes off before whatever takes time."""
        if self._landed and skill.timed:
            return replace(self.body.pose, z=self._height)
        return self.body.pose

    def _descend(self, now: float) -> None:
        """Where a drone is that nobody plans for."""
        if self._hold is None or self._landed:
            return
        since, pose = self._hold
        fallen = LANDING_SPEED * max(0.0, now - since - self._hover_time)
        self.body.pose = replace(pose, z=pose.z - fallen)
        if fallen >= pose.z - 1e-9:
            self._touch_down()

    def _touch_down(self) -> None:
        self.body.pose = replace(self.body.pose, z=0.0)
        self._landed = True


def _make_body(skills: SkillSet, body: str, world: str | World, start: Pose) -> Body:
    if body not in _BODIES:
        raise AdapterError(f"body: unknown {body!r}{hint(body, _BODIES)}")
    if body == "auto":
        body = "arm" if "pick" in skills else "drone"
    if isinstance(world, str):
        world = World.from_file(world_file(world or _WORLDS[body]))
    if body == "arm":
        return Arm(world, replace(start, z=0.0))
    try:
        return Drone(world, start, skills)
    except Refusal as refusal:
        raise AdapterError(f"start: {refusal}") from refusal


def world_file(world: str) -> Path:
    """A bundled world by name, else a file."""
    if "/" in world or world.endswith((".yaml", ".yml")):
        return Path(os.path.expanduser(world))
    path = share("config", "worlds", f"{world}.yaml")
    if not path.is_file():
        bundled = [path.stem for path in path.parent.glob("*.yaml")]
        raise AdapterError(f"world: no bundled world {world!r}{hint(world, bundled)}")
    return path
