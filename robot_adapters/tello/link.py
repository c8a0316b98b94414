"""One Tello through djitellopy: commands with answers that are bounded in time, and its state.

Of the SDK, the sockets and the threads are used. Its own calls are not: they block until the drone
answers, send a motion again when it does not, and take a late answer for that of the next command.
Nor are its receivers: they end for good, for all drones of the process, at the first datagram that
is no text.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from djitellopy import Tello
from djitellopy import tello as sdk

from robot_adapters.adapter import AdapterError
from robot_adapters.tello.state import MAX_BYTES, Line, read_state, text_of

PAUSE = 0.1  # s, that the drone wants between an answer and the next command
RC_PAUSE = 0.5  # s, after an rc command; a motion too soon is answered "error Not joystick"
LOOK = 0.01  # s, between two looks for an answer; the SDK tells of none
VIDEO_PORT = 11111
MAX_ANSWERS = 100  # that nobody has listened to; older ones are dropped
_SDK_STATE_PORT = 8890


class NoAnswer(Exception):
    """The drone did not answer in time."""


class GivenUp(Exception):
    """Nobody waits for the answer any more. ``sent``: the command was."""

    def __init__(self, sent: bool = True) -> None:
        super().__init__("given up")
        self.sent = sent


_claimed: tuple[int, int] | None = None  # (local, state) port of this process; the SDK has one


class TelloLink:
    """``AdapterError`` where a port is taken or the host unknown. Only one thread may call ``ask``;
    ``send`` and ``state`` are for any."""

    def __init__(self, host: str, port: int, local_port: int, state_port: int) -> None:
        try:
            self.address = (socket.gethostbyname(host), port)
        except OSError as error:
            raise AdapterError(f"host {host!r}: {error.strerror or error}") from error
        self.state_port = state_port
        self.asking = False
        self._line: Line | None = None
        self.asked_at = 0.0  # s, when the last command that is answered was sent
        self._next_command = 0.0
        self._sending = threading.Lock()
        if self.address[0] in (sdk.drones or {}):
            raise AdapterError(f"host {host!r}: this process has a drone of that address already")
        _claim_ports(local_port, state_port)
        Tello.LOGGER.setLevel(logging.ERROR)
        try:
            self.sdk = Tello(self.address[0], retry_count=1)
        except OSError as error:
            raise AdapterError(f"local_port {local_port}: {error.strerror or error}") from error
        self.sdk.address = self.address

    def send(self, command: str) -> None:
        """Send without waiting for anything; ``OSError`` where there is no network."""
        if command.startswith("rc"):
            self._next_command = max(self._next_command, time.monotonic() + RC_PAUSE)
        with self._sending:
            self.sdk.send_command_without_return(command)

    def ask(self, command: str, timeout: float, abort: threading.Event) -> str:
        """Send once and return the answer. ``NoAnswer`` after ``timeout`` s, ``GivenUp`` as soon
        as ``abort`` is set: an answer may still come then."""
        self.asking = True
        try:
            abort.wait(max(0.0, self._next_command - time.monotonic()))
            self.forget()
            with self._sending:  # after a stop that another thread sends, nothing else is sent
                if abort.is_set():
                    raise GivenUp(sent=False)
                self.asked_at = time.monotonic()
                self.sdk.send_command_without_return(command)
            return self.listen(timeout, abort)
        finally:
            self._next_command = max(self._next_command, time.monotonic() + PAUSE)
            self.asking = False

    def listen(self, timeout: float, abort: threading.Event) -> str:
        """The next answer of whatever command."""
        deadline = time.monotonic() + timeout
        answers = self._answers()
        while not answers:
            if abort.is_set():
                raise GivenUp
            if time.monotonic() >= deadline:
                raise NoAnswer
            abort.wait(LOOK)
        if abort.is_set():  # this may be the answer to the stop
            raise GivenUp
        return answers.pop(0).decode("utf-8", errors="replace").strip()

    def forget(self) -> None:
        """Drop answers that nobody waited for."""
        self._answers().clear()

    @property
    def line(self) -> Line | None:
        """The last state line; None before the first."""
        with contextlib.suppress(KeyError):  # closed
            self._line = self.sdk.get_own_udp_object().get("line", self._line)
        return self._line

    def state(self) -> Mapping[str, Any]:
        """The last state line, by field; empty before the first."""
        return self.line.state if self.line else {}

    def silence(self) -> float | None:
        """s since the last state line; None before the first."""
        return time.monotonic() - self.line.at if self.line else None

    def port_command(self) -> str | None:
        """What tells the drone where to send its state to (SDK 3.0); None: where it does anyway."""
        if self.state_port == _SDK_STATE_PORT:
            return None
        return f"port {self.state_port} {VIDEO_PORT}"

    def close(self) -> None:
        """Let go of the drone; nothing is sent."""
        with contextlib.suppress(KeyError):
            self.sdk.end()
        # When it is garbage-collected, it would end once more, by address: the next drone there.
        self.sdk.end = lambda: None

    def _answers(self) -> list[bytes]:
        try:
            return self.sdk.get_own_udp_object()["responses"]
        except KeyError as error:  # closed
            raise GivenUp from error


def _claim_ports(local_port: int, state_port: int) -> None:
    """The SDK opens its ports with the first drone of a process, the state port in a thread where
    nobody sees a failure: so it is opened here."""
    global _claimed
    if _claimed is not None:
        if _claimed != (local_port, state_port):
            raise AdapterError(
                f"local_port, state_port {local_port}, {state_port}: this process has a drone on "
                f"{_claimed[0]}, {_claimed[1]} already"
            )
        return
    states = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        states.bind(("", state_port))
    except OSError as error:
        states.close()
        raise AdapterError(f"state_port {state_port}: {error.strerror or error}") from error
    Tello.CONTROL_UDP_PORT, Tello.STATE_UDP_PORT = local_port, state_port
    Tello.udp_state_receiver = staticmethod(partial(_receive, lambda: states, _on_state))
    Tello.udp_response_receiver = staticmethod(
        partial(_receive, lambda: sdk.client_socket, _on_answer)
    )
    _claimed = (local_port, state_port)


Take = Callable[[dict[str, Any], str], None]


def _receive(where: Callable[[], socket.socket], take: Take) -> None:
    """Hand every datagram that may be of a drone to ``take``, for ever, in a thread of the SDK."""
    while True:
        try:
            data, (host, _) = where().recvfrom(MAX_BYTES + 1)
        except OSError:  # the network is gone; it may come back
            time.sleep(LOOK)
            continue
        drone = (sdk.drones or {}).get(host)
        if drone is not None and (text := text_of(data)):
            take(drone, text)


def _on_answer(drone: dict[str, Any], text: str) -> None:
    drone["responses"].append(text.encode())
    del drone["responses"][:-MAX_ANSWERS]


def _on_state(drone: dict[str, Any], text: str) -> None:
    if state := read_state(text):
        drone["state"] = state
        drone["line"] = Line(state, time.monotonic())
