"""Real nodes in processes of their own, and a client that spins until something is so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rclpy
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from timely_llm.action import Plan
from timely_llm.msg import Execution, PlanEvent, RobotList, Segment
from timely_llm.protocols.messages import ErrorCode
from timely_llm.ros.conversions import event_from_ros, from_ros, instance_to_ros
from timely_llm.srv import ListRobots, RegisterRobot, StopRobot

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT = 60.0  # s; nothing here takes that long, unless it never comes
MAINS = {
    "planner": "timely_llm.ros.planner_node",
    "robot": "robot_adapters.node",
    "breaking_planner": "breaking_planner",
    "patient_planner": "patient_planner",
    "clumsy_planner": "clumsy_planner",
}
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Process:
    """One node; its output lies in a file."""

    def __init__(self, kind: str, log: Path, /, *remaps: str, **parameters: Any) -> None:
        start = f"import sys; sys.path.append({str(HERE)!r}); import signal"
        start += "; signal.signal(signal.SIGINT, signal.SIG_DFL)"  # as the executables do
        start += f"; from {MAINS[kind]} import main; sys.exit(main())"
        command = [sys.executable, "-c", start, "--ros-args"]
        for name, value in parameters.items():
            command += ["-p", f"{name.replace('__', '.')}:={_text(value)}"]
        for remap in remaps:
            command += ["-r", remap]
        self.log = log
        with log.open("w") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env=os.environ
            )

    def output(self) -> str:
        """What it printed, but for what DDS says of itself on a busy machine."""
        lines = self.log.read_text().splitlines(keepends=True)
        return "".join(line for line in lines if "RTPS_" not in line)

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def signal(self, number: int = signal.SIGINT) -> None:
        """Ctrl-C; does not wait."""
        self._process.send_signal(number)

    def interrupt(self) -> int:
        """Ctrl-C; returns the exit status."""
        self.signal()
        return self.wait()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(LIMIT)

    def wait(self) -> int:
        return self._process.wait(LIMIT)

    def end(self) -> str:
        """Whatever state it is in; how it was."""
        status = self._process.poll()
        if status is None:
            self.kill()
            return "ran"
        return f"had ended with status {status}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Client:
    """A node in this process that speaks to the planner and listens to everything."""

    def __init__(self) -> None:
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node("test_client", context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self.events: list[Any] = []
        self.robots: dict[str, Any] = {}
        self.segments: dict[str, list[Segment]] = {}
        self.executions: dict[str, list[Any]] = {}
        burst = QoSProfile(depth=1000)
        self._action = ActionClient(
            self.node,
            Plan,
            "plan",
            goal_service_qos_profile=burst,
            result_service_qos_profile=burst,
        )
        self._list = self.node.create_client(ListRobots, "list_robots")  # the last: see _meet
        self.node.create_subscription(
            PlanEvent, "plan_events", lambda m: self.events.append(event_from_ros(m)), 1000
        )
        self.node.create_subscription(RobotList, "robots", self._robots, LATCHED)

    def close(self) -> None:
        self._executor.shutdown()
        self._action.destroy()  # it would keep the node in the graph
        self.node.destroy_node()
        self.context.shutdown()

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Spin until ``condition()`` is true and return it; fail with ``what`` if it never is."""
        limit = time.monotonic() + LIMIT
        while time.monotonic() < limit:
            if found := condition():
                return found
            self._executor.spin_once(timeout_sec=0.05)
        raise AssertionError(f"waited {LIMIT} s for {what}")

    def listen(self, robot_id: str) -> None:
        """Keep all segments and executions of the robot; of a robot that the planner knows, from
        now on, and else from when its publishers are matched."""
        segments = self.segments.setdefault(robot_id, [])
        executions = self.executions.setdefault(robot_id, [])
        topics = [
            self.node.create_subscription(Segment, f"/{robot_id}/segments", segments.append, 1000),
            self.node.create_subscription(
                Execution, f"/{robot_id}/execution", lambda m: executions.append(from_ros(m)), 1000
            ),
        ]
        if robot_id in self.robots:
            self.until(lambda: all(t.get_publisher_count() for t in topics), "publishers")

    def call(self, service: type, name: str, **fields: Any) -> Any:
        """Call a service of the planner."""
        client = self.node.create_client(service, name)
        self.until(client.service_is_ready, f"service {name}")
        future = client.call_async(service.Request(**fields))
        response = self.until(lambda: future.done() and future.result(), f"answer of {name}")
        self.node.destroy_client(client)
        return response

    def register(self, robot_id: str, instance: str = "11" * 16, **fields: Any) -> Any:
        """Register a robot that this process plays."""
        fields.setdefault("kind", "tello")
        return self.call(
            RegisterRobot,
            "register_robot",
            robot_id=robot_id,
            instance=instance_to_ros(instance),
            **fields,
        )

    def stop_robot(self, robot_id: str = "") -> StopRobot.Response:
        return self.call(StopRobot, "stop_robot", robot_id=robot_id)

    def wait_for_robots(self, *robot_ids: str) -> None:
        """Wait until the planner knows these robots, and hears them."""

        def known() -> bool:
            return all(self.robots.get(name) and self.robots[name].alive for name in robot_ids)

        self.until(known, f"robots {robot_ids}, known: {list(self.robots)}")

    def listed(self) -> dict[str, Any]:
        """The robots as the service lists them."""
        return {robot.robot_id: robot for robot in self.call(ListRobots, "list_robots").robots}

    def goal(self, robot_id: str, instruction: str, *, fetch: bool = True, **fields: Any) -> Goal:
        """Send a goal; it is accepted, whatever it asks for. ``fetch``: ask for its result."""
        self._meet()
        goal = Goal(self)
        message = Plan.Goal(robot_id=robot_id, instruction=instruction, **fields)
        future = self._action.send_goal_async(message, feedback_callback=goal.heard)
        goal.accept(self.until(lambda: future.done() and future.result(), "acceptance"))
        if fetch:
            goal.fetch()
        return goal

    def goals_at_once(self, robot_id: str, instruction: str, count: int) -> list[Goal]:
        """Send goals without waiting for one of them to be accepted."""
        self._meet()
        message = Plan.Goal(robot_id=robot_id, instruction=instruction)
        futures = [self._action.send_goal_async(message) for _ in range(count)]
        self.until(lambda: all(future.done() for future in futures), f"{count} acceptances")
        goals = [Goal(self) for _ in futures]
        for goal, future in zip(goals, futures, strict=True):
            goal.accept(future.result())
            goal.fetch()
        return goals

    def _meet(self) -> None:
        """Wait until this client and the planner see each other, as ``PlannerClient`` does."""
        self.until(self._action.server_is_ready, "action plan")
        self.until(self._list.service_is_ready, "service list_robots")

        asked: list[Any] = []
        again = 0.0

        def answered() -> bool:
            nonlocal again
            if time.monotonic() >= again:
                asked.append(self._list.call_async(ListRobots.Request()))
                again = time.monotonic() + 1.0
            return any(future.done() for future in asked)  # each may take longer than the pause

        self.until(answered, "an answer of list_robots")

    def _robots(self, message: RobotList) -> None:
        self.robots = {robot.robot_id: robot for robot in message.robots}


class Goal:
    """A goal on its way. ``texts`` are the segments that the client was told of."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._handle: ClientGoalHandle | None = None
        self.texts: list[str] = []
        self.states: list[int] = []

    def heard(self, message: Any) -> None:
        self.states.append(message.feedback.state)
        if message.feedback.text:
            self.texts.append(message.feedback.text)

    def accept(self, handle: ClientGoalHandle) -> None:
        assert handle.accepted
        self._handle = handle

    def fetch(self) -> None:
        """Ask for the result."""
        self._result = self._handle.get_result_async()

    @property
    def done(self) -> bool:
        return self._result.done()

    def cancel(self) -> None:
        future = self._handle.cancel_goal_async()
        self._client.until(future.done, "answer to the cancel")

    def result(self) -> tuple[ErrorCode, Any]:
        """The error code and the result, when it is there."""
        response = self._client.until(
            lambda: self._result.done() and self._result.result(), "the goal's result"
        )
        self.status = response.status
        return ErrorCode(response.result.error_code), response.result

    def wait_for_segments(self, count: int = 1) -> None:
        self._client.until(lambda: len(self.texts) >= count, f"{count} segments")
