"""A Tello through the real nodes: planner, robot node, djitellopy, UDP.

The drone is simulated (``robot_adapters/tello/simulated_drone.py``), and so is the engine, which
stands in for a model.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from nodes import Client, Process
from std_srvs.srv import Trigger

from robot_adapters.tello.simulated_drone import SimTello
from robot_adapters.tello.udp_simulator import TelloSimulator
from timely_llm.paths import share
from timely_llm.protocols.messages import ErrorCode

pytestmark = pytest.mark.usefixtures("sdk_ports")

pytest.importorskip("djitellopy", reason="djitellopy is not installed")

FACTOR = 4.0  # the drone's time runs so much faster
BLIND = share("config", "skills", "sdk", "tello_sdk.yaml")
PLANS = """
tasks:
  - {task: "fly around the corner", plan: "mf(200);tc(90);mf(100);->'there'"}
  - {task: "fly far", plan: "mf(500);mb(500);mf(500);mb(500);"}
  - {task: "hover", plan: "mu(50);d(60);"}
  - {task: "look for the bottle", plan: "mu(20);?s('bottle')==True{->'seen'}->'not seen'"}
"""
_hosts = (f"127.9.0.{i}" for i in itertools.count(1))


class Drone:
    """A simulated drone in this process, and what it was told."""

    def __init__(self) -> None:
        self.tello = SimTello(noise=0.0)
        self.simulator = TelloSimulator([(next(_hosts), 0, self.tello)], FACTOR)
        self.simulator.start()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("", 0))
            state_port = probe.getsockname()[1]
        host, port = self.simulator.endpoints[0].address
        self.parameters = {"adapter": "tello", "host": host, "port": port, "state_port": state_port}
        self.parameters |= {"keepalive": 0.5, "heartbeat_period": 0.1, "planner_timeout": 1.0}

    def lines(self) -> list[str]:
        with self.simulator.lock:
            return [f"{mark}{text}" for _, mark, text in self.tello.log]

    def heard(self, word: str) -> bool:
        return any(line.startswith(f"<{word}") for line in self.lines())

    def flown(self) -> list[str]:
        """The motions, in order."""
        quiet = ("<command", "<port", "<rc", "<battery?", ">", "*")
        return [line[1:] for line in self.lines() if not line.startswith(quiet)]

    def fault(self, text: str) -> None:
        with self.simulator.lock:
            self.tello.receive(f"sim {text}", self.simulator.now())


@pytest.fixture
def drone() -> Iterator[Drone]:
    drone = Drone()
    yield drone
    drone.simulator.close()


@pytest.fixture
def planner(start, tmp_path: Path) -> Process:
    plans = tmp_path / "plans.yaml"
    plans.write_text(PLANS)
    return start("planner", engine="simulated", model=plans, max_tokens=60)


@pytest.fixture
def robot(start, planner, drone: Drone, client: Client) -> Process:
    """The robot node of a drone that flies blind."""
    robot = start("robot", robot_id="t1", skill_set=BLIND, **drone.parameters)
    client.wait_for_robots("t1")
    client.until(lambda: drone.heard("port"), "the drone to be connected")
    client.until(lambda: facts(client).get("state") == "on the ground", "the drone's state")
    return robot


def facts(client: Client) -> dict[str, str]:
    """The robot's last diagnostics."""
    if not hasattr(client, "diagnostics"):
        client.diagnostics = {}

        def keep(message: DiagnosticArray) -> None:
            for status in message.status:
                if status.name == "robot t1":
                    client.diagnostics = {pair.key: pair.value for pair in status.values}

        client.node.create_subscription(DiagnosticArray, "/diagnostics", keep, 10)
    return client.diagnostics


def test_a_plan_is_flown(robot, drone: Drone, client: Client) -> None:
    goal = client.goal("t1", "fly around the corner")
    code, result = goal.result()
    assert (code, result.error_msg, result.value) == (ErrorCode.NONE, "", "there")
    motions = dropwhile(lambda line: line == "stop", drone.flown())  # of a session that began anew
    assert list(motions) == ["takeoff", "forward 200", "cw 90", "forward 100"]
    assert goal.texts[0] == "mf(200)"
    client.until(lambda: facts(client)["pose"].startswith("x 2.00 y -1.00"), "its pose")
    assert facts(client)["battery"].endswith(" %")


def test_the_drones_own_words_end_the_goal(robot, drone: Drone, client: Client) -> None:
    drone.fault("joystick")
    code, result = client.goal("t1", "fly far").result()
    assert code is ErrorCode.SKILL_FAILED
    assert "mf: takeoff: error Not joystick" in result.error_msg
    assert not drone.heard("forward")


def test_the_robots_own_stop_reaches_the_drone(robot, drone: Drone, client: Client) -> None:
    goal = client.goal("t1", "fly far")
    client.until(lambda: drone.heard("forward"), "the motion")
    assert client.call(Trigger, "/t1/robot_adapter/stop").success
    code, result = goal.result()
    assert code is ErrorCode.ROBOT_STOPPED
    assert drone.heard("stop") and not drone.heard("back")
    assert drone.tello.pose(drone.simulator.now()).x < 5.0


def test_a_planner_that_dies_leaves_the_drone_on_the_ground(
    robot, planner: Process, drone: Drone, client: Client
) -> None:
    client.goal("t1", "fly far")
    client.until(lambda: drone.heard("forward"), "the motion")
    planner.kill()
    client.until(lambda: "*has landed" in drone.lines(), "the landing")
    assert not drone.heard("back")


def test_a_node_that_is_killed_leaves_the_drone_on_the_ground(
    robot: Process, drone: Drone, client: Client
) -> None:
    client.goal("t1", "hover")
    client.until(lambda: drone.heard("rc"), "the hovering")
    robot.kill()
    client.until(lambda: "*has landed" in drone.lines(), "the landing")
    assert "*lands: 15 s without a command" in drone.lines()


def test_the_end_of_the_node_lands_the_drone(robot: Process, drone: Drone, client: Client) -> None:
    client.goal("t1", "hover")
    client.until(lambda: drone.heard("rc"), "the hovering")
    assert robot.interrupt() == 0
    assert drone.heard("land")
    client.until(lambda: "*has landed" in drone.lines(), "the landing")


def test_with_somebody_who_looks_the_bundled_kind_is_flown(
    start, planner, drone: Drone, client: Client
) -> None:
    camera = {
        "perception": "robot_adapters.simulated.camera:SimulatedCamera",
        "perception_config": "'world=house, yaw=0'",
    }
    start("robot", robot_id="t1", kind="tello", **drone.parameters, **camera)
    client.wait_for_robots("t1")
    client.until(lambda: facts(client).get("state") == "on the ground", "the drone's state")
    code, result = client.goal("t1", "look for the bottle").result()
    assert (code, result.error_msg, result.value) == (ErrorCode.NONE, "", "seen")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kind": "tello"}, "robot_adapter: skill set 'tello': the Tello SDK alone cannot do goto"),
        ({"skill_set": BLIND, "link_timeout": 0.1}, "'link_timeout'"),
        ({"skill_set": BLIND, "hst": "127.0.0.1"}, "did you mean 'host'"),
    ],
)
def test_a_node_that_cannot_do_it_ends_with_one_line(start, parameters, words: str) -> None:
    robot = start("robot", robot_id="t1", adapter="tello", **parameters)
    assert robot.wait() == 1
    (line,) = robot.output().strip().splitlines()
    assert words in line
