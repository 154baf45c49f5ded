"""The client IP address: every spelling of an address, and every header that claims another."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from soundmark.core.access.operator import is_loopback
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.requests.client_address import AddressDigest, AddressReader

PROXIES = [ip_network(network) for network in ("127.0.0.0/8", "10.0.0.0/8", "2001:db8:ffff::/48")]


def forwarded(*values: str, name: bytes = b"x-forwarded-for") -> list[tuple[bytes, bytes]]:
    return [(name, value.encode("latin-1")) for value in values]


def standard(*values: str) -> list[tuple[bytes, bytes]]:
    return forwarded(*values, name=b"forwarded")


def subject(peer: str | None, headers: Iterable[tuple[bytes, bytes]] = (), *, is_behind_proxies: bool = True) -> str:
    return AddressReader(PROXIES if is_behind_proxies else ()).subject(peer, headers)


def test_every_spelling_of_an_address_is_the_same_address(subtests: pytest.Subtests) -> None:
    for is_behind_proxies in [True, False]:
        for peer, expected in [
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
        ]:
            with subtests.test(is_behind_proxies=is_behind_proxies, peer=peer, expected=expected):
                assert subject(peer, is_behind_proxies=is_behind_proxies) == expected


def test_a_header_counts_only_from_a_trusted_proxy(subtests: pytest.Subtests) -> None:
    for headers in [
        forwarded("198.51.100.1"),
        forwarded("127.0.0.1"),
        forwarded("198.51.100.1", "198.51.100.2"),
        standard("for=198.51.100.1"),
        forwarded("198.51.100.1", name=b"x-real-ip"),
    ]:
        for is_behind_proxies in [True, False]:
            with subtests.test(headers=headers, is_behind_proxies=is_behind_proxies):
                assert subject("203.0.113.9", headers, is_behind_proxies=is_behind_proxies) == "203.0.113.9"


def test_behind_trusted_proxies_the_nearest_stranger_counts(subtests: pytest.Subtests) -> None:
    for headers, expected in [
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
        (forwarded("0x7f.0.0.1"), "10.0.0.1"),
        (forwarded("010.0.0.2"), "10.0.0.1"),
        (forwarded("127.1"), "10.0.0.1"),
        (forwarded(""), "10.0.0.1"),
        (forwarded(","), "10.0.0.1"),
        (forwarded("\xff"), "10.0.0.1"),
        ([], "10.0.0.1"),
        # IIS, Azure and nginx's `$remote_addr:$remote_port` add the port; others brackets, or quotes.
        (forwarded("203.0.113.9:4711"), "203.0.113.9"),
        (forwarded("198.51.100.1, 203.0.113.9:4711, 10.0.0.2:80"), "203.0.113.9"),
        (forwarded("[2001:db8:1::1]:443"), "2001:db8:1::/64"),
        (forwarded("[2001:db8:2::1]"), "2001:db8:2::/64"),
        (forwarded('"[2001:db8:2::1]:443"'), "2001:db8:2::/64"),
        (forwarded("[::ffff:203.0.113.9]:1"), "203.0.113.9"),
        (forwarded("203.0.113.9:"), "10.0.0.1"),
        (forwarded("203.0.113.9:123456"), "10.0.0.1"),
        (forwarded("[203.0.113.9]:80"), "203.0.113.9"),
        (forwarded("[2001:db8:2::1"), "10.0.0.1"),
        (forwarded('"203.0.113.9'), "10.0.0.1"),
        (forwarded("unknown"), "10.0.0.1"),
        # More proxies than any chain has.
        (forwarded("203.0.113.9, " + ", ".join(["10.0.0.3"] * 31)), "203.0.113.9"),
        (forwarded("203.0.113.9, " + ", ".join(["10.0.0.3"] * 32)), "10.0.0.3"),
        (standard("for=203.0.113.9"), "203.0.113.9"),
        (standard('for=198.51.100.1, FOR="203.0.113.9:4711";proto=https;by=_us'), "203.0.113.9"),
        (standard('for="[2001:db8:1::1]:_hidden"'), "2001:db8:1::/64"),
        (standard("for=203.0.113.9:4711"), "203.0.113.9"),
        (standard("for=198.51.100.1", "proto=http;for=203.0.113.9 ; by=10.0.0.2", "for=10.0.0.2"), "203.0.113.9"),
        (standard("for=203.0.113.9;"), "203.0.113.9"),
        (standard("for=10.0.0.3, for=10.0.0.2"), "10.0.0.3"),
        (standard("for=203.0.113.9, for=unknown"), "10.0.0.1"),
        (standard("for=203.0.113.9, for=_secret, for=10.0.0.2"), "10.0.0.2"),
        (standard("proto=https"), "10.0.0.1"),
        (standard("for=203.0.113.9;for=203.0.113.9"), "10.0.0.1"),
        # Empty elements are none.
        (forwarded("203.0.113.9,"), "203.0.113.9"),
        (forwarded(", 203.0.113.9:80, ,,\t10.0.0.2, "), "203.0.113.9"),
        ([*forwarded("203.0.113.9"), *forwarded("")], "203.0.113.9"),
        (forwarded("203.0.113.9, , unknown, "), "10.0.0.1"),
        (forwarded(",203.0.113.9, " + ",, ".join(["10.0.0.3"] * 31)), "203.0.113.9"),
        (standard("for=203.0.113.9,"), "203.0.113.9"),
        (standard(" , for=203.0.113.9;proto=https, ;, for=10.0.0.2,"), "203.0.113.9"),
        (standard(",;,"), "10.0.0.1"),
        (standard("for = 203.0.113.9"), "10.0.0.1"),
        (standard("203.0.113.9"), "10.0.0.1"),
        (standard(""), "10.0.0.1"),
        # A quote that a client opened hides what the proxy added.
        (standard('for="x', "for=203.0.113.9"), "10.0.0.1"),
        (standard('for="x', 'for="[2001:db8:1::1]"'), "10.0.0.1"),
        (standard('by="a, for=198.51.100.1";for=203.0.113.9'), "203.0.113.9"),
        (standard(",".join(["for=10.0.0.3"] * 33)), "10.0.0.1"),
        (standard("for=203.0.113.9;by=" + "x" * 4096), "10.0.0.1"),
        # Where both stand they have to agree: a proxy writes one, and passes on what a client wrote into the other.
        ([*forwarded("203.0.113.9, 10.0.0.2"), *standard("for=203.0.113.9")], "203.0.113.9"),
        ([*forwarded("203.0.113.9"), *standard("for=198.51.100.1")], "10.0.0.1"),
        ([*forwarded("203.0.113.9"), *standard("for=unknown")], "10.0.0.1"),
        ([*forwarded("nonsense"), *standard("for=203.0.113.9")], "10.0.0.1"),
    ]:
        with subtests.test(headers=headers, expected=expected):
            assert subject("10.0.0.1", headers) == expected


PORTS = st.none() | st.integers(0, 65535)


@given(v4=st.ip_addresses(v=4), port=PORTS, is_quoted=st.booleans(), is_standard=st.booleans())
def test_an_ipv4_address_is_read_in_every_form(
    v4: IPv4Address, port: int | None, *, is_quoted: bool, is_standard: bool
) -> None:
    assert subject("10.0.0.1", write_hop(str(v4), port, is_quoted=is_quoted, is_standard=is_standard)) == str(v4)


@given(v6=st.ip_addresses(v=6), port=PORTS, is_quoted=st.booleans(), is_standard=st.booleans())
def test_an_ipv6_address_is_read_in_every_form(
    v6: IPv6Address, port: int | None, *, is_quoted: bool, is_standard: bool
) -> None:
    headers = write_hop(f"[{v6}]", port, is_quoted=is_quoted, is_standard=is_standard)
    assert subject("10.0.0.1", headers) == subject(str(v6))


def write_hop(node: str, port: int | None, *, is_quoted: bool, is_standard: bool) -> list[tuple[bytes, bytes]]:
    text = node if port is None else f"{node}:{port}"
    text = f'"{text}"' if is_quoted else text
    return standard(f"for={text}") if is_standard else forwarded(text)


@given(sent=st.text(st.characters(max_codepoint=255), max_size=60), is_standard=st.booleans())
@example(sent='for="', is_standard=True)
def test_what_a_client_writes_never_decides_who_it_is(sent: str, *, is_standard: bool) -> None:
    """At worst the proxy's addition cannot be read any longer, and the request counts as the proxy's."""
    write, added = (standard, "for=203.0.113.9") if is_standard else (forwarded, "203.0.113.9")

    assert subject("10.0.0.1", write(sent, added)) in {"203.0.113.9", "10.0.0.1"}
    assert subject("10.0.0.1", write(f"{sent}, {added}")) in {"203.0.113.9", "10.0.0.1"}


def test_a_proxy_that_sends_nothing_readable_is_logged_once_and_counted_always() -> None:
    """Otherwise all its clients silently become one."""
    reader = AddressReader(PROXIES)
    before = count_unreadable()
    with capture_logs() as logged:
        for _ in range(3):
            reader.subject("10.0.0.1", forwarded("unix:"))
        reader.subject("10.0.0.9", [*forwarded("203.0.113.9"), *standard("for=198.51.100.1")])
        reader.subject("10.0.0.1", forwarded("203.0.113.9, nonsense, 10.0.0.2"))
        reader.subject("10.0.0.1", [])  # A health check of the proxy's own.
        reader.subject("203.0.113.9", forwarded("nonsense"))

    assert count_unreadable() - before == 5
    assert [(line["event"], line["proxy"]) for line in logged] == [
        ("forwarded_unreadable", proxy) for proxy in ("10.0.0.1", "10.0.0.9", "10.0.0.2")
    ]


def test_the_lines_about_proxies_are_bounded() -> None:
    """A network of proxies may be as large as a cloud."""
    reader = AddressReader(PROXIES)
    with capture_logs() as logged:
        for number in range(100):
            reader.subject(f"10.0.0.{number}", forwarded("unix:"))

    assert len(logged) == 64


def count_unreadable() -> float:
    return REGISTRY.get_sample_value("soundmark_forwarded_unreadable_total") or 0.0


def test_a_trusted_proxy_is_recognised_in_every_spelling(subtests: pytest.Subtests) -> None:
    for peer in ["10.0.0.1", "::ffff:10.0.0.1", "127.9.9.9", "2001:db8:ffff:1::2"]:
        with subtests.test(peer=peer):
            assert AddressReader(PROXIES).is_trusted(peer)
            assert not AddressReader(()).is_trusted(peer)


def test_no_other_peer_is_a_trusted_proxy(subtests: pytest.Subtests) -> None:
    for peer in ["11.0.0.1", "::ffff:11.0.0.1", "2001:db8:fffe::1", "10.1", "", "localhost", "::1"]:
        with subtests.test(peer=peer):
            assert not AddressReader(PROXIES).is_trusted(peer)


def test_an_address_that_resembles_this_machine_is_another(subtests: pytest.Subtests) -> None:
    for peer in [
        *("::ffff:128.0.0.1", "128.0.0.1", "0.0.0.0", "::", "127.0.0.1.example", "127.0.0.1%lo", "2130706433"),  # noqa: S104 - no address to bind to
        *("0177.0.0.1", "127.0.0", "::ffff:7f00:1:0", "::127.0.0.1", "64:ff9b::127.0.0.1", "localhost"),
    ]:
        with subtests.test(peer=peer):
            assert not is_loopback(peer)


def test_this_machine_is_recognised_in_every_spelling(subtests: pytest.Subtests) -> None:
    for peer in ["127.0.0.1", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1", "::ffff:7f00:1"]:
        with subtests.test(peer=peer):
            assert is_loopback(peer)


def test_a_digest_hides_the_address_and_changes_each_hour() -> None:
    digest = AddressDigest(SystemEntropy())
    first = digest.of("203.0.113.9", 7200.0)

    assert first == digest.of("203.0.113.9", 10799.9)
    assert len({first, digest.of("203.0.113.8", 7200.0), digest.of("203.0.113.9", 10800.0)}) == 3
    assert b"203" not in first
