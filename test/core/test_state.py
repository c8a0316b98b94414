"""The transitions of a request, one by one: what each changes, and which commands come of it.

The engine is simulated and never stepped, unless a test says so; the robot is registered by hand.
"""

from __future__ import annotations

import itertools

import pytest
from sim_parts import PROMPTS, tokens_of, walker

from timely_llm.core import events as ev
from timely_llm.core.config import PlannerConfig
from timely_llm.core.probes import Probes
from timely_llm.core.replans import as_written
from timely_llm.core.request import Request, State
from timely_llm.core.robots import Fleet, Robot
from timely_llm.core.state import Counts, PlannerState
from timely_llm.engine.simulated import SimulatedEngine
from timely_llm.estimation.step_time import StepLatency
from timely_llm.policies import Decision
from timely_llm.prompts.fixed import FixedPrompt
from timely_llm.prompts.history import Attempt
from timely_llm.prompts.template import PromptTemplate
from timely_llm.protocols.engine import EngineRequest, Output, StepResult
from timely_llm.protocols.messages import (
    NO_PLAN,
    ErrorCode,
    PlanGoal,
    SegmentCommand,
    SkillCall,
)

LATENCY = StepLatency((0.02,), source="test")
GO = SkillCall("go", ("2",), (), 2.0)


class Bench:
    """A planner's state with one robot, and what came out of it."""

    def __init__(self, observed: bool = True, **config: object) -> None:
        self.engine = SimulatedEngine(
            lambda request: tokens_of("go(2)"), LATENCY, block_size=4, count_tokens=len
        )
        kind = walker()
        self.state = PlannerState(
            PlannerConfig(**config),
            self.engine,
            PromptTemplate(PROMPTS),
            Fleet({kind.kind: kind}, itertools.count(7).__next__),
            LATENCY,
            observed=observed,
        )
        self.robot: Robot = self.state.fleet.add(
            robot_id="r1",
            skills=kind,
            fixed=FixedPrompt("walker"),
            prefix="pin",
            namespace="/r1",
            instance="a",
            registered=0.0,
            last_heard=0.0,
            last_sequence=0,
        )
        self._names = itertools.count(1)

    def accept(self, now: float = 1.0) -> Request:
        return self.state.accept(f"p{next(self._names)}", PlanGoal("r1", "walk"), now)

    def assigned(self, now: float = 1.0) -> Request:
        request = self.accept(now)
        self.state.assign(self.robot, request, now)
        self.state.drain()
        return request

    def sent(self, now: float = 1.0) -> Request:
        """A request whose first segment has gone to the robot."""
        request = self.assigned(now)
        self.state.run(request, now)
        self.state.wrote(request, "go(2)", 4, (0.02,) * 4, now + 0.08)
        self.state.send(request, "go(2)", (GO,), False, now + 0.08)
        self.state.drain()
        return request

    def out(self) -> list[str]:
        """The commands since the last call, shortly."""
        return [_shown(command) for command in self.state.drain()]


def _shown(command: ev.Command) -> str:
    match command:
        case ev.SendSegment(robot, segment):
            return f"{segment.command.name} {robot} {segment.plan_id} {segment.index}"
        case ev.EmitEvent(event):
            return f"event {event.type.name} {event.plan_id}"
        case ev.EmitFeedback(feedback):
            return f"feedback {feedback.state.name} {feedback.queue_position}"
        case ev.EndGoal(result):
            return f"end {result.plan_id} {result.error_code.name}"
    return type(command).__name__


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_goal_is_accepted_queued_for_nobody(bench):
    request = bench.accept(3.0)
    assert (request.state, request.number, request.arrival) == (State.QUEUED, 1, 3.0)
    assert bench.state.requests == {"p1": request} and not bench.state.generating
    assert bench.out() == ["event ACCEPTED p1"]


def test_numbers_count_up(bench):
    assert [bench.state.number() for _ in range(3)] == [1, 2, 3]


def test_an_assigned_request_is_with_the_engine_and_its_clock_starts(bench):
    request = bench.accept(1.0)
    bench.state.assign(bench.robot, request, 2.0)
    assert (request.state, request.arrival, request.asked) == (State.WAITING, 2.0, 2.0)
    assert bench.robot.current is request
    assert bench.state.generating["p1"].robot is bench.robot
    assert request.prompt_tokens == len("walker") + len("walk") == request.uncached
    assert bench.out() == ["event ACCEPTED p1", "feedback WAITING 0"]


def test_those_in_a_queue_are_told_their_places(bench):
    bench.assigned()
    for _ in range(2):
        bench.state.enqueue(bench.robot, bench.accept(), 1.0)
    assert [r.plan_id for r in bench.robot.queue] == ["p2", "p3"]
    assert bench.out() == [
        "event ACCEPTED p2", "event QUEUED p2", "feedback QUEUED 1",
        "event ACCEPTED p3", "event QUEUED p3", "feedback QUEUED 2",
    ]  # fmt: skip
    bench.state.end(bench.robot.queue[0], ErrorCode.CANCELED, "", 2.0)
    assert bench.out() == ["event REFUSED p2", "end p2 CANCELED", "feedback QUEUED 1"]


def test_a_plan_that_does_not_fit_ends_its_request_and_the_robot_turns_to_the_next():
    bench = Bench(max_tokens=10**6)
    request = bench.accept()
    bench.state.assign(bench.robot, request, 1.0)
    assert request.ended and bench.robot.current is None and not bench.state.requests
    assert bench.out() == ["event ACCEPTED p1", "event ENDED p1", "end p1 INVALID_GOAL"]


def test_running_and_suspending_are_told_and_the_first_run_is_a_start(bench):
    request = bench.assigned()
    bench.state.run(request, 1.0)
    bench.state.suspend(request, 1.1)
    bench.state.run(request, 1.2)
    assert request.begun and request.state is State.RUNNING
    assert [line for line in bench.out() if line.startswith("event")] == [
        "event STARTED p1", "event SUSPENDED p1", "event RESUMED p1",
    ]  # fmt: skip


def test_the_evicted_compute_all_of_it_again_but_their_fixed_prompt(bench):
    request = bench.assigned()
    bench.state.run(request, 1.0)
    bench.state.wrote(request, "go(", 2, (0.02, 0.02), 1.04)
    bench.state.evicted("p1", 1.1)
    assert (request.state, request.uncached) == (State.EVICTED, request.prompt_tokens + 2)
    bench.state.evicted("p1", 1.2)  # once is enough
    bench.state.evicted("gone", 1.2)
    assert [line for line in bench.out() if "EVICTED" in line] == ["event EVICTED p1"]


def test_a_segment_is_sent_once_and_waited_for(bench):
    request = bench.assigned()
    bench.state.run(request, 1.0)
    bench.state.wrote(request, "go(2)", 4, (0.02,) * 4, 1.08)
    bench.state.drain()
    bench.state.send(request, "go(2)", (GO,), False, 1.08)
    assert (request.segments, request.unacknowledged) == (["go(2)"], {0: 1.08})
    assert request.response_time == pytest.approx(0.08)
    assert (request.segment_tokens, request.step_times) == (0, [])
    assert bench.state.due == pytest.approx(1.08 + bench.state.config.ack_timeout)
    assert bench.out() == ["RUN r1 p1 0", "event SEGMENT p1", "feedback GENERATING 0"]
    bench.state.send(request, ";", (), True, 1.2)
    assert bench.out()[0] == "RUN r1 p1 1"


def test_stopping_what_was_never_sent_ends_it_at_once(bench):
    request = bench.assigned()
    bench.state.stop(request, ErrorCode.CANCELED, "why", 1.5)
    assert request.ended and not bench.state.generating and bench.robot.current is None
    assert bench.out() == ["event ENDED p1", "end p1 CANCELED"]


def test_stopping_what_the_robot_has_waits_until_it_stands(bench):
    request = bench.sent()
    bench.state.stop(request, ErrorCode.CANCELED, "why", 2.0)
    timeout = bench.state.config.stop_timeout
    assert (request.state, request.stop_deadline) == (State.STOPPING, 2.0 + timeout)
    assert bench.robot.current is request and not bench.state.generating
    assert bench.out() == ["CANCEL r1 p1 0", "feedback STOPPING 0"]
    bench.state.stop(request, ErrorCode.PREEMPTED, "again", 2.1)
    assert bench.out() == [] and request.code is ErrorCode.CANCELED
    bench.state.end_stopped(request, ErrorCode.ROBOT_LOST, "other", 2.2)
    assert bench.out() == ["event ENDED p1", "end p1 CANCELED"]


def test_a_robot_that_is_lost_is_not_waited_for(bench):
    request = bench.sent()
    bench.robot.alive = False
    bench.state.stop(request, ErrorCode.CANCELED, "why", 2.0)
    assert request.ended


def test_an_end_is_told_once(bench):
    request = bench.assigned()
    bench.state.end(request, ErrorCode.NONE, "", 2.0)
    bench.state.end(request, ErrorCode.CANCELED, "", 2.1)
    assert bench.out() == ["event ENDED p1", "end p1 NONE"]


def test_the_next_in_the_queue_starts_when_the_robot_is_free(bench):
    first, second = bench.assigned(), bench.accept()
    bench.state.enqueue(bench.robot, second, 1.0)
    bench.state.end(first, ErrorCode.NONE, "", 3.0)
    assert bench.robot.current is second and second.arrival == 3.0
    assert not bench.robot.queue


@pytest.mark.parametrize("field", ["alive", "stopped"])
def test_nobody_starts_on_a_robot_that_is_lost_or_stopped(bench, field):
    first, second = bench.assigned(), bench.accept()
    bench.state.enqueue(bench.robot, second, 1.0)
    setattr(bench.robot, field, field == "stopped")
    bench.state.end(first, ErrorCode.NONE, "", 3.0)
    assert bench.robot.current is None and list(bench.robot.queue) == [second]


def test_who_takes_a_robot_over_gets_it_with_the_first_segment(bench):
    old, request = bench.sent(), bench.accept(2.0)
    assert bench.state.take_over(bench.robot, request, 2.0) is old
    assert bench.robot.current is request and not old.ended
    bench.state.run(request, 2.0)
    bench.state.drain()
    bench.state.send(request, "go(2)", (GO,), True, 2.1)
    assert old.ended and request.replaced is None
    assert bench.out()[:4] == [
        "event PREEMPTED p1", "event ENDED p1", "end p1 PREEMPTED", "REPLACE r1 p2 0",
    ]  # fmt: skip


def test_a_replacement_that_comes_to_nothing_gives_the_robot_back(bench):
    old, request = bench.sent(), bench.accept(2.0)
    bench.state.take_over(bench.robot, request, 2.0)
    bench.state.stop(request, ErrorCode.CANCELED, "", 2.1)
    assert request.ended and bench.robot.current is old


def test_a_replan_is_the_same_goal_with_another_number(bench):
    request = bench.sent()
    attempt = Attempt("go(2)", (), "go(2)", "stuck", "go(2)", 10, 4)
    bench.state.replan(request, attempt, ErrorCode.SKILL_FAILED, "stuck", 3.0)
    assert (request.plan_id, request.number, request.asked) == ("p1", 2, 3.0)
    assert (request.state, request.attempts) == (State.WAITING, [attempt])
    assert "p1" in bench.state.generating and bench.robot.current is request
    assert bench.out() == ["event REPLANNED p1", "feedback WAITING 0"]
    bench.state.run(request, 3.0)
    bench.state.drain()
    bench.state.send(request, "go(2)", (GO,), True, 3.1)
    assert bench.out()[0] == "REPLACE r1 p1 1"  # counts on, so that nothing is done twice


def test_everything_of_a_robot_ends_together_and_what_it_has_is_cancelled(bench):
    current, waiting = bench.sent(), bench.accept()
    bench.state.enqueue(bench.robot, waiting, 1.0)
    bench.state.drain()
    bench.state.end_all(bench.robot, ErrorCode.ROBOT_LOST, "gone", 5.0)
    assert current.ended and waiting.ended and not bench.state.requests
    assert bench.out() == [
        "event REFUSED p2", "end p2 ROBOT_LOST", "CANCEL r1 p1 0",
        "event ENDED p1", "end p1 ROBOT_LOST",
    ]  # fmt: skip


def test_a_robot_told_to_stop_is_latched(bench):
    bench.state.stop_robot(bench.robot, 4.0)
    assert (bench.robot.stopped, bench.robot.stop_sent) == (True, 4.0)
    assert bench.out() == [f"STOP r1 {NO_PLAN} 0"]


def test_acknowledgements_are_waited_for_since_the_robot_was_reached(bench):
    request = bench.sent()
    bench.state.due = 99.0
    bench.state.reached(bench.robot, 9.0)
    assert request.unacknowledged == {0: 9.0}
    assert bench.state.due == 9.0 + bench.state.config.ack_timeout


def test_when_a_robot_counts_as_lost(bench):
    config = bench.state.config
    bench.robot.last_heard = 10.0
    assert bench.state.lost_at(bench.robot) == 10.0 + config.heartbeat_timeout
    bench.robot.last_sequence = -1  # it has not spoken in its session
    assert bench.state.lost_at(bench.robot) == 10.0 + config.first_report_timeout


def test_nobody_reads_nobody_is_told():
    bench = Bench(observed=False)
    request = bench.assigned()
    bench.state.run(request, 1.0)
    bench.state.end(request, ErrorCode.NONE, "", 2.0)
    assert bench.out() == ["end p1 NONE"]


def test_counts_say_who_does_what(bench):
    bench.sent()
    bench.state.enqueue(bench.robot, bench.accept(), 1.0)
    counts = bench.state.counts(StepResult(kv_blocks_used=3), recomputed_tokens=5)
    assert (counts.robots, counts.running, counts.waiting, counts.suspended) == (1, 1, 1, 0)
    assert (counts.kv_blocks_used, counts.kv_blocks_total) == (3, bench.engine.info.kv_blocks)
    assert (counts.executing, counts.recomputed_tokens) == (0, 5)


def test_commands_without_text_belong_to_no_index(bench):
    bench.state.command(bench.robot, SegmentCommand.CANCEL, "p9", 1.5)
    (command,) = bench.state.drain()
    segment = command.segment
    assert (segment.session, segment.index, segment.text, segment.stamp) == (7, 0, "", 1.5)


def test_a_start_says_how_much_of_the_prompt_was_cached(bench):
    request = bench.assigned()
    request.uncached = 3
    bench.state.run(request, 1.0)
    started = next(c.event for c in bench.state.drain() if isinstance(c, ev.EmitEvent))
    assert started.cached_tokens == request.prompt_tokens - 3


def test_without_robots_and_requests_there_is_nothing_to_count():
    assert Counts() == Counts(0, 0, 0, 0, 0, 0, 0, 0)


def test_whole_blocks_of_a_fixed_prompt_are_shared_but_for_its_last_token(bench):
    """Blocks of 4: of 9 tokens 8, of 8 only 4, for one token at least is computed by each plan."""
    for tokens, shared in ((9, 8), (8, 4), (1, 0)):
        key = f"pin-{tokens}"
        bench.state.prefixes.add(EngineRequest(key, 1, "x" * tokens, None))
        bench.state.prefixes.settle(key, True)
        assert bench.state.prefixes.cached(key) == shared


def test_a_call_without_evaluated_values_is_told_as_written(bench):
    assert as_written(SkillCall("go", ("2",)), bench.robot.skills) == "go(2)"
    assert as_written(SkillCall("say", ("_1",), ("hi",)), bench.robot.skills) == "say('hi')"


def test_questions_bring_their_own_prompt_tokens(bench):
    bench.state.prompts = PromptTemplate(
        PROMPTS + "{% block probe %}{{ scene }}{{ instruction }}{% endblock %}"
    )
    probes = Probes(bench.state)
    probes.ask(ev.AskProbe(1, "r1", 7, "what?"), 1.0)
    (name,) = probes
    tokens = len("walker") + len("what?")
    decision = Decision(run=("p1",), prefill_budget=5)
    asked = probes.before(decision)
    assert (asked.run, asked.prefill_budget) == ((name, "p1"), 5 + tokens)
    assert probes.before(Decision(run=("p1",))).prefill_budget is None
    probes.wrote(name, Output("a", 1))
    assert probes.before(decision).prefill_budget == 5
