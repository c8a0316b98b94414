"""What must not end the planner: an engine with an order of its own, reports with numbers that no
robot means, goals that are refused when it is too late, and very many of them."""

import sys
from dataclasses import replace

import pytest
from planner_cases import config, sim

from timely_llm.core import events as ev
from timely_llm.core.config import Limits
from timely_llm.estimation.learned_times import Times
from timely_llm.protocols.messages import ErrorCode, ExecutionState, SkillCall, WhenBusy
from timely_llm.protocols.utility import TimeUtility, Urgency

WORTHLESS = TimeUtility(0.0, -1e6, 1.0)  # when it could be answered at the soonest


class InOrderOfRequests:
    """Stands in for vLLM's own scheduler: first come, first served, whatever it is told to run."""

    def __init__(self, engine) -> None:
        self._engine = engine
        self._order: list[str] = []

    def __getattr__(self, name: str):
        return getattr(self._engine, name)

    def submit(self, request) -> int:
        tokens = self._engine.submit(request)
        self._order.append(request.id)
        return tokens

    def abort(self, request_id: str) -> None:
        self._engine.abort(request_id)
        self._leave(request_id)

    def step(self, run, *rest, **fields):
        step = self._engine.step(self._order[: self.info.max_batch] if run else ())
        for name, output in step.outputs.items():
            if output.finish or name.startswith("pin-"):
                self._leave(name)
        return step

    def _leave(self, request_id: str) -> None:
        if request_id in self._order:
            self._order.remove(request_id)


@pytest.mark.parametrize("policy", ["vllm", "vllm_stream", "vllm_priority"])
def test_an_engine_that_takes_another_one_than_was_thought(policy):
    """A goal that waited for its robot is known for longer than it has been in the engine."""
    plans = {"short": "go(3)", "queued": ";".join(["go(2)"] * 7), "v": "go(1)",
             "half": ";".join(["go(2)"] * 10), "full": ";".join(["go(2)"] * 20)}  # fmt: skip
    run = sim("r1", "r2", "r3", "r4", policy=policy, plans=plans, max_batch=2)
    engine = InOrderOfRequests(run.engine)
    run.planner.state.engine = run.planner.state.prefixes._engine = engine
    goals = [run.goal("r1", "short", at=1.0), run.goal("r1", "queued", at=1.1)]
    goals += [run.goal("r2", "half", at=3.0), run.goal("r3", "full", at=3.0)]
    goals += [run.goal("r4", "v", at=3.5)]
    run.finish()
    assert [run.result(goal).error_code for goal in goals] == [ErrorCode.NONE] * 5


@pytest.mark.parametrize(
    "fields",
    [
        {"total_remaining": sys.float_info.max},
        {"total_remaining": 1e300, "skill_remaining": -1e308},
        {"elapsed": 1e300},
        {"elapsed": 1e308},
        {"call": SkillCall("go", expected_duration=1e308)},
    ],
)
def test_a_robot_that_says_a_very_large_number(fields):
    """As for "unknown"; the other robot's goals do not notice."""
    run = sim("r1", "r2", plans={"long": ";".join(["go(0.1)"] * 5)})
    run.planner.state.fleet.times = Times()
    tell = run.tell

    def told(event, at=None) -> None:
        of_r1 = isinstance(event, ev.ExecutionArrived) and event.robot_id == "r1"
        if of_r1 and event.execution.call.name:
            event = ev.ExecutionArrived("r1", replace(event.execution, **fields))
        tell(event, at)

    run.tell = told
    times = {"r1": 1.0, "r2": 3.0}
    goals = [run.goal(robot, "long", at=at) for robot, at in times.items() for _ in range(3)]
    run.finish()
    assert [run.result(goal).error_code for goal in goals[3:]] == [ErrorCode.NONE] * 3


@pytest.mark.parametrize("state", list(ExecutionState))
def test_a_report_whose_handling_fails_costs_its_robot_alone(state, monkeypatch):
    """A fault of ours, met again and again: whatever the robot was to do ends with a result."""
    run = sim("r1", "r2")
    follow = run.planner._reports._follow

    def fails(robot, request, report, now) -> None:
        if robot.robot_id == "r1" and broken:
            raise ZeroDivisionError("a test")
        healthy(robot, request, report, now)

    healthy, broken = follow[state], True
    follow[state] = fails
    goals = [run.goal(robot, "long", at=1.0) for robot in ("r1", "r2") for _ in range(3)]
    run.finish()
    assert [run.result(goal).error_code for goal in goals[3:]] == [ErrorCode.NONE] * 3
    met = [command for _, command in run.log if isinstance(command, ev.RobotFaulted)]
    if met:
        words = "robot 'r1' is given up: its report could not be handled: a test"
        results = {(run.result(goal).error_code, run.result(goal).error_msg) for goal in goals[:3]}
        assert (ErrorCode.ROBOT_LOST, words) in results
        assert met[0].robot_id == "r1" and "ZeroDivisionError: a test" in met[0].words
    assert bool(met) is (state in _REPORTED)
    broken = False
    last = run.goal("r1", "b", at=run.now + 1.0)
    run.finish()
    assert run.result(last).error_code is ErrorCode.NONE


_REPORTED = (
    *(ExecutionState.RECEIVED, ExecutionState.STARTED, ExecutionState.RUNNING),
    *(ExecutionState.SUCCEEDED, ExecutionState.PLAN_RETURNED),
)


@pytest.mark.parametrize("own", [True, False])
def test_a_report_that_cannot_be_costs_its_robot_alone(own):
    """One of another session is a stranger's."""
    run = sim("r1", "r2")
    goals = [run.goal(robot, "long", at=1.0) for robot in ("r1", "r1", "r2")]
    run.run(3.0)
    session = run.robots["r1"].session if own else 77
    run.tell(ev.ReportInvalid("r1", session, "elapsed is inf s: must be finite"))
    run.tell(ev.ReportInvalid("r9", session, "of a robot that there is not"))
    run.finish()
    code = ErrorCode.ROBOT_LOST if own else ErrorCode.NONE
    assert [run.result(goal).error_code for goal in goals] == [code, code, ErrorCode.NONE]
    if own:
        words = "robot 'r1' is given up: elapsed is inf s: must be finite"
        assert run.result(goals[0]).error_msg == words
        assert run.commands("r1")[-1].endswith("CANCEL")
        assert len(run.motions("r1")) == 1


@pytest.mark.parametrize("too_long", [True, False])
def test_an_urgent_goal_that_is_refused_leaves_the_robot_to_the_one_it_has(too_long):
    run = sim("r1", plans={"long": "go(2);go(2);go(2)", "x": "go(1)"}, max_model_len=2600,
              config=config(overload="refuse"))  # fmt: skip
    first = run.goal("r1", "long", at=1.0)
    fields = {} if too_long else {"utility": WORTHLESS}
    urgent = run.goal("r1", "x" * 600 if too_long else "x", at=3.0,
                      when_busy=WhenBusy.PREEMPT, urgency=Urgency.URGENT, **fields)  # fmt: skip
    run.finish()
    assert run.result(first).error_code is ErrorCode.NONE
    refused = ErrorCode.INVALID_GOAL if too_long else ErrorCode.OVERLOADED
    assert run.result(urgent).error_code is refused
    assert len(run.motions("r1")) == 3


def test_a_goal_refused_between_two_that_preempt_takes_nothing():
    run = sim("r1", plans={"long": "go(2);go(2);go(2)", "x": "go(1)"}, max_model_len=2600)
    first = run.goal("r1", "long", at=1.0)
    between = run.goal("r1", "x", at=3.0, when_busy=WhenBusy.PREEMPT)
    last = run.goal("r1", "x" * 600, at=3.001, when_busy=WhenBusy.PREEMPT)
    run.finish()
    codes = [run.result(goal).error_code for goal in (first, between, last)]
    assert codes == [ErrorCode.PREEMPTED, ErrorCode.NONE, ErrorCode.INVALID_GOAL]


def test_a_long_queue_of_goals_that_are_all_refused():
    run = sim("r1", plans={"a": "go(2)"},
              config=config(limits=Limits(queue=1 << 20), overload="refuse"))  # fmt: skip
    run.goal("r1", "a", at=1.0)
    goals = [run.goal("r1", "a", at=1.5, utility=WORTHLESS) for _ in range(1500)]
    run.finish()
    assert {run.result(goal).error_code for goal in goals} == {ErrorCode.OVERLOADED}
