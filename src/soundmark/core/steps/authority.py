"""What a command rests on, checked once more where it acts."""

from soundmark.core.domain.scope import Role, ServerKey, TenantScope
from soundmark.core.problems import Forbidden, OrganizationNotFound
from soundmark.core.store import api_keys, members
from soundmark.kit.postgres import Tx
from soundmark.kit.problems import Unauthenticated


async def hold_authority(tx: Tx, scope: TenantScope) -> Role | None:
    """The authority that made `scope` is still there, and stays until the transaction ends.

    Since the caller was authorised, a person may have been demoted or removed, a key revoked or its secret replaced.
    Whoever takes authority away waits for this transaction, or has committed and is seen. The first step of every
    command that changes something. Answers a person's role as it is now; None for a key. Lock order: docs/locks.md.

    Raises: OrganizationNotFound, Forbidden for a person; Unauthenticated for a key.
    """
    if isinstance(scope.caller, ServerKey):
        if not await api_keys.hold(tx, scope.caller):
            raise Unauthenticated
        return None
    role = await members.hold_role(tx, scope, scope.caller.subject_id)
    if role is None:
        raise OrganizationNotFound
    if role not in scope.allowed_roles:
        raise Forbidden
    return role
