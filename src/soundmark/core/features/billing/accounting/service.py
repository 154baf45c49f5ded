"""Commands on the accounting system's customers, and on draft invoices that failed."""

from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import TRIED_FOR
from soundmark.core.domain.billing.catalog import AccountingCustomer
from soundmark.core.domain.tenancy.scope import PLATFORM, User
from soundmark.core.problems import AccountingUnavailable, OrganizationNotFound, ThirdpartyConflict
from soundmark.core.providers.dolibarr.client import AccountingCallFailed
from soundmark.core.providers.dolibarr.server import find_accounting_server
from soundmark.core.steps import audit
from soundmark.core.steps.invoices import defer_draft
from soundmark.core.steps.tenancy import require_open_organization
from soundmark.core.store.billing import accounting_customers, outbox, references
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import may_be_id
from soundmark.settings.registry import AccountingSettings

_log: Final = structlog.get_logger()
# The rights as the accounting system's page spells them.
_FORBIDDEN: Final = (
    "The accounting system refuses the user of accounting_api_key (403), which lacks a right:"
    ' "Read third parties" or "Read all third parties (and their objects) by internal users".'
)


class UnknownThirdparty(Exception):
    """The accounting system has no such third party."""


class RetryRefused(Exception):
    """The draft invoice cannot be sent back; the message is for the operator."""


async def put_customer(ctx: Context, user: User, organization_id: str, *, thirdparty_id: int) -> AccountingCustomer:
    """Set the third party that an organisation's invoices go to, in place of another.

    1. See that there is such an organisation.
    2. Ask the accounting system for the third party, if one is configured.
    3. Store it, in one transaction.

    Raises: OrganizationNotFound; ResourceDeletionInProgress; UnknownThirdparty; ThirdpartyConflict, if another
        organisation has it; AccountingUnavailable.
    Source: contract, section 7, "Catalogue".
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        await _require_open(tx, organization_id)
    await _require_thirdparty(ctx, thirdparty_id)
    async with ctx.db.transaction(tenant=organization_id) as tx:
        # Again: the accounting system took its time.
        await _require_open(tx, organization_id)
        await _take_thirdparty(tx, organization_id, thirdparty_id, now=ctx.clock.now())
        now = ctx.clock.now()
        customer = await accounting_customers.update(tx, organization_id, thirdparty_id=thirdparty_id, now=now)
        await audit.record_as(
            tx, PLATFORM, ctx.entropy, "billing.accounting_customer_changed", organization_id=organization_id, now=now
        )
    _log.info("accounting_customer_changed", organization_id=organization_id, subject_id=user.subject_id)
    return customer


async def retry_draft(ctx: Context, outbox_id: str) -> None:
    """Send a failed draft invoice back to the queue, to be tried for another day.

    Raises: RetryRefused, for an unknown draft or one that has not failed.
    Source: contract, section 7, "Accounting".
    """
    organization_id = None
    if may_be_id(outbox_id):
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            organization_id = await outbox.find_organization_id(tx, outbox_id)
    if organization_id is None:
        raise RetryRefused(f"there is no draft invoice {outbox_id!r}")
    async with ctx.db.transaction(tenant=organization_id) as tx:
        draft = await outbox.lock(tx, organization_id, outbox_id)
        if draft is None:
            raise RetryRefused(f"there is no draft invoice {outbox_id!r}")
        if draft.status != "failed":
            raise RetryRefused(f"{outbox_id} is {draft.status}; only a draft invoice that has failed can be retried")
        now = ctx.clock.now()
        await outbox.update_retried(tx, draft, give_up_at=now + TRIED_FOR, now=now)
        await defer_draft(ctx, tx, organization_id=organization_id, outbox_id=outbox_id)


async def _require_open(tx: Tx, organization_id: str) -> None:
    """Keep the organisation open until the transaction ends.

    Raises: OrganizationNotFound; ResourceDeletionInProgress.
    """
    marker = await organizations.hold_marker(tx, organization_id)
    if marker is None:
        raise OrganizationNotFound
    require_open_organization(is_open=marker.deletion_requested_at is None)


async def _require_thirdparty(ctx: Context, thirdparty_id: int) -> None:
    """Check that the accounting system has a third party, if one is configured.

    Raises: UnknownThirdparty; AccountingUnavailable.
    """
    server = find_accounting_server(await ctx.platform_settings.read(AccountingSettings))
    if server is None:
        return
    try:
        is_known = await ctx.accounting.has_thirdparty(server, thirdparty_id)
    except AccountingCallFailed as failed:
        _log.warning("accounting_call_failed", reason=failed.code)
        raise AccountingUnavailable(_FORBIDDEN if failed.is_forbidden else None) from None
    if not is_known:
        raise UnknownThirdparty


async def _take_thirdparty(tx: Tx, organization_id: str, thirdparty_id: int, *, now: datetime) -> None:
    """Make the organisation the owner of a third party, and give up the one that it had.

    Raises: ThirdpartyConflict.
    """
    # Of two first commands for one organisation, the second waits here, and then finds the third party of the first.
    await accounting_customers.insert_if_new(tx, organization_id, thirdparty_id=thirdparty_id, now=now)
    previous_id = await accounting_customers.lock(tx, organization_id)
    owner = await references.insert_or_find(
        tx, "thirdparty", str(thirdparty_id), organization_id=organization_id, subject_id=organization_id
    )
    if owner.organization_id != organization_id:
        raise ThirdpartyConflict
    if previous_id != thirdparty_id:
        await references.delete(tx, "thirdparty", str(previous_id), organization_id=organization_id)
