"""The ``plan`` action's server: what it keeps of goals, and how many of them."""

import pytest
from nodes import Client

from timely_llm.action import Plan
from timely_llm.core import events as ev
from timely_llm.protocols.messages import ErrorCode, PlanResult
from timely_llm.ros import plan_server
from timely_llm.ros.plan_server import PlanServer


@pytest.fixture
def arrived() -> list[ev.Event]:
    return []


@pytest.fixture
def server(client: Client, arrived: list[ev.Event]) -> PlanServer:
    """In the client's own node."""
    made = PlanServer(client.node, lambda event: arrived.append(event) or True)
    client.until(client._action.server_is_ready, "the action")
    return made


def accepted(client: Client, **fields: str) -> bool:
    sent = client._action.send_goal_async(Plan.Goal(**fields))
    return client.until(lambda: sent.done() and sent.result(), "an answer").accepted


def test_what_a_goal_asked_for_is_not_kept_with_its_result(
    client: Client, server: PlanServer, arrived: list[ev.Event]
) -> None:
    assert accepted(client, robot_id="d1", instruction="x" * 1_000_000, scene="y" * 1_000_000)
    assert accepted(client, robot_id="d" * 1_000_000, instruction="x")
    good, bad = arrived
    assert isinstance(good, ev.GoalArrived) and len(good.goal.scene) == 1_000_000
    assert isinstance(bad, ev.GoalInvalid) and bad.reason.startswith("robot_id has 1000000")
    assert [robot_id[:3] for _, robot_id in server.live] == ["d1", "ddd"]
    requests = [handle.request for handle in server._server._goal_handles.values()]
    assert sum(len(r.robot_id + r.instruction + r.scene) for r in requests) < 1000


def test_no_more_goals_are_kept_than_fit(
    client: Client, server: PlanServer, arrived: list[ev.Event], monkeypatch
) -> None:
    monkeypatch.setattr(plan_server, "MOST_GOALS", 2)
    assert [accepted(client, robot_id="d1") for _ in range(3)] == [True, True, False]
    assert len(arrived) == 2
    server.end(PlanResult(arrived[0].plan_id, ErrorCode.CANCELED, ""))  # it is kept all the same
    assert not accepted(client, robot_id="d1")
