"""Where the page is served, and which Host headers it answers to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely_llm.live.address import Address, AddressError, host_allowed


@pytest.mark.parametrize(
    ("text", "host", "port", "written"),
    [
        ("8088", "127.0.0.1", 8088, "127.0.0.1:8088"),
        (":0", "127.0.0.1", 0, "127.0.0.1:0"),
        (" 0.0.0.0:80 ", "0.0.0.0", 80, "0.0.0.0:80"),
        ("[::1]:8088", "::1", 8088, "[::1]:8088"),
        ("robots.lab:1", "robots.lab", 1, "robots.lab:1"),
    ],
)
def test_addresses(text: str, host: str, port: int, written: str) -> None:
    address = Address.parse(text)
    assert (address, str(address)) == (Address(host, port), written)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be HOST:PORT"),
        ("localhost", "must be HOST:PORT"),
        ("localhost:", "must be HOST:PORT"),
        ("localhost:web", "must be HOST:PORT"),
        ("localhost:-1", "must be HOST:PORT"),
        ("::1:8088", "must be HOST:PORT"),
        ("1:2:3", "must be HOST:PORT"),
        ("[::1", "must be HOST:PORT"),
        ("[nobody]:1", "'nobody' is no IPv6 address"),
        ("127.0.0.1:65536", "port 65536 must be at most 65535"),
        ("²", "must be HOST:PORT"),
    ],
)
def test_what_is_no_address_is_said_to_be_none(text: str, words: str) -> None:
    with pytest.raises(AddressError, match=words):
        Address.parse(text)


@given(st.text(max_size=12))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        address = Address.parse(text)
    except AddressError:
        return
    assert address.host and 0 <= address.port <= 65535


LOOPBACK, EVERYWHERE = Address("127.0.0.1", 8088), Address("0.0.0.0", 8088)
HERE = Address("robots.lab", 8088)


@pytest.mark.parametrize(
    ("header", "address", "allowed"),
    [
        ("127.0.0.1:8088", LOOPBACK, True),
        ("localhost:8088", LOOPBACK, True),
        ("LOCALHOST", LOOPBACK, True),
        ("[::1]:8088", LOOPBACK, True),
        ("127.0.0.2", LOOPBACK, True),
        ("evil.example:8088", LOOPBACK, False),
        ("localhost.evil.example", LOOPBACK, False),
        ("127.0.0.1.evil.example", LOOPBACK, False),
        ("box", LOOPBACK, False),
        ("192.168.0.7:8088", LOOPBACK, False),
        (None, LOOPBACK, False),
        ("", LOOPBACK, False),
        ("[::1", LOOPBACK, False),
        ("192.168.0.7:8088", EVERYWHERE, True),
        ("[fe80::1]:8088", EVERYWHERE, True),
        ("localhost", EVERYWHERE, True),
        ("box:8088", EVERYWHERE, True),
        ("box.local", EVERYWHERE, True),
        ("evil.example", EVERYWHERE, False),
        ("robots.lab:8088", HERE, True),
        ("robots.lab.", HERE, True),
        ("robots.evil", HERE, False),
    ],
)
def test_only_our_own_names_are_answered(header: str | None, address: Address, allowed) -> None:
    assert host_allowed(header, address, "box") is allowed


def test_a_full_machine_name_has_its_short_one_in_the_local_network() -> None:
    assert host_allowed("box.local", EVERYWHERE, "box.lab.example")
    assert host_allowed("box.lab.example", EVERYWHERE, "box.lab.example")
    assert not host_allowed("box.evil.example", EVERYWHERE, "box.lab.example")
    assert not host_allowed("", EVERYWHERE, "")


def test_loopback() -> None:
    hosts = ("127.0.0.1", "127.8.0.1", "::1", "localhost", "0.0.0.0", "192.168.0.7", "robots.lab")
    assert [Address(host, 1).is_loopback for host in hosts] == [True] * 4 + [False] * 3
