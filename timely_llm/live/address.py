"""Where the web page is served, and under which names it may be asked for. Pure."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"
_PARTS = re.compile(r"(?:\[(?P<six>[^\[\]]*)\]|(?P<host>[^\[\]:]*))(?::(?P<port>[^:]*))?")


class AddressError(ValueError):
    """A text that is no address; it says what is wrong."""


@dataclass(frozen=True, slots=True)
class Address:
    """A host (name or IP address) and a TCP port, 0: one that is free."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """From HOST:PORT, [IPV6]:PORT, :PORT or PORT; without a host it is loopback.
        ``AddressError`` says what is wrong."""
        text = text.strip()
        match = _PARTS.fullmatch(f":{text}" if text.isdecimal() else text)
        port = match["port"] if match else None
        if match is None or port is None or not (port.isascii() and port.isdecimal()):
            raise AddressError(f"{text!r}: must be HOST:PORT, such as {LOOPBACK}:8088")
        if int(port) > 65535:
            raise AddressError(f"{text!r}: port {port} must be at most 65535")
        host = match["six"] or match["host"] or LOOPBACK
        if match["six"] is not None and _ip(host) is None:
            raise AddressError(f"{text!r}: {host!r} is no IPv6 address")
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        ip = _ip(self.host)
        return self.host.lower() == "localhost" if ip is None else ip.is_loopback

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.host

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"


def host_allowed(header: str | None, address: Address, machine: str) -> bool:
    """Whether a request's Host header names us: an IP address, localhost, the ``machine``'s own
    name, or the name that the page was started with.

    A web site may have its own name resolve to our address, and its script would then be of "the
    same origin" as this page (DNS rebinding): such a request carries the site's name. On loopback,
    only loopback addresses will do.
    """
    match = _PARTS.fullmatch(header.strip()) if header else None
    if match is None:
        return False
    name = (match["six"] or match["host"] or "").lower().rstrip(".")
    ip = _ip(name)
    if ip is not None:
        return ip.is_loopback or not address.is_loopback
    if name == "localhost":
        return True
    machine = machine.lower()
    own = {machine, f"{machine.partition('.')[0]}.local", address.host.lower()} - {""}
    return name in own and not address.is_loopback


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
