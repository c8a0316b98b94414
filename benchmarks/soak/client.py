"""A client that gives robots goals without end, and writes down when each was sent and ended."""

from __future__ import annotations

import contextlib
import json
import random
import sys
import time
from typing import Any

from benchmarks.soak.judges import DEAD
from benchmarks.soak.records import Writer
from timely_llm.protocols.messages import OnFailure, PlanGoal, WhenBusy
from timely_llm.protocols.utility import Urgency
from timely_llm.ros.client import NoPlanner, PlannerClient, PlanRequest
from timely_llm.system.processes import Interrupt

URGENCIES = (Urgency.CRITICAL, Urgency.URGENT, Urgency.NORMAL, Urgency.LOW, Urgency.BACKGROUND)
WHEN_BUSY = (WhenBusy.QUEUE,) * 7 + (WhenBusy.PREEMPT,) * 2 + (WhenBusy.REJECT,)
CANCELED = 0.08  # of all goals, after up to ``CANCEL_AFTER`` s
CANCEL_AFTER = 2.0
PAUSE = 2.0  # s without goals for a robot that refused one, on average


class Sender:
    """Keeps up to ``depth`` goals of its own open on each robot."""

    def __init__(self, client: PlannerClient, order: dict[str, Any]) -> None:
        self._client = client
        self._robots: dict[str, list[str]] = order["robots"]  # instructions of each
        self._depth: int = order["depth"]
        self._chance = random.Random(order["seed"])
        self._records = Writer(order["records"])
        self._open: list[tuple[PlanRequest, float]] = []  # and when it is canceled
        self._not_before: dict[str, float] = {}
        self._planners: tuple[str, ...] = ()

    @property
    def all_ended(self) -> bool:
        return not self._open

    def send(self) -> None:
        """Send what is missing, to planners that have been met."""
        now = time.monotonic()
        if self._client.planners != self._planners:
            self._client.wait_for_planner(1.0)
            self._planners = self._client.planners
        if not self._planners:
            return
        for robot in self._robots:
            busy = sum(request.goal.robot_id == robot for request, _ in self._open)
            if busy < self._depth and now >= self._not_before.get(robot, 0.0):
                self._send_one(robot, now)

    def _send_one(self, robot: str, now: float) -> None:
        chance = self._chance
        goal = PlanGoal(
            robot,
            chance.choice(self._robots[robot]),
            urgency=chance.choice(URGENCIES),
            when_busy=chance.choice(WHEN_BUSY),
            on_failure=chance.choice(tuple(OnFailure)),
        )
        request = self._client.send(goal)
        self._records.write("sent", goal=request.plan_id, robot=robot)
        cancel = chance.random() < CANCELED
        self._open.append((request, now + chance.uniform(0, CANCEL_AFTER) if cancel else 1e18))

    def look(self) -> None:
        """Cancel what is due, write down what has ended."""
        now = time.monotonic()
        for request, cancel_at in self._open:
            if request.ended:
                self._ended(request, now)
            elif now >= cancel_at and not request.cancel_requested:
                request.cancel()
        self._open = [(request, at) for request, at in self._open if not request.ended]

    def _ended(self, request: PlanRequest, now: float) -> None:
        code, words = DEAD, str(request.error)
        if request.result is not None:
            code, words = request.result.error_code.name, request.result.error_msg
        self._records.write("ended", goal=request.plan_id, code=code, words=words[:200])
        if code not in ("NONE", DEAD):
            wait = self._chance.expovariate(1 / PAUSE)
            self._not_before[request.goal.robot_id] = now + wait


def main() -> None:
    """ORDER (JSON); after SIGINT or SIGTERM it sends no more and waits for what is open."""
    order = json.loads(sys.argv[1])
    with Interrupt() as interrupt, PlannerClient(name=order["name"]) as client:
        sender = Sender(client, order)
        while not interrupt.requested:
            with contextlib.suppress(NoPlanner):
                sender.send()
            client.spin()
            sender.look()
        limit = time.monotonic() + order["limit"]
        while not sender.all_ended and time.monotonic() < limit:
            client.spin()
            sender.look()
