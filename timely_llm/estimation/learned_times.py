"""How long the skills of all robots really take, learned from their reports. Pure.

``estimation/times_file.py`` has it as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from timely_llm.estimation.drift import Drift
from timely_llm.estimation.skill_time import QUANTILE, Estimate, RobotSkill, Sample, SkillTimes
from timely_llm.language.skills import Duration, Skill, SkillSet
from timely_llm.protocols.messages import LONGEST_TIME, SkillCall

MOST_ROBOTS = 1000  # that are remembered
MOST_SKILLS = 10_000  # of all kinds

Key = tuple[str, str, str]
"""Kind, skill and the skill's time model: where that is changed, the skill is learned again."""


@dataclass(frozen=True, slots=True)
class Own:
    """One robot's executions of a skill, and its usual speed."""

    samples: tuple[Sample, ...]
    drift: Drift


@dataclass(frozen=True, slots=True)
class Learned:
    """A copy of what was learned, by kind and by robot: nothing in it changes any more."""

    kinds: Mapping[Key, tuple[Sample, ...]] = field(default_factory=dict)
    robots: Mapping[str, Mapping[Key, Own]] = field(default_factory=dict)


class RobotTimes:
    """How long one robot's skills take."""

    def __init__(self, kind: str, skills: Mapping[str, RobotSkill], known: SkillSet) -> None:
        self.kind, self.skills, self._known = kind, skills, known

    def estimate(self, call: SkillCall) -> Estimate:
        """How long a whole call takes."""
        return self.left(call, 0.0)

    def left(self, call: SkillCall, elapsed: float) -> Estimate:
        """How much longer ``call`` takes, having lasted ``elapsed`` s."""
        own = self._own(call)
        expected = self.expected(call)
        if own is None:
            left = max(0.0, expected - elapsed)
            return Estimate(left, left)
        return own.left(expected, elapsed)

    def observe(self, call: SkillCall, elapsed: float) -> float | None:
        """``call`` was executed to its end in ``elapsed`` s. If the robot does it notably slower or
        faster than it used to: how many times as long it takes, 1 where that is usual again."""
        own = self._own(call)
        if own is None or not 0.0 <= elapsed <= LONGEST_TIME:
            return None
        return own.drift.factor if own.observe(self.expected(call), elapsed) else None

    def expected(self, call: SkillCall) -> float:
        """What the skill set says of the arguments, s."""
        skill = self._known.get(call.name)
        if skill is not None and len(call.evaluated) == len(skill.arguments) > 0:
            try:
                own = skill.expected_duration(skill.parse_values(call.evaluated))
                return min(LONGEST_TIME, max(0.0, own))
            except (ValueError, OverflowError):  # not the skill set's: the robot's own word stands
                pass
        expected = call.expected_duration
        return expected if 0.0 <= expected <= LONGEST_TIME else 0.0

    def name(self, call: SkillCall) -> str:
        """The skill's name; calls may use its long one."""
        skill = self._known.get(call.name)
        return skill.name if skill else call.name

    def _own(self, call: SkillCall) -> RobotSkill | None:
        skill = self._known.get(call.name)
        return self.skills.get(skill.name) if skill else None


class Times:
    """All that is learned, of all kinds and robots. ``quantile`` is the share of executions that
    may be over sooner than expected; while not ``learning`` what is measured changes nothing."""

    def __init__(self, quantile: float = QUANTILE, learning: bool = True) -> None:
        if not 0.0 < quantile <= 0.5:
            raise ValueError(f"quantile is {quantile}: must be above 0 and at most 0.5")
        self.quantile, self.learning = quantile, learning
        self.changes = 0  # counts executions
        self._kinds: dict[Key, SkillTimes] = {}
        self._robots: dict[str, dict[Key, RobotSkill]] = {}
        self._kept = 0  # changes that were there when it was last kept
        self._before = Learned()  # of kinds and robots that have not been seen again

    def robot(self, robot_id: str, skills: SkillSet) -> RobotTimes:
        """What is known of a robot with these skills. Those that take no time are not learned."""
        known = self._robots.pop(robot_id, {})
        self._robots[robot_id] = known  # the last one seen is the last
        while len(self._robots) > MOST_ROBOTS:
            self._forget(next(iter(self._robots)))
        found = {}
        for skill in skills.skills:
            if skill.timed and not skill.role:
                key = (skills.kind, skill.name, model_of(skill.duration))
                if key not in known:
                    known[key] = self._own(robot_id, key, self._kind(key, skill))
                found[skill.name] = known[key]
        return RobotTimes(skills.kind, found, skills)

    def news(self) -> Learned | None:
        """``learned()`` if there is anything new since the last time."""
        if self._kept == self.changes:
            return None
        self._kept = self.changes
        return self.learned()

    def learned(self) -> Learned:
        """A copy of everything; what was never measured is left out, and so is what was learned for
        a time model that its skill no longer has."""
        kinds = {key: tuple(kind.samples) for key, kind in self._kinds.items() if kind.samples}
        current = {key[:2] for key in self._kinds}
        before = {k: s for k, s in self._before.kinds.items() if k[:2] not in current}
        robots = {
            robot: {k: own for k, own in skills.items() if k in before or k in self._kinds}
            for robot, skills in self._before.robots.items()
        }
        for robot, skills in self._robots.items():
            robots[robot] = robots.get(robot, {}) | {
                key: Own(tuple(skill.samples), skill.drift.copy())
                for key, skill in skills.items()
                if skill.drift.count
            }
        return Learned(before | kinds, {robot: own for robot, own in robots.items() if own})

    def restore(self, learned: Learned) -> None:
        """Go on from what was learned before, as robots come. For times that have seen none yet."""
        self._before = learned

    def _kind(self, key: Key, skill: Skill) -> SkillTimes:
        if key not in self._kinds:
            while len(self._kinds) >= MOST_SKILLS:
                self._forget_skill(next(iter(self._kinds)))
            kind = self._kinds[key] = SkillTimes(skill.duration, self.quantile)
            kind.restore(self._before.kinds.get(key, ()))
        return self._kinds[key]

    def _own(self, robot_id: str, key: Key, kind: SkillTimes) -> RobotSkill:
        skill = RobotSkill(robot_id, kind)
        if own := self._before.robots.get(robot_id, {}).get(key):
            skill.restore(own.samples, own.drift.copy())
        return skill

    def _forget_skill(self, key: Key) -> None:
        del self._kinds[key]
        for known in self._robots.values():
            known.pop(key, None)

    def _forget(self, robot_id: str) -> None:
        for key in self._robots.pop(robot_id):
            self._kinds[key].own.pop(robot_id, None)


def model_of(duration: Duration) -> str:
    """A time model in words that two models share only if they are equal."""
    numbers = " ".join(f"{value:.10g}" for value in duration.coefficients)
    of = "" if duration.argument is None else f" of {duration.argument}"
    return f"{duration.model} {numbers}{of}"
