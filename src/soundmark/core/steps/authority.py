"""A caller's authority, judged once more in the transaction that acts on it."""

from typing import TypeAlias

from soundmark.core.domain.tenancy.scope import Role, ServerKey, TenantScope
from soundmark.core.problems import Forbidden, OrganizationNotFound
from soundmark.core.store.tenancy import api_keys, members
from soundmark.kit.http.problems import Unauthenticated
from soundmark.kit.postgres.transaction import Tx

Authority: TypeAlias = Role | bool | None  # A person's role, None for a stranger; whether a key still holds.


async def hold_authority(tx: Tx, scope: TenantScope) -> Role | None:
    """Keep the authority that made `scope` from being withdrawn until the transaction ends.

    Since the caller was authorised, a person may have been demoted or removed, a key revoked or its secret replaced.
    The first step of every command that changes something. Return a person's present role; None for a key. Lock order:
    docs/locks.md.

    Raises: OrganizationNotFound, Forbidden for a person; Unauthenticated for a key.
    """
    return require_authority(scope, await find_authority(tx, scope))


async def find_authority(tx: Tx, scope: TenantScope) -> Authority:
    """Return the authority of `scope` as it is now, held until the transaction ends, for `require_authority`."""
    if isinstance(scope.caller, ServerKey):
        return await api_keys.hold(tx, scope.caller)
    return await members.hold_role(tx, scope, scope.caller.subject_id)


def require_authority(scope: TenantScope, authority: Authority) -> Role | None:
    """Return a person's role, None for a key, if the authority still allows what `scope` was made for.

    Raises: as `hold_authority`.
    """
    if isinstance(scope.caller, ServerKey):
        if authority is not True:
            raise Unauthenticated
        return None
    if authority is None:
        raise OrganizationNotFound
    assert not isinstance(authority, bool), "people have roles"
    if authority not in scope.allowed_roles:
        raise Forbidden
    return authority
