"""Nodes in a process: one that is the process (start, spin, stop on a signal, exit status), and one
in a program with its own loop."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn, Self

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.experimental import EventsExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

from timely_llm.ros.guard import GuardedExecutor
from timely_llm.validation.outgoing import visible

_FOREVER = 1e9  # s; without a timeout, EventsExecutor never looks at the future it waits for
_LAST_ROUNDS = 20  # of the executor, for what results and answers still have to be sent
TICK = 0.05  # s, between two looks at what a program waits for
_SAME_SIGNAL = 3.0  # s; launchers wait longer before they send another


def new_instance() -> str:
    """32 hexadecimal digits that no other start has."""
    return secrets.token_hex(16)


def run_node(name: str, make: Callable[..., Any], args: list[str] | None) -> NoReturn:
    """Run the node that ``make`` returns for an executor until a signal or its own end, then end
    the process with its status. A failure to start is one line and status 1.

    The node has ``parameters``; ``done``, a future of the exit status; ``failure``, the exception
    that it could not start for; and ``finish``, which ends it in good order and completes ``done``,
    called in a separate thread.
    """
    stopper = Stopper()
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        executor = GuardedExecutor()
        node = make(executor)
        if node.parameters.get("autostart", False) and not _autostart(node):
            raise node.failure or RuntimeError("the node could not be activated")
    except Exception as error:
        print(f"{name}: {visible(first_line(error))}", file=sys.stderr, flush=True)
        # A model that is half loaded has threads that do not end.
        os._exit(1)
    executor.add_node(node)
    stopper.call(node.finish)
    status = 1
    with contextlib.suppress(ExternalShutdownException):
        executor.spin_to_end(node.done, _FOREVER)
        status = node.done.result()
        for _ in range(_LAST_ROUNDS):
            executor.spin_once(timeout_sec=0.005)
    node.destroy_node()
    rclpy.try_shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # to take a model apart takes seconds, and nothing in it is to be kept


def first_line(error: Exception) -> str:
    """Of the C libraries' errors, the rest is where in their sources they arose."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _autostart(node: Any) -> bool:
    success = TransitionCallbackReturn.SUCCESS
    return node.trigger_configure() == success and node.trigger_activate() == success


class GuestNode:
    """A node in a program with its own loop: callbacks run inside ``spin``, in its caller's
    thread, and signals stay with the program. Use it in a ``with``; one at a time in a process."""

    def __init__(self, name: str, namespace: str) -> None:
        self.namespace = "/" + namespace.strip("/")
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self.node = rclpy.create_node(f"{name}_{os.getpid()}", namespace=self.namespace)
        self._executor = EventsExecutor()
        self._executor.add_node(self.node)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the ROS graph."""
        with contextlib.suppress(Exception):  # at the end nothing of this matters any more
            self._executor.shutdown()
            self.node.destroy_node()
        rclpy.try_shutdown()

    def spin(self, seconds: float = TICK) -> None:
        """Run callbacks for ``seconds``."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._executor.spin_once(left)

    def resolve(self, name: str) -> str:
        """The full name of a topic or service, relative to the node's namespace."""
        return f"{self.namespace.rstrip('/')}/{name}"


class Stopper:
    """Calls a function, in a separate thread, at the first SIGINT or SIGTERM; before there is
    one, and at a later signal, the process ends at once. Signals within 3 s of the first count as
    the same one: a terminal and a launcher both pass Ctrl-C on.

    Python runs signal handlers between two steps of the main thread's own code, and that thread is
    inside the executor: so the byte that the interpreter writes on a signal is waited for instead.
    """

    def __init__(self) -> None:
        self._finish: Callable[[], None] | None = None
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        threading.Thread(target=self._wait, name="signals", daemon=True).start()

    def call(self, finish: Callable[[], None]) -> None:
        """From now on, call ``finish`` at the first signal."""
        self._finish = finish

    def _wait(self) -> None:
        self._reader.recv(1)
        if self._finish is None:
            os._exit(0)
        threading.Thread(target=self._finish, name="finish", daemon=True).start()
        first = time.monotonic()
        while time.monotonic() - first < _SAME_SIGNAL:
            self._reader.recv(1)
        os._exit(1)
