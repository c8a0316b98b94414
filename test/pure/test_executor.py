"""The robot's side of a plan on virtual time, as exact logs.

``Scripted`` stands in for a robot: calls take the times, yield the values and fail as a test says.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_adapters.base import Progress
from robot_adapters.executor import RobotExecutor
from robot_adapters.plan_run import Timing
from timely_llm.messages import (
    NO_PLAN,
    Execution,
    ExecutionState,
    Segment,
    SegmentCommand,
    SkillCall,
)
from timely_llm.skills import SkillSet

SKILLS = """
kind: test
bounds: {max_steps: 60, max_time: 100, max_travel: 10, max_statements: 12, max_plan_chars: 4000}
skills:
  - {name: go, arguments: [{name: m, type: int, unit: m, minimum: 1, maximum: 9}],
     duration: {polynomial: [0, 1], of: m}}
  - {name: look, returns: bool, duration: {constant: 1}}
  - {name: ask, arguments: [{name: question, type: str}], returns: str, role: probe,
     duration: {constant: 0.5}}
  - {name: tick, returns: int, duration: {constant: 0.001}}
  - {name: again, role: replan, duration: {constant: 0}}
"""
A, B, C = "a" * 32, "b" * 32, "c" * 32
State = ExecutionState
RUN, REPLACE, CANCEL, STOP = SegmentCommand
TIMING = Timing(heartbeat_period=0.5, planner_timeout=3.0, overtime=2.0, patience=4.0)


class Scripted:
    """A robot whose calls take the expected time, unless ``durations`` says otherwise."""

    PARAMETERS: ClassVar[tuple] = ()
    skills = SkillSet.from_yaml(SKILLS)

    def __init__(self) -> None:
        self.log: list[str] = []
        self.durations: dict[str, float] = {}
        self.values: dict[str, Any] = {"look": True, "tick": 7, "ask": "an apple"}
        self.errors: dict[str, str] = {}  # of the call, when it is done
        self.refusals: dict[str, str] = {}
        self.raises: set[str] = set()
        self.call: SkillCall | None = None
        self.started = 0.0
        self.last = Progress(True)

    def _enter(self, name: str, words: str = "") -> None:
        if name in self.raises:
            raise RuntimeError(f"{name} is broken")
        if words:
            self.log.append(words)

    def check(self, call: SkillCall) -> str | None:
        self._enter("check")
        return self.refusals.get(call.name)

    def travel(self, call: SkillCall) -> float:
        return float(call.evaluated[0]) if call.name == "go" else 0.0

    def start(self, call: SkillCall, now: float) -> None:
        self._enter("start", f"{now:g} start {call.name}({','.join(call.evaluated)})")
        self.call, self.started = call, now

    def _duration(self) -> float:
        return self.durations.get(self.call.name, self.call.expected_duration)

    def poll(self, now: float) -> Progress:
        self._enter("poll")
        if self.call is None:
            return self.last
        elapsed, end = now - self.started, self.started + self._duration()
        if now < end:
            return Progress(False, elapsed=elapsed, remaining=end - now)
        name, self.call = self.call.name, None
        error = self.errors.get(name, "")
        self.last = Progress(True, self.values.get(name), error, elapsed)
        return self.last

    def next_poll(self, now: float) -> float | None:
        self._enter("next_poll")
        return None if self.call is None else self.started + self._duration()

    def halt(self, now: float) -> None:
        self._enter("halt", f"{now:g} halt")
        self.call = None

    def hold(self, now: float) -> None:
        self._enter("hold", f"{now:g} hold")

    def resume(self, now: float) -> None:
        self._enter("resume", f"{now:g} resume")

    def observe(self) -> str:
        self._enter("observe")
        return "[apple]"

    def diagnostics(self) -> dict[str, str]:
        return {}

    def close(self, now: float) -> None:
        self._enter("close", f"{now:g} close")


class Desk:
    """Plays the node: hands inputs in, keeps the clock, writes down what is reported."""

    def __init__(self, ask: Any = None, registered: bool = True, timing: Timing = TIMING) -> None:
        self.robot = Scripted()
        self.executor = RobotExecutor(self.robot, timing, ask)
        self.now = 0.0
        self.reports: list[Execution] = []
        if registered:
            self.take(self.executor.new_session(1, 0.0, "p"))
            self.reports.clear()

    def take(self, reports: list[Execution]) -> None:
        self.reports += reports

    def send(self, index: int, text: str = "", last: bool = False, plan: str = A, **fields) -> None:
        segment = Segment(fields.pop("session", 1), plan, index, text=text, last=last, **fields)
        self.take(self.executor.on_segment(segment, self.now))

    def alive(self, instance: str = "p") -> None:
        self.take(self.executor.on_planner_heartbeat(instance, self.now))

    def run(self, until: float, alive: bool = True) -> None:
        """Let time pass, waking the executor when it asks for it."""
        while (wake := self.executor.next_wake(self.now)) is not None and wake <= until:
            assert wake > self.now - 1e-9, "asks to be woken in the past"
            self.now = max(self.now, wake)
            if alive:
                self.alive()
            self.take(self.executor.tick(self.now))
        self.now = until
        if alive:
            self.alive()

    def told(self, heartbeats: bool = False) -> list[str]:
        """What was reported since the last look, without repeated heartbeats."""
        lines, before = [], None
        for report in self.reports:
            line = report.state.name
            if report.call.name:
                line += f" {report.call.name}({','.join(report.call.evaluated)})"
            line += f" {report.value}" if report.has_value else ""
            line += f": {report.error}" if report.error else ""
            if heartbeats or (report.state is not State.RUNNING and line != before):
                lines.append(line)
            before = line
        self.reports.clear()
        return lines


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_plan_from_the_first_segment_to_the_end(desk: Desk) -> None:
    desk.send(0, "go(2)")
    assert desk.told() == ["RECEIVED", "STARTED go(2)"]
    desk.run(1.0)
    desk.send(1, ";?look()")
    assert desk.told() == ["RECEIVED"]
    desk.run(2.9)
    desk.send(2, "==True{go(3)}->'ok'", last=True)
    desk.run(7.0)
    assert desk.told() == [
        "SUCCEEDED go(2)",
        "STARTED look()",
        "RECEIVED",
        "SUCCEEDED look() True",
        "STARTED go(3)",
        "SUCCEEDED go(3)",
        "PLAN_RETURNED ok",
        "IDLE",
    ]
    assert desk.robot.log == ["0 resume", "0 start go(2)", "2 start look()", "3 start go(3)"]


def test_sequence_segment_and_call_numbers(desk: Desk) -> None:
    desk.send(0, "2{tick();go(1)")
    desk.send(1, "};tick();", last=True)
    desk.run(5.0)
    starts = [r for r in desk.reports if r.state is State.STARTED]
    assert [(r.call.name, r.segment, r.call_number) for r in starts] == [
        ("tick", 0, 0), ("go", 0, 1), ("tick", 0, 2), ("go", 0, 3), ("tick", 1, 4),
    ]  # fmt: skip
    sequence = [r.sequence for r in desk.reports]
    assert sequence == list(range(1, len(sequence) + 1))
    assert {r.session for r in desk.reports} == {1}


def test_times_of_the_reports(desk: Desk) -> None:
    desk.robot.durations["go"] = 2.5
    desk.send(0, "go(2)")
    desk.send(1, ";go(4)")
    desk.run(0.6)
    running = desk.reports[-1]
    assert (running.state, running.stamp) == (State.RUNNING, pytest.approx(0.5))
    assert (running.elapsed, running.skill_remaining) == (pytest.approx(0.5), pytest.approx(2.0))
    assert running.total_remaining == pytest.approx(6.0)
    desk.run(2.5)
    done = [r for r in desk.reports if r.state is State.SUCCEEDED][0]
    assert (done.elapsed, done.skill_remaining, done.total_remaining) == (2.5, 0.0, 4.0)
    received = [r for r in desk.reports if r.state is State.RECEIVED]
    assert [r.total_remaining for r in received] == [2.0, 6.5]


def test_a_robot_that_runs_dry_says_so_at_once_and_again(desk: Desk) -> None:
    desk.send(0, "go(1)")
    desk.run(1.0)
    assert desk.reports[-1].state is State.IDLE
    assert desk.reports[-1].plan_id == A
    desk.run(2.2)
    assert [r.stamp for r in desk.reports if r.state is State.IDLE] == [1.0, 1.5, 2.0]
    assert [r.stamp for r in desk.reports if r.state is State.RUNNING] == [0.5]


def test_a_tick_in_between_says_nothing_new(desk: Desk) -> None:
    desk.send(0, "go(1)")
    assert desk.executor.tick(0.1) == []
    desk.run(1.0)
    assert desk.executor.tick(1.1) == []


def test_an_idle_robot_beats_too(desk: Desk) -> None:
    desk.run(1.6)
    assert [(r.state, r.plan_id, r.stamp) for r in desk.reports] == [
        (State.IDLE, NO_PLAN, stamp) for stamp in (0.5, 1.0, 1.5)
    ]


def test_a_value_ends_a_plan_early_and_what_follows_is_ignored(desk: Desk) -> None:
    desk.send(0, "go(1)")
    desk.send(1, ";->3;go(2)")
    desk.run(3.0)
    desk.send(2, ";go(3)", last=True)
    assert desk.told()[-2:] == ["PLAN_RETURNED 3", "IDLE"]
    assert desk.robot.log[1:] == ["0 start go(1)"]


# ---- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("_1=5*2;go(_1)", "FAILED: go: m is 10 m: must be 1 to 9 m"),
        ("_1=tick();_2=_1/0;", "FAILED: 7 / 0: division by zero"),
        ("_1=look()+1;", "FAILED: True + 1: both sides must be numbers"),
    ],
)
def test_what_is_wrong_on_evaluation_fails_before_it_moves(desk, text, end) -> None:
    desk.send(0, text)
    desk.run(1.5)
    assert end in desk.told()
    assert desk.robot.log[-1].endswith("halt")
    assert not any("go" in line for line in desk.robot.log)


def test_a_call_that_must_not_be_done_from_here_is_not_started(desk: Desk) -> None:
    desk.robot.refusals["go"] = "a wall is in the way"
    desk.send(0, "go(1);look();", last=True)
    assert desk.told() == ["RECEIVED", "FAILED go(1): go: a wall is in the way", "IDLE"]
    assert desk.robot.log[1:] == ["0 halt"]


def test_a_failed_call_ends_the_plan_and_its_segments_are_ignored(desk: Desk) -> None:
    desk.robot.errors["go"] = "motor"
    desk.send(0, "go(1)")
    desk.run(1.0)
    desk.send(1, ";go(2)")
    desk.send(0, "look();", last=True, plan=B)
    desk.run(3.0)
    assert desk.told() == [
        "RECEIVED", "STARTED go(1)", "FAILED go(1): go: motor", "IDLE",
        "RECEIVED", "STARTED look()", "SUCCEEDED look() True", "PLAN_RETURNED", "IDLE",
    ]  # fmt: skip


def test_a_call_that_never_ends_fails_in_time(desk: Desk) -> None:
    desk.robot.durations["go"] = 1000.0
    desk.send(0, "go(3)")
    desk.run(20.0)
    assert "FAILED go(3): go: not done after 10 s" in desk.told()  # 2 x 3 + 4
    assert desk.robot.log[1:] == ["0 start go(3)", "10 halt"]


def test_bounds_of_a_run(desk: Desk) -> None:
    desk.send(0, "9{9{tick();}}", last=True)
    desk.run(5.0)
    assert desk.told()[-2] == "FAILED: the plan takes more than max_steps, 60"
    desk.send(0, "go(9);go(1);go(1);", last=True, plan=B)
    desk.run(30.0)
    assert (
        desk.told()[-2] == "FAILED go(1): go: the plan would travel further than max_travel, 10 m"
    )
    desk.robot.durations["look"] = 5.6
    desk.send(0, "19{look();}", last=True, plan=C)
    desk.run(200.0)
    assert desk.told()[-2] == "FAILED look(): look: the plan would take longer than max_time, 100 s"


def test_a_text_that_does_not_parse_fails_behind_the_call_in_progress(desk: Desk) -> None:
    desk.send(0, "go(2)")
    desk.send(1, ";)")
    desk.run(3.0)
    told = desk.told()
    assert told[-3] == "SUCCEEDED go(2)"
    assert told[-2].startswith("FAILED: ")


@pytest.mark.parametrize("method", ["check", "start", "poll"])
def test_an_adapter_that_raises_fails_the_call_and_nothing_else(desk: Desk, method) -> None:
    desk.robot.raises = {method, "halt"}
    desk.send(0, "go(1)")
    desk.run(0.6)
    assert f"FAILED go(1): go: adapter: {method} is broken" in desk.told()
    desk.robot.raises = set()
    desk.send(0, "go(1);", last=True, plan=B)
    desk.run(3.0)
    assert desk.told()[-2] == "PLAN_RETURNED"


def test_an_adapter_that_cannot_say_when_is_asked_again(desk: Desk) -> None:
    desk.robot.raises = {"next_poll"}
    desk.send(0, "go(1);", last=True)
    desk.run(2.0)
    assert "PLAN_RETURNED" in desk.told()


def test_replan(desk: Desk) -> None:
    desk.send(0, "go(1);again();")
    desk.run(1.5)
    assert desk.told()[-2:] == ["REPLAN_REQUESTED", "IDLE"]
    desk.send(1, "look();", command=REPLACE, last=True)
    desk.run(3.0)
    assert desk.told()[-2:] == ["PLAN_RETURNED", "IDLE"]


# ---- delivery ------------------------------------------------------------------------------------


def test_gap_repeat_foreign_session_and_busy_are_refused_in_words(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.told()
    desk.send(2, ";go(1)")
    desk.send(0, "go(5)")
    desk.send(1, ";", session=9)
    desk.send(0, "go(1)", plan=B)
    assert desk.told() == [
        "REJECTED: gap: segment 2, but 1 was expected",
        "REJECTED: repeat: segment 0 was received already",
        "REJECTED: session 9: this robot has session 1",
        f"REJECTED: busy with plan {A}",
    ]
    assert desk.robot.log[1:] == ["0 start go(5)"]


def test_a_cancel_halts_and_is_answered_whenever_it_comes(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.run(1.25)
    desk.told()
    desk.send(0, command=CANCEL)
    aborted = desk.reports[0]
    assert (aborted.elapsed, aborted.call.name) == (1.25, "go")
    assert desk.told() == ["ABORTED go(5): canceled", "IDLE"]
    desk.send(0, command=CANCEL)
    desk.send(0, command=CANCEL, plan=B)
    desk.send(0, "go(1)", plan=B)
    assert desk.told() == ["ABORTED: canceled: it is not being carried out"]
    assert desk.robot.log[1:] == ["0 start go(5)", "1.25 halt"]


def test_a_replacement_halts_the_old_plan_first(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.run(1.0)
    desk.told()
    desk.send(0, "look()", plan=B, command=REPLACE)
    assert desk.told() == ["ABORTED go(5): replaced", "RECEIVED", "STARTED look()"]
    assert desk.robot.log[-2:] == ["1 halt", "1 start look()"]


def test_a_robot_without_session_is_silent(desk: Desk) -> None:
    desk = Desk(registered=False)
    desk.send(0, "go(1)")
    desk.take(desk.executor.tick(1.0))
    desk.take(desk.executor.on_stop(1.0))
    desk.take(desk.executor.on_rearm(1.0))
    assert desk.executor.needs_registration
    assert desk.executor.next_wake(1.0) is None
    assert desk.told() == []


# ---- stop ----------------------------------------------------------------------------------------


def test_a_stop_is_latched_and_told_until_rearm(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.run(1.0)
    desk.told()
    desk.take(desk.executor.on_stop(desk.now))
    desk.send(0, "go(1)", plan=B)
    desk.send(1, ";go(1)")
    desk.run(2.0)
    assert desk.told() == ["ABORTED go(5): stopped", "IDLE: stopped", "REJECTED: stopped",
                           "IDLE: stopped"]  # fmt: skip
    desk.take(desk.executor.on_rearm(desk.now))
    desk.send(0, "go(1)", plan=C)
    assert desk.told() == ["IDLE", "RECEIVED", "STARTED go(1)"]
    assert desk.robot.log[1:] == ["0 start go(5)", "1 halt", "2 start go(1)"]


def test_the_planners_stop_holds_whoever_sends_it(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.send(0, plan=NO_PLAN, command=STOP, session=99)
    assert desk.told()[-2:] == ["ABORTED go(5): stopped", "IDLE: stopped"]
    assert desk.executor.stopped


def test_a_stop_survives_a_new_session(desk: Desk) -> None:
    desk.take(desk.executor.on_stop(desk.now))
    desk.take(desk.executor.new_session(2, desk.now, "q"))
    assert desk.told()[-1] == "IDLE: stopped"


# ---- the planner ---------------------------------------------------------------------------------


def test_a_silent_planner_ends_the_plan_behind_the_current_call(desk: Desk) -> None:
    desk.send(0, "go(5);go(1);go(1);")
    desk.run(10.0, alive=False)
    assert desk.told() == [
        "RECEIVED", "STARTED go(5)", "SUCCEEDED go(5)", "ABORTED: planner lost",
        "IDLE: planner lost",
    ]  # fmt: skip
    assert desk.robot.log[1:] == ["0 start go(5)", "5 hold"]
    assert desk.executor.needs_registration
    assert desk.executor.next_wake(desk.now) is None  # nobody's robot any more
    desk.take(desk.executor.new_session(2, desk.now, "p"))
    assert desk.robot.log[-1] == "10 resume"
    assert not desk.executor.needs_registration


def test_a_new_planner_ends_the_plan_behind_the_current_call(desk: Desk) -> None:
    desk.send(0, "go(2);go(1);")
    desk.run(1.0)
    desk.alive("q")
    desk.run(4.0, alive=False)
    assert desk.told()[-3:] == ["SUCCEEDED go(2)", "ABORTED: planner lost", "IDLE: planner lost"]
    assert desk.robot.log[1:] == ["0 start go(2)", "2 hold"]


def test_between_two_calls_a_lost_planner_ends_the_plan_at_once(desk: Desk) -> None:
    desk.send(0, "go(1)")
    desk.run(1.0)
    desk.run(9.0, alive=False)
    assert desk.robot.log[1:] == ["0 start go(1)", "4 hold"]


def test_segments_of_a_lost_planner_begin_nothing(desk: Desk) -> None:
    desk.run(5.0, alive=False)
    desk.told()
    desk.send(0, "go(1)")
    assert desk.told() == ["REJECTED: planner lost"]


def test_a_planner_that_is_lost_stays_lost_until_registration(desk: Desk) -> None:
    desk.run(5.0, alive=False)
    desk.alive("p")
    assert desk.executor.needs_registration
    assert desk.robot.log[1:] == ["3 hold"]


def test_a_stop_without_planner_halts_and_holds(desk: Desk) -> None:
    desk.send(0, "go(9)")
    desk.run(5.0, alive=False)
    desk.take(desk.executor.on_stop(desk.now))
    assert desk.robot.log[1:] == ["0 start go(9)", "5 halt", "5 hold"]
    assert desk.told()[-2:] == ["ABORTED go(9): stopped", "IDLE: stopped"]


def test_registering_again_ends_what_was_going_on(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.told()
    desk.take(desk.executor.new_session(2, 1.0, "p"))
    assert desk.told() == ["ABORTED go(5): registered again", "IDLE"]
    desk.send(1, ";go(1)")
    assert desk.told() == ["REJECTED: session 1: this robot has session 2"]


def test_the_end_of_the_node_halts(desk: Desk) -> None:
    desk.send(0, "go(5)")
    desk.told()
    desk.take(desk.executor.shutdown(1.0))
    assert desk.told() == ["ABORTED go(5): the robot node ends", "IDLE"]
    assert desk.robot.log[2:] == ["1 halt", "1 close"]


# ---- probes --------------------------------------------------------------------------------------


def test_without_a_model_the_robot_answers_probes(desk: Desk) -> None:
    desk.send(0, "_1=ask('what is edible');->_1", last=True)
    desk.run(1.0)
    assert desk.told()[-2] == "PLAN_RETURNED an apple"


def test_a_probe_goes_to_the_model() -> None:
    questions: list = []
    desk = Desk(ask=questions.append)
    desk.send(0, "_1=ask('what is edible');->_1", last=True)
    desk.run(2.0)
    (question,) = questions
    assert (question.text, question.scene, question.timeout) == ("what is edible", "[apple]", 10.0)
    desk.take(desk.executor.on_answer(A, 99, "wrong call", "", desk.now))
    desk.take(desk.executor.on_answer(A, question.call_number, "True", "", desk.now))
    assert desk.told()[-3:] == ["SUCCEEDED ask(what is edible) True", "PLAN_RETURNED True", "IDLE"]
    desk.take(desk.executor.on_answer(A, question.call_number, "late", "", desk.now))
    assert desk.told() == []
    assert desk.robot.log[1:] == []  # the robot itself did nothing


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ("the model failed", "FAILED ask(x): ask: the model failed"),
        ("", "FAILED ask(x): ask: no answer"),
        (None, "FAILED ask(x): ask: not done after 10 s"),
    ],
)
def test_a_probe_without_answer_fails(answer, end) -> None:
    desk = Desk(ask=lambda question: None)
    desk.send(0, "_1=ask('x');")
    if answer is not None:
        desk.take(desk.executor.on_answer(A, 0, None, answer, 1.0))
    desk.run(30.0)
    assert end in desk.told()


def test_a_model_that_cannot_be_asked_fails_the_call() -> None:
    def ask(question: Any) -> None:
        raise RuntimeError("no service")

    desk = Desk(ask=ask)
    desk.send(0, "_1=ask('x');")
    assert "FAILED ask(x): ask: adapter: no service" in desk.told()


# ---- whatever comes ------------------------------------------------------------------------------

TEXTS = st.sampled_from(
    ["go(1)", ";go(2)", ";look()", ";", "2{go(1)", "}", "->True", ")", "go(99)"]
)
INPUTS = st.one_of(
    st.tuples(
        st.just("send"), st.integers(0, 3), TEXTS, st.booleans(), st.sampled_from([A, B]),
        st.sampled_from([RUN, RUN, RUN, REPLACE, CANCEL, STOP]), st.sampled_from([1, 1, 1, 2]),
    ),
    st.tuples(st.just("run"), st.floats(0.1, 4.0), st.booleans()),
    st.tuples(st.sampled_from(["stop", "rearm", "register"])),
    st.tuples(st.just("alive"), st.sampled_from(["p", "p", "q"])),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(INPUTS, max_size=25))
def test_whatever_comes_no_motion_is_done_twice_or_while_stopped(inputs: list) -> None:
    desk, session = Desk(), 1
    for kind, *rest in inputs:
        match kind:
            case "send":
                index, text, last, plan, command, of_session = rest
                desk.send(index, text, last, plan, command=command, session=of_session)
            case "run":
                desk.run(desk.now + rest[0], alive=rest[1])
            case "stop":
                desk.take(desk.executor.on_stop(desk.now))
            case "rearm":
                desk.take(desk.executor.on_rearm(desk.now))
            case "register":
                session += 1
                desk.take(desk.executor.new_session(session, desk.now, "p"))
            case "alive":
                desk.alive(rest[0])
        if desk.executor.stopped:
            assert desk.robot.call is None
    sequence = [r.sequence for r in desk.reports]
    assert sequence == list(range(1, len(sequence) + 1))
    open_plans: dict[tuple, int] = {}
    for report in desk.reports:
        key = (report.session, report.plan_id)
        if report.state is State.STARTED:  # calls count up within one run of a plan
            assert report.call_number == open_plans.get(key, -1) + 1
            open_plans[key] = report.call_number
        if report.state in (State.FAILED, State.ABORTED, State.PLAN_RETURNED):
            open_plans.pop(key, None)
    starts = sum(" start " in line for line in desk.robot.log)
    assert starts == sum(r.state is State.STARTED for r in desk.reports)
