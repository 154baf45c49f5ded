"""Hosts to which no setting may lead: link-local addresses, and the servers with the metadata of cloud machines.

These servers answer every process of the machine, often with credentials of the whole account. Private addresses are
allowed: operators have their desk, their accounting system and their databases there.
"""

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

_Address: TypeAlias = IPv4Address | IPv6Address

_REFUSED: Final = tuple(
    IPv4Network(network)
    for network in (
        "169.254.0.0/16",  # link-local; nearly every cloud has its metadata at 169.254.169.254
        "100.100.100.200",  # Alibaba Cloud
        "168.63.129.16",  # Azure, WireServer
        "192.0.0.192",  # Oracle Cloud, the classic one
    )
)
_REFUSED_IPV6: Final = tuple(
    IPv6Network(network)
    for network in (
        "fe80::/10",  # link-local
        "fd00:ec2::/32",  # AWS: the metadata are at fd00:ec2::254
        "fd20:ce::254",  # Google Cloud
        "fd00:42::42",  # Scaleway
    )
)
_NAMES: Final = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.tencentyun.com",
    }
)
# Prefixes whose last 32 bits are an IPv4 address: compatible (RFC 4291), translated (RFC 2765), and NAT64 (RFC 6052,
# RFC 8215).
_HOLDING_IPV4: Final = tuple(
    IPv6Network(network) for network in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})  # RFC 5214: the third quarter.


def is_refused_host(host: str) -> bool:
    """Return whether `host`, a name or an address without brackets, is such a server, in any spelling."""
    host = host.removesuffix(".").lower()
    if host in _NAMES:
        return True
    address = _find_address(host)
    return address is not None and is_refused_address(address)


def is_refused_address(address: _Address) -> bool:
    """Return whether `address`, or an IPv4 address that it holds, is link-local or that of a metadata server."""
    if isinstance(address, IPv4Address):
        return any(address in network for network in _REFUSED)
    bare = IPv6Address(int(address))  # Without a zone.
    if any(bare in network for network in _REFUSED_IPV6):
        return True
    return any(is_refused_address(held) for held in _find_held(bare))


def _find_address(host: str) -> _Address | None:
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        # What a resolver takes for an IPv4 address as well: `2852039166`, `0xa9fea9fe`, `0251.254.43518`.
        return IPv4Address(socket.inet_aton(host))
    except (OSError, UnicodeEncodeError):
        return None


def _find_held(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses to which a packet to `address` may be sent on."""
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    held = [each for each in (address.ipv4_mapped, address.sixtofour) if each is not None]
    if address.teredo is not None:
        held += address.teredo
    if any(address in network for network in _HOLDING_IPV4) or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        held.append(last)
    return held
