"""The soak's eye: writes down every segment and every begun call that it hears, but for what the
hostile node has marked as its own."""

from __future__ import annotations

import json
import sys
from functools import partial

from benchmarks.soak.records import MARK, Writer
from timely_llm.msg import Execution, Segment
from timely_llm.ros.conversions import uuid_from_ros
from timely_llm.ros.process import GuestNode
from timely_llm.ros.qos import RELIABLE
from timely_llm.system.processes import Interrupt


class Witness(GuestNode):
    """Listens to ``robots`` and writes to ``records``."""

    def __init__(self, robots: list[str], records: Writer) -> None:
        super().__init__("soak_witness", "")
        self._records = records
        for robot in robots:
            listen = self.node.create_subscription
            listen(Segment, f"/{robot}/segments", partial(self._segment, robot), RELIABLE)
            listen(Execution, f"/{robot}/execution", partial(self._report, robot), RELIABLE)

    def _segment(self, robot: str, message: Segment) -> None:
        if message.stamp.nanosec != MARK:
            fields = {"plan": uuid_from_ros(message.plan_id), "index": message.index}
            self._records.write("segment", robot=robot, command=message.command, **fields)

    def _report(self, robot: str, message: Execution) -> None:
        if message.state == Execution.STARTED and message.stamp.nanosec != MARK:
            fields = {"plan": uuid_from_ros(message.plan_id), "call": message.call_number}
            self._records.write("started", robot=robot, **fields)


def main() -> None:
    """ROBOTS (JSON) FILE; until SIGINT or SIGTERM."""
    robots, path = sys.argv[1:3]
    with Interrupt() as interrupt, Witness(json.loads(robots), Writer(path)) as witness:
        while not interrupt.requested:
            witness.spin()
