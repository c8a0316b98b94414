"""Child processes that end with their parent, whatever happens to it. Linux, one level deep.

Each child leads a new session, so that a terminal's Ctrl-C reaches only the parent, which then ends
its children in order; and each has the kernel send it a signal when the parent dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

_PR_SET_PDEATHSIG = 1
_PATHS = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH")
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class Interrupted(Exception):
    """Ctrl-C, or a request to terminate."""


class Interrupt:
    """Ctrl-C that first asks and then kills.

    The first SIGINT, SIGTERM or SIGHUP sets ``requested``, which ``check`` turns into
    ``Interrupted`` where the program can be left; the second one kills ``children`` and ends this
    process at once.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, children: ProcessGroup | None = None) -> None:
        self.requested = False
        self.children = children
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        for number in self.SIGNALS:
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise ``Interrupted`` if a signal came."""
        if self.requested:
            raise Interrupted

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            if self.children is not None:
                self.children.kill()
            os._exit(EXIT_INTERRUPTED)
        self.requested = True


@dataclass(frozen=True, slots=True)
class Child:
    """A running process; ``log`` is the file of what it writes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def ended(self) -> bool:
        """Whether it is no longer running."""
        return self.process.poll() is not None

    def tail(self, lines: int = 12) -> str:
        """The last lines that it wrote."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.rstrip().splitlines()[-lines:])

    def signal(self, number: int) -> None:
        """Send a signal to the child and all that it started."""
        if not self.ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)


class ProcessGroup:
    """Children that are started one by one and ended together; use it in a ``with``.

    Their output goes to files in ``folder``, one for each.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.environment = dict(os.environ if environment is None else environment)
        self.children: list[Child] = []

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(
        self, name: str, entry: str, arguments: Sequence[str] = (), python: str = ""
    ) -> Child:
        """Run the function ``entry`` (``module:function``) in a new process, with ``arguments`` as
        its command line. ``name`` names its log; ``python`` is the interpreter of another
        environment, if it needs one. Call it from the main thread: when the thread that started a
        child ends, the kernel takes that for the end of its parent."""
        log = self.folder / f"{name}.log"
        runner = python or sys.executable
        command = [runner, "-m", "timely_llm.system.processes", str(os.getpid()), entry]
        environment = environment_of(python, self.environment) if python else self.environment
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        child = Child(name, process, log)
        self.children.append(child)
        return child

    def ended(self) -> Child | None:
        """The first child that has ended, if any."""
        return next((child for child in self.children if child.ended), None)

    def stop(self, grace: float = 4.0) -> None:
        """Interrupt all children, kill those that still run after ``grace`` s, and forget them."""
        for child in self.children:
            child.signal(signal.SIGINT)
        deadline = time.monotonic() + grace
        for child in self.children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(max(0.0, deadline - time.monotonic()))
        self.kill()
        for child in self.children:
            child.process.wait()
        self.children.clear()

    def kill(self) -> None:
        """Kill all children at once."""
        for child in self.children:
            child.signal(signal.SIGKILL)


def environment_of(python: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for an interpreter of another virtual environment: paths into this
    environment are left out, paths into that one are added."""
    ours, theirs = sys.prefix, os.path.dirname(os.path.dirname(os.path.abspath(python)))
    added = {"PATH": [os.path.join(theirs, "bin")], "AMENT_PREFIX_PATH": [theirs]}
    # The first is set by the start-up file of ROS as wheels, once its libraries are in the path.
    left_out = ("_ROS_WHEELS_BOOTSTRAP_COMPLETE", "VIRTUAL_ENV", *_PATHS)
    changed = {name: value for name, value in environment.items() if name not in left_out}
    for name in _PATHS:
        parts = [part for part in environment.get(name, "").split(os.pathsep) if part]
        if sys.prefix != sys.base_prefix:
            parts = [p for p in parts if p != ours and not p.startswith(ours + os.sep)]
        if parts := added.get(name, []) + parts:
            changed[name] = os.pathsep.join(parts)
    return changed


def die_with_parent(parent: int, number: int = signal.SIGTERM) -> None:
    """Have the kernel send ``number`` to this process when its parent, ``parent``, ends. Ends at
    once where that has happened already; does nothing where there is no such call."""
    if not sys.platform.startswith("linux"):
        return
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit(0)


def child_main(arguments: Sequence[str]) -> int | None:
    """What a child runs: ``PARENT_PID MODULE:FUNCTION ARGUMENTS…``."""
    parent, entry, *rest = arguments
    die_with_parent(int(parent))
    module, _, function = entry.partition(":")
    sys.argv = [module, *rest]
    return getattr(importlib.import_module(module), function)()


if __name__ == "__main__":
    sys.exit(child_main(sys.argv[1:]))
