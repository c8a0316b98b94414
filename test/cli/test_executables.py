"""The nodes' executables, before their nodes are there."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

SWALLOWS = """
print("importing", flush=True)
try:
    input()
except KeyboardInterrupt:
    pass

def main():
    print("lost")
"""


@pytest.mark.parametrize(
    ("script", "module"),
    [("planner_node", "timely_llm/ros/planner_node"), ("robot_adapter", "robot_adapters/node")],
)
def test_an_interrupt_is_not_lost_in_an_import(script, module, tmp_path):
    """Libraries are imported for seconds, and one of them may catch what is not its own."""
    stand_in = tmp_path / f"{module}.py"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text(SWALLOWS)
    command = [sys.executable, "-S", str(SCRIPTS / f"{script}.in")]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as node:
        assert node.stdout.readline() == "importing\n"
        node.send_signal(signal.SIGINT)
        assert node.wait() == -signal.SIGINT
        assert node.stdout.read() == ""
