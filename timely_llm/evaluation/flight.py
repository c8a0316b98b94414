"""One plan, carried out by the real executor on a simulated robot, on virtual time. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from robot_adapters.executor.executor import RobotExecutor
from robot_adapters.perception import Pose
from robot_adapters.simulated.adapter import SimulatedAdapter
from robot_adapters.simulated.world import World
from timely_llm.evaluation.worlds import EYE, SceneError, world_of
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.messages import ErrorCode, Execution, ExecutionState, Segment, SkillCall

_PLAN, _PLANNER = "e" * 32, "evaluation"
MOST_WAKES = 1_000_000
_ENDS = {
    ExecutionState.PLAN_RETURNED: ErrorCode.NONE,
    ExecutionState.REFUSED: ErrorCode.REFUSED,
    ExecutionState.FAILED: ErrorCode.SKILL_FAILED,
    ExecutionState.ABORTED: ErrorCode.ROBOT_STOPPED,
    ExecutionState.REPLAN_REQUESTED: ErrorCode.SKILL_FAILED,
    ExecutionState.REJECTED: ErrorCode.SEGMENT_REFUSED,
}


@dataclass(frozen=True, slots=True)
class Flight:
    """What became of a plan. ``calls`` were begun, in long names with their evaluated arguments;
    ``end`` is where the robot is. ``code`` is None where the plan did not come to its end."""

    code: ErrorCode | None
    error: str
    calls: tuple[str, ...]
    value: str
    end: Pose


def robot(skills: SkillSet, scene: str) -> tuple[SimulatedAdapter, bool]:
    """A simulated robot, and whether it sees this scene: where the scene is empty, or no list of
    things and places, it stands in its kind's own world."""
    world: World | str = ""
    with contextlib.suppress(SceneError):
        world = world_of(scene, "pick" in skills) if scene else ""
    return SimulatedAdapter("evaluation", skills, world=world, z=EYE), world != ""


def fly(
    segments: Sequence[str], whole: bool, skills: SkillSet, adapter: SimulatedAdapter
) -> Flight:
    """Carry out the segments; ``whole``: the plan ends with the last one."""
    executor = RobotExecutor(adapter)
    now = 0.0
    reports = executor.new_session(1, now, _PLANNER)
    for index, text in enumerate(segments):
        last = whole and index == len(segments) - 1
        segment = Segment(1, _PLAN, index, text=text, last=last)
        reports += executor.on_segment(segment, now)
    for _ in range(MOST_WAKES):
        if not segments or _over(reports):
            break
        wake = executor.next_wake(now)
        if wake is None:
            break
        now = wake
        executor.on_planner_heartbeat(_PLANNER, now)
        reports += executor.tick(now)
    return _flight(reports, skills, adapter.body.pose)


def _over(reports: Sequence[Execution]) -> bool:
    """Whether the plan has ended, or waits for text that does not come."""
    last = next((report for report in reversed(reports) if report.plan_id == _PLAN), None)
    return last is not None and (last.state in _ENDS or last.state is ExecutionState.IDLE)


def _flight(reports: Sequence[Execution], skills: SkillSet, end: Pose) -> Flight:
    begun = [report.call for report in reports if report.state is ExecutionState.STARTED]
    last = next((report for report in reports if report.state in _ENDS), None)
    calls = tuple(call_in_words(call, skills) for call in begun)
    if last is None:
        return Flight(None, "", calls, "", end)
    error = last.error
    if last.state is ExecutionState.REPLAN_REQUESTED:
        error = "the plan asked for another one"
    return Flight(_ENDS[last.state], error, calls, last.value, end)


def call_in_words(call: SkillCall, skills: SkillSet) -> str:
    """``move_forward(100)``, ``goto('red box')``: the long name, and the values it was given."""
    skill = skills[call.name]
    given = zip(skill.arguments, call.evaluated, strict=True)
    values = (_quoted(value) if argument.type == "str" else value for argument, value in given)
    return f"{skill.long_name}({','.join(values)})"


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"
