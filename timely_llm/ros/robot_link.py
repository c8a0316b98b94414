"""The topics between the planner and its robots: segments out, execution reports in.

Reliable is not delivered: what is published before the reader is there is lost. So a robot's
segments wait here until its reader is matched and the robot has sent a report in their session.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from rclpy.exceptions import InvalidNamespaceException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.validate_namespace import validate_namespace

from timely_llm.msg import Execution, Segment
from timely_llm.protocols import messages as values
from timely_llm.ros.conversions import from_ros, to_ros
from timely_llm.ros.qos import RELIABLE

SEGMENTS, EXECUTION = "segments", "execution"
LONGEST_NAMESPACE = 255 - 8 - len(f"/{EXECUTION}")
"""Characters. DDS names have 255, of which ROS takes 8 for itself."""
MOST_FOLLOWED = 1024  # robots' namespaces that one who watches or records subscribes to


def robot_topic(namespace: str, name: str) -> str:
    """The full name of a topic of the robot in ``namespace``; that of a node without one is "/"."""
    return f"{namespace.rstrip('/')}/{name}"


def check_namespace(namespace: str) -> None:
    """``ValueError`` with the field and the limit, unless a robot can have its topics there."""
    if len(namespace) > LONGEST_NAMESPACE:
        words = f"has {len(namespace)} characters: at most {LONGEST_NAMESPACE}"
        raise ValueError(f"robot_namespace {words}")
    try:
        validate_namespace(namespace)
    except InvalidNamespaceException as error:
        raise ValueError(f"robot_namespace {namespace!r}: {' '.join(str(error).split())}") from None


class RobotLinks:
    """One pair of topics per robot. ``heard`` gets every report, ``garbled`` the session and the
    fault of one that cannot be read, in the executor's thread.

    ``send`` may be called from any thread, everything else from the executor's.
    """

    def __init__(
        self,
        node: Node,
        heard: Callable[[str, values.Execution], None],
        garbled: Callable[[str, int, str], None],
    ) -> None:
        self._node, self._heard, self._garbled = node, heard, garbled
        self._links: dict[str, _RobotLink] = {}
        self._early: dict[str, list[values.Segment]] = {}  # of a session not opened yet
        self._lock = threading.Lock()

    def open(self, robot_id: str, namespace: str, session: int) -> None:
        """The robot was registered: its topics are under ``namespace``. Two registrations may be
        answered in either order; the later session, which has the higher number, counts."""
        with self._lock:
            link = self._links.get(robot_id)
            if link is not None and session < link.session:
                return
            if link is not None and link.namespace != namespace:
                link.destroy(self._node)
                link = None
            if link is None:
                link = _RobotLink(self._node, namespace, lambda m: self._report(robot_id, m))
                self._links[robot_id] = link
            early = self._early.pop(robot_id, [])
            link.begin(session, [segment for segment in early if segment.session == session])

    def close(self, robot_id: str) -> None:
        """The robot was unregistered."""
        with self._lock:
            link = self._links.pop(robot_id, None)
            self._early.pop(robot_id, None)
        if link is not None:
            link.destroy(self._node)

    def send(self, robot_id: str, segment: values.Segment) -> None:
        """Publish ``segment``, now or as soon as the robot can get it; once and in order."""
        with self._lock:
            link = self._links.get(robot_id)
            if link is None or segment.session > link.session:
                self._early.setdefault(robot_id, []).append(segment)
            elif segment.session == link.session:
                link.send(segment)

    def cancel(self, robot_id: str, plan_id: str) -> None:
        """Send the robot a CANCEL of the plan, whatever it has of it."""
        with self._lock:
            link = self._links.get(robot_id)
            if link is not None:
                cancel = values.SegmentCommand.CANCEL
                link.send(values.Segment(link.session, plan_id, 0, cancel))

    @property
    def publishers(self) -> tuple[Publisher[Segment], ...]:
        """Of all robots' segments."""
        with self._lock:
            return tuple(link.publisher for link in self._links.values())

    def _report(self, robot_id: str, message: Execution) -> None:
        try:
            report = from_ros(message)
        except ValueError as error:
            self._garbled(robot_id, message.session, str(error))
            return
        with self._lock:
            link = self._links.get(robot_id)
            if link is not None:
                link.spoken(report.session)
        self._heard(robot_id, report)


class _RobotLink:
    """The topics of one robot; the lock of ``RobotLinks`` is held around every call."""

    def __init__(self, node: Node, namespace: str, report: Callable[[Execution], None]) -> None:
        self.namespace = namespace
        self.session = 0
        self._ready = False
        self._waiting: list[values.Segment] = []
        self.publisher = node.create_publisher(Segment, robot_topic(namespace, SEGMENTS), RELIABLE)
        self._subscription = node.create_subscription(
            Execution, robot_topic(namespace, EXECUTION), report, RELIABLE
        )

    def begin(self, session: int, waiting: list[values.Segment]) -> None:
        self.session, self._ready, self._waiting = session, False, []
        for segment in waiting:
            self.send(segment)

    def send(self, segment: values.Segment) -> None:
        if self._ready:
            self.publisher.publish(to_ros(segment))
        elif segment.command is not values.SegmentCommand.CANCEL:
            self._waiting.append(segment)
        else:  # the robot never heard of that plan, and need not
            self._waiting = [w for w in self._waiting if w.plan_id != segment.plan_id]

    def spoken(self, session: int) -> None:
        """The robot sent a report of ``session``."""
        if self._ready or session != self.session or not self.publisher.get_subscription_count():
            return
        self._ready = True
        waiting, self._waiting = self._waiting, []
        for segment in waiting:
            self.send(segment)

    def destroy(self, node: Node) -> None:
        node.destroy_publisher(self.publisher)
        node.destroy_subscription(self._subscription)
