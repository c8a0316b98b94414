"""The page's server over real sockets on loopback: what it answers, refuses and drops."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import queue
import socket
from collections.abc import Callable, Iterator

import pytest

from timely_llm.live.address import Address
from timely_llm.live.server import Bounds, Page, Sources, WebServer

LIMIT = 30.0  # s; nothing here takes that long, unless it never comes
PLAN = "5" * 32


class Served:
    """A server of numbers that count up; ``size`` bytes go with each."""

    def __init__(self, size: int = 0, **bounds: float) -> None:
        self.made = 0
        self.words: queue.Queue[str] = queue.Queue()
        self.frozen = self.broken = False

        def picture() -> bytes:
            if self.broken:
                raise ValueError("no picture")
            self.made += not self.frozen
            return json.dumps([self.made, "x" * size]).encode()

        sources = Sources(
            page=Page.of("<style>b{}</style><p>hello</p><script>1</script>"),
            view=picture,
            plan=lambda plan_id: b'{"is":"it"}' if plan_id == PLAN else None,
            metrics=lambda: b"timely_llm_robots 1\n",
        )
        address = Address("127.0.0.1", 0)
        self.server = WebServer(address, sources, self.words.put, Bounds(look=0.01, **bounds))
        self.server.start()

    def connect(self) -> socket.socket:
        address = self.server.address
        return socket.create_connection((address.host, address.port), LIMIT)

    def ask(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        port = self.server.address.port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()

    @contextlib.contextmanager
    def stream(self) -> Iterator[Iterator[bytes]]:
        """The events of a stream, without the lines' ends."""
        with self.connect() as connection, connection.makefile("rb") as reader:
            connection.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert reader.readline().split()[1] == b"200"
            while reader.readline().strip():
                pass
            yield (line.strip() for line in reader if line.strip())


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Start a server that ends with the test."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: int, **bounds: float) -> Served:
            served = Served(*arguments, **bounds)
            stack.callback(served.server.close)
            return served

        yield start


def test_what_there_is(serve) -> None:
    served = serve()
    status, headers, body = served.ask("/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body == served.server.sources.page.body
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers
    assert served.ask("/view.json?x=1")[::2] == (200, b'[1, ""]')
    assert served.ask(f"/plan/{PLAN}")[::2] == (200, b'{"is":"it"}')
    assert served.ask("/metrics")[::2] == (200, b"timely_llm_robots 1\n")


def test_the_page_may_run_its_own_script_and_nothing_else(serve) -> None:
    policy = serve().ask("/")[1]["Content-Security-Policy"].split("; ")
    assert policy[0] == "default-src 'none'"
    assert "frame-ancestors 'none'" in policy
    # echo -n 1 | openssl dgst -sha256 -binary | base64
    assert "script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='" in policy
    assert not any("unsafe" in rule or "http" in rule for rule in policy)


@pytest.mark.parametrize(
    "path",
    ["/index.html", "/plan/", "/plan/zz", f"/plan/{'6' * 32}", "/../etc/passwd", "/events/x"],
)
def test_what_there_is_not(serve, path: str) -> None:
    status, headers, body = serve().ask(path)
    assert (status, body) == (404, b"there is no such page\n")
    assert headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("path", ["/", "/view.json", "/metrics", "/events"])
def test_head_has_no_body(serve, path: str) -> None:
    assert serve().ask(path, "HEAD")[::2] == (200, b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_only_shows(serve, method: str) -> None:
    status, headers, _ = serve().ask("/", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", "/events", "/view.json", "/metrics", f"/plan/{PLAN}"])
def test_a_web_site_that_calls_itself_us_gets_nothing(serve, path: str) -> None:
    status, _, body = serve().ask(path, Host="evil.example:8088")
    assert status == 403
    assert body.startswith(b"open this page by its IP address")


def test_a_request_with_two_hosts_or_none_gets_nothing(serve) -> None:
    served = serve()
    for hosts in (b"", b"Host: localhost\r\nHost: evil.example\r\n"):
        with served.connect() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n" + hosts + b"\r\n")
            assert connection.recv(64).split()[1] == b"403"


def test_everybody_sees_the_same_pictures_as_they_change(serve) -> None:
    served = serve(period=0.01)
    with served.stream() as one, served.stream() as other:
        first, second = (json.loads(next(one).removeprefix(b"data: "))[0] for _ in range(2))
        assert second > first
        shared = {next(one) for _ in range(20)} & {next(other) for _ in range(20)}
        assert shared


def test_no_picture_is_made_while_nobody_looks(serve) -> None:
    served = serve(period=0.001)
    for _ in range(5):  # a round trip each, so that the server had every chance
        served.ask("/metrics")
    assert served.made == 0
    with served.stream() as stream:
        next(stream)
    assert served.made > 0


def test_a_stream_in_which_nothing_changes_says_that_it_is_there(serve) -> None:
    served = serve(period=0.01, quiet=0.02)
    served.frozen = True
    with served.stream() as stream:
        lines = list(itertools.islice(stream, 5))
    assert lines == [b'data: [0, ""]', b"event: quiet", b"data:", b"event: quiet", b"data:"]


def test_a_picture_that_fails_is_said_to_everybody_and_the_stream_goes_on(serve) -> None:
    served = serve(period=0.01, quiet=0.02)
    with served.stream() as stream:
        next(stream)
        served.broken = True
        assert b"event: failed" in stream
        assert served.words.get(timeout=LIMIT) == "the web page failed: ValueError('no picture')"
        assert served.ask("/view.json")[::2] == (500, b"this page has failed\n")
        served.broken = False
        assert any(line.startswith(b"data: [") for line in stream)


def test_who_does_not_read_is_dropped_and_the_others_go_on(serve) -> None:
    served = serve(4_000_000, period=0.01, slow=0.2)
    with served.stream() as slow:
        words = served.words.get(timeout=LIMIT)
        assert words == "the page at 127.0.0.1 reads too slowly: dropped"
        with served.stream() as other:
            assert next(other).startswith(b"data: ")
        with contextlib.suppress(ConnectionError):
            assert sum(1 for _ in slow) < 10  # what was on its way, then the end


def test_a_request_that_does_not_come_is_not_waited_for(serve) -> None:
    served = serve(slow=0.1)
    with served.connect() as connection:
        connection.sendall(b"GET / HT")
        assert connection.recv(64) == b""


def test_a_request_that_comes_a_byte_at_a_time_is_cut_off(serve) -> None:
    served = serve(slow=0.2)
    with served.connect() as connection:
        connection.settimeout(0.02)  # how long the client takes for a byte
        for _ in range(1000):
            try:
                connection.sendall(b"G")
                if connection.recv(64) == b"":
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    raise AssertionError("it was never cut off")


def test_one_connection_too_many_is_told_so_and_there_is_room_again(serve) -> None:
    served = serve(connections=2, period=0.001)
    with served.stream() as one, served.stream() as two:
        next(one), next(two)
        with served.connect() as third:
            assert third.recv(1000).endswith(b"at most 2 connections\n")
    for _ in range(10_000):  # until the server has found out that both have gone
        with contextlib.suppress(ConnectionError):
            if served.ask("/metrics")[0] == 200:
                return
    raise AssertionError("no connection was ever free again")


def test_long_lines_and_nonsense_are_refused(serve) -> None:
    served = serve()
    for request, status in (
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"431"),
        (b"GET / HTTP/1.1\r\n" + (b"a: " + b"b" * 9000 + b"\r\n") * 50, b"431"),
        (b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"501"),
    ):
        with served.connect() as connection:
            connection.sendall(request)
            assert status in connection.recv(1000)
    assert served.ask("/")[0] == 200


def test_closing_ends_the_streams_and_frees_the_port(serve) -> None:
    served = serve(period=0.01)
    with served.stream() as stream:
        next(stream)
        served.server.close()
        with contextlib.suppress(ConnectionError):
            for _ in stream:
                pass
    address = served.server.address
    again = WebServer(address, served.server.sources, served.words.put)
    again.start()
    again.close()


def test_an_address_that_somebody_has_cannot_be_had(serve) -> None:
    served = serve()
    with pytest.raises(OSError, match="in use"):
        WebServer(served.server.address, served.server.sources, served.words.put)


def test_ipv6(serve) -> None:
    served = serve()
    try:
        server = WebServer(Address("::1", 0), served.server.sources, served.words.put)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    server.start()
    connection = http.client.HTTPConnection("::1", server.address.port, timeout=LIMIT)
    with contextlib.closing(server), contextlib.closing(connection):
        connection.request("GET", "/metrics")
        assert connection.getresponse().status == 200
