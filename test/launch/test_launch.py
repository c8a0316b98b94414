"""The launch files under real launch: arguments, namespaces, parameter files, fleet files, Ctrl-C.

Skipped where launch is not installed. The simulated engine stands in for a model.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

pytest.importorskip("launch_ros", reason="ROS 2's launch is not installed")
pytest.importorskip("timely_llm.msg", reason="the interfaces are not built")

import rclpy  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402

from timely_llm.cli.local_fleet import claim_domain  # noqa: E402
from timely_llm.paths import share  # noqa: E402
from timely_llm.protocols.messages import ErrorCode, PlanGoal  # noqa: E402
from timely_llm.ros.client import PlannerClient  # noqa: E402
from timely_llm.ros.conversions import time_to_ros  # noqa: E402

LIMIT = 60.0  # s; nothing here takes that long, unless it never comes
MARK = "TIMELY_LLM_TEST_MARK"
RUNNER = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
path, *arguments = sys.argv[1:]
service = LaunchService()
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(
    PythonLaunchDescriptionSource(path),
    launch_arguments=[argument.split(":=", 1) for argument in arguments])]))
sys.exit(service.run())
"""
FLEET = """
robots:
  - {id: bee, kind: tello, parameters: {seed: 1}}
  - {id: crane, kind: indy7, namespace: cell/crane}
"""


class Launched:
    """One launch file, run by launch in a process of its own."""

    def __init__(self, log: Path, name: str, *arguments: str) -> None:
        self.mark, self.log = uuid.uuid4().hex, log
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", RUNNER, str(share("launch", name)), *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, MARK: self.mark, "ROS_LOG_DIR": str(log.parent)},
                start_new_session=True,
            )

    def wait(self) -> int:
        return self._process.wait(LIMIT)

    def interrupt(self) -> int:
        """Ctrl-C on the terminal: all processes of the group get it."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self.wait()

    def left_behind(self) -> list[str]:
        return [" ".join(process.cmdline()) for process in self._marked()]

    def clean(self) -> None:
        for process in self._marked():
            process.kill()
        self._process.wait(LIMIT)

    def _marked(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                marked = process.environ().get(MARK) == self.mark
                if marked and process.status() != psutil.STATUS_ZOMBIE:
                    yield process
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue


@pytest.fixture(autouse=True)
def domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    number, claim = claim_domain({})
    monkeypatch.setenv("ROS_DOMAIN_ID", str(number))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    yield number
    claim.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Launched]]:
    """Launch a file; whatever is left of it ends with the test."""
    started: list[Launched] = []

    def start(name: str, *arguments: str) -> Launched:
        log = tmp_path / f"launch-{len(started)}.log"
        started.append(Launched(log, name, *arguments))
        return started[-1]

    yield start
    for launched in started:
        launched.clean()


def wait_for(client: PlannerClient, launched: Launched, robots: set[str]) -> None:
    """Wait until the planner is there and has these robots."""
    found: set[str] = set()
    client.watch_robots(lambda infos: found.update(info.robot_id for info in infos))
    ready = client.wait(lambda: client.status is not None and found >= robots, LIMIT)
    assert ready, launched.log.read_text()
    client.wait_for_planner(LIMIT)


def test_a_fleet_is_launched_in_a_namespace_and_ends_with_ctrl_c(run, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    launched = run(
        "fleet.launch.py", f"fleet:={tmp_path}/fleet.yaml", "namespace:=hall",
        "engine:=simulated", "policy:=edf", "log_level:=warn",
    )  # fmt: skip
    with PlannerClient("hall") as client:
        wait_for(client, launched, {"bee", "crane"})
        assert (client.status.policy, client.status.pace) == ("edf", "rtx4090-llama3-8b")
        spaces = {robot.robot_id: robot.robot_namespace for robot in client.robots(LIMIT)}
        assert spaces == {"bee": "/hall/bee", "crane": "/hall/cell/crane"}
        request = client.send(PlanGoal("bee", "no script knows this"))
        assert client.wait(lambda: request.ended, LIMIT)
        assert request.result.error_code is ErrorCode.NONE
    launched.interrupt()
    assert launched.left_behind() == []
    log = launched.log.read_text()
    assert "Traceback" not in log
    assert "robot 'bee' registered" not in log  # that is info, and log_level is warn
    assert log.count("process has finished cleanly") == 3


def test_the_planner_takes_a_parameter_file_and_arguments_before_it(run, tmp_path: Path) -> None:
    text = share("config", "planner.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(
        text.replace("engine: vllm", "engine: simulated").replace(
            "policy: least_loss", "policy: fcfs"
        )
    )
    launched = run("planner.launch.py", f"params_file:={tmp_path}/mine.yaml")
    with PlannerClient() as client:
        wait_for(client, launched, set())
        assert client.status.policy == "fcfs"
    launched.interrupt()
    launched = run(
        "planner.launch.py", f"params_file:={tmp_path}/mine.yaml", "policy:=edf", "namespace:=a/b"
    )
    with PlannerClient("a/b") as client:
        wait_for(client, launched, set())
        assert client.status.policy == "edf"
    launched.interrupt()
    assert launched.left_behind() == []


def test_the_fleet_can_join_a_planner_that_runs_already(run, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    robots = run("fleet.launch.py", f"fleet:={tmp_path}/fleet.yaml", "planner:=false")
    planner = run("planner.launch.py", "engine:=simulated")
    with PlannerClient() as client:
        wait_for(client, planner, {"bee", "crane"})
    assert robots.left_behind() != []


def test_time_can_be_simulated(run, tmp_path: Path) -> None:
    """All nodes take their time from /clock, which here begins at 1000 s."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    launched = run(
        "fleet.launch.py", f"fleet:={tmp_path}/fleet.yaml", "engine:=simulated",
        "use_sim_time:=true",
    )  # fmt: skip
    stamps: dict[str, float] = {}  # 0 s for who registered before the clock was heard
    heartbeats: list[float] = []
    ticks = itertools.count()
    with PlannerClient() as client:
        node = rclpy.create_node("clock")
        clock = node.create_publisher(Clock, "/clock", 10)
        client.watch_robots(lambda infos: stamps.update({i.robot_id: i.registered for i in infos}))
        client.watch_status(lambda status: heartbeats.append(status.stamp))

        def tick() -> None:
            clock.publish(Clock(clock=time_to_ros(1000.0 + 0.05 * next(ticks))))

        def started() -> bool:
            return len(stamps) == 2 and any(heartbeats)

        assert client.wait(started, LIMIT, tick), launched.log.read_text()
        node.destroy_node()
    for stamp in filter(None, [*stamps.values(), *heartbeats]):
        assert 1000.0 <= stamp < 1100.0
    launched.interrupt()
    assert launched.left_behind() == []


def test_every_node_is_in_its_enclave(run, tmp_path: Path) -> None:
    """The graph names enclaves, security or not."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    launched = run(
        "fleet.launch.py", f"fleet:={tmp_path}/fleet.yaml", "engine:=simulated", "enclaves:=/ours"
    )
    with PlannerClient() as client:
        wait_for(client, launched, {"bee", "crane"})
        nodes = client.node.get_node_names_and_namespaces_with_enclaves()
        enclaves = {enclave for *_, enclave in nodes}
    assert {"/ours/planner", "/ours/bee", "/ours/crane"} <= enclaves


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FLEET.replace("kind: tello", "kind: tela"), "fleet.yaml:3: robots[0].kind: 'tela' is"),
        (FLEET.replace("seed", "sed"), "no parameter 'sed'; did you mean 'seed'?"),
    ],
)
def test_a_wrong_fleet_file_starts_nothing(run, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "fleet.yaml").write_text(text)
    launched = run("fleet.launch.py", f"fleet:={tmp_path}/fleet.yaml", "engine:=simulated")
    assert launched.wait() == 1
    assert words in launched.log.read_text()
    assert launched.left_behind() == []
