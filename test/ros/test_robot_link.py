"""Segments wait for their robot, and only for the one of their session."""

from __future__ import annotations

import pytest
from nodes import Client

from timely_llm.msg import Execution as ExecutionMessage
from timely_llm.protocols.messages import (
    NO_PLAN,
    Execution,
    ExecutionState,
    Segment,
    SegmentCommand,
)
from timely_llm.ros.conversions import to_ros
from timely_llm.ros.robot_link import RobotLinks

PLAN = f"{1:032x}"


class Planner:
    """RobotLinks in the client's node, and a robot ``r1`` that this process plays."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.heard: list[Execution] = []
        self.garbled: list[tuple[str, int, str]] = []
        self.robot_links = RobotLinks(
            client.node,
            lambda robot_id, report: self.heard.append(report),
            lambda robot_id, session, reason: self.garbled.append((robot_id, session, reason)),
        )
        client.listen("r1")
        self._reports = client.node.create_publisher(ExecutionMessage, "/r1/execution", 1000)

    def speak(self, session: int) -> None:
        self.client.until(self._reports.get_subscription_count, "the planner's reader")
        count = len(self.heard)
        report = Execution(session, count, NO_PLAN, ExecutionState.IDLE)
        self._reports.publish(to_ros(report))
        self.client.until(lambda: len(self.heard) > count, "the report")

    def texts(self, count: int) -> list[str]:
        got = self.client.segments["r1"]
        self.client.until(lambda: len(got) >= count, f"{count} segments, got {got}")
        return [segment.text for segment in got]


@pytest.fixture
def planner(client: Client) -> Planner:
    return Planner(client)


def segment(session: int, text: str, command: SegmentCommand = SegmentCommand.RUN) -> Segment:
    return Segment(session, PLAN, 0, command, text)


def test_segments_wait_until_the_robot_speaks_in_their_session(planner: Planner) -> None:
    planner.robot_links.send("r1", segment(2, "early"))
    planner.robot_links.open("r1", "/r1", 2)
    planner.robot_links.send("r1", segment(2, "second"))
    planner.speak(1)
    planner.robot_links.send("r1", segment(2, "third"))
    planner.speak(2)
    planner.robot_links.send("r1", segment(2, "at once"))
    assert planner.texts(4) == ["early", "second", "third", "at once"]


def test_an_older_session_does_not_take_over(planner: Planner) -> None:
    planner.robot_links.open("r1", "/r1", 2)
    planner.robot_links.open("r1", "/r1", 1)
    planner.speak(2)
    planner.robot_links.send("r1", segment(1, "old"))
    planner.robot_links.send("r1", segment(2, "new"))
    assert planner.texts(1) == ["new"]


def test_what_is_cancelled_before_it_was_sent_is_never_sent(planner: Planner) -> None:
    planner.robot_links.open("r1", "/r1", 1)
    planner.robot_links.send("r1", segment(1, "never"))
    planner.robot_links.send("r1", segment(1, "", SegmentCommand.CANCEL))
    planner.robot_links.send("r1", segment(1, "sent"))
    planner.speak(1)
    assert planner.texts(1) == ["sent"]


def test_a_report_that_cannot_be_is_told_with_its_session(planner: Planner) -> None:
    planner.robot_links.open("r2", "/r2", 2)
    reports = planner.client.node.create_publisher(ExecutionMessage, "/r2/execution", 1000)
    planner.client.until(reports.get_subscription_count, "the planner's reader")
    reports.publish(ExecutionMessage(session=2, elapsed=1e308))
    reports.publish(ExecutionMessage(session=3, state=99))
    planner.client.until(lambda: len(planner.garbled) == 2, "both")
    one, other = planner.garbled
    assert one == ("r2", 2, "elapsed is 1e+308: must be finite, -1e+06 to 1e+06")
    assert other[:2] == ("r2", 3)
    assert other[2].startswith("state is 99: must be one of 0 RECEIVED")
    assert planner.heard == []
