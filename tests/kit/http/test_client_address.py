"""The client IP address: every spelling of an address, and every header that claims another."""

from collections.abc import Iterable
from ipaddress import ip_network

import pytest

from soundmark.core.access.operator import is_loopback
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.client_address import AddressDigest, AddressReader

PROXIES = [ip_network(network) for network in ("127.0.0.0/8", "10.0.0.0/8", "2001:db8:ffff::/48")]


def forwarded(*values: str, name: bytes = b"x-forwarded-for") -> list[tuple[bytes, bytes]]:
    return [(name, value.encode("latin-1")) for value in values]


def subject(peer: str | None, headers: Iterable[tuple[bytes, bytes]] = (), *, is_behind_proxies: bool = True) -> str:
    return AddressReader(PROXIES if is_behind_proxies else ()).subject(peer, headers)


@pytest.mark.parametrize("is_behind_proxies", [True, False])
@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("::FFFF:CB00:7109", "203.0.113.9"),
        ("0:0:0:0:0:ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::", "2001:db8:1:3::/64"),
        ("::1", "::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        ("", ""),
        (None, "unknown"),
    ],
)
def test_every_spelling_of_an_address_is_the_same_address(
    peer: str | None, expected: str, *, is_behind_proxies: bool
) -> None:
    assert subject(peer, is_behind_proxies=is_behind_proxies) == expected


@pytest.mark.parametrize(
    "headers",
    [
        forwarded("198.51.100.1"),
        forwarded("127.0.0.1"),
        forwarded("198.51.100.1", "198.51.100.2"),
        forwarded("for=198.51.100.1", name=b"forwarded"),
        forwarded("198.51.100.1", name=b"x-real-ip"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("is_behind_proxies", [True, False])
def test_a_header_counts_only_from_a_trusted_proxy(
    headers: list[tuple[bytes, bytes]], *, is_behind_proxies: bool
) -> None:
    assert subject("203.0.113.9", headers, is_behind_proxies=is_behind_proxies) == "203.0.113.9"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (forwarded("203.0.113.9"), "203.0.113.9"),
        (forwarded("198.51.100.1, 203.0.113.9"), "203.0.113.9"),
        (forwarded("198.51.100.1,203.0.113.9,10.0.0.2"), "203.0.113.9"),
        (forwarded("198.51.100.1", "203.0.113.9", "10.0.0.2"), "203.0.113.9"),
        (forwarded(" 203.0.113.9 \t"), "203.0.113.9"),
        (forwarded("::ffff:203.0.113.9"), "203.0.113.9"),
        (forwarded("203.0.113.9, ::ffff:10.0.0.2"), "203.0.113.9"),
        (forwarded("2001:db8:1:2::9, 2001:db8:ffff::1"), "2001:db8:1:2::/64"),
        # All of them are ours: the farthest one counts.
        (forwarded("10.0.0.3, 10.0.0.2"), "10.0.0.3"),
        # Everything left of a malformed address was written by somebody unknown.
        (forwarded("203.0.113.9, nonsense"), "10.0.0.1"),
        (forwarded("203.0.113.9, nonsense, 10.0.0.2"), "10.0.0.2"),
        (forwarded("203.0.113.9:4711"), "10.0.0.1"),
        (forwarded("[2001:db8::1]"), "10.0.0.1"),
        (forwarded("0x7f.0.0.1"), "10.0.0.1"),
        (forwarded("010.0.0.2"), "10.0.0.1"),
        (forwarded("127.1"), "10.0.0.1"),
        (forwarded(""), "10.0.0.1"),
        (forwarded(","), "10.0.0.1"),
        (forwarded("\xff"), "10.0.0.1"),
        (forwarded("for=203.0.113.9", name=b"forwarded"), "10.0.0.1"),
        ([], "10.0.0.1"),
    ],
    ids=repr,
)
def test_behind_trusted_proxies_the_nearest_stranger_counts(headers: list[tuple[bytes, bytes]], expected: str) -> None:
    assert subject("10.0.0.1", headers) == expected


@pytest.mark.parametrize("peer", ["10.0.0.1", "::ffff:10.0.0.1", "127.9.9.9", "2001:db8:ffff:1::2"])
def test_a_trusted_proxy_is_recognised_in_every_spelling(peer: str) -> None:
    assert AddressReader(PROXIES).is_trusted(peer)
    assert not AddressReader(()).is_trusted(peer)


@pytest.mark.parametrize("peer", ["11.0.0.1", "::ffff:11.0.0.1", "2001:db8:fffe::1", "10.1", "", "localhost", "::1"])
def test_no_other_peer_is_a_trusted_proxy(peer: str) -> None:
    assert not AddressReader(PROXIES).is_trusted(peer)


@pytest.mark.parametrize(
    "peer",
    [
        *("::ffff:128.0.0.1", "128.0.0.1", "0.0.0.0", "::", "127.0.0.1.example", "127.0.0.1%lo", "2130706433"),  # noqa: S104 - no address to bind to
        *("0177.0.0.1", "127.0.0", "::ffff:7f00:1:0", "::127.0.0.1", "64:ff9b::127.0.0.1", "localhost"),
    ],
)
def test_an_address_that_resembles_this_machine_is_another(peer: str) -> None:
    assert not is_loopback(peer)


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1", "::ffff:7f00:1"])
def test_this_machine_is_recognised_in_every_spelling(peer: str) -> None:
    assert is_loopback(peer)


def test_a_digest_hides_the_address_and_changes_each_hour() -> None:
    digest = AddressDigest(SystemEntropy())
    first = digest.of("203.0.113.9", 7200.0)

    assert first == digest.of("203.0.113.9", 10799.9)
    assert len({first, digest.of("203.0.113.8", 7200.0), digest.of("203.0.113.9", 10800.0)}) == 3
    assert b"203" not in first
