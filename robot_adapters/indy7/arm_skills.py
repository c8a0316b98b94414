"""What an arm's skills ask of it in its cell, by their long names. Pure.

The arm sees nothing: what is where is what the cell's file says, and what it has moved since. From
place to place it goes by its joints, at ``travel_height`` or more; up and down in straight lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from robot_adapters.indy7.answers import Look
from robot_adapters.indy7.arm import JointMove, Line, MoveTo, Operate, Sense, Step, Then
from robot_adapters.indy7.cell import DOWN, Cell, NamedPose, Object
from robot_adapters.perception import Sighting, scene
from timely_llm.language.skills import Skill, SkillSet, Value

WAITS, SAYS = "delay", "log"
SIGHTS = ("scan", "is_visible")
#: Argument types of what the arm can do.
TAKES = {
    **dict.fromkeys((*SIGHTS, "goto", "pick", SAYS), ("str",)),
    "drop": (), "open_gripper": (), "close_gripper": (), WAITS: ("float",),
}  # fmt: skip
VIEW = 1200.0  # mm, how far the scene reaches
NEAR = 2.0  # mm, how far off a place the arm is still there

Plan = Callable[[Look], Sequence[Step]]
Tool = tuple[float, ...]


def misfits(skills: SkillSet) -> list[str]:
    """Skills that an arm by its SDK cannot do, in words. Roles and definitions are not its own."""
    faults = []
    for skill in skills.skills:
        if skill.role or skill.definition:
            continue
        takes = TAKES.get(skill.long_name)
        given = tuple("float" if a.type == "int" else a.type for a in skill.arguments)
        if takes is None:
            faults.append(f"an Indy7 cannot do {skill.long_name}: leave it out")
        elif given != takes:
            words = ", ".join(takes) or "nothing"
            faults.append(f"{skill.name}: must take {words}, not {', '.join(given) or 'nothing'}")
    return faults


class ArmSkills:
    """The skills of one arm; ``holds`` is the name of what it has picked up, or empty."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.holds = ""

    def refusal(self, skill: Skill, values: Sequence[Value], look: Look) -> str:
        """Why the call must not begin, or empty."""
        name, text = skill.long_name, str(values[0]) if values else ""
        if name == "goto" and self.cell.pose(text):
            return ""
        if name in ("goto", "pick"):
            return self._unfit(name, text)
        if name == "drop":
            if not self.holds:
                return "the gripper holds nothing"
            return self.cell.outside(self._down(look.tool)[:3])
        return ""

    def _unfit(self, name: str, text: str) -> str:
        thing = self.cell.find(text)
        if thing is None:
            return self.cell.unknown(text)
        if name == "pick" and self.holds:
            return f"the gripper holds {self.holds!r} already"
        if name == "goto" and thing.name == self.holds:
            return f"the gripper holds {thing.name!r}"
        return self.cell.outside(self._above(thing)[:3])

    def sees(self, text: str) -> bool:
        """Whether the cell has it, where the arm can get at it."""
        thing = self.cell.find(text)
        return thing is not None and (
            thing.name == self.holds or not self.cell.outside(self._above(thing)[:3])
        )

    def travel(self, skill: Skill, values: Sequence[Value], look: Look) -> float:
        """About how far the tool would move, in m."""
        name, text = skill.long_name, str(values[0]) if values else ""
        up_and_down = 2 * self.cell.approach if name in ("pick", "drop") else 0.0
        thing = self.cell.find(text) if name in ("goto", "pick") else None
        pose = self.cell.pose(text) if name == "goto" else None
        there = self._above(thing) if thing else pose.task if pose and pose.task else look.tool
        return (math.dist(look.tool[:3], there[:3]) + up_and_down) / 1000

    def plan(self, skill: Skill, values: Sequence[Value]) -> Plan | None:
        """What makes the steps of a call once the arm stands still; None: it moves nothing."""
        name, text = skill.long_name, str(values[0]) if values else ""
        if name == "scan" and self.cell.scan and not self.holds:
            return partial(self._to_pose, self.cell.poses[self.cell.scan])
        if name == "goto" and (pose := self.cell.pose(text)):
            return partial(self._to_pose, pose)
        if name in ("goto", "pick") and (thing := self.cell.find(text)):
            return partial(self._to if name == "goto" else self._pick, thing)
        if name == "drop":
            return self._drop
        if name == "open_gripper":
            return lambda look: [self._grip(False), Then(partial(self._let_go, look.tool))]
        if name == "close_gripper":
            return lambda look: [self._grip(True)]
        return None

    def scene(self) -> str:
        """From above, as prompts have it: x from the right to the left, y from far to near."""
        sights = []
        for thing in self.cell:
            (x, y, _), (dx, dy, _) = thing.position, thing.size
            distance = math.hypot(x, y)
            if distance <= VIEW and thing.name != self.holds:
                span = 2 * VIEW
                sights.append(
                    Sighting(thing.name, 0.5 - y / span, 0.5 - x / span, dy / span, dx / span,
                             distance / 1000)
                )  # fmt: skip
        return scene(sights)

    # ---- steps ---------------------------------------------------------------------------------

    def _pick(self, thing: Object, look: Look) -> list[Step]:
        above = self._above(thing)
        x, y, z = thing.position
        down = Line((x, y, z + thing.grip, *above[3:]))
        steps: list[Step] = [*self._to(thing, look), self._grip(False), down, self._grip(True)]
        if self.cell.gripper.sensor:
            words = f"the gripper is closed, but does not hold {thing.name!r}"
            steps.append(Sense(*self.cell.gripper.sensor, words))
        return [*steps, Then(partial(self._take, thing.name)), Line(above)]

    def _drop(self, look: Look) -> list[Step]:
        down = self._down(look.tool)
        up = (*down[:2], max(look.tool[2], down[2]), *down[3:])
        let_go = Then(partial(self._let_go, down))
        return [Line(down), self._grip(False), let_go, Line(up)]

    def _to_pose(self, pose: NamedPose, look: Look) -> list[Step]:
        if pose.task:
            return [*self._rise(look), MoveTo(pose.task)]
        assert pose.joints, "a named pose has one of the two"
        return [*self._rise(look), JointMove(pose.joints)]

    def _to(self, thing: Object, look: Look) -> list[Step]:
        above = self._above(thing)
        if math.dist(above[:3], look.tool[:3]) <= NEAR:
            return []
        level = (*above[:2], max(above[2], self.cell.travel_height), *above[3:])
        down = [Line(above)] if level[2] > above[2] else []
        return [*self._rise(look), MoveTo(level), *down]

    def _rise(self, look: Look) -> list[Step]:
        x, y, z, *angles = look.tool
        height = self.cell.travel_height
        return [] if z >= height - NEAR else [Line((x, y, height, *angles))]

    def _grip(self, close: bool) -> Operate:
        gripper = self.cell.gripper
        return Operate(*(gripper.close if close else gripper.open), gripper.time)

    # ---- places --------------------------------------------------------------------------------

    def _above(self, thing: Object) -> Tool:
        x, y, _ = thing.position
        return (x, y, thing.top + self.cell.approach, *DOWN, thing.angle)

    def _down(self, tool: Tool) -> Tool:
        """Where the tool lets go of what it holds: on whatever lies below."""
        x, y, _, *angles = tool
        grip = self.cell[self.holds].grip
        return (x, y, self.cell.support(x, y, self.holds) + grip, *angles)

    def _let_go(self, tool: Tool) -> None:
        """What is held lies below the tool now."""
        if self.holds:
            x, y = tool[:2]
            spot = (x, y, self.cell.support(x, y, self.holds))
            self.cell, self.holds = self.cell.moved(self.holds, spot), ""

    def _take(self, name: str) -> None:
        self.holds = name
