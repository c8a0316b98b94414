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


def test_who_asks_for_a_result_again_and_again_is_not_remembered_each_time(
    client: Client, server: PlanServer, arrived: list[ev.Event], monkeypatch
) -> None:
    monkeypatch.setattr(plan_server, "MOST_ASKS", 2)
    sent = client._action.send_goal_async(Plan.Goal(robot_id="d1"))
    handle = client.until(lambda: sent.done() and sent.result(), "an answer")
    asks = [handle.get_result_async() for _ in range(3)]
    uuid = bytes(handle.goal_id.uuid)
    asked = server._server._asked
    client.until(lambda: asked.get(uuid) == 3, "the requests")
    server.end(PlanResult(arrived[0].plan_id, ErrorCode.CANCELED, ""))
    client.until(lambda: sum(ask.done() for ask in asks) == 2, "two answers")
    late = handle.get_result_async()
    client.until(late.done, "the answer of one that asks when it is there")
    assert sum(ask.done() for ask in asks) == 2
