"""The web page and its server: reads only, in threads of its own, and in bounds.

It knows neither plans nor robots: what it serves comes out of the functions of ``Sources``.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import http.server
import io
import re
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from timely_llm.live.address import Address, host_allowed

_INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)
_PLAN = re.compile(r"/plan/([0-9a-f]{32})")
_SAFE = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_HEAD = 1 << 17  # bytes of a request


@dataclass(frozen=True, slots=True)
class Page:
    """The page's bytes, and its Content-Security-Policy: its own script and style by their hash,
    data from where it came from, nothing else."""

    body: bytes
    policy: str

    @classmethod
    def of(cls, text: str) -> Page:
        hashes: dict[str, list[str]] = {"script": [], "style": []}
        for kind, content in _INLINE.findall(text):
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            hashes[kind].append(f"'sha256-{digest}'")
        rules = ["default-src 'none'", "connect-src 'self'", "img-src data:", "base-uri 'none'"]
        rules += ["form-action 'none'", "frame-ancestors 'none'"]
        rules += [f"{kind}-src {' '.join(found)}" for kind, found in hashes.items() if found]
        return cls(text.encode(), "; ".join(rules))

    @classmethod
    def bundled(cls) -> Page:
        """The page that comes with the package."""
        return cls.of(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Sources:
    """What is served. Called from the server's threads; each returns a whole body."""

    page: Page
    view: Callable[[], bytes]  # JSON on one line
    plan: Callable[[str], bytes | None]  # JSON of one plan by its id; None: unknown
    metrics: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much the server takes upon itself; times in s."""

    connections: int = 32
    period: float = 0.25  # between two pictures of a stream
    quiet: float = 2.0  # a stream with nothing new says that it is there
    slow: float = 5.0  # a request must be read, and a picture taken, within
    look: float = 0.5  # between two looks at who is slow, and at whether to close


class Stream:
    """The newest picture, made once for all who watch, and only while somebody does."""

    def __init__(
        self, render: Callable[[], bytes], log: Callable[[str], object], bounds: Bounds
    ) -> None:
        self._render, self._log, self._bounds = render, log, bounds
        self._changed = threading.Condition()
        self._watchers, self._version, self._picture = 0, 0, b""
        self._closed = threading.Event()

    def run(self) -> None:
        """Make pictures until ``close``."""
        while not self._closed.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._watchers or self._closed.is_set())
            picture = self._made()
            with self._changed:
                if picture != self._picture:
                    self._picture, self._version = picture, self._version + 1
                    self._changed.notify_all()
            self._closed.wait(self._bounds.period)

    def _made(self) -> bytes:
        """A picture as an event; where it fails, that."""
        try:
            return b"data: " + self._render() + b"\n\n"
        except Exception as error:  # the next one may be good: who watches is told meanwhile
            failed = b"event: failed\ndata:\n\n"
            if self._picture != failed:
                self._log(f"the web page failed: {error!r}")
            return failed

    def close(self) -> None:
        self._closed.set()
        with self._changed:
            self._changed.notify_all()

    def _news(self, seen: int) -> bool:
        return self._version != seen or self._closed.is_set()

    def watch(self, send: Callable[[bytes], object]) -> None:
        """Send the newest picture again and again, until ``send`` raises or the stream closes;
        whoever is slow misses pictures."""
        with self._changed:
            self._watchers += 1
            self._changed.notify_all()
        try:
            seen = 0
            while not self._closed.is_set():
                with self._changed:
                    self._changed.wait_for(partial(self._news, seen), self._bounds.quiet)
                    news = self._picture if self._version != seen else b"event: quiet\ndata:\n\n"
                    seen = self._version
                send(news)
        finally:
            with self._changed:
                self._watchers -= 1


class _Head(io.BufferedReader):
    """Of a request, so much and no more."""

    left = _HEAD

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self.left -= len(line)
        if self.left < 0:
            raise http.client.LineTooLong("request")
        return line


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection, one request."""

    server: WebServer
    server_version, sys_version = "timely-llm", ""

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.bounds.slow)
        self.rfile = _Head(self.rfile.detach())

    def do_GET(self) -> None:
        self.server.request_read(self.connection)
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not host_allowed(hosts[0], self.server.address, self.server.machine):
            words = "open this page by its IP address, or as localhost on the same machine\n"
            self._answer(HTTPStatus.FORBIDDEN, words.encode(), _TEXT)
            return
        path, page = self.path.partition("?")[0], self.server.sources.page
        if path == "/":
            policy = {"Content-Security-Policy": page.policy}
            self._answer(HTTPStatus.OK, page.body, "text/html; charset=utf-8", policy)
        elif path == "/events":
            self._stream()
        else:
            self._answer(*self._made(path))

    do_HEAD = do_GET

    def _made(self, path: str) -> tuple[HTTPStatus, bytes, str]:
        """Status, body and type of what is made for each request."""
        sources = self.server.sources
        try:
            if path == "/view.json":
                return HTTPStatus.OK, sources.view(), _JSON
            if path == "/metrics":
                return HTTPStatus.OK, sources.metrics(), "text/plain; version=0.0.4"
            if (match := _PLAN.fullmatch(path)) and (plan := sources.plan(match[1])) is not None:
                return HTTPStatus.OK, plan, _JSON
        except Exception as error:
            self.server.log(f"the web page failed: {error!r}")
            return HTTPStatus.INTERNAL_SERVER_ERROR, b"this page has failed\n", _TEXT
        return HTTPStatus.NOT_FOUND, b"there is no such page\n", _TEXT

    def _refuse(self) -> None:
        self.server.request_read(self.connection)
        words = b"this page only shows: GET and HEAD\n"
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, words, _TEXT, {"Allow": "GET, HEAD"})

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def _head(self, status: HTTPStatus, kind: str, more: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **_SAFE, **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def _answer(
        self, status: HTTPStatus, body: bytes, kind: str, more: dict[str, str] | None = None
    ) -> None:
        self._head(status, kind, {"Content-Length": str(len(body)), **(more or {})})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _stream(self) -> None:
        self._head(HTTPStatus.OK, "text/event-stream", {})
        if self.command == "HEAD":
            return
        # No deeper than a few pictures: who does not read is found out soon.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        try:
            self.server.stream.watch(self.wfile.write)
        except TimeoutError:
            self.server.log(f"the page at {self.client_address[0]} reads too slowly: dropped")

    def log_message(self, format: str, *args: Any) -> None:
        pass


class WebServer(http.server.ThreadingHTTPServer):
    """Serves ``sources`` on ``address`` from ``start`` to ``close``. ``OSError`` where the address
    cannot be had. ``log`` gets what an operator should know; it is called from any thread."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(
        self,
        address: Address,
        sources: Sources,
        log: Callable[[str], object],
        bounds: Bounds | None = None,
    ) -> None:
        self.address, self.sources, self.log = address, sources, log
        self.bounds = bounds or Bounds()
        self.machine = socket.gethostname()
        self.stream = Stream(sources.view, log, self.bounds)
        self._open: dict[socket.socket, float | None] = {}  # when it came, None: request is read
        self._lock = threading.Lock()
        if address.is_ipv6:
            self.address_family = socket.AF_INET6
        super().__init__((address.host, address.port), _Handler)
        self.address = Address(address.host, self.server_address[1])

    def server_bind(self) -> None:
        """As of the class above HTTPServer, which looks our name up, and that may take long."""
        socketserver.TCPServer.server_bind(self)

    def start(self) -> None:
        server = threading.Thread(
            target=self.serve_forever, args=(self.bounds.look,), name="web", daemon=True
        )
        server.start()
        threading.Thread(target=self.stream.run, name="web view", daemon=True).start()

    def close(self) -> None:
        """Close the page and all its connections; from any thread but the server's own."""
        self.stream.close()
        self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._open:
                _cut(connection)

    def request_read(self, connection: socket.socket) -> None:
        """The request has been read in time."""
        with self._lock:
            self._open[connection] = None

    # Connections, in the server's thread.

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            full = len(self._open) >= self.bounds.connections
            if not full:
                self._open[request] = time.monotonic()
        if full:
            request.setblocking(False)
            head = "HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/plain\r\n\r\n"
            with contextlib.suppress(OSError):  # it has gone
                request.send(f"{head}at most {self.bounds.connections} connections\n".encode())
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """At every look: cut whoever sends a request a byte at a time."""
        limit = time.monotonic() - self.bounds.slow
        with self._lock:
            for connection, came in self._open.items():
                if came is not None and came < limit:
                    _cut(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):  # of a connection: its other end has gone
            self.log(f"the web page failed: {error!r}")


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is closed already
        connection.shutdown(socket.SHUT_RDWR)
