"""The rover of the example: odometry that cannot be is none."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing")
pytest.importorskip("nav_msgs.msg", reason="nav_msgs is missing")

from nav_msgs.msg import Odometry  # noqa: E402

from robot_adapters.adapter import make_adapter  # noqa: E402
from timely_llm.language.loader import load_skill_set  # noqa: E402
from timely_llm.paths import share  # noqa: E402
from timely_llm.protocols.messages import SkillCall  # noqa: E402

ROVER = load_skill_set(share("config", "skills", "rover.yaml"))


class Topics:
    """Stands in for the node: keeps what is sent, and the callback of what comes."""

    def __init__(self) -> None:
        self.sent: list = []

    def create_publisher(self, *arguments):
        return self

    def create_subscription(self, kind, name, callback, qos):
        self.told = callback

    def publish(self, message) -> None:
        self.sent.append(message)


def odometry(x: float = 0.0, w: float = 1.0) -> Odometry:
    message = Odometry()
    message.pose.pose.position.x, message.pose.pose.orientation.w = x, w
    return message


@pytest.mark.parametrize(
    "broken", [odometry(math.nan), odometry(math.inf), odometry(w=math.nan), odometry(w=math.inf)]
)
def test_odometry_that_cannot_be_ends_no_motion_well(broken: Odometry) -> None:
    topics = Topics()
    rover = make_adapter("rover", "r1", ROVER, speed=0.3, turn_speed=0.6, odometry_timeout=0.5)
    rover.attach(topics)
    topics.told(odometry())
    rover.start(SkillCall("mf", ("100",), ("100",), 3.0), 0.0)
    topics.told(odometry())
    assert not rover.poll(0.1).done
    topics.told(broken)
    assert not rover.poll(0.2).done
    assert rover.poll(0.7).error == "no odometry for 0.60 s"
