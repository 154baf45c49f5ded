"""The gates of a closure: what must have ended before anything is deleted."""

from datetime import datetime
from typing import Final

from soundmark.core.domain.tenancy.closure import Blocker, ClosureSubject
from soundmark.core.problems import DeletionBillingActive, DeletionOperationsPending
from soundmark.core.store.billing import checkouts, subscriptions
from soundmark.core.store.tenancy import closures, deletions
from soundmark.kit.postgres.transaction import Tx

_IDS_MAX: Final = 100  # Of one blocker: enough to see what is in the way, whatever its number.


async def find_billing_blocker(tx: Tx, subject: ClosureSubject, *, now: datetime) -> Blocker | None:
    """Return the subscriptions and checkouts that are in the way of closing an organisation.

    These are the card subscriptions that renew themselves, and the checkouts that may still be paid.

    Source: contract, section 7, closure gates.
    """
    if subject.project_id is not None:
        return None
    organization_id = subject.organization_id
    ids = await subscriptions.list_unending_card_ids(tx, organization_id, limit=_IDS_MAX)
    if len(ids) < _IDS_MAX:
        pending = await checkouts.list_pending(tx, organization_id, now=now, limit=_IDS_MAX - len(ids))
        ids += [checkout.id for checkout in pending]
    return Blocker(DeletionBillingActive.code, tuple(ids)) if ids else None


async def find_pending_blocker(tx: Tx, subject: ClosureSubject) -> Blocker | None:
    """Return the operations in Audience, and the deletions of projects, that have not ended."""
    ids = await deletions.list_requested_entries(tx, subject, limit=_IDS_MAX)
    if subject.project_id is None:
        ids += await closures.list_projects(tx, subject.organization_id)
    return Blocker(DeletionOperationsPending.code, tuple(ids[:_IDS_MAX])) if ids else None


async def require_gates_open(tx: Tx, subject: ClosureSubject, *, now: datetime) -> None:
    """Judge every gate.

    Raises: DeletionBillingActive; DeletionOperationsPending.
    """
    if await find_billing_blocker(tx, subject, now=now) is not None:
        raise DeletionBillingActive
    if await find_pending_blocker(tx, subject) is not None:
        raise DeletionOperationsPending
