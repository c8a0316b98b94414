"""Recorded goals as a trace: what the planner was asked, what the model wrote, how long the robots
really took. Pure.

A recording does not tell everything: the text after the last segment of a plan that was ended
early, and what goals asked for that ended before anything was written. The first is replayed as far
as it is known, with tokens but without text after that; the second are left out, with the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from timely_llm.language.loader import read_skill_set
from timely_llm.language.parser import PlanError
from timely_llm.language.segmenter import CheckedSegment, make_segmenter
from timely_llm.language.skills import SkillSet
from timely_llm.protocols.messages import ErrorCode, ExecutionState, OnFailure, PlanGoal, SkillCall
from timely_llm.recording.goals import DoneCall, Goal
from timely_llm.recording.recording import Recording
from timely_llm.simulation.known_plans import Action, KnownPlan, read
from timely_llm.simulation.trace import Arrival, Task, Trace
from timely_llm.validation.reader import FileError

_UNIT = re.compile(r"[^\W\d_]+|.", re.DOTALL)
#: How a goal ended that the robot or its own plan did not end: the same end comes at the same time.
_FROM_WITHIN = (ErrorCode.NONE, ErrorCode.SKILL_FAILED, ErrorCode.PREEMPTED)


@dataclass(frozen=True, slots=True)
class Known:
    """One goal to replay: ``plan`` as the robot did it, ``durations`` (s) of its actions in order.
    ``fails_at``: the action that fails, or their number where the plan fails after them; ``error``
    in the robot's words. ``ends_at``: when somebody ends it from outside, s on the trace's clock.
    """

    goal: Goal
    ask: PlanGoal
    plan: KnownPlan
    durations: tuple[float, ...]
    fails_at: int | None = None
    error: str = ""
    ends_at: float | None = None


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """A recording to be replayed. The trace's clock is 0 at ``origin`` (s since the epoch); its
    arrivals and ``known`` belong together. ``left_out``: goals that cannot be replayed, and why."""

    trace: Trace
    known: tuple[Known, ...]
    skills: Mapping[str, SkillSet]
    origin: float
    left_out: tuple[tuple[Goal, str], ...] = ()


class NothingToReplay(ValueError):
    """A recording without a goal that can be replayed; the text says why."""


def trace_of(recording: Recording, goals: Sequence[Goal]) -> RecordedTrace:
    """The trace of a recording's goals. ``NothingToReplay`` where none of them can be replayed."""
    kinds, kind_of = _kinds(recording)
    system = _system_tokens(goals, kind_of)
    origin = min((goal.accepted for goal in goals), default=recording.begun)
    known, arrivals, left_out = [], [], []
    for goal in goals:
        why = _why_not(goal, kind_of)
        try:
            one = why or _known(goal, kinds[kind_of[goal.robot_id]], origin)
        except ValueError as error:
            one = str(error)
        if isinstance(one, str):
            left_out.append((goal, one))
            continue
        kind = kind_of[goal.robot_id]
        known.append(one)
        arrivals.append(_arrival(one, kind, system.get(kind, 0), origin))
    if not known:
        reasons = "; ".join(dict.fromkeys(why for _, why in left_out)) or "no goals were recorded"
        raise NothingToReplay(f"{recording.source}: nothing to replay: {reasons}")
    trace = Trace(recording.source, tuple(arrivals), f"recorded: {recording.source}")
    return RecordedTrace(trace, tuple(known), kinds, origin, tuple(left_out))


def _kinds(recording: Recording) -> tuple[dict[str, SkillSet], dict[str, str]]:
    """Skill sets by kind, and each robot's kind. Robots of one kind whose skill sets differ are
    kinds of their own; a robot whose skill set cannot be read has none."""
    kinds: dict[str, SkillSet] = {}
    of: dict[str, str] = {}
    for name, robot in recording.robots.items():
        try:
            skills = read_skill_set(robot.info.skill_set, source=f"skill set of {name}")
        except FileError:
            continue
        kind = skills.kind
        if kind in kinds and kinds[kind].text != skills.text:
            kind = f"{kind} of {name}"
        kinds[kind] = skills
        of[name] = kind
    return kinds, of


def _system_tokens(goals: Sequence[Goal], kind_of: Mapping[str, str]) -> dict[str, int]:
    """Length of each kind's fixed prompt: one token more than of it was in the cache, for only
    whole blocks are, and never the last token."""
    found: dict[str, int] = {}
    for goal in goals:
        kind = kind_of.get(goal.robot_id, "")
        if goal.cached_tokens:
            found[kind] = max(found.get(kind, 0), goal.cached_tokens + 1)
    return found


def _why_not(goal: Goal, kind_of: Mapping[str, str]) -> str:
    """Why a goal cannot be replayed; empty: it can."""
    if goal.robot_id not in kind_of:
        return f"the recording has no skill set of robot {goal.robot_id!r}"
    if goal.result is None:
        return "the recording ends before the goal does"
    if not goal.segments and not goal.result.generated_tokens:
        return f"it ended with {goal.result.error_code.name} before anything was written"
    if [segment.index for segment in goal.segments] != list(range(len(goal.segments))):
        again = goal.result.replans or len({s.index for s in goal.segments}) < len(goal.segments)
        return "it was planned again" if again else "not all of its segments were recorded"
    if goal.result.replans:
        return "it was planned again"
    return ""


# ---- one goal ------------------------------------------------------------------------------------


def pieces(goal: Goal) -> tuple[str, ...]:
    """The tokens of what is known of the plan. Their texts are not recorded, but how many each
    segment took is: a segment's text in as many parts, the last of which completes it."""
    found: list[str] = []
    for segment in goal.segments:
        if segment.tokens < 1:  # it came out of the same token as the one before it
            if found:
                found[-1] += segment.text
            else:
                found.append(segment.text)
            continue
        ends = segment.last and segment.tokens > 1  # with the end token, which has no text
        found += _parts(segment.text, segment.tokens - ends)
        found += [""] * ends
    if not goal.complete and goal.result is not None:  # written, but of no segment
        found += [""] * (goal.result.generated_tokens - sum(s.tokens for s in goal.segments))
    return tuple(found)


def _parts(text: str, count: int) -> Iterator[str]:
    """A text as ``count`` tokens, of words, digits and marks as models have them: no token ends
    within one unless there are more tokens than those. The last token is never without text."""
    units = _UNIT.findall(text)
    if len(units) < count:
        units = list(text)
    for i in range(count):
        first, last = len(units) * i // count, len(units) * (i + 1) // count
        yield "".join(units[first:last])


def _known(goal: Goal, skills: SkillSet, origin: float) -> Known:
    tokens = pieces(goal)
    cuts, sure = _read(goal, tokens, skills)
    done = [call for call in goal.calls if call.state is not ExecutionState.ABORTED]
    failed = next((i for i, call in enumerate(done) if call.state is ExecutionState.FAILED), None)
    streamed = len(goal.segments) > 1
    actions = _actions(goal.calls, cuts, skills, streamed)
    durations = [call.elapsed for call in goal.calls]
    for i, call in enumerate(goal.calls):
        if call.state is ExecutionState.ABORTED:  # how long it would have taken is not known
            durations[i] = max(call.elapsed, call.expected)
    ends = sum(map(len, cuts)) - 1 if goal.complete else len(goal.segments) + len(tokens)
    if sure is not None and _same(actions, sure.actions):
        rest = sure.actions[len(actions) :]
        ends = sure.ends
        if goal.code is not ErrorCode.NONE or not actions:
            actions += [replace(a, index=len(actions) + i) for i, a in enumerate(rest)]
            durations += [max(0.0, action.call.expected_duration) for action in rest]
    elif streamed and goal.code is ErrorCode.NONE:  # it may have returned before its end
        ends = max((action.needs for action in actions), default=ends)
        ends = max(ends, _held(goal) if len(goal.segments) == sum(map(len, cuts)) else ends)
    code = goal.code
    if code is ErrorCode.SKILL_FAILED and failed is None:
        failed = len(goal.calls)
    halted = None if code in _FROM_WITHIN else goal.halted or goal.over
    return Known(
        goal,
        replace(goal.goal, on_failure=OnFailure.ABORT, max_replans=0, utility=goal.utility),
        KnownPlan(cuts, tuple(actions), ends, len(actions)),
        tuple(durations),
        failed if code is ErrorCode.SKILL_FAILED else None,
        goal.result.error_msg if goal.result else "",
        None if halted is None else halted - origin,
    )


def _read(
    goal: Goal, tokens: tuple[str, ...], skills: SkillSet
) -> tuple[tuple[tuple[CheckedSegment, ...], ...], KnownPlan | None]:
    """The plan cut by token, and, where it is whole, what a robot does if every condition holds."""
    if goal.complete:
        task = Task(goal.plan_id, skills.kind, "", tokens, goal.utility, goal.urgency)
        plan = read(task, skills)
        return plan.cuts, plan
    segmenter = make_segmenter(skills)
    try:
        cuts = [tuple(segmenter.feed(token)) for token in tokens]
    except PlanError as error:
        raise ValueError(f"its plan does not fit the robot's skill set: {error}") from error
    # No more is known of it: who sends whole plans sends this much.
    cuts[-1] = (*cuts[-1], CheckedSegment("", (), True))
    return tuple(cuts), None


def _held(goal: Goal) -> int:
    """The last segment that the robot held when it ended the plan."""
    over = goal.returned or goal.over or math.inf
    held = (s.index for s in goal.segments if s.received is not None and s.received <= over)
    return max(held, default=0)


def _actions(
    calls: Sequence[DoneCall],
    cuts: Sequence[Sequence[CheckedSegment]],
    skills: SkillSet,
    streamed: bool,
) -> list[Action]:
    """What the robot did, each call at its place in the text. A call that is there several
    times is the next one after the call before; after a loop's last call comes its first."""
    written = [
        (segment, call)
        for segment, cut in enumerate(cut for of_token in cuts for cut in of_token)
        for call in cut.calls
    ]
    known = {skill.name: skill for skill in skills.skills}
    actions: list[Action] = []
    place, needs = -1, 0
    for i, call in enumerate(calls):
        order = [*range(place + 1, len(written)), *range(place + 1)]
        same = [k for k in order if _is(written[k][1], call)]
        if streamed:
            same = [k for k in same if written[k][0] == call.segment] or same
        if same:
            place = same[0]
        segment = written[place][0] if same else min(call.segment, max(needs, 0))
        needs = max(needs, segment)
        expected = (
            call.expected
            if call.expected >= 0 or not same
            else (written[place][1].expected_duration)
        )
        timed = known[call.name].timed if call.name in known else call.elapsed > 0
        actions.append(
            Action(SkillCall(call.name, call.arguments, (), expected), segment, i, timed, needs)
        )
    return actions


def _is(written: SkillCall, done: DoneCall) -> bool:
    return (written.name, written.arguments) == (done.name, done.arguments)


def _same(done: Sequence[Action], sure: Sequence[Action]) -> bool:
    """Whether what was done is the beginning of what the text says."""
    return len(done) <= len(sure) and all(
        (a.call.name, a.call.arguments) == (b.call.name, b.call.arguments)
        for a, b in zip(done, sure, strict=False)
    )


def _arrival(known: Known, kind: str, system: int, origin: float) -> Arrival:
    goal = known.goal
    task = Task(
        name=goal.goal.instruction or goal.plan_id,
        kind=kind,
        instruction=goal.goal.instruction,
        tokens=pieces(goal),
        utility=goal.utility,
        urgency=goal.urgency,
        scene=goal.goal.scene,
        system_tokens=system,
        prompt_tokens=max(1, (goal.result.prompt_tokens if goal.result else 0) - system),
        ttft=goal.goal.ttft,
        tpot=goal.goal.tpot,
    )
    return Arrival(goal.accepted - origin, goal.robot_id, task, known.durations)
