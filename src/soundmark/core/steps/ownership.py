"""The limit on organisations that one person owns."""

from soundmark.core.context import RequestContext
from soundmark.core.problems import OrganizationLimitReached
from soundmark.core.store.tenancy import members
from soundmark.kit.postgres.transaction import Tx


async def require_room(ctx: RequestContext, tx: Tx, subject_id: str) -> None:
    """Make sure that the person may own one more organisation, and keep it so until the transaction ends.

    The transaction must have been begun for that `subject`.

    Raises: OrganizationLimitReached.
    Source: contract, section 2.
    """
    await members.lock_owned(tx, subject_id)
    if await members.count_owned(tx, subject_id) >= ctx.organizations_per_user:
        raise OrganizationLimitReached
