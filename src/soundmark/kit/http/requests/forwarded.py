"""The addresses that proxies write into a request: `X-Forwarded-For`, and `Forwarded` of RFC 7239."""

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
# A hop is None if its address cannot be read.
Hops: TypeAlias = Iterator[Address | None]

LIST_HEADER: Final = b"x-forwarded-for"
STANDARD_HEADER: Final = b"forwarded"

# A chain of proxies is short, and a client can write a header as long as a request head.
_HOPS_MAX: Final = 32
_EMPTY: Final = ", \t"
_STANDARD_BYTES_MAX: Final = 4096  # 32 hops with every parameter of RFC 7239.

# A port is a number or, in RFC 7239, a name that hides it.
_NODE: Final = re.compile(
    r"(?:(?P<v4>[0-9.]+)|\[(?P<v6>[0-9A-Fa-f:.]+)\])(?::(?:[0-9]{1,5}|_[A-Za-z0-9._-]+))?", re.ASCII
)
# One parameter of `Forwarded`, and what ends it. A parameter may be missing; an unquoted value may hold colons and
# brackets, which proxies forget to quote.
_PARAMETER: Final = re.compile(
    r"""[ \t]*+(?:([!#$%&'*+.^_`|~0-9A-Za-z-]++)=("(?:[^"\\]|\\.)*+"|[^\s",;=\\]++))?[ \t]*+([;,]|\Z)""", re.ASCII
)


def is_forwarded(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a request says that it came through a proxy."""
    return any(name in (LIST_HEADER, STANDARD_HEADER) for name, _ in headers)


def parse_address(text: str) -> Address | None:
    """Return an address, an IPv4-mapped one as IPv4; None for any other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def parse_node(text: str) -> Address | None:
    """Return the address of a hop: bare, with a port, in brackets, or in quotes; None if there is none to read.

    `unknown` and identifiers that hide an address, such as `_proxy`, cannot be read.

    Source: RFC 7239, section 6; the forms of IIS and Azure.
    """
    text = text.strip(" \t")
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    address = parse_address(text)
    if address is not None:
        return address
    match = _NODE.fullmatch(text)
    return None if match is None else parse_address(match["v4"] or match["v6"])


def read_list(values: Sequence[bytes]) -> Hops:
    """Yield the hops of `X-Forwarded-For` from the right, which is the nearest; empty elements are none.

    Source: RFC 9110, section 5.6.1.2.
    """
    rest, count = b",".join(values).decode("latin-1").rstrip(_EMPTY), 0
    while rest and count < _HOPS_MAX:
        rest, _, last = rest.rpartition(",")
        rest, count = rest.rstrip(_EMPTY), count + 1
        yield parse_node(last)
    if rest or not count:
        yield None


def read_standard(values: Sequence[bytes]) -> Hops:
    """Yield the hops of `Forwarded` from the right; a header with an error has one hop that cannot be read.

    Quotes can be followed from the left alone, so an error anywhere says that nothing is certain about the rest.

    Source: RFC 7239, section 4.
    """
    text = b",".join(values).decode("latin-1")
    hops: list[Address | None] = []
    if len(text) <= _STANDARD_BYTES_MAX:
        hops = _read_hops(text)
    yield from reversed(hops or [None])


def _read_hops(text: str) -> list[Address | None]:
    """Return the hops from the left; none if there is an error, or too many of them."""
    hops: list[Address | None] = []
    nodes: list[str] = []
    is_empty = True
    place = 0
    while len(hops) < _HOPS_MAX:
        parameter = _PARAMETER.match(text, place)
        if parameter is None:
            return []
        name, value, end = parameter.groups()
        if name is not None and name.lower() == "for":
            nodes.append(value)
        is_empty = is_empty and name is None
        if end != ";":
            if not is_empty:
                hops.append(parse_node(nodes[0]) if len(nodes) == 1 else None)
            nodes, is_empty = [], True
        if not end:
            return hops
        place = parameter.end()
    return []
