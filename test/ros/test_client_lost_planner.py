"""The client library: whoever sent a goal is told how it ended, or that its planner is gone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from nodes import LIMIT, Client
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.task import Future

from timely_llm.msg import Execution, PlanEvent, PlannerStatus
from timely_llm.protocols.messages import PlanGoal
from timely_llm.ros.client import PlannerClient, PlannerError, PlanRequest
from timely_llm.ros.conversions import instance_to_ros
from timely_llm.srv import ListRobots

PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"
FORGED = "ee" * 16


@pytest.fixture
def planner(start):
    return start("planner", engine="simulated", model=PLANS)


@pytest.fixture
def library(planner, start) -> Iterator[PlannerClient]:
    start("robot", robot_id="d1")
    with PlannerClient() as client:
        client.wait_for_planner(LIMIT)
        assert client.wait(lambda: any(robot.alive for robot in client.robots()), LIMIT)
        yield client


def begun(client: PlannerClient, instruction: str) -> PlanRequest:
    """A goal whose first segment has been sent."""
    texts: list[str] = []
    request = client.send(PlanGoal("d1", instruction), lambda feedback: texts.append(feedback.text))
    assert client.wait(lambda: any(texts) or request.ended, LIMIT) and not request.ended
    return request


def instance_of(client: PlannerClient) -> str:
    assert client.wait(lambda: client.status is not None, LIMIT)
    return client.status.instance


def test_goals_of_a_planner_that_is_killed_end_with_an_error_that_names_it(
    planner, library
) -> None:
    instance = instance_of(library)
    running, queued = begun(library, "stay"), library.send(PlanGoal("d1", "wait a little"))
    planner.kill()
    assert library.wait(lambda: running.ended and queued.ended, LIMIT)
    for request in (running, queued):
        assert request.result is None
        assert instance[:8] in str(request.error) and "/plan" in str(request.error)
    with pytest.raises(PlannerError, match=instance[:8]):
        library.follow(running, lambda: False)


def test_a_planner_started_in_its_place_does_not_keep_its_goals_waiting(
    start, planner, library
) -> None:
    instance = instance_of(library)
    request = begun(library, "wait long")  # the robot ends its skill before it looks for another
    planner.kill()
    start("planner", engine="simulated", model=PLANS)
    assert library.wait(lambda: request.ended, LIMIT)
    assert instance[:8] in str(request.error)
    library.wait_for_planner(LIMIT)
    assert library.wait(lambda: any(robot.alive for robot in library.robots()), LIMIT)
    assert library.follow(library.send(PlanGoal("d1", "wait a little")), lambda: False)


def test_a_request_that_nobody_got_is_sent_again(client: Client) -> None:
    """As one that went to a planner that had died."""
    asked, many = [], ReentrantCallbackGroup()

    async def answer(request, response):
        asked.append(request)
        return response if len(asked) > 1 else await Future()

    client.node.create_service(ListRobots, "/deaf/list_robots", answer, callback_group=many)
    over = Event()
    planner = Thread(target=client.until, args=(over.is_set, "the end of the test"))
    planner.start()
    with PlannerClient("deaf") as library:
        robots = library.robots(LIMIT)
    over.set()
    planner.join()
    assert robots == () and len(asked) > 1


def test_a_closed_client_leaves_the_graph(client: Client) -> None:
    library = PlannerClient("left")
    node = (library.node.get_name(), "/left")
    client.until(lambda: node in client.node.get_node_names_and_namespaces(), "the client")
    library.close()
    client.until(lambda: node not in client.node.get_node_names_and_namespaces(), "its end")


def test_a_goal_sent_to_nobody_ends_with_an_error(domain: int) -> None:
    with PlannerClient("nowhere") as client:
        request = client.send(PlanGoal("d1", "wait a little"))
        with pytest.raises(PlannerError, match="/nowhere/plan"):
            client.follow(request, lambda: False)


def test_forged_messages_end_neither_the_client_nor_its_goals(library, client: Client) -> None:
    events, reports, planners = [], [], []
    library.watch_events(events.append)
    library.watch_status(lambda status: planners.append(status.instance))
    library.watch_execution("d1", reports.append)
    pairs = [
        (PlannerStatus(instance=instance_to_ros(FORGED), policy="forged"), "planner_status"),
        (PlanEvent(type=200), "plan_events"),
        (Execution(state=200), "d1/execution"),
    ]
    publishers = [client.node.create_publisher(type(m), topic, 10) for m, topic in pairs]
    client.until(lambda: all(p.get_subscription_count() for p in publishers), "the listeners")

    def heard() -> bool:
        """To see the listeners is not to be seen by them: the messages are said until then."""
        for publisher, (message, _) in zip(publishers, pairs, strict=True):
            publisher.publish(message)
        return FORGED in planners

    assert library.wait(heard, LIMIT)
    request = library.send(PlanGoal("d1", "wait in steps"))
    assert library.follow(request, lambda: False).plan_id == request.plan_id
    assert {event.plan_id for event in events} == {request.plan_id}
    assert reports


def test_results_that_come_while_the_program_does_something_else_are_not_lost(
    library, client: Client
) -> None:
    client.until(lambda: client.node.count_publishers("plan_events"), "the planner's events")
    requests = [library.send(PlanGoal("nobody", "wait a little")) for _ in range(60)]
    names = {request.plan_id for request in requests}

    def refused() -> bool:
        return names <= {event.plan_id for event in client.events if event.result is not None}

    client.until(refused, "60 refusals, while the library does not spin")
    assert library.wait(lambda: all(request.ended for request in requests), LIMIT)


def test_a_client_keeps_nothing_of_goals_that_have_ended(library) -> None:
    def futures() -> int:
        gc.collect()
        return sum(isinstance(thing, Future) for thing in gc.get_objects())

    before = futures()
    for _ in range(30):
        library.follow(library.send(PlanGoal("nobody", "wait a little")), lambda: False)
    assert futures() < before + 10
