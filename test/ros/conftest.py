"""Real nodes over real DDS, on a domain of this test run's own and on this machine only."""

from __future__ import annotations

import fcntl
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="rclpy is missing")
pytest.importorskip("timely_llm.msg", reason="the interfaces are not built")

from commands import Command  # noqa: E402
from nodes import Client, Process  # noqa: E402

DOMAINS = range(101, 200)
_counter = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def domain() -> Iterator[int]:
    """A DDS domain that no other test run on this machine has."""
    for number in DOMAINS:
        lock = Path(tempfile.gettempdir(), f"timely_llm_domain_{number}.lock").open("w")  # noqa: SIM115
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        os.environ["ROS_DOMAIN_ID"] = str(number)
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        yield number
        lock.close()
        return
    raise RuntimeError("no free DDS domain")


class Starter:
    """Starts nodes and ends all of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, Process] = {}

    def __call__(self, kind: str, /, *remaps: str, **parameters: Any) -> Process:
        """``kind`` is planner or robot; parameters with a dot are written with two underscores."""
        log = self._folder / f"{kind}-{next(_counter)}.log"
        process = Process(kind, log, *remaps, **parameters)
        self._processes[log.stem] = process
        return process

    def end(self) -> None:
        """And say how each was and what it told; pytest shows that where a test failed."""
        for name, process in self._processes.items():
            print(f"--- {name}: {process.end()}\n{process.output()[-4000:]}")


@pytest.fixture
def start(domain: int, tmp_path: Path) -> Iterator[Starter]:
    """Start a node that ends with the test."""
    starter = Starter(tmp_path)
    yield starter
    starter.end()


@pytest.fixture(scope="module")
def start_for_module(domain: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    """Start a node that ends with the test file."""
    starter = Starter(tmp_path_factory.mktemp("nodes"))
    yield starter
    starter.end()


@pytest.fixture
def client(domain: int) -> Iterator[Client]:
    client = Client()
    yield client
    client.close()


@pytest.fixture
def run(domain: int) -> Iterator[Callable[..., Command]]:
    """Run ``timely-llm``; whatever is left of it ends with the test."""
    commands: list[Command] = []

    def start(*arguments: str, **environment: str) -> Command:
        commands.append(Command(*arguments, **environment))
        return commands[-1]

    yield start
    for command in commands:
        command.clean()
