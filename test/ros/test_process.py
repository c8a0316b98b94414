"""Signals to a node's process: what is one wish to end, and when somebody insists."""

import signal
import subprocess
import sys

SCRIPT = """
from timely_llm.ros import process

times = iter((0.0, 0.0, 2.0, 4.0))

class Clock:
    @staticmethod
    def monotonic():
        now = next(times)
        print(now, flush=True)
        return now

process.time = Clock
stopper = process.Stopper()
stopper.call(lambda: None)
print("ready", flush=True)
input()
"""


def test_a_launcher_that_passes_a_signal_on_late_does_not_insist():
    """On a busy machine it takes more than a second: the node is still ending in good order."""
    command = [sys.executable, "-c", SCRIPT]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as node:

        def tells(*lines: str) -> None:
            assert [node.stdout.readline().strip() for _ in lines] == [*lines]

        tells("ready")
        node.send_signal(signal.SIGINT)
        tells("0.0", "0.0")
        node.send_signal(signal.SIGINT)
        tells("2.0")
        assert node.poll() is None
        node.send_signal(signal.SIGINT)
        tells("4.0")
        assert node.wait() == 1
