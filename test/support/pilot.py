"""Flies a simulated robot call by call, on a clock of its own."""

from __future__ import annotations

import pytest

from robot_adapters.adapter import make_adapter
from timely_llm.language.loader import load_skill_set
from timely_llm.language.skills import SkillSet, value_text
from timely_llm.paths import share
from timely_llm.protocols.messages import SkillCall

TELLO = load_skill_set(share("config", "skills", "tello.yaml"))
INDY7 = load_skill_set(share("config", "skills", "indy7.yaml"))


def call(skills: SkillSet, name: str, *values) -> SkillCall:
    skill = skills[name]
    texts = tuple(map(value_text, values))
    return SkillCall(skill.name, texts, texts, skill.expected_duration(values))


class Pilot:
    """Carries out calls one after another, on a clock of its own."""

    def __init__(self, skills: SkillSet = TELLO, **parameters) -> None:
        self.skills = skills
        self.adapter = make_adapter("simulated", "r1", skills, **parameters)
        self.now = 100.0

    @property
    def body(self):
        return self.adapter.body

    def do(self, name: str, *values):
        """Value of a call that is carried out to its end; ``ValueError`` if it is refused."""
        wanted = call(self.skills, name, *values)
        if reason := self.adapter.check(wanted):
            raise ValueError(reason)
        started = self.now
        self.adapter.start(wanted, self.now)
        self.now = self.adapter.next_poll(self.now)
        progress = self.adapter.poll(self.now)
        assert progress.done
        self.took = self.now - started
        assert progress.elapsed == pytest.approx(self.took)
        return progress.value

    def start(self, name: str, *values) -> None:
        self.adapter.start(call(self.skills, name, *values), self.now)

    def wait(self, seconds: float):
        self.now += seconds
        return self.adapter.poll(self.now)


def at(pilot: Pilot) -> tuple:
    pose = pilot.body.pose
    return tuple(round(value, 3) for value in (*pose.point, pose.yaw))
