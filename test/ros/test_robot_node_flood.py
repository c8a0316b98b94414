"""A robot node that somebody floods with segments still stops at once."""

import subprocess
import sys

SCRIPT = """
import sys

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger

from robot_adapters.node import RobotNode
from timely_llm.msg import Segment
from timely_llm.ros.guard import GuardedExecutor

FLOOD = int(sys.argv[1])
handled, judged, ticks = [], [], []


class Counting(RobotNode):
    def _on_timer(self):
        ticks.append(1)
        super()._on_timer()

    def _on_segment(self, message):
        handled.append(message)
        super()._on_segment(message)


rclpy.init()
executor = GuardedExecutor()
robot = Counting(executor, parameter_overrides=[Parameter("robot_id", value="r1")])
executor.add_node(robot)
context = Context()
rclpy.init(context=context)
stranger = Node("stranger", context=context)
spinner = SingleThreadedExecutor(context=context)
spinner.add_node(stranger)
segments = stranger.create_publisher(Segment, "/r1/segments", QoSProfile(depth=10_000))
client = stranger.create_client(Trigger, "/r1/robot_adapter/stop")
while not (segments.get_subscription_count() and client.service_is_ready()):
    spinner.spin_once(timeout_sec=0.01)
    executor.spin_once(timeout_sec=0.01)
for number in range(FLOOD):
    segments.publish(Segment(session=number + 1, index=number, text="d(60);" * 20))
asked = client.call_async(Trigger.Request())
judge = robot._robot.on_segment
robot._robot.on_segment = lambda *arguments: judged.append(1) or judge(*arguments)
ticks.clear()
while not robot._robot.stopped:
    executor.spin_once(timeout_sec=0.01)
print(len(handled), flush=True)
while not asked.done() or len(handled) < FLOOD:
    executor.spin_once(timeout_sec=0.01)
    spinner.spin_once(timeout_sec=0.01)
print(asked.result().message, flush=True)
assert len(judged) <= 20 * (len(ticks) + 1), (len(judged), len(ticks))
"""


def test_a_stop_does_not_wait_for_a_flood_of_segments(domain) -> None:
    command = [sys.executable, "-c", SCRIPT, "800"]
    node = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert node.returncode == 0, node.stderr
    handled, answer = node.stdout.splitlines()
    assert int(handled) < 20
    assert answer == "stopped until ~/rearm"
