"""The planner node with a real robot node: goals good and bad, cancels, stops, the node's life.

The simulated engine stands in for a model; everything else is real.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from nodes import LATCHED, Client
from std_msgs.msg import String
from std_srvs.srv import Trigger

from timely_llm.action import Plan
from timely_llm.msg import Execution, PlannerStatus, TimeUtility
from timely_llm.protocols.messages import ErrorCode, PlanEventType
from timely_llm.srv import Probe, RegisterRobot, StopRobot, UnregisterRobot

PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"
SIMULATED = {
    "engine": "simulated",
    "model": PLANS,
    "max_tokens": 60,
    "first_report_timeout": 2.0,
}


@pytest.fixture(scope="module")
def fleet(start_for_module):
    """A planner and two drones."""
    start_for_module("planner", **SIMULATED)
    for robot_id in ("d1", "d2"):
        start_for_module("robot", robot_id=robot_id, heartbeat_period=0.1)


@pytest.fixture
def flying(fleet, client: Client) -> Client:
    client.wait_for_robots("d1", "d2")
    return client


def test_a_plan_is_executed_in_segments(flying: Client) -> None:
    goal = flying.goal("d1", "wait a little")
    code, result = goal.result()
    assert (code, goal.status) == (ErrorCode.NONE, GoalStatus.STATUS_SUCCEEDED)
    assert result.plan == "d(0.2);d(0.2);"
    assert goal.texts == ["d(0.2)", ";d(0.2)", ";"]
    assert result.num_segments == 3
    assert 0 < result.response_time <= result.waiting_time
    assert result.execution_time == pytest.approx(0.4, abs=0.1)
    assert result.utility == 1.0


def test_the_value_of_a_plan_comes_back(flying: Client) -> None:
    code, result = flying.goal("d1", "is there a unicorn").result()
    assert (code, result.value) == (ErrorCode.NONE, "False")


def test_events_tell_a_plans_whole_story(flying: Client) -> None:
    flying.goal("d2", "wait a little").result()
    story = flying.until(lambda: ended(flying), "the event ENDED")
    kinds = [event.type for event in story]
    assert kinds[0] is PlanEventType.ACCEPTED
    assert story[0].goal.instruction == "wait a little"
    assert PlanEventType.STARTED in kinds
    assert [e.text for e in story if e.type is PlanEventType.SEGMENT] == ["d(0.2)", ";d(0.2)", ";"]
    assert kinds[-2:] == [PlanEventType.RETURNED, PlanEventType.ENDED]
    assert story[-1].result.execution_time == pytest.approx(0.4, abs=0.1)


def ended(client: Client) -> list:
    return client.events if any(e.type is PlanEventType.ENDED for e in client.events) else []


HUGE = "x" * 10_000_000
BAD_GOALS = {
    "huge robot id": (HUGE, "x", {}, ErrorCode.INVALID_GOAL, "robot_id has 10000000 characters"),
    "huge": ("d1", HUGE, {}, ErrorCode.INVALID_GOAL, "instruction has 10000000 characters"),
    "unknown robot": ("d9", "wait a little", {}, ErrorCode.UNKNOWN_ROBOT, "'d9'"),
    "empty": ("d1", "  ", {}, ErrorCode.INVALID_GOAL, "instruction is empty"),
    "too long": ("d1", "x" * 1001, {}, ErrorCode.INVALID_GOAL, "1001 characters: at most 1000"),
    "scene": ("d1", "x", {"scene": "x" * 4001}, ErrorCode.INVALID_GOAL, "scene has 4001"),
    "not finite": (
        "d1",
        "x",
        {"utility": TimeUtility(ert=1.0, alpha=math.nan, beta=1.0)},
        ErrorCode.INVALID_GOAL,
        "alpha",
    ),
    "infinite": (
        "d1",
        "x",
        {"utility": TimeUtility(ert=math.inf, alpha=-1.0, beta=1.0)},
        ErrorCode.INVALID_GOAL,
        "ert",
    ),
    "rising": (
        "d1",
        "x",
        {"utility": TimeUtility(ert=1.0, alpha=2.0, beta=1.0)},
        ErrorCode.INVALID_GOAL,
        "alpha",
    ),
    "urgency": ("d1", "x", {"urgency": 77}, ErrorCode.INVALID_GOAL, "urgency is 77"),
    "budget": ("d1", "x", {"time_budget": -1.0}, ErrorCode.INVALID_GOAL, "time_budget is -1.0"),
}


@pytest.mark.parametrize("case", BAD_GOALS)
def test_a_bad_goal_ends_with_the_field_and_the_limit(flying: Client, case: str) -> None:
    robot_id, instruction, fields, code, words = BAD_GOALS[case]
    goal = flying.goal(robot_id, instruction, **fields)
    found, result = goal.result()
    assert (found, goal.status) == (code, GoalStatus.STATUS_ABORTED)
    assert words in result.error_msg


def test_a_call_outside_its_limits_as_written_is_never_sent(flying: Client) -> None:
    flying.listen("d1")
    goal = flying.goal("d1", "too far as written")
    code, result = goal.result()
    assert code is ErrorCode.INVALID_PLAN
    assert "mf" in result.error_msg and "500 cm" in result.error_msg
    assert goal.texts == ["d(0.2)"]
    assert not any("mf" in segment.text for segment in flying.segments["d1"])


def test_a_call_outside_its_limits_as_evaluated_moves_nothing(flying: Client) -> None:
    flying.listen("d1")
    code, result = flying.goal("d1", "too far as evaluated").result()
    assert code is ErrorCode.SKILL_FAILED
    assert "'d1'" in result.error_msg and "5000" in result.error_msg
    assert "500 cm" in result.error_msg
    started = {e.call.name for e in flying.executions["d1"] if e.state.name == "STARTED"}
    assert "mf" not in started


def test_what_is_no_plan_is_never_sent(flying: Client) -> None:
    goal = flying.goal("d1", "no plan at all")
    code, _ = goal.result()
    assert code is ErrorCode.INVALID_PLAN
    flying.until(lambda: goal.texts, "the feedback, which may come after the result")
    assert goal.texts == ["d(0.2)"]


def test_a_plan_that_refuses_ends_with_its_code_and_its_reason(flying: Client) -> None:
    code, result = flying.goal("d1", "bake a cake").result()
    assert (code, result.error_msg) == (ErrorCode.REFUSED, "I have no oven")
    assert flying.goal("d1", "wait a little").result()[0] is ErrorCode.NONE


@pytest.mark.parametrize("instruction", ["talk on and on", "fly on and on"])
def test_a_plan_cut_by_the_token_limit_ends_with_its_code(flying: Client, instruction: str) -> None:
    code, result = flying.goal("d1", instruction).result()
    assert code is ErrorCode.PLAN_TRUNCATED
    assert "60 tokens" in result.error_msg
    assert flying.goal("d1", "wait a little").result()[0] is ErrorCode.NONE


def test_cancel_stops_the_robot(flying: Client) -> None:
    flying.listen("d1")
    goal = flying.goal("d1", "wait long")
    goal.wait_for_segments()
    plan = flying.until(lambda: states(flying, "d1", "STARTED"), "a skill")[0].plan_id
    goal.cancel()
    code, _ = goal.result()
    assert (code, goal.status) == (ErrorCode.CANCELED, GoalStatus.STATUS_CANCELED)
    seen = [e.state.name for e in flying.executions["d1"] if e.plan_id == plan]
    assert "ABORTED" in seen
    assert "STARTED" not in seen[seen.index("ABORTED") :]
    assert "PLAN_RETURNED" not in seen


def states(client: Client, robot_id: str, name: str) -> list:
    return [e for e in client.executions[robot_id] if e.state.name == name]


def test_a_queued_goal_can_be_cancelled_and_the_first_goes_on(flying: Client) -> None:
    first = flying.goal("d1", "wait in steps")
    queued = flying.goal("d1", "wait a little")
    flying.until(lambda: queued.states == [Plan.Feedback.QUEUED], "QUEUED")
    queued.cancel()
    assert queued.result()[0] is ErrorCode.CANCELED
    assert queued.texts == []
    assert first.result()[0] is ErrorCode.NONE


def test_an_urgent_goal_takes_the_robot(flying: Client) -> None:
    old = flying.goal("d1", "wait long")
    old.wait_for_segments()
    urgent = flying.goal(
        "d1", "wait a little", urgency=Plan.Goal.URGENT, when_busy=Plan.Goal.PREEMPT
    )
    assert old.result()[0] is ErrorCode.PREEMPTED
    assert urgent.result()[0] is ErrorCode.NONE


def test_a_busy_robot_can_be_left_alone(flying: Client) -> None:
    old = flying.goal("d1", "wait in steps")
    code, result = flying.goal("d1", "wait a little", when_busy=Plan.Goal.REJECT).result()
    assert code is ErrorCode.ROBOT_BUSY and "'d1'" in result.error_msg
    assert old.result()[0] is ErrorCode.NONE


def test_stop_robot_ends_its_plan_and_latches(flying: Client) -> None:
    other = flying.goal("d2", "wait in steps")
    goal = flying.goal("d1", "wait long")
    goal.wait_for_segments()
    assert list(flying.stop_robot("d1").stopped) == ["d1"]
    assert goal.result()[0] is ErrorCode.ROBOT_STOPPED
    flying.until(lambda: flying.robots["d1"].stopped, "d1 stopped")
    assert flying.goal("d1", "wait a little").result()[0] is ErrorCode.ROBOT_STOPPED
    assert flying.call(Trigger, "/d1/robot_adapter/rearm").success
    flying.until(lambda: not flying.robots["d1"].stopped, "d1 rearmed")
    assert flying.goal("d1", "wait a little").result()[0] is ErrorCode.NONE
    assert other.result()[0] is ErrorCode.NONE


def test_stop_of_an_unknown_robot_says_so(flying: Client) -> None:
    response = flying.stop_robot("d9")
    assert response.error_code == ErrorCode.UNKNOWN_ROBOT and "'d9'" in response.error_msg


def test_a_robot_id_is_registered_once(flying: Client, start) -> None:
    second = start("robot", robot_id="d1", register_timeout=0.0)
    assert second.wait() == 1, second.output()
    assert "'d1' is registered by another adapter that is alive" in second.output()
    assert flying.goal("d1", "wait a little").result()[0] is ErrorCode.NONE


def test_a_wrong_skill_set_is_refused_with_the_line(flying: Client) -> None:
    text = "kind: rover\nskills:\n  - name: go\n    durration: {constant: 1}\n"
    response = flying.register("r1", kind="", skill_set=text)
    assert response.error_code == ErrorCode.INVALID_SKILL_SET
    assert ":4:" in response.error_msg and "duration" in response.error_msg
    assert "r1" not in flying.listed()


def test_a_robot_that_never_answers_ends_its_goal_and_no_other(flying: Client) -> None:
    assert flying.register("mute").error_code == 0
    other = flying.goal("d2", "wait in steps")
    code, result = flying.goal("mute", "wait a little").result()
    assert code is ErrorCode.ROBOT_LOST
    assert "'mute'" in result.error_msg
    assert other.result()[0] is ErrorCode.NONE


def test_status_config_and_diagnostics(flying: Client) -> None:
    found: dict[str, object] = {}
    node = flying.node
    node.create_subscription(
        PlannerStatus, "planner_status", lambda m: found.__setitem__("status", m), 10
    )
    node.create_subscription(
        String,
        "planner_config",
        lambda m: found.__setitem__("config", m),
        LATCHED,
    )
    node.create_subscription(DiagnosticArray, "/diagnostics", lambda m: collect(found, m), 10)
    flying.until(lambda: {"status", "config", "d1", "planner"} <= set(found), "all three")
    assert found["status"].policy == "least_loss"
    assert found["status"].robots >= 2
    assert found["status"].prompt_tokens_recomputed == 0
    assert "policy: least_loss" in found["config"].data
    assert found["planner"].message == "active"


def collect(found: dict[str, object], message: DiagnosticArray) -> None:
    for status in message.status:
        found[status.name.split()[-1]] = status


def test_deactivated_it_ends_goals_and_active_again_it_goes_on(flying: Client) -> None:
    goal = flying.goal("d1", "wait long")
    goal.wait_for_segments()
    assert change(flying, Transition.TRANSITION_DEACTIVATE)
    assert goal.result()[0] is ErrorCode.PLANNER_INACTIVE
    assert flying.goal("d1", "wait a little").result()[0] is ErrorCode.PLANNER_INACTIVE
    assert change(flying, Transition.TRANSITION_ACTIVATE)
    assert flying.goal("d1", "wait a little").result()[0] is ErrorCode.NONE


def change(client: Client, transition: int) -> bool:
    request = Transition(id=transition)
    return client.call(ChangeState, "/planner/change_state", transition=request).success


def test_a_probe_needs_its_robots_session(flying: Client) -> None:
    response = flying.call(Probe, "probe", robot_id="d1", session=1, question="what is it")
    assert response.error_code == ErrorCode.INVALID_SESSION and "'d1'" in response.error_msg


def test_a_probe_is_answered(flying: Client) -> None:
    session = flying.listed()["d1"].session
    response = flying.call(Probe, "probe", robot_id="d1", session=session, question="wait a little")
    assert (response.error_code, response.answer) == (ErrorCode.NONE, "d(0.2);d(0.2);")


def test_a_robot_id_that_is_no_ros_name_is_refused(flying: Client) -> None:
    response = flying.register("robot one")
    assert response.error_code == ErrorCode.INVALID_GOAL
    assert "'/robot one'" in response.error_msg
    assert flying.register("robot one", robot_namespace="/robot_one").error_code == 0


@pytest.mark.parametrize("namespace", ["/", "/" + "a" * 236])
def test_a_robot_may_be_anywhere_where_topics_can_be(flying: Client, namespace: str) -> None:
    """The namespace of a node that was given none is "/"."""
    assert flying.register("anywhere", robot_namespace=namespace).error_code == 0
    flying.until(
        lambda: flying.node.count_publishers(f"{namespace.rstrip('/')}/segments"), "its topic"
    )
    assert flying.call(UnregisterRobot, "unregister_robot", robot_id="anywhere").error_code == 0
    response = flying.register("nowhere", robot_namespace="/" + "a" * 240)
    assert response.error_code == ErrorCode.INVALID_GOAL
    assert response.error_msg == "robot_namespace has 241 characters: at most 237"
    assert flying.goal("d1", "wait a little").result()[0] is ErrorCode.NONE


@pytest.mark.parametrize(
    ("service", "name", "fields", "words"),
    [
        (StopRobot, "stop_robot", {"robot_id": HUGE}, "robot_id has 10000000 characters"),
        (UnregisterRobot, "unregister_robot", {"robot_id": HUGE}, "robot_id has 10000000"),
        (RegisterRobot, "register_robot", {"kind": HUGE}, "kind has 10000000 characters"),
        (RegisterRobot, "register_robot", {"skill_set": HUGE}, "skill_set has 10000000"),
        (Probe, "probe", {"question": HUGE}, "question has 10000000 characters"),
        (Probe, "probe", {"timeout": math.inf}, "timeout is inf: must be finite"),
    ],
)
def test_a_request_that_cannot_be_is_refused(flying: Client, service, name, fields, words) -> None:
    response = flying.call(service, name, **fields)
    assert response.error_code == ErrorCode.INVALID_GOAL
    assert response.error_msg.startswith(words)


def test_a_robot_that_reports_what_cannot_be_costs_itself_alone(flying: Client) -> None:
    other = flying.goal("d2", "wait in steps")
    goal = flying.goal("d1", "wait long")
    goal.wait_for_segments()
    forged = flying.node.create_publisher(Execution, "/d1/execution", 1000)
    flying.until(forged.get_subscription_count, "the planner's reader")
    report = Execution(session=flying.robots["d1"].session, elapsed=1e308)
    forged.publish(report)
    code, result = goal.result()
    assert code is ErrorCode.ROBOT_LOST
    assert "'d1' is given up: elapsed is 1e+308: must be finite" in result.error_msg
    assert other.result()[0] is ErrorCode.NONE
    flying.wait_for_robots("d1")
    assert flying.goal("d1", "wait a little").result()[0] is ErrorCode.NONE


def test_a_robot_without_an_instance_is_refused(flying: Client) -> None:
    response = flying.register("d3", instance="00" * 16)
    assert response.error_code == ErrorCode.INVALID_GOAL
    assert response.error_msg.startswith("instance: must be 16 random bytes")


def test_a_burst_of_goals_loses_none(flying: Client) -> None:
    goals = flying.goals_at_once("d9", "wait a little", 40)
    assert [goal.result()[0] for goal in goals] == [ErrorCode.UNKNOWN_ROBOT] * 40
