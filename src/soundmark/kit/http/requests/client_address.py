"""The client IP address of a request, and its irreversible digest, for rate limits and the log."""

import hmac
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

import structlog
from prometheus_client import Counter

from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.http.requests.forwarded import (
    LIST_HEADER,
    STANDARD_HEADER,
    Address,
    Hops,
    parse_address,
    read_list,
    read_standard,
)

_IPV6_PREFIX: Final = (
    64  # One subscriber has at least this many addresses, so limiting single addresses would be useless.
)
_DIGEST_BYTES: Final = 16
_KEY_LIFE_S: Final = 3600
_REMEMBERED_MAX: Final = 50_000  # Some 8 MB.
_PROXIES_LOGGED_MAX: Final = 64  # A network of proxies may be large, and one line says enough.

Network = IPv4Network | IPv6Network

_log: Final = structlog.get_logger()
_unreadable: Final = Counter(
    "soundmark_forwarded_unreadable_total", "Requests from a trusted proxy without a readable client IP address."
)


class AddressReader:
    """A reader of the client IP address of a request."""

    def __init__(self, trusted_proxies: Iterable[Network]) -> None:
        self._trusted: Final = tuple(trusted_proxies)
        self._logged: Final[set[Address]] = set()

    def subject(self, peer: str | None, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the subject that is counted for a request: an IPv4 address, or the /64 of an IPv6 address.

        What proxies wrote is used only if the socket's peer is a trusted proxy. Then the rightmost address that is not
        a trusted proxy counts, of `X-Forwarded-For` or of `Forwarded`. A request of which it cannot be read, or in
        which the two headers disagree, counts as one of the proxy that sent it so.

        Source: contract, section 4.
        """
        if peer is None:
            return "unknown"
        if not self._trusted:
            return peer if ":" not in peer else _subject(parse_address(peer), peer)
        address = parse_address(peer)
        if address is None or not self._is_trusted(address):
            return _subject(address, peer)
        return _subject(self._find_client(address, headers), peer)

    def _find_client(self, proxy: Address, headers: Iterable[tuple[bytes, bytes]]) -> Address:
        """Return the client that a trusted proxy names, or else the proxy that names none."""
        lists, standards = [], []
        for name, value in headers:
            if name == LIST_HEADER:
                lists.append(value)
            elif name == STANDARD_HEADER:
                standards.append(value)
        readings = [self._follow(proxy, hops) for hops in _read(lists, standards)]
        clients = {client for client, _ in readings}
        if len(clients) > 1:
            self._note_unreadable(proxy)
            return proxy
        if not all(is_readable for _, is_readable in readings):
            self._note_unreadable(*clients)
        return clients.pop() if clients else proxy

    def _follow(self, proxy: Address, hops: Hops) -> tuple[Address, bool]:
        """Return the nearest address that is not a trusted proxy, or the last proxy, and whether all could be read."""
        for hop in hops:
            if hop is None:
                return proxy, False  # Everything left of it was written by somebody unknown.
            proxy = hop
            if not self._is_trusted(hop):
                break
        return proxy, True

    def _note_unreadable(self, proxy: Address) -> None:
        """Count a request, and log its proxy once."""
        _unreadable.inc()
        if proxy not in self._logged and len(self._logged) < _PROXIES_LOGGED_MAX:
            self._logged.add(proxy)
            _log.warning("forwarded_unreadable", proxy=str(proxy))

    def is_trusted(self, peer: str) -> bool:
        """Return whether the socket's peer is a trusted proxy."""
        address = parse_address(peer)
        return address is not None and self._is_trusted(address)

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted if network.version == address.version)


class AddressDigest:
    """HMAC-SHA-256 of a subject under a key that is replaced each hour and never stored.

    The digests of an hour are cached until it ends; a look-up costs a tenth of computing a digest.

    If several machines count together, `shared_key` gives all of them the same key for the same hour. It is derived
    from the master key, and the server that counts never sees it.
    """

    def __init__(self, entropy: Entropy, shared_key: bytes | None = None) -> None:
        self._entropy: Final = entropy
        self._shared_key: Final = shared_key
        self._ends_at_s = 0.0
        self._key = b""
        self._made: dict[str, bytes] = {}

    def of(self, subject: str, now_s: float) -> bytes:
        """Return the digest of `subject` during the hour of `now_s`, which is in seconds since 1970."""
        if not self._ends_at_s - _KEY_LIFE_S <= now_s < self._ends_at_s:
            self._begin_hour(int(now_s) // _KEY_LIFE_S)
        digest = self._made.get(subject)
        if digest is None:
            if len(self._made) >= _REMEMBERED_MAX:
                self._made.clear()
            digest = self._made[subject] = hmac.digest(self._key, subject.encode(), "sha256")[:_DIGEST_BYTES]
        return digest

    def _begin_hour(self, hour: int) -> None:
        self._ends_at_s = (hour + 1) * _KEY_LIFE_S
        self._made.clear()
        self._key = (
            self._entropy.take(32)
            if self._shared_key is None
            else hmac.digest(self._shared_key, str(hour).encode(), "sha256")
        )


def _read(lists: list[bytes], standards: list[bytes]) -> list[Hops]:
    """Return the hops of each header that is there."""
    return [*([read_list(lists)] if lists else ()), *([read_standard(standards)] if standards else ())]


def _subject(address: Address | None, peer: str) -> str:
    if address is None:
        return peer
    if isinstance(address, IPv6Address):
        return str(ip_network((int(address), _IPV6_PREFIX), strict=False))
    return str(address)
