"""The UDP edge of the simulated Tello: sockets and a clock around ``simulated_drone.py``.

Every drone has an address of its own, as on a network: commands come to its port, answers go back
to whoever asked, the state goes to the state port of whoever sent ``command``.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from robot_adapters.tello.simulated_drone import SimTello

STATE_PERIOD = 0.1  # s, on the drones' clock
_SHORTEST = 0.005  # s, between two rounds


@dataclass(slots=True)
class Endpoint:
    """One drone on its socket. ``pilot`` is who sent ``command``, ``client`` who spoke last."""

    drone: SimTello
    socket: socket.socket
    client: tuple[str, int] | None = None
    pilot: str = ""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that it listens on."""
        return self.socket.getsockname()


class TelloSimulator:
    """Drones on 127.0.0.x. ``factor`` is how much faster than the clock their time runs.

    ``OSError`` where an address is taken; port 0 is any free one. ``tell`` gets every entry of a
    drone's log with its address. Use it in a ``with``; ``start`` runs it in a thread.
    """

    def __init__(
        self,
        drones: Sequence[tuple[str, int, SimTello]],
        factor: float = 1.0,
        tell: Callable[[str, float, str, str], None] | None = None,
    ) -> None:
        self.factor = factor
        self._tell = tell
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._next_state = 0.0
        self.lock = threading.Lock()  # held while a drone changes
        self.endpoints: list[Endpoint] = []
        self._selector = selectors.DefaultSelector()
        try:
            for host, port, drone in drones:
                self._open(host, port, drone)
        except OSError:
            self.close()
            raise

    def _open(self, host: str, port: int, drone: SimTello) -> None:
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.endpoints.append(Endpoint(drone, udp))
        try:
            udp.bind((host, port))
        except OSError as error:
            raise OSError(f"{host}:{port}: {error.strerror}") from error
        udp.setblocking(False)
        self._selector.register(udp, selectors.EVENT_READ, self.endpoints[-1])

    def __enter__(self) -> TelloSimulator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def now(self) -> float:
        """The drones' clock in s."""
        return (time.monotonic() - self._began) * self.factor

    def start(self) -> None:
        """Run in a thread until ``close``."""
        self._thread = threading.Thread(target=self.run, name="sim-tello", daemon=True)
        self._thread.start()

    def run(self) -> None:
        """Serve the drones until ``close``."""
        while not self._stop.is_set():
            self.turn()

    def turn(self) -> None:
        """Wait for a datagram or the next event, and let it happen."""
        for key, _ in self._selector.select(self._patience()):
            self._hear(key.data)
        with self.lock:
            now = self.now()
            state_due = now >= self._next_state
            if state_due:
                self._next_state = now + STATE_PERIOD
            for endpoint in self.endpoints:
                self._speak(endpoint, now, state_due)

    def _patience(self) -> float:
        with self.lock:
            events = [endpoint.drone.next_event() for endpoint in self.endpoints]
        due = min([self._next_state, *(event for event in events if event is not None)])
        return max(_SHORTEST, (due - self.now()) / self.factor)

    def _hear(self, endpoint: Endpoint) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            data, endpoint.client = endpoint.socket.recvfrom(1024)
            text = data.decode("ascii", errors="replace")
            if text.strip() == "command":
                endpoint.pilot = endpoint.client[0]
            with self.lock:
                endpoint.drone.receive(text, self.now())

    def _speak(self, endpoint: Endpoint, now: float, state_due: bool) -> None:
        drone = endpoint.drone
        for text in drone.answers(now):
            self._send(endpoint, text, endpoint.client)
        state = drone.state_line(now) if state_due and endpoint.pilot else None
        if state is not None:
            self._send(endpoint, state, (endpoint.pilot, drone.state_port))
        if self._tell is not None:
            while drone.log:
                self._tell(endpoint.address[0], *drone.log.popleft())

    @staticmethod
    def _send(endpoint: Endpoint, text: str, to: tuple[str, int] | None) -> None:
        if to is not None:
            with contextlib.suppress(OSError):  # nobody listens there; UDP does not care
                endpoint.socket.sendto(text.encode("ascii", errors="replace"), to)

    def close(self) -> None:
        """Stop serving and free the addresses."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for endpoint in self.endpoints:
            endpoint.socket.close()
        self._selector.close()
