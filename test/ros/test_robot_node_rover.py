"""The adapter of docs/your_robot.md through the real nodes: planner, robot node, DDS.

The rover is simulated (``Base`` takes velocities and tells its odometry), and the engine: it stands
in for a model. The rover's time goes on with each velocity that it is told, so that how far it gets
does not depend on how fast the machine is.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from nodes import ROOT, Client, Process
from std_srvs.srv import Trigger

from timely_llm.paths import share
from timely_llm.protocols.messages import ErrorCode

STEP = 0.1  # s of the rover's time with each velocity
PLANS = """
tasks:
  - {task: "drive a corner", plan: "mf(100);tc(90);mb(50);->'there'"}
  - {task: "drive around", plan: "sq(20);"}
  - {task: "drive far", plan: "mf(500);mb(500);mf(500);mb(500);"}
  - {task: "leave", plan: "4{mf(500)}"}
"""


class Base:
    """A simulated rover on the client's node. ``silent``: its odometry fails."""

    def __init__(self, client: Client, name: str) -> None:
        self.place(0.0, 0.0, 0.0)
        self.silent = False
        self._ticks = 0  # of the timer since the last velocity
        self.told: list[tuple[float, float]] = []  # velocities, m/s and rad/s, without repetition
        node = client.node
        self._odometry = node.create_publisher(Odometry, f"/{name}/odom", 10)
        node.create_subscription(Twist, f"/{name}/cmd_vel", self._take, 10)
        node.create_timer(0.01, self._tick)

    def place(self, x: float, y: float, yaw: float) -> None:
        """Put it there; yaw in rad."""
        self.x, self.y, self.yaw = x, y, yaw

    def _take(self, message: Twist) -> None:
        velocity = (message.linear.x, message.angular.z)
        if velocity != (self.told or [None])[-1]:
            self.told.append(velocity)
        linear, angular = velocity
        self.x += linear * STEP * math.cos(self.yaw)
        self.y += linear * STEP * math.sin(self.yaw)
        self.yaw += angular * STEP
        self._ticks = 0
        self._tell()

    def _tick(self) -> None:
        """Standing, it tells where it is all the time; moving, when it is told nothing for long."""
        self._ticks += 1
        if self.stands or self._ticks % 20 == 0:
            self._tell()

    def _tell(self) -> None:
        if self.silent:
            return
        message = Odometry()
        message.pose.pose.position.x, message.pose.pose.position.y = self.x, self.y
        turned = message.pose.pose.orientation
        turned.z, turned.w = math.sin(self.yaw / 2), math.cos(self.yaw / 2)
        self._odometry.publish(message)

    @property
    def stands(self) -> bool:
        return self.told[-1:] in ([], [(0.0, 0.0)])

    def is_at(self, x: float, y: float, degrees: float) -> bool:
        """Within the way of a few steps."""
        return math.dist((self.x, self.y), (x, y)) < 0.3 and abs(
            math.remainder(self.yaw - math.radians(degrees), math.tau)
        ) < math.radians(20)


@pytest.fixture(scope="module")
def client(domain: int) -> Iterator[Client]:
    client = Client()
    yield client
    client.close()


@pytest.fixture(scope="module")
def planner(start_for_module, tmp_path_factory) -> Process:
    plans = tmp_path_factory.mktemp("plans") / "plans.yaml"
    plans.write_text(PLANS)
    return start_for_module("planner", engine="simulated", model=plans, max_tokens=60)


@pytest.fixture(scope="module")
def rover(start_for_module, planner: Process, client: Client) -> Base:
    base = Base(client, "r1")
    start_for_module("robot", "__ns:=/r1", adapter="rover", kind="rover", heartbeat_period=0.1)
    client.wait_for_robots("r1")
    client.until(lambda: "nan" not in pose_of(client, "r1"), "its first odometry")
    return base


@pytest.fixture
def base(rover: Base) -> Base:
    """The rover at its origin."""
    rover.place(0.0, 0.0, 0.0)
    rover.told.clear()
    return rover


def pose_of(client: Client, robot_id: str) -> str:
    """The last pose of the robot's diagnostics."""
    if not hasattr(client, "poses"):
        client.poses = {}

        def keep(message: DiagnosticArray) -> None:
            for status in message.status:
                facts = {pair.key: pair.value for pair in status.values}
                client.poses[status.hardware_id] = facts.get("pose", "nan")

        client.node.create_subscription(DiagnosticArray, "/diagnostics", keep, 10)
    return client.poses.get(robot_id, "nan")


def moved(client: Client, base: Base) -> None:
    client.until(lambda: base.x > 0.1, "the rover to move")


def test_a_goal_is_driven(base: Base, client: Client) -> None:
    goal = client.goal("r1", "drive a corner")
    code, result = goal.result()
    assert (code, result.error_msg, result.value) == (ErrorCode.NONE, "", "there")
    assert base.told == [
        (0.0, 0.0), (0.3, 0.0), (0.0, 0.0), (0.0, -0.6), (0.0, 0.0), (-0.3, 0.0), (0.0, 0.0),
    ][-len(base.told):]  # fmt: skip
    assert len(base.told) >= 6
    assert base.is_at(1.0, 0.5, -90)
    assert goal.texts[0] == "mf(100)"


def test_a_defined_skill_is_driven_and_told_as_one(base: Base, client: Client) -> None:
    client.listen("r1")
    code, _ = client.goal("r1", "drive around").result()
    assert code is ErrorCode.NONE
    assert [velocity for velocity in base.told if velocity != (0.0, 0.0)] == [
        (0.3, 0.0), (0.0, -0.6),
    ] * 4  # fmt: skip
    calls = {report.call.name for report in client.executions["r1"] if report.call.name}
    assert calls == {"sq"}


@pytest.mark.parametrize("who", ["robot", "planner"])
def test_a_stop_stops_it(base: Base, client: Client, who: str) -> None:
    goal = client.goal("r1", "drive far")
    moved(client, base)
    if who == "robot":
        assert client.call(Trigger, "/r1/robot_adapter/stop").success
    else:
        client.stop_robot("r1")
    code, _ = goal.result()
    assert code is ErrorCode.ROBOT_STOPPED
    client.until(lambda: base.stands, "zero velocity")
    assert base.told == [(0.3, 0.0), (0.0, 0.0)]
    assert base.x < 5.0
    assert client.call(Trigger, "/r1/robot_adapter/rearm").success
    client.until(lambda: not client.robots["r1"].stopped, "the planner to know")


def test_odometry_that_fails_fails_the_call(base: Base, client: Client) -> None:
    goal = client.goal("r1", "drive far")
    moved(client, base)
    base.silent = True
    code, result = goal.result()
    assert code is ErrorCode.SKILL_FAILED
    assert "mf: no odometry for 0.5" in result.error_msg
    client.until(lambda: base.stands, "zero velocity")
    base.silent = False
    goal = client.goal("r1", "drive a corner")
    assert goal.result()[0] is ErrorCode.NONE


def test_it_does_not_leave_its_fence(base: Base, client: Client) -> None:
    code, result = client.goal("r1", "leave").result()
    assert code is ErrorCode.SKILL_FAILED
    assert "geofence is -10 to 10 m" in result.error_msg
    assert base.stands and base.x <= 10.0


def test_an_adapter_in_a_file_of_ones_own(
    start, planner, client: Client, tmp_path: Path, monkeypatch
) -> None:
    shutil.copy(ROOT / "robot_adapters" / "rover.py", tmp_path / "my_rover.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    skills = tmp_path / "my_rover.yaml"
    text = share("config", "skills", "rover.yaml").read_text()
    skills.write_text(text.replace("kind: rover", "kind: my_rover"))
    base = Base(client, "r2")
    parameters = {"adapter": "my_rover:RoverAdapter", "skill_set": skills, "speed": 0.5}
    start("robot", "__ns:=/r2", **parameters)
    client.wait_for_robots("r2")
    client.until(lambda: "nan" not in pose_of(client, "r2"), "its first odometry")
    code, result = client.goal("r2", "drive a corner").result()
    assert (code, result.error_msg) == (ErrorCode.NONE, "")
    assert (0.5, 0.0) in base.told
    assert base.is_at(1.0, 0.5, -90)


@pytest.mark.parametrize(
    ("adapter", "words"),
    [
        ("rovr", "unknown name 'rovr'; did you mean 'rover'?"),
        ("my_robot:Robot", "No module named 'my_robot'"),
        ("robot_adapters.rover:Rover", "has no attribute 'Rover'"),
        ("robot_adapters.adapter:Progress", "Progress lacks PARAMETERS, check, close"),
        ("robot_adapters.adapter:Adapter", "Adapter lacks PARAMETERS, start, poll, next_poll"),
    ],
)
def test_what_is_no_adapter_ends_with_one_line(start, adapter: str, words: str) -> None:
    robot = start("robot", "__ns:=/r1", adapter=adapter, kind="rover")
    assert robot.wait() == 1
    (line,) = robot.output().strip().splitlines()
    assert words in line
