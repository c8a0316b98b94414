"""The simulated Tello as a program: addresses, answers and state over real UDP, its command line.

A plain socket speaks to it here; djitellopy does in ``test_adapter.py``.
"""

from __future__ import annotations

import itertools
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from robot_adapters.tello.simulated_drone import SimTello
from robot_adapters.tello.udp_simulator import TelloSimulator
from timely_llm.cli.fleet_file import load_fleet
from timely_llm.cli.script_file import load_script
from timely_llm.paths import share

pytestmark = pytest.mark.usefixtures("sdk_ports")

ROOT = Path(__file__).resolve().parents[3]
LIMIT = 20.0  # s
_blocks = itertools.count(1)


class Caller:
    """Somebody with a command port and a state port."""

    def __init__(self) -> None:
        self.commands, self.states = (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)
        )
        for udp in (self.commands, self.states):
            udp.bind(("127.0.0.1", 0))
            udp.settimeout(LIMIT)

    def ask(self, address: tuple[str, int], command: str) -> str:
        self.commands.sendto(command.encode(), address)
        data, source = self.commands.recvfrom(1024)
        assert source == address
        return data.decode()

    def state(self) -> tuple[str, dict[str, str]]:
        data, source = self.states.recvfrom(1024)
        return source[0], dict(item.split(":") for item in data.decode().strip(";\r\n").split(";"))

    def close(self) -> None:
        self.commands.close()
        self.states.close()


@pytest.fixture
def caller() -> Iterator[Caller]:
    caller = Caller()
    yield caller
    caller.close()


def test_several_drones_answer_and_tell_their_state_each_from_its_own_address(caller) -> None:
    hosts = [f"127.10.0.{i}" for i in (1, 2, 3)]
    drones = [(host, 0, SimTello(battery=90 - i)) for i, host in enumerate(hosts)]
    with TelloSimulator(drones, factor=5.0) as simulator:
        simulator.start()
        port = caller.states.getsockname()[1]
        for endpoint in simulator.endpoints:
            assert caller.ask(endpoint.address, "command") == "ok"
            assert caller.ask(endpoint.address, f"port {port} 11111") == "ok"
        charges = {}
        while len(charges) < 3:
            host, fields = caller.state()
            charges[host] = fields["bat"]
        assert charges == dict(zip(hosts, ["89", "88", "87"], strict=True))
        assert caller.ask(simulator.endpoints[1].address, "takeoff") == "ok"
        assert [drone.flying for _, _, drone in drones] == [False, True, False]
        assert caller.ask(simulator.endpoints[1].address, "sim battery=50") == "ok"


def test_bytes_that_are_no_text_do_not_disturb_it(caller) -> None:
    with TelloSimulator([("127.10.1.1", 0, SimTello())]) as simulator:
        simulator.start()
        address = simulator.endpoints[0].address
        caller.ask(address, "command")
        caller.commands.sendto(b"\xff\xfe\x00", address)
        assert caller.commands.recv(1024).startswith(b"unknown command")
        caller.commands.sendto(b"", address)
        assert caller.commands.recv(1024).startswith(b"unknown command")
        assert caller.ask(address, "battery?") == "99"


def test_an_address_that_is_taken_is_named(caller) -> None:
    host, port = caller.commands.getsockname()
    with pytest.raises(OSError, match=f"{host}:{port}: Address already in use"):
        TelloSimulator([(host, port, SimTello())])


def test_the_command_serves_drones_tells_what_they_do_and_ends_on_ctrl_c(caller) -> None:
    command = [sys.executable, "-m", "timely_llm.cli", "sim-tello", "--count", "2"]
    command += ["--host", "127.10.2.1", "--port", "18889", "--speed-up", "10", "--noise", "0"]
    command += ["--fault", "127.10.2.2/joystick", "--verbose"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout.readline() == "simulated Tellos: 127.10.2.1, 127.10.2.2, port 18889\n"
        first, second = ("127.10.2.1", 18889), ("127.10.2.2", 18889)
        assert [caller.ask(place, "command") for place in (first, second)] == ["ok", "ok"]
        assert [caller.ask(place, "takeoff") for place in (first, second)] == [
            "ok", "error Not joystick",
        ]  # fmt: skip
        told = ""
        while "has landed" not in told:  # after 15 s of its time
            line = process.stdout.readline()
            assert line, told
            told += line
        assert "127.10.2.1" in told and "< takeoff" in told
        assert "* lands: 15 s without a command" in told
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 130
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_bundled_fleet_of_tellos_and_its_script_fit_the_simulated_ones() -> None:
    fleet = load_fleet(share("config", "fleets", "tello_sim.yaml"))
    script = load_script(share("config", "scripts", "tello_sim.yaml"), fleet.ids)
    assert {item.goal.robot_id for item in script.instructions} == set(fleet.ids)
    parameters = [robot.parameters for robot in fleet.robots]
    assert [p["host"] for p in parameters] == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    assert len({p["state_port"] for p in parameters}) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fault", "los"], "fault 'los' is unknown; did you mean 'loss'?"),
        (["--fault", "10.0.0.1/motor"], "no drone at '10.0.0.1' (127.0.0.1)"),
        (["--host", "localhost"], "Expected 4 octets in 'localhost'"),
        (["--count", "0"], "Invalid value for '--count'"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(options: list[str], words: str) -> None:
    from timely_llm.cli.app import app

    result = CliRunner().invoke(app, ["sim-tello", *options], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert words in result.output
