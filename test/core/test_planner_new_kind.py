"""A robot kind is one YAML text: everything that depends on the kind follows from it."""

import pytest
from plan_language import ROVER_YAML

from robot_adapters.adapter import make_adapter
from robot_adapters.executor.executor import RobotExecutor
from timely_llm.language.loader import read_skill_set
from timely_llm.language.parser import Parser, PlanError
from timely_llm.language.segmenter import plan_detector
from timely_llm.language.skills import SkillSet
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.messages import ExecutionState, Segment
from timely_llm.validation.reader import FileError

PLAN = "2{?bt()<50{st(-5,0.5)};dv(2)};?sp('A1')==False{dv(-1.5);->'tank empty'}"


def planner_side(skills: SkillSet, tokens: list[str]) -> list[Segment]:
    """Cut and check the text as the planner does."""
    detector, checker, segments = plan_detector(skills), Parser(skills), []
    for token in tokens:
        segments += detector.feed(token)
    segments.append(detector.finish())
    for text in segments:
        checker.feed(text)
    checker.finish()
    count = len(segments)
    return [Segment(1, "7" * 32, i, text=t, last=i == count - 1) for i, t in enumerate(segments)]


def robot_side(skills: SkillSet, segments: list[Segment]) -> list[str]:
    """What a simulated robot of the kind reports, on virtual time."""
    robot = RobotExecutor(make_adapter("simulated", "r1", skills))
    executions, now = robot.new_session(1, 0.0, "planner"), 0.0
    for segment in segments:
        executions += robot.on_segment(segment, now)
    while robot.plan_id == "7" * 32:
        now = robot.next_wake(now)
        executions += robot.on_planner_heartbeat("planner", now)
        executions += robot.tick(now)
    wanted = (ExecutionState.STARTED, ExecutionState.PLAN_RETURNED, ExecutionState.FAILED)
    return [
        f"{e.call.name}({','.join(e.call.evaluated)})" if e.state is ExecutionState.STARTED
        else e.value or e.error
        for e in executions if e.state in wanted
    ]  # fmt: skip


def test_a_plan_of_a_new_kind_is_cut_checked_and_run():
    skills = read_skill_set(ROVER_YAML)
    segments = planner_side(skills, list(PLAN))
    assert [segment.text for segment in segments] == [
        "2{?bt()<50{st(-5,0.5)",
        "};dv(2)",
        "};?sp('A1')",
        "==False{dv(-1.5)",
        ";->'tank empty'}",
    ]
    # The simulation knows no battery: it reads 0, and nothing can be sprayed.
    assert robot_side(skills, segments) == [
        "bt()", "st(-5,0.5)", "dv(2)", "bt()", "st(-5,0.5)", "dv(2)", "sp(A1)", "dv(-1.5)",
        "tank empty",
    ]  # fmt: skip


def test_its_limits_hold_on_both_sides():
    skills = read_skill_set(ROVER_YAML)
    with pytest.raises(PlanError, match="dv: distance is 13 m: must be -2.5 to 12.3 m"):
        planner_side(skills, ["dv(1);dv(13)"])
    segments = planner_side(skills, ["dv(1);_1=bt();st(_1+36,1);dv(2)"])
    assert robot_side(skills, segments) == [
        "dv(1)", "bt()", "plan, character 14: st: angle is 36 deg: must be -35 to 35 deg",
    ]  # fmt: skip


def test_its_prompt_lists_its_skills():
    skills = read_skill_set(ROVER_YAML)
    prompt = PromptTemplate.default(names="short").system(skills)
    assert all(line in prompt for line in skills.listing().split("\n"))


def test_a_wrong_text_is_refused_with_its_line():
    with pytest.raises(FileError) as caught:
        read_skill_set(ROVER_YAML.replace("speed, type: float", "speed, tipe: float"), "r.yaml")
    assert str(caught.value).startswith(
        "r.yaml:17: skills[1].arguments[1]: unknown key 'tipe'; did you mean 'type'?"
    )
