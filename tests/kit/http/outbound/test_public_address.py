"""Which IP addresses may be connected to."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given, strategies

from soundmark.kit.http.outbound.public_address import is_public

REFUSED = [
    *("0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254", "169.254.169.254"),
    *("172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.255.255", "198.18.0.1"),
    *("198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "100::1", "2001::1", "2001:2::1", "2001:db8::1", "3fff::1", "4000::1", "5f00::1", "fc00::1"),
    *("fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2a00:1450:4001:82a::200e%1"),
    # An IPv4 address in one of IPv6: compatible, mapped, translated, NAT64, Teredo, 6to4, ISATAP.
    *("::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b::808:808", "64:ff9b:1::7f00:1", "2001:0:5ef5:79fb::1", "2002:7f00:1::1", "2002:808:808::1"),
    *("2a00:1450::5efe:127.0.0.1", "2a00:1450::200:5efe:127.0.0.1"),
]
ALLOWED = [
    *("8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.255.255", "172.32.0.1", "198.17.255.255", "223.255.255.255"),
    *("2001:4860:4860::8888", "2003::1", "2606:4700:4700::1111", "2a00:1450:4001:82a::200e"),
]


def test_a_special_address_is_not_public(subtests: pytest.Subtests) -> None:
    for address in REFUSED:
        with subtests.test(address=address):
            assert not is_public(ip_address(address))


def test_an_ordinary_address_is_public(subtests: pytest.Subtests) -> None:
    for address in ALLOWED:
        with subtests.test(address=address):
            assert is_public(ip_address(address))


@given(strategies.integers(0, 2**32 - 1).map(IPv4Address) | strategies.integers(0, 2**128 - 1).map(IPv6Address))
def test_nothing_that_python_calls_local_is_public(address: IPv4Address | IPv6Address) -> None:
    """Our tables come from the same registries and may only be stricter."""
    is_local = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    is_special = is_local or address.is_reserved or address.is_unspecified or not address.is_global
    assert not (is_special and is_public(address))
