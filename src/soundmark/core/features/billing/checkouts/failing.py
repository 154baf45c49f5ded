"""Failing a checkout whose provider made no page."""

from soundmark.core.domain.billing.checkout import Checkout
from soundmark.core.store.billing import purchases
from soundmark.core.store.codes import issuance_receipts
from soundmark.kit.postgres.transaction import Tx


async def fail_without_page(tx: Tx, checkout: Checkout) -> None:
    """Fail a locked checkout that has no page, if it is pending, and free its idempotency key."""
    assert not checkout.has_page, "what can be paid is not failed here"
    if checkout.status == "pending":
        await purchases.update_without_page(tx, checkout)
    if checkout.key_digest is not None:
        await issuance_receipts.delete_unanswered(tx, checkout.organization_id, checkout.key_digest)
