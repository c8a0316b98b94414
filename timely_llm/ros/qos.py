"""Quality of service of the topics and services; both sides of each take it from here."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

#: Segments, reports and events: deep enough for a whole fleet's plans.
RELIABLE = QoSProfile(
    depth=1000, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE
)
#: Services and their clients. By default each keeps ten messages: more goals than that may come at
#: once, and a client hears the answers to all other clients too.
BURST = QoSProfile(depth=1000)
#: What a late joiner must know.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
#: The planner's status. Fits every publisher; the next one comes soon.
STATUS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
