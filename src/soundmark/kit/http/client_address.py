"""The client IP address of a request, and its irreversible digest, for rate limits and the log."""

import hmac
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from soundmark.kit.crypto.entropy import Entropy

_IPV6_PREFIX: Final = (
    64  # One subscriber has at least this many addresses, so limiting single addresses would be useless.
)
_DIGEST_BYTES: Final = 16
_KEY_LIFE_S: Final = 3600
_REMEMBERED_MAX: Final = 50_000  # Some 8 MB.

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class AddressReader:
    """A reader of the client IP address of a request."""

    def __init__(self, trusted_proxies: Iterable[Network]) -> None:
        self._trusted: Final = tuple(trusted_proxies)

    def subject(self, peer: str | None, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Return the subject that is counted for a request: an IPv4 address, or the /64 of an IPv6 address.

        `X-Forwarded-For` is used only if the socket's peer is a trusted proxy. Then its rightmost address that is not a
        trusted proxy counts.
        """
        if peer is None:
            return "unknown"
        if not self._trusted:
            return peer if ":" not in peer else _subject(_parse(peer), peer)
        address = _parse(peer)
        if address is None or not self._is_trusted(address):
            return _subject(address, peer)
        forwarded = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
        for text in reversed([part.strip() for value in forwarded for part in value.split(",")]):
            hop = _parse(text)
            if hop is None:
                break  # Everything left of a malformed address was written by an unknown party.
            address = hop
            if not self._is_trusted(hop):
                break
        return _subject(address, peer)

    def is_trusted(self, peer: str) -> bool:
        """Return whether the socket's peer is a trusted proxy."""
        address = _parse(peer)
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


def _parse(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _subject(address: Address | None, peer: str) -> str:
    if address is None:
        return peer
    if isinstance(address, IPv6Address):
        return str(ip_network((int(address), _IPV6_PREFIX), strict=False))
    return str(address)
