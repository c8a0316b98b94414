"""One plan, carried out by the real executor on a simulated robot, on virtual time. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from robot_adapters.executor.executor import RobotExecutor
from robot_adapters.perception import Point, Pose
from robot_adapters.simulated.adapter import SimulatedAdapter
from robot_adapters.simulated.world import World
from timely_llm.evaluation.outcome import Event, Outcome
from timely_llm.evaluation.worlds import EYE, SceneError, names_in, thing_at, world_of
from timely_llm.language.skills import SkillSet, value_literal
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
_VERBS = {
    **{f"move_{way}": way for way in ("forward", "backward", "left", "right", "up", "down")},
    **{"turn_cw": "turn_right", "turn_ccw": "turn_left", "take_picture": "photo", "delay": "wait"},
    **{verb: verb for verb in ("goto", "pick", "drop", "square")},
}
_SCANS = ("scan", "scan_abstract")


@dataclass(frozen=True, slots=True)
class Moment:
    """Where the robot is, and the names of what it sees."""

    pose: Pose
    view: frozenset[str]


@dataclass(frozen=True, slots=True)
class Flight:
    """What became of a plan: the ``calls`` that were begun, and the moment before each and after
    the last. ``code`` is None where the plan did not come to its end."""

    code: ErrorCode | None
    error: str
    calls: tuple[SkillCall, ...]
    value: str
    moments: tuple[Moment, ...]

    @property
    def end(self) -> Pose:
        """Where the robot is."""
        return self.moments[-1].pose


def robot(
    skills: SkillSet, scene: str, unseen: Mapping[str, Point] | None = None
) -> tuple[SimulatedAdapter, bool]:
    """A simulated robot, and whether it sees this scene: where the scene is empty, or no list of
    things and places, it stands in its kind's own world. ``unseen`` things are there as well, each
    in m ahead and left of the robot, and above the ground."""
    world: World | str = ""
    try:
        if scene:
            hidden = (thing_at(name, place) for name, place in (unseen or {}).items())
            world = World([*world_of(scene, "pick" in skills), *hidden])
    except SceneError:
        pass
    return SimulatedAdapter("evaluation", skills, world=world, z=EYE), world != ""


def fly(
    segments: Sequence[str], whole: bool, skills: SkillSet, adapter: SimulatedAdapter
) -> Flight:
    """Carry out the segments; ``whole``: the plan ends with the last one."""
    executor = RobotExecutor(adapter)
    now = 0.0
    reports = executor.new_session(1, now, _PLANNER)
    seen: list[Moment] = []
    for index, text in enumerate(segments):
        last = whole and index == len(segments) - 1
        segment = Segment(1, _PLAN, index, text=text, last=last)
        reports += executor.on_segment(segment, now)
    seen += [_moment(adapter)] * _begun(reports)
    for _ in range(MOST_WAKES):
        if not segments or _over(reports):
            break
        wake = executor.next_wake(now)
        if wake is None:
            break
        now = wake
        executor.on_planner_heartbeat(_PLANNER, now)
        news = executor.tick(now)
        seen += [_moment(adapter)] * _begun(news)
        reports += news
    return _flight(reports, (*seen, _moment(adapter)))


def _begun(reports: Sequence[Execution]) -> int:
    return sum(report.state is ExecutionState.STARTED for report in reports)


def _moment(adapter: SimulatedAdapter) -> Moment:
    return Moment(adapter.body.pose, frozenset(names_in(adapter.observe())))


def _over(reports: Sequence[Execution]) -> bool:
    """Whether the plan has ended, or waits for text that does not come."""
    last = next((report for report in reversed(reports) if report.plan_id == _PLAN), None)
    return last is not None and (last.state in _ENDS or last.state is ExecutionState.IDLE)


def _flight(reports: Sequence[Execution], moments: tuple[Moment, ...]) -> Flight:
    calls = tuple(report.call for report in reports if report.state is ExecutionState.STARTED)
    last = next((report for report in reports if report.state in _ENDS), None)
    if last is None:
        return Flight(None, "", calls, "", moments)
    error = last.error
    if last.state is ExecutionState.REPLAN_REQUESTED:
        error = "the plan asked for another one"
    return Flight(_ENDS[last.state], error, calls, last.value, moments)


def outcome(flight: Flight, skills: SkillSet, code: ErrorCode) -> Outcome:
    """What happened on the flight, whose goal has ended with ``code``."""
    events: list[Event] = []
    said = [flight.value] if flight.value else []
    target = ""  # of an arm: what its gripper went to
    for call, (before, after) in zip(flight.calls, pairwise(flight.moments), strict=True):
        name = skills[call.name].long_name
        if name == "log":
            said.insert(len(said) - bool(flight.value), call.evaluated[0])
        elif name in _SCANS:
            events += _turned(before, after)
        elif name in _VERBS:
            verb = _VERBS[name]
            if verb in ("goto", "pick"):
                target = call.evaluated[0]
            amount, thing = 0.0, target if verb in ("goto", "pick", "drop") else ""
            if not thing and call.evaluated:
                amount = float(call.evaluated[0])
            events.append(Event(verb, amount, thing, after.view))
    return Outcome(tuple(events), flight.moments[0].view, tuple(said), code)


def _turned(before: Moment, after: Moment) -> Iterator[Event]:
    """A search that found nothing at once has turned the robot."""
    angle = after.pose.yaw - before.pose.yaw
    if angle:
        verb = "turn_left" if angle > 0 else "turn_right"
        yield Event(verb, abs(angle), view=after.view)


def call_in_words(call: SkillCall, skills: SkillSet) -> str:
    """``move_forward(100)``, ``goto('red box')``: the long name, and the values it was given."""
    skill = skills[call.name]
    given = zip(skill.arguments, call.evaluated, strict=True)
    values = (value_literal(v) if argument.type == "str" else v for argument, v in given)
    return f"{skill.long_name}({','.join(values)})"
