"""What a callback or a task raises never ends the process, and nobody waits for its answer."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys

import rclpy
from rclpy.action import ActionClient, ActionServer, GoalResponse
from rclpy.service import Service
from rclpy.task import Future
from std_msgs.msg import String
from std_srvs.srv import Trigger

from timely_llm.action import Plan
from timely_llm.ros.guard import GuardedExecutor
from timely_llm.srv import StopRobot

kind = sys.argv[1]
rclpy.init()
executor, node = GuardedExecutor(), rclpy.create_node("test_guard")
executor.add_node(node)
done, heard = Future(), []


def fails(*arguments):
    heard.append(arguments)
    raise ValueError("a test")


async def fails_later(*arguments):
    fails(*arguments)


def over(*arguments):
    print("went on", *arguments, flush=True)
    done.set_result(None)


def answered(future):
    response = future.result()
    over(getattr(response, "error_code", ""), getattr(response, "error_msg", ""))


def once(act):
    def tick():
        timer.cancel()
        act()

    timer = node.create_timer(0.01, tick)


def subscription():
    node.create_subscription(String, "told", lambda m: over() if m.data == "4" else fails(m), 10)
    publisher = node.create_publisher(String, "told", 10)

    def tell():
        if not publisher.get_subscription_count():
            once(tell)
            return
        for number in range(5):
            publisher.publish(String(data=str(number)))

    once(tell)


def service(callback):
    node.create_service(StopRobot, "stop", callback)
    client = node.create_client(StopRobot, "stop")

    def ask():
        if client.service_is_ready():
            client.call_async(StopRobot.Request()).add_done_callback(answered)
        else:
            once(ask)

    once(ask)


def answer(callback):
    Service.send_response = fails  # as to a client that is gone
    service(callback)

    def wait():
        once(over if heard else wait)

    wait()


async def answers_later(request, response):
    return response


def action():
    node.server = ActionServer(
        node, Plan, "plan", fails, handle_accepted_callback=fails,
        goal_callback=lambda request: GoalResponse.ACCEPT,
    )
    node.client = ActionClient(node, Plan, "plan")

    def ask():
        if node.client.server_is_ready():
            sent = node.client.send_goal_async(Plan.Goal())
            sent.add_done_callback(lambda sent: once(over))
        else:
            once(ask)

    once(ask)


def timer():
    def tick():
        over() if heard else fails(1)

    node.create_timer(0.01, tick)


{
    "subscription": subscription,
    "timer": timer,
    "service": lambda: service(fails),
    "service that awaits": lambda: service(fails_later),
    "answer": lambda: answer(lambda request, response: response),
    "answer that awaits": lambda: answer(answers_later),
    "task": lambda: (executor.create_task(fails), once(over)),
    "task that awaits": lambda: (executor.create_task(fails_later), once(over)),
    "action": action,
}[kind]()
executor.spin_until_future_complete(done, 20.0)
assert done.done(), "never went on"
"""


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("subscription", ""),
        ("timer", ""),
        ("service", " 400 the planner failed at this request: its log says why"),
        ("service that awaits", " 400 the planner failed at this request: its log says why"),
        ("answer", ""),
        ("answer that awaits", ""),
        ("task", ""),
        ("task that awaits", ""),
        ("action", ""),
    ],
)
def test_what_is_raised_is_logged_and_the_node_goes_on(domain, kind: str, answer: str) -> None:
    command = [sys.executable, "-c", SCRIPT, kind]
    node = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert node.returncode == 0, node.stderr
    assert node.stdout == f"went on{answer}\n"
    assert "ValueError: a test" in node.stderr
