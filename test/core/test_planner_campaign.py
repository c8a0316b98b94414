"""Random fleets, goals, cancels, losses, restarts and failures: what must hold whatever happens."""

from collections import Counter
from itertools import pairwise

from campaign import BAD, GOOD, PLANS, REPLANS, STORIES, Run
from fleet_sim import is_text
from hypothesis import given, settings

from timely_llm.core import events as ev
from timely_llm.protocols.messages import (
    ErrorCode,
    ExecutionState,
    OnFailure,
    PlanEventType,
    Segment,
    SegmentCommand,
)


def check_results(run: Run) -> None:
    """Every goal ended, once, with words wherever it did not succeed."""
    sim = run.sim
    assert set(sim.results) == set(run.ids)
    ends = Counter(c.result.plan_id for _, c in sim.log if isinstance(c, ev.EndGoal))
    assert set(ends.values()) <= {1}
    answers = Counter(c.ticket for _, c in sim.log if isinstance(c, ev.Answered | ev.Probed))
    assert answers == Counter(run.tickets)
    for result in sim.results.values():
        assert bool(result.error_msg) == (result.error_code is not ErrorCode.NONE)
        assert result.waiting_time >= 0
        assert result.execution_time >= 0
        assert result.num_segments == len(sim.segments(result.plan_id))
        assert (result.response_time >= 0) == (result.num_segments > 0)


def check_segments(run: Run) -> None:
    """Indices count up from 0 over all plans of a goal; of each plan nothing follows the last one,
    and the texts are the plan."""
    for plan_id, result in run.sim.results.items():
        sent = [s for _, _, s in run.sim.sent if s.plan_id == plan_id and is_text(s)]
        assert [s.index for s in sent] == list(range(len(sent)))
        assert len({s.session for s in sent}) <= 1
        events = [e for e in run.sim.events if e.plan_id == plan_id]
        begins = [0] + [e.segment for e in events if e.type is PlanEventType.REPLANNED]
        assert result.replans == len(begins) - 1
        texts = result.plan.split("\n")
        for attempt, (begin, end) in enumerate(pairwise([*begins, len(sent)])):
            script = f"+{attempt}" if attempt else run.sim.goals[plan_id].instruction
            check_attempt(sent[begin:end], texts[attempt:], (REPLANS | PLANS)[script])
            assert all(s.command is SegmentCommand.RUN for s in sent[begin + 1 : end])
            if attempt and begin < end:
                assert sent[begin].command is SegmentCommand.REPLACE
        assert result.error_code is not ErrorCode.NONE or sent[begins[-1] :]


def check_attempt(sent: list[Segment], texts: list[str], script: str) -> None:
    """The segments of one of the plans of a goal."""
    text = "".join(s.text for s in sent)
    assert all(not s.last for s in sent[:-1])
    assert texts[0].startswith(text) if texts else not sent
    if script not in BAD:
        assert script.startswith(text)
        assert not (sent and sent[-1].last) or text == texts[0] == script


def check_motions(run: Run) -> None:
    """No call of a plan was begun twice, and a plan that succeeded was executed to its end."""
    begun: dict[str, list[int]] = {}
    returned = set()
    for _, _, report in run.sim.reported:
        if report.state is ExecutionState.STARTED:
            begun.setdefault(report.plan_id, []).append(report.call_number)
        elif report.state is ExecutionState.PLAN_RETURNED:
            returned.add(report.plan_id)
    for numbers in begun.values():
        assert numbers == list(range(len(numbers)))
    for plan_id, result in run.sim.results.items():
        if result.error_code is ErrorCode.NONE:
            assert plan_id in returned


def check_events(run: Run) -> None:
    """A plan's events tell one life: accepted, perhaps queued, started, ... and one end."""
    ends = (PlanEventType.ENDED, PlanEventType.REFUSED)
    for plan_id, result in run.sim.results.items():
        events = [e for e in run.sim.events if e.plan_id == plan_id]
        kinds = [e.type for e in events]
        assert kinds[0] is PlanEventType.ACCEPTED
        assert kinds[-1] in ends and events[-1].result == result
        assert sum(kind in ends for kind in kinds) == 1
        assert kinds.count(PlanEventType.STARTED) <= 1 + result.replans
        goal = run.sim.goals[plan_id]
        most = goal.max_replans or int(goal.on_failure is OnFailure.REPLAN)
        assert kinds.count(PlanEventType.REPLANNED) == result.replans <= most
        assert kinds.count(PlanEventType.SEGMENT) == result.num_segments
        running = False
        for kind in kinds:
            if kind in (PlanEventType.STARTED, PlanEventType.RESUMED):
                assert not running
                running = True
            elif kind is PlanEventType.SUSPENDED:
                assert running
                running = False
            elif kind in (PlanEventType.EVICTED, PlanEventType.REPLANNED):
                running = False
            elif kind is PlanEventType.SEGMENT:
                assert PlanEventType.STARTED in kinds
    ended = {c.result.plan_id: at for at, c in run.sim.log if isinstance(c, ev.EndGoal)}
    assert all(at <= ended[feedback.plan_id] for at, feedback in run.sim.feedback)


def check_nothing_is_left(run: Run) -> None:
    """No plan lives on, in the planner, on a robot or in the engine, and blocks are free."""
    sim, state = run.sim, run.sim.planner.state
    assert state.requests == {} and state.generating == {} and not sim.planner.probes
    for robot in state.fleet:
        assert robot.current is None and not robot.queue
    assert all(name in state.prefixes for name in sim.engine._live)
    blocks = sim.engine.info.kv_blocks - state.prefixes.room
    if not state.prefixes.missing:
        assert sim.engine.step(()).kv_blocks_used <= blocks
    for robot in sim.robots.values():
        if robot.alive and not robot.mute and not robot.deaf:
            assert robot.executor.plan_id == "0" * 32


def check(run: Run) -> None:
    check_results(run)
    check_segments(run)
    check_motions(run)
    check_events(run)
    check_nothing_is_left(run)


@given(STORIES)
@settings(max_examples=30)
def test_whatever_happens(story):
    check(Run(story))


@given(STORIES)
@settings(max_examples=8)
def test_the_same_story_twice_gives_the_same_log(story):
    assert Run(story).sim.log == Run(story).sim.log


@given(STORIES)
@settings(max_examples=15)
def test_without_trouble_good_plans_succeed_unless_refused_or_taken(story):
    story.faults = {}
    story.actions = [
        one | {"robot": one["robot"].replace("r9", "r1")}
        for one in story.actions
        if one["kind"] == "goal" and PLANS[one["instruction"]] in GOOD
    ]
    story.engine["kv_blocks"] = 400
    story.engine["max_batch"] = 3
    run = Run(story)
    check(run)
    allowed = {
        ErrorCode.NONE,
        ErrorCode.ROBOT_BUSY,
        ErrorCode.OUTRANKED,
        ErrorCode.PREEMPTED,
        ErrorCode.UNKNOWN_ROBOT,  # sent before the robot had registered
    }
    assert {result.error_code for result in run.sim.results.values()} <= allowed
