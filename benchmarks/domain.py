"""A DDS domain of the benchmarks' own, on this machine only. Set before the first node starts."""

from __future__ import annotations

import os

DOMAIN = "87"


def separate() -> None:
    os.environ["ROS_DOMAIN_ID"] = DOMAIN
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
