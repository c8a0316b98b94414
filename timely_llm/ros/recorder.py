"""Records our topics into a rosbag2 bag: the planner's, and those of every robot it knows.

Messages are kept as they come over the wire, serialized. Receives only: it publishes nothing and
calls nobody.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from std_msgs.msg import String

from timely_llm.msg import Execution, PlanEvent, PlannerStatus, RobotList, Segment
from timely_llm.recording.bag import BagError, BagWriter
from timely_llm.ros.process import TICK, GuestNode, first_line
from timely_llm.ros.qos import LATCHED, RELIABLE
from timely_llm.ros.robot_link import (
    EXECUTION,
    MOST_FOLLOWED,
    SEGMENTS,
    check_namespace,
    robot_topic,
)
from timely_llm.system.processes import Interrupt

FLUSH_PERIOD = 1.0  # s; what a recorder that is killed may lose
_DEEP = 10_000  # messages kept while the bag's disk is slow
_EVENTS = QoSProfile(depth=_DEEP, reliability=ReliabilityPolicy.RELIABLE)
_STATUS = QoSProfile(depth=_DEEP, reliability=ReliabilityPolicy.BEST_EFFORT)
_LATCHED = QoSProfile(depth=_DEEP, durability=DurabilityPolicy.TRANSIENT_LOCAL)

_PLANNER_TOPICS = (
    ("plan_events", PlanEvent, _EVENTS),
    ("robots", RobotList, _LATCHED),
    ("planner_config", String, _LATCHED),
    ("planner_status", PlannerStatus, _STATUS),
)
_ROBOT_TOPICS = ((SEGMENTS, Segment), (EXECUTION, Execution))
#: What the publishers offer where none of them is known yet.
_OFFERED = {
    "robots": LATCHED,
    "planner_config": LATCHED,
    "planner_status": QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE),
}


class Recorder(GuestNode):
    """Records into ``bag`` what the planner under ``namespace`` and its robots publish.

    Robots' topics are added as the ``robots`` topic names them; ``report`` gets a line for each
    topic when its first publisher is found, and for what cannot be recorded. Use it in a ``with``;
    one at a time in a process. The bag stays open. ``topics`` are those that are recorded, by name.
    """

    def __init__(self, bag: BagWriter, namespace: str, report: Callable[[str], None]) -> None:
        super().__init__("timely_llm_record", namespace)
        self._bag, self._report = bag, report
        self.topics: dict[str, Connection] = {}
        self._matched: set[str] = set()
        self._spaces: set[str] = set()  # of robots
        self._failure: BagError | None = None  # raised in ``spin``: not to the executor
        self._last_stamp = 0
        self._flushed = time.monotonic()
        for name, kind, qos in _PLANNER_TOPICS:
            self._record(self.resolve(name), kind, qos)

    def spin(self, seconds: float = TICK) -> None:
        """Record for ``seconds``; ``BagError`` where the bag takes no more."""
        super().spin(seconds)
        if self._failure is not None:
            raise self._failure
        if time.monotonic() >= self._flushed + FLUSH_PERIOD:
            self._bag.flush()
            self._flushed = time.monotonic()

    def _record(self, topic: str, kind: type, qos: QoSProfile) -> None:
        """Record ``topic`` from now on, unless it is recorded already."""
        if topic in self.topics:
            return
        self.topics[topic] = self._bag.topic(topic, _type_name(kind), self._offered(topic))
        robots = kind is RobotList

        def received(data: bytes) -> None:  # with the message's info too, EventsExecutor fails
            self._write(topic, data)
            if robots:
                self._follow(data)

        def matched(info: Any) -> None:
            if info.current_count and topic not in self._matched:
                self._matched.add(topic)
                self._report(f"records {topic} ({_type_name(kind)})")

        events = SubscriptionEventCallbacks(matched=matched)
        self.node.create_subscription(kind, topic, received, qos, raw=True, event_callbacks=events)

    def _write(self, topic: str, data: bytes) -> None:
        """Times in the file never fall, which a reader without its index relies on."""
        self._last_stamp = max(self._last_stamp, time.time_ns())
        try:
            self._bag.write(self.topics[topic], self._last_stamp, data)
        except BagError as error:
            self._failure = error

    def _follow(self, data: bytes) -> None:
        """Record the topics of robots that are new."""
        try:
            robots = deserialize_message(data, RobotList).robots
        except Exception as error:  # as the middleware pleases
            self._report(f"a list of robots cannot be read: {first_line(error)}")
            return
        for robot in robots:
            space = robot.robot_namespace
            if space in self._spaces or len(self._spaces) >= MOST_FOLLOWED:
                continue
            self._spaces.add(space)
            if len(self._spaces) == MOST_FOLLOWED:
                self._report(f"not more than {MOST_FOLLOWED} robots are recorded")
            try:
                check_namespace(space)
            except ValueError as error:
                self._report(f"robot {robot.robot_id!r} is not recorded: {error}")
                continue
            for name, kind in _ROBOT_TOPICS:
                self._record(robot_topic(space, name), kind, _EVENTS)

    def _offered(self, topic: str) -> list[Qos]:
        """How the topic's publishers offer it, each kind once; as our nodes do where there is none
        yet."""
        found = [end.qos_profile for end in self.node.get_publishers_info_by_topic(topic)]
        default = _OFFERED.get(topic.rsplit("/", 1)[-1], RELIABLE)
        written = [_qos(profile) for profile in found or [default]]
        return [one for i, one in enumerate(written) if one not in written[:i]]


def _type_name(kind: type) -> str:
    """``timely_llm/msg/Segment``."""
    package, folder, *_ = kind.__module__.split(".")
    return f"{package}/{folder}/{kind.__name__}"


def _qos(profile: QoSProfile) -> Qos:
    """As a bag's metadata has it. A depth that is not known over the wire stays 0."""
    return Qos(
        QosHistory(int(profile.history)),
        profile.depth,
        QosReliability(int(profile.reliability)),
        QosDurability(int(profile.durability)),
        _duration(profile.deadline),
        _duration(profile.lifespan),
        QosLiveliness(int(profile.liveliness)),
        _duration(profile.liveliness_lease_duration),
        profile.avoid_ros_namespace_conventions,
    )


def _duration(duration: Any) -> QosTime:
    seconds, nanoseconds = divmod(duration.nanoseconds, 1_000_000_000)
    return QosTime(seconds, nanoseconds)


def record(folder: Path, namespace: str, report: Callable[[str], None]) -> None:
    """Record into the new ``folder`` until Ctrl-C; ``report`` gets lines on what is recorded."""
    with Interrupt() as interrupt, BagWriter(folder) as bag:
        with Recorder(bag, namespace, report) as recorder:
            while not interrupt.requested:
                recorder.spin()
            recorder.spin()  # what was on its way by then
        report(f"{bag.messages} messages on {len(recorder.topics)} topics in {folder}")


def main() -> None:
    """What ``timely-llm demo --record`` runs: FOLDER NAMESPACE; until SIGINT or SIGTERM."""
    folder, namespace = sys.argv[1:3]
    try:
        record(Path(folder), namespace, lambda line: print(line, flush=True))
    except BagError as error:
        print(f"recorder: {error}", file=sys.stderr)
        sys.exit(1)
