"""The simulator's robots against the real ones: the same segments, the same reports."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sim_cases import SKILLS, task
from sim_parts import TimedBody

from robot_adapters.executor.executor import RobotExecutor, Timing
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.messages import Execution, ExecutionState, Segment
from timely_llm.simulation.known_plans import read
from timely_llm.simulation.robots import HEARTBEAT, SimRobot
from timely_llm.simulation.workloads.tasks import published, skill_sets

State = ExecutionState
PLAN = "a" * 32
NEVER = 1e9


def simulated(plan, segments: list[Segment], at: list[float]) -> list[Execution]:
    """The calls take what is expected of them."""
    durations = [0.0] * plan.calls
    for action in plan.actions:
        durations[action.index] = max(0.0, action.call.expected_duration)
    robot, reports = SimRobot("robot", 1), []
    robot.take(PLAN, plan, durations)
    inputs = list(zip(at, segments, strict=True))
    while inputs or robot.wake < math.inf:
        if inputs and inputs[0][0] <= robot.wake:
            time, segment = inputs.pop(0)
            reports += robot.receive(segment, time)
        else:
            reports += robot.tick(robot.wake)
    assert robot.over
    return reports


def real(skills, values, segments: list[Segment], at: list[float]) -> list[Execution]:
    timing = Timing(heartbeat_period=NEVER, planner_timeout=NEVER)
    robot = RobotExecutor(TimedBody(skills, values, {}), timing)
    robot.new_session(1, 0.0)
    reports, inputs, now = [], list(zip(at, segments, strict=True)), 0.0
    while inputs or robot.next_wake(now) < NEVER:
        wake = robot.next_wake(now)
        if inputs and inputs[0][0] <= wake:
            now, segment = inputs.pop(0)
            reports += robot.on_segment(segment, now)
        else:
            now = wake
            reports += robot.tick(now)
    return reports[:-1]  # behind the plan's end it says that it is idle


def told(report: Execution) -> tuple:
    """What the planner goes by."""
    return (
        round(report.stamp, 6),
        report.state.name,
        report.segment if report.state is not State.IDLE else 0,
        report.call.name if report.state in (State.STARTED, State.SUCCEEDED) else "",
        round(report.elapsed, 6),
        round(report.total_remaining, 6),
    )


def segments_of(plan) -> list[Segment]:
    cuts = [cut for of_token in plan.cuts for cut in of_token]
    return [
        Segment(1, PLAN, i, text=cut.text, calls=cut.calls, last=cut.last)
        for i, cut in enumerate(cuts)
    ]


def undefined(skills: SkillSet) -> SkillSet:
    """Scans in one piece, as their times were published."""
    own = tuple(replace(skill, definition="", body=()) for skill in skills.skills)
    return replace(skills, skills=own)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10), st.lists(st.floats(0.01, 8.0), min_size=30, max_size=30))
def test_published_plans_are_executed_as_by_the_real_executor(number, gaps):
    one = published()[number]
    skills = undefined(skill_sets()[one.kind])
    plan = read(one, skills)
    segments, at, now = segments_of(plan), [], 0.0
    for gap, _ in zip(gaps, segments, strict=False):
        now += gap
        at.append(now)
    ours = [told(report) for report in simulated(plan, segments, at)]
    theirs = [told(report) for report in real(skills, {}, segments, at)]
    assert [report for report in ours if report[1] != "RUNNING"] == theirs


@pytest.mark.parametrize(
    "text",
    ["3{go(1);go(2)}", "?see('cat')&find('cat'){go(1);->True}go(2)", "say('a');?see('b'){go(1)}"],
)
@pytest.mark.parametrize("gap", [0.1, 2.5])
def test_loops_and_conditions_too(text, gap):
    plan = read(task(text), SKILLS["walker"])
    segments = segments_of(plan)
    at = [gap * (i + 1) for i in range(len(segments))]
    ours = [told(report) for report in simulated(plan, segments, at)]
    theirs = [told(report) for report in real(SKILLS["walker"], {}, segments, at)]
    assert [report for report in ours if report[1] != "RUNNING"] == theirs


def test_a_call_that_takes_longer_than_expected_says_so():
    """Expected 2 s, takes 2.5: from 2.2 s on the robot reports that it is not yet done."""
    plan = read(task(), SKILLS["walker"])
    robot, (first, second) = SimRobot("robot", 1), segments_of(plan)
    robot.take(PLAN, plan, (2.5, 3.0))
    reports = robot.receive(first, 1.0)
    assert [report.state for report in reports] == [State.RECEIVED, State.STARTED]
    times = []
    while robot.wake < math.inf:
        times.append(robot.wake)
        reports += robot.tick(robot.wake)
    assert times == pytest.approx([3.0 + HEARTBEAT, 3.0 + 2 * HEARTBEAT, 3.5])
    states = [report.state for report in reports[2:]]
    assert states == [State.RUNNING, State.RUNNING, State.SUCCEEDED, State.IDLE]
    assert [report.total_remaining for report in reports[2:4]] == [0.0, 0.0]
    robot.receive(second, 10.0)
    assert robot.wake == 13.0  # nothing more is to be written: its delay is no news
