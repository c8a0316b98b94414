"""For tests of learned durations: a call, and times that were learned from many. No tests here."""

from sim_parts import walker

from timely_llm.estimation.learned_times import Times
from timely_llm.protocols.messages import SkillCall


def go(expected: float, *evaluated: str) -> SkillCall:
    return SkillCall("go", evaluated, evaluated, expected)


def learned(factor: float, count: int = 16, robot: str = "r1") -> Times:
    """After ``count`` executions that took ``factor`` times as long as expected."""
    times = Times()
    own = times.robot(robot, walker())
    for _ in range(count):
        own.observe(go(2.0), 2.0 * factor)
    return times
