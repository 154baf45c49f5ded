"""The operator token: for local validation, from the same machine only, and not part of the public contract."""

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Final

from soundmark.core.domain.tenancy.scope import Caller, User
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.requests.client_address import AddressReader, Network

PREFIX: Final = "xop_"
OPERATOR: Final = User(
    subject_id="operator", email="operator@localhost", has_mfa=True, is_platform_admin=True
)  # Contract, section 2.


class OperatorAccess:
    """Recognises the operator token, if this process has one.

    A reverse proxy on the same machine is a loopback peer that forwards requests from anywhere, so the token is not
    accepted from `trusted_proxies`.
    """

    def __init__(self, token: Secret | None, *, trusted_proxies: Iterable[Network] = ()) -> None:
        self._token: Final = token
        self._proxies: Final = AddressReader(trusted_proxies)

    def user_of(self, credential: str, peer: str | None) -> User | None:
        """Return the operator if the token is right and the peer is this machine, not a trusted proxy; else None.

        `peer` is the address of the socket's peer, never one that a header claims.
        """
        if self._token is None or peer is None or not is_loopback(peer) or self._proxies.is_trusted(peer):
            return None
        return OPERATOR if self._token.equals(credential) else None


def is_operator(caller: Caller) -> bool:
    """Return whether the caller used the operator token. A person may have the same subject id."""
    return caller is OPERATOR


def is_loopback(peer: str) -> bool:
    """Return whether the address of a socket's peer is a loopback address."""
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
