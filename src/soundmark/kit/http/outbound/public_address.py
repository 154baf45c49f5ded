"""Which IP addresses belong to the public internet."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

# Source: IANA, IPv4 Special-Purpose Address Registry. Written out, because what `ipaddress` calls global differs from
# one release of Python to another, and includes multicast.
_IPV4_REFUSED: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by the customers of a carrier
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, with the metadata servers of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# Everything else is not assigned, local or multicast, or holds an IPv4 address (mapped, compatible, translated, NAT64).
_IPV6_UNICAST: Final = IPv6Network("2000::/3")
# Source: IANA, IPv6 Special-Purpose Address Registry.
_IPV6_REFUSED: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, among them Teredo, benchmarks and ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})  # RFC 5214: the third quarter; the last is an IPv4 address.


def is_public(address: Address) -> bool:
    """Return whether `address` is a unicast address of the public internet that holds no other address."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _IPV4_REFUSED)
    if address.scope_id is not None or address not in _IPV6_UNICAST:
        return False
    if any(address in network for network in _IPV6_REFUSED):
        return False
    return (int(address) >> 32) & 0xFFFFFFFF not in _ISATAP


def find_address(host: str) -> Address | None:
    """Return the address that `host` spells out, without brackets; None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None
