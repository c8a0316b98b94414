"""What a client makes of the planner's answers; no DDS but for a node's own topics."""

import math

import pytest
from action_msgs.msg import GoalStatus

from timely_llm.action import Plan
from timely_llm.msg import PlannerStatus
from timely_llm.protocols.messages import ErrorCode
from timely_llm.ros.client import PlannerClient, result_of

PLAN = f"{7:032x}"
Response = Plan.Impl.GetResultService.Response


@pytest.mark.parametrize(
    ("status", "result", "code", "words"),
    [
        (GoalStatus.STATUS_SUCCEEDED, {}, ErrorCode.NONE, ""),
        (GoalStatus.STATUS_ABORTED, {"error_code": 104}, ErrorCode.CANCELED, ""),
        (GoalStatus.STATUS_UNKNOWN, {}, ErrorCode.TIMEOUT, "the planner has no result of this"),
        (GoalStatus.STATUS_ABORTED, {}, ErrorCode.TIMEOUT, "the planner has no result of this"),
        (
            GoalStatus.STATUS_SUCCEEDED,
            {"utility": math.nan},
            ErrorCode.ENGINE_FAILED,
            "the goal's result cannot be read: utility is nan",
        ),
    ],
)
def test_an_empty_result_is_no_success(status, result, code, words) -> None:
    """rclpy answers who asks for a result that it does not have with an empty one."""
    found = result_of(PLAN, Response(status=status, result=Plan.Result(**result)))
    assert found.error_code is code
    assert found.error_msg.startswith(words)


def test_a_message_that_cannot_be_is_passed_over(domain) -> None:
    with PlannerClient("client_test") as client:
        publisher = client.node.create_publisher(PlannerStatus, "planner_status", 10)
        assert client.wait(publisher.get_subscription_count, 20.0)
        publisher.publish(PlannerStatus(step_time=math.inf))
        publisher.publish(PlannerStatus(policy="edf"))
        assert client.wait(lambda: client.status is not None, 20.0)
        assert client.status is not None and client.status.policy == "edf"
