"""Runs of ``timely-llm`` as people start it, and whatever they leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
from nodes import LIMIT, ROOT

PLANS = Path(__file__).parents[2] / "test" / "data" / "plans.yaml"
MARK = "TIMELY_LLM_TEST_MARK"


class Command:
    """One run of ``timely-llm``; ``mark`` is in the environment of all that it starts."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.mark = uuid.uuid4().hex
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "timely_llm.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, MARK: self.mark, **environment},
        )

    def read_until(self, words: str) -> str:
        """Read its lines up to the one with ``words``; fail where that never comes."""
        for line in self._process.stdout:
            if "RTPS_" in line:  # what DDS says of itself on a busy machine
                continue
            self.lines.append(line)
            if words in line:
                return line
        raise AssertionError(f"{words!r} never came:\n{self.output()}")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> int:
        """Read the rest and return the exit status."""
        self.lines += (line for line in self._process.stdout if "RTPS_" not in line)
        return self._process.wait(LIMIT)

    def output(self) -> str:
        return "".join(self.lines)

    def left_behind(self) -> list[str]:
        """The processes that it started and that are still there, itself included."""
        return [f"{process.pid} {process.cmdline()}" for process in _marked(self.mark)]

    def clean(self) -> None:
        for process in _marked(self.mark):
            process.kill()
        self._process.stdout.close()
        self._process.wait(LIMIT)


def _marked(mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def gone(command: Command) -> bool:
    """Whether all that ``command`` started ends by itself, without any more being done."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        processes = list(_marked(command.mark))
        if not processes:
            return True
        psutil.wait_procs(processes, timeout=1.0)
    return False
