"""The robot node of an Indy7 arm, in the environment of its SDK, over real DDS.

The planner is played (``test/support/fake_planner.py``), the controller simulated.
"""

from __future__ import annotations

import os

import pytest

pytest.importorskip("neuromeka", reason="neuromeka is not installed: make test-indy")
pytest.importorskip("timely_llm.msg", reason="the interfaces are not built")

from fake_planner import FAST, FakePlanner  # noqa: E402
from nodes import Process  # noqa: E402

from robot_adapters.indy7.cell import load_cell  # noqa: E402
from robot_adapters.indy7.grpc_simulator import IndySimulator  # noqa: E402
from robot_adapters.indy7.simulated_controller import SimIndy  # noqa: E402
from timely_llm.cli.local_fleet import claim_domain  # noqa: E402
from timely_llm.paths import share  # noqa: E402
from timely_llm.protocols.messages import ExecutionState as State  # noqa: E402

HOST = f"127.10.{os.getpid() % 250}.1"
PLAN, OTHER = "1" * 32, "2" * 32
NODE = {"kind": "indy7", "adapter": "indy7", "host": HOST, "cell": "indy_sim", "speed": 100.0,
        "call_timeout": 5.0, "link_timeout": 10.0, "planner_timeout": 10.0}  # fmt: skip


@pytest.fixture
def domain(monkeypatch):
    number, claim = claim_domain({})
    monkeypatch.setenv("ROS_DOMAIN_ID", str(number))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    yield number
    claim.close()


@pytest.fixture
def arm():
    sim = SimIndy(load_cell(share("config", "cells", "indy_sim.yaml")))
    with IndySimulator([(HOST, sim)], 4.0) as simulator:
        yield sim, simulator


def test_it_registers_carries_out_a_plan_recovers_and_ends(domain, arm, tmp_path):
    sim, simulator = arm
    node = Process("robot", tmp_path / "robot.log", **(FAST | NODE))
    planner = FakePlanner()
    try:
        planner.registered()
        assert planner.requests[0].kind == "indy7"
        service, idle = (
            "/r1/robot_adapter/recover",
            "nothing to recover from: the controller is idle",
        )
        planner.until(lambda: planner.trigger(service).message == idle, "the controller")
        assert not planner.trigger(service).success
        planner.send(PLAN, 0, "?sc('red box')==True{pi('red box')")
        planner.send(PLAN, 1, ";gt('blue box');dr();}", last=True)
        planner.report(State.PLAN_RETURNED)
        assert planner.calls(State.SUCCEEDED) == [
            *("sc(red box)", "pi(red box)", "gt(blue box)", "dr()"),
        ]
        assert sim.cell.find("red box").position == pytest.approx((550, 150, 60), abs=0.1)
        sim.ask("collision", simulator.now())
        planner.send(OTHER, 0, "gt('lemon')", last=True)
        words = "gt: the controller is in collision: collision detected at joint 2"
        assert planner.report(State.FAILED).error == words
        assert planner.trigger(service).success
        assert planner.trigger("/r1/robot_adapter/stop").success
        assert node.interrupt() == 0, node.output()
    finally:
        node.end()
        planner.die()


def test_without_a_cell_it_ends_with_one_line(domain, tmp_path):
    node = Process("robot", tmp_path / "robot.log", **(FAST | NODE | {"cell": "moon"}))
    try:
        assert node.wait() == 1
        line = "robot_adapter: parameter 'cell': there is no file 'moon' (bundled: indy_sim)\n"
        assert node.output() == line
    finally:
        node.end()
