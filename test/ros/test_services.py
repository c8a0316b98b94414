"""The planner's services: what its topics are told comes in the order of the core's answers."""

import pytest
from nodes import Client

from timely_llm import srv
from timely_llm.core import events as ev
from timely_llm.protocols.messages import ErrorCode
from timely_llm.ros import services as services_module
from timely_llm.ros.services import Services


class Topics:
    """Stands in for the links to the robots."""

    def __init__(self) -> None:
        self.calls: list[tuple] = []

    def open(self, robot_id: str, namespace: str, session: int) -> None:
        self.calls.append(("open", robot_id, session))

    def close(self, robot_id: str) -> None:
        self.calls.append(("close", robot_id))


@pytest.mark.parametrize("resumed", [(0, 1), (1, 0)])
def test_a_robot_that_leaves_and_one_that_comes_at_once(client: Client, resumed) -> None:
    """An executor goes on with what waited for answers in any order."""
    topics, asked = Topics(), []
    services = Services(client.node, lambda event: asked.append(event) or True, topics, "ab" * 16)
    leaving = services._unregister(
        srv.UnregisterRobot.Request(robot_id="r1"), srv.UnregisterRobot.Response()
    )
    coming = services._register(
        srv.RegisterRobot.Request(robot_id="r1", kind="tello", instance=[1] * 16),
        srv.RegisterRobot.Response(),
    )
    for waiting in (leaving, coming):
        waiting.send(None)
    services.answer(ev.Answered(asked[0].ticket, robots=("r1",)))
    services.answer(ev.Registered(asked[1].ticket, 8))
    for number in resumed:
        with pytest.raises(StopIteration):
            (leaving, coming)[number].send(None)
    assert topics.calls == [("close", "r1"), ("open", "r1", 8)]


def test_without_a_planner_a_request_is_refused_at_once(client: Client) -> None:
    services = Services(client.node, lambda event: False, Topics(), "ab" * 16)
    stopping = services._stop(srv.StopRobot.Request(robot_id="r1"), srv.StopRobot.Response())
    with pytest.raises(StopIteration) as ended:
        stopping.send(None)
    response = ended.value.value
    assert response.error_code == ErrorCode.PLANNER_INACTIVE
    assert response.error_msg == "the planner is not configured"


def test_a_registration_without_an_instance_never_reaches_the_planner(client: Client) -> None:
    asked: list[ev.Event] = []
    services = Services(client.node, asked.append, Topics(), "ab" * 16)
    coming = services._register(
        srv.RegisterRobot.Request(robot_id="r1"), srv.RegisterRobot.Response()
    )
    with pytest.raises(StopIteration) as ended:
        coming.send(None)
    assert ended.value.value.error_code == ErrorCode.INVALID_GOAL
    assert asked == []


class NoTopics(Topics):
    def open(self, robot_id: str, namespace: str, session: int) -> None:
        raise RuntimeError("a test")


def test_an_answer_whose_consequence_fails_is_a_refusal(client: Client) -> None:
    asked: list[ev.Event] = []
    put = lambda event: asked.append(event) or True  # noqa: E731
    services = Services(client.node, put, NoTopics(), "ab" * 16)
    coming = services._register(
        srv.RegisterRobot.Request(robot_id="r1", kind="tello", instance=[1] * 16),
        srv.RegisterRobot.Response(),
    )
    coming.send(None)
    with pytest.raises(RuntimeError, match="a test"):
        services.answer(ev.Registered(asked[0].ticket, 8))
    with pytest.raises(StopIteration) as ended:
        coming.send(None)
    response = ended.value.value
    assert response.error_code == ErrorCode.ENGINE_FAILED
    assert response.error_msg == "the planner could not do what follows from it: a test"


@pytest.mark.parametrize(
    ("namespace", "words"),
    [
        ("/" + "a" * 237, "robot_namespace has 238 characters: at most 237"),
        ("//r1", "robot_namespace '//r1': Invalid namespace: namespace must not contain repeated"),
        ("/r1/", "robot_namespace '/r1/': Invalid namespace: namespace must not end with a '/'"),
        ("r1", "robot_namespace 'r1': Invalid namespace: namespace must be absolute"),
    ],
)
def test_where_no_topic_can_be_is_no_namespace(client: Client, namespace: str, words: str) -> None:
    services = Services(client.node, lambda event: True, Topics(), "ab" * 16)
    coming = services._register(
        srv.RegisterRobot.Request(robot_id="r1", robot_namespace=namespace, instance=[1] * 16),
        srv.RegisterRobot.Response(),
    )
    with pytest.raises(StopIteration) as ended:
        coming.send(None)
    response = ended.value.value
    assert response.error_code == ErrorCode.INVALID_GOAL
    assert response.error_msg.startswith(words)


def test_no_more_requests_wait_than_fit(client: Client, monkeypatch) -> None:
    """While the engine is in a long step, whoever asks waits."""
    monkeypatch.setattr(services_module, "MOST_OPEN", 2)
    asked: list[ev.Event] = []
    put = lambda event: asked.append(event) or True  # noqa: E731
    services = Services(client.node, put, Topics(), "ab" * 16)

    def stop():
        waiting = services._stop(srv.StopRobot.Request(), srv.StopRobot.Response())
        with pytest.raises(StopIteration) as ended:
            waiting.send(None)
            services.answer(ev.Answered(asked[0].ticket))
            waiting.send(None)
        return ended.value.value

    for _ in range(2):
        services._stop(srv.StopRobot.Request(), srv.StopRobot.Response()).send(None)
    refused = stop()
    assert (refused.error_code, len(asked)) == (ErrorCode.OVERLOADED, 2)
    assert refused.error_msg == "2 requests wait for the planner: at most 2"
    services.answer(ev.Answered(asked[0].ticket))
    del asked[0]
    services.answer(ev.Answered(asked[0].ticket))
    del asked[0]
    assert stop().error_code == ErrorCode.NONE


def test_no_more_words_are_answered_than_somebody_reads(client: Client) -> None:
    """A skill set is quoted where it is wrong, and may be a single long line."""
    asked: list[ev.Event] = []
    put = lambda event: asked.append(event) or True  # noqa: E731
    services = Services(client.node, put, Topics(), "ab" * 16)
    waiting = services._stop(srv.StopRobot.Request(), srv.StopRobot.Response())
    waiting.send(None)
    services.answer(ev.Answered(asked[0].ticket, ErrorCode.INVALID_GOAL, "x" * 100_000))
    with pytest.raises(StopIteration) as ended:
        waiting.send(None)
    assert ended.value.value.error_msg == "x" * 4096 + "… (100000 characters)"
