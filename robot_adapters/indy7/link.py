"""One Indy7 controller through the SDK: calls that end in time, each in a thread of a pool.

The SDK blocks, sets no deadline on any of its calls, and lets gRPC wait up to two minutes before it
connects again. Its channels are made again here, with a deadline on whatever goes through them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import grpc
from neuromeka import IndyDCP3, indydcp3

from robot_adapters.indy7.answers import RECOVERABLE
from robot_adapters.indy7.arm import Answer, Request

THREADS = 8  # calls on their way at once
_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.use_local_subchannel_pool", 1),
)
_PARTS = {
    "boot": ("BootStub", "BOOT_SOCKET_PORT"),
    "control": ("ControlStub", "CONTROL_SOCKET_PORT"),
    "device": ("DeviceStub", "DEVICE_SOCKET_PORT"),
    "config": ("ConfigStub", "CONFIG_SOCKET_PORT"),
    "rtde": ("RTDataExchangeStub", "RTDE_SOCKET_PORT"),
    "cri": ("CRIStub", "CRI_SOCKET_PORT"),
    "teleop": ("TeleOpStub", "TELEOP_SOCKET_PORT"),
}


class _Details(NamedTuple):
    """``grpc.ClientCallDetails``, which is no class to be made."""

    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: bool | None
    compression: Any


class Deadline(grpc.UnaryUnaryClientInterceptor):
    """Puts ``timeout`` s on every call that has none."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        timeout = self.timeout if details.timeout is None else details.timeout
        given = _Details(
            details.method, timeout, details.metadata, details.credentials,
            getattr(details, "wait_for_ready", None), getattr(details, "compression", None),
        )  # fmt: skip
        return continuation(given, request)


class IndyLink:
    """The SDK's object with deadlines. ``submit`` and ``answers`` return at once."""

    def __init__(self, host: str, index: int, timeout: float) -> None:
        self.sdk = IndyDCP3(host, index)
        self._where, self._timeout = host, timeout
        for name, (stub, ports) in _PARTS.items():
            getattr(self.sdk, f"{name}_channel").close()
            address = f"{host}:{getattr(indydcp3, ports)[index]}"
            channel = grpc.insecure_channel(address, options=_OPTIONS)
            setattr(self.sdk, f"{name}_channel", channel)
            bounded = grpc.intercept_channel(channel, Deadline(timeout))
            setattr(self.sdk, name, getattr(indydcp3, stub)(bounded))
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"indy7-{i}", daemon=True)
            for i in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, request: Request) -> None:
        """Carry out the request in a thread; what comes of it is among ``answers``."""
        self._requests.put(request)

    def answers(self) -> list[Answer]:
        """What has come since the last time."""
        found = []
        while not self._answers.empty():
            found.append(self._answers.get())
        return found

    def wait(self, timeout: float) -> list[Answer]:
        """``answers``, but the first may take ``timeout`` s; for the end of the node."""
        try:
            return [self._answers.get(timeout=timeout), *self.answers()]
        except queue.Empty:
            return []

    def close(self) -> None:
        """Calls on their way end with an error."""
        for _ in self._threads:
            self._requests.put(None)
        for name in _PARTS:
            getattr(self.sdk, f"{name}_channel").close()

    def _work(self) -> None:
        while (request := self._requests.get()) is not None:
            answer, error = None, ""
            try:
                answer = self._call(request.method, request.arguments)
            except grpc.RpcError as fault:
                error = self._words(fault)
            except Exception as fault:  # nothing may end this thread
                error = f"{type(fault).__name__}: {fault}"
            self._answers.put(Answer(request.number, answer, error))

    def _call(self, method: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if method != "look":
            return getattr(self.sdk, method)(**arguments)
        robot = self.sdk.get_robot_data()
        bad = int(robot.get("op_state", 0)) in RECOVERABLE
        violation = self.sdk.get_violation_data() if bad else {}
        return {"robot": robot, "motion": self.sdk.get_motion_data(), "violation": violation}

    def _words(self, fault: grpc.RpcError) -> str:
        code = fault.code() if isinstance(fault, grpc.Call) else None
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"no answer within {self._timeout:g} s"
        if code is grpc.StatusCode.UNAVAILABLE:
            return f"the controller at {self._where} does not answer"
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return "the controller does not know this call"
        return f"{code.name if code else 'no connection'}: {getattr(fault, 'details', str)() or ''}"
