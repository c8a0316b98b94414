"""Robots that do everything at once, and clients that give them goals: load for a planner.

They speak the real protocol over real DDS. ``python -m benchmarks.robots COUNT GOALS`` is a process
that gives each of COUNT robots GOALS plans, one after the other, and prints as JSON how long each
goal took to be accepted, in s.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.action import ActionClient
from rclpy.client import Client
from rclpy.experimental import EventsExecutor
from rclpy.node import Node

from timely_llm.action import Plan
from timely_llm.msg import Execution as ExecutionMessage
from timely_llm.msg import Segment
from timely_llm.protocols.messages import NO_PLAN, Execution, ExecutionState, SegmentCommand
from timely_llm.ros.conversions import from_ros, instance_to_ros, to_ros
from timely_llm.ros.process import new_instance
from timely_llm.ros.qos import BURST
from timely_llm.srv import RegisterRobot

DOMAIN = "87"  # the benchmarks' DDS domain
HEARTBEAT = 0.5  # s
LIMIT = 120.0  # s


def separate() -> None:
    """Use a DDS domain of the benchmarks alone, on this machine only. Before the first node."""
    os.environ["ROS_DOMAIN_ID"] = DOMAIN
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"


class InstantRobots:
    """``count`` robots of a kind in one node, each of which needs no time for anything."""

    def __init__(self, count: int, kind: str) -> None:
        rclpy.init()
        self.node = Node("instant_robots")
        self._executor = EventsExecutor()
        self._executor.add_node(self.node)
        self._client: ActionClient = ActionClient(
            self.node,
            Plan,
            "plan",
            goal_service_qos_profile=BURST,
            result_service_qos_profile=BURST,
            feedback_sub_qos_profile=BURST,
        )
        self.acceptances: list[float] = []  # s from sending a goal until it was accepted
        self.arrived: Callable[[str, Any], None] = lambda robot_id, segment: None
        self.robots = {f"r{i}": _Robot(self, f"r{i}", kind) for i in range(count)}
        self.node.create_timer(HEARTBEAT, self._beat)
        for robot in self.robots.values():
            robot.register()

    def until(self, condition: Callable[[], bool]) -> None:
        """Spin until ``condition()``; ``TimeoutError`` if it never is."""
        limit = time.monotonic() + LIMIT
        while not condition():
            self._executor.spin_once(timeout_sec=0.1)
            if time.monotonic() > limit:
                raise TimeoutError("the planner does not answer")

    def goal(self, robot_id: str, instruction: str, done: Callable[[Any], None]) -> None:
        """Send a goal; ``done`` gets its result."""
        message = Plan.Goal(robot_id=robot_id, instruction=instruction)
        message.urgency = Plan.Goal.NORMAL
        sent = time.perf_counter()
        accepted = self._client.send_goal_async(message)

        def then(future: Any) -> None:
            self.acceptances.append(time.perf_counter() - sent)
            result = future.result().get_result_async()
            result.add_done_callback(lambda future: done(future.result().result))

        accepted.add_done_callback(then)

    def wait_for_planner(self) -> None:
        self.until(self._client.server_is_ready)

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown()

    def _beat(self) -> None:
        for robot in self.robots.values():
            robot.report(robot.plan_id, ExecutionState.IDLE)


class _Robot:
    def __init__(self, robots: InstantRobots, robot_id: str, kind: str) -> None:
        self._robots, self._id, self._kind = robots, robot_id, kind
        self._session = 0
        self.plan_id = NO_PLAN
        self._numbers = itertools.count()
        node = robots.node
        node.create_subscription(Segment, f"/{robot_id}/segments", self._segment, 1000)
        self._reports = node.create_publisher(ExecutionMessage, f"/{robot_id}/execution", 1000)

    def register(self) -> None:
        client: Client = self._robots.node.create_client(RegisterRobot, "register_robot")
        self._robots.until(client.service_is_ready)
        request = RegisterRobot.Request(
            robot_id=self._id, kind=self._kind, instance=instance_to_ros(new_instance())
        )
        future = client.call_async(request)
        self._robots.until(future.done)
        response: Any = future.result()
        if response.error_code:
            raise RuntimeError(response.error_msg)
        self._session = response.session
        self._robots.until(lambda: self._reports.get_subscription_count() > 0)
        self.report(NO_PLAN, ExecutionState.IDLE)

    def report(self, plan_id: str, state: ExecutionState, segment: int = 0) -> None:
        execution = Execution(self._session, next(self._numbers), plan_id, state, segment)
        self._reports.publish(to_ros(execution))

    def _segment(self, message: Segment) -> None:
        self._robots.arrived(self._id, message)
        segment = from_ros(message)
        if segment.command is SegmentCommand.CANCEL:
            self.plan_id = NO_PLAN
            self.report(segment.plan_id, ExecutionState.ABORTED)
            return
        self.report(segment.plan_id, ExecutionState.RECEIVED, segment.index)
        self.plan_id = NO_PLAN if segment.last else segment.plan_id
        over = ExecutionState.PLAN_RETURNED if segment.last else ExecutionState.IDLE
        self.report(segment.plan_id, over, segment.index)


def main(count: int, goals: int) -> None:
    robots = InstantRobots(count, "indy7")
    robots.wait_for_planner()
    left = dict.fromkeys(robots.robots, goals)

    def give(robot_id: str, result: Any = None) -> None:
        if left[robot_id] == 0:
            return
        left[robot_id] -= 1
        number = left[robot_id] * count + int(robot_id[1:])
        instruction = f"[A] Pick up the box {number} and drop it on the table. Then, pick up the "
        robots.goal(
            robot_id, instruction + "pencil and drop it near the cup.", lambda r: end(robot_id, r)
        )

    ended = itertools.count(1)
    done = 0

    def end(robot_id: str, result: Any) -> None:
        nonlocal done
        done = next(ended)
        give(robot_id)

    for robot_id in robots.robots:
        give(robot_id)
    robots.until(lambda: done == count * goals)
    print(json.dumps(robots.acceptances))
    robots.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
