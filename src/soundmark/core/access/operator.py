"""The operator token: for local validation, from this machine only, never a public contract."""

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Final

from soundmark.core.domain.tenancy.scope import Caller, User
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.client_address import AddressReader, Network

PREFIX: Final = "xop_"
OPERATOR: Final = User(
    subject_id="operator", email="operator@localhost", has_mfa=True, is_platform_admin=True
)  # Contract, section 2.


class OperatorAccess:
    """Knows the operator token, if this process has one.

    A reverse proxy on this machine is a loopback peer, and anybody may come through it: from `trusted_proxies` the
    token is none.
    """

    def __init__(self, token: Secret | None, *, trusted_proxies: Iterable[Network] = ()) -> None:
        self._token: Final = token
        self._proxies: Final = AddressReader(trusted_proxies)

    def user_of(self, credential: str, peer: str | None) -> User | None:
        """The operator, when the token is right and the socket's peer is this machine and no proxy; else None.

        `peer` is the address of the socket and never one that a header claims.
        """
        if self._token is None or peer is None or not is_loopback(peer) or self._proxies.is_trusted(peer):
            return None
        return OPERATOR if self._token.equals(credential) else None


def is_operator(caller: Caller) -> bool:
    """Return whether the caller came with the operator token; a person may have the same subject id."""
    return caller is OPERATOR


def is_loopback(peer: str) -> bool:
    """Whether an address of a socket's peer belongs to this machine alone."""
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
