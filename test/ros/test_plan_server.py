"""The ``plan`` action's server: which results were fetched."""

from __future__ import annotations

from nodes import Client

from timely_llm.core import events as ev
from timely_llm.protocols.messages import ErrorCode, PlanResult
from timely_llm.ros.plan_server import PlanServer
from timely_llm.srv import ListRobots


def test_it_knows_when_every_result_was_asked_for(client: Client) -> None:
    fetched: list[str] = []
    server: PlanServer

    def put(event: ev.Event) -> bool:
        assert isinstance(event, ev.GoalArrived)
        server.end(PlanResult(event.plan_id, ErrorCode.NONE))
        return True

    server = PlanServer(client.node, put)
    client.node.create_service(ListRobots, "list_robots", lambda request, response: response)
    server.when_fetched(lambda: fetched.append("before any goal"))
    assert fetched.pop() == "before any goal"
    first, second = (client.goal("d1", "wait", fetch=False) for _ in range(2))
    server.when_fetched(lambda: fetched.append("both"))
    first.fetch()
    assert first.result()[0] is ErrorCode.NONE and not fetched
    second.fetch()
    assert second.result()[0] is ErrorCode.NONE and fetched == ["both"]
    server.when_fetched(lambda: fetched.append("still"))
    assert fetched == ["both", "still"]
