"""Asking the providers about checkouts and events that stay pending, at growing intervals, without a notification."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.catalog import ProviderName
from soundmark.core.domain.billing.payment_receipt import next_reread_at
from soundmark.core.problems import PaymentNotVerified, PaymentProviderUnavailable
from soundmark.core.steps import card_reconciliation, local_reconciliation
from soundmark.core.steps.card_reconciliation import CardRead
from soundmark.core.store.billing import checkouts, local_verifications, receipts
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.transaction import Tx

FAILED_IN_A_ROW_MAX: Final = 3  # Each failure may take the whole deadline of a call.

_AT_ONCE: Final = 50
_COUNTS_KEPT: Final = timedelta(hours=1)

_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Due:
    """A checkout to ask about: for its own sake, or for that of the receipt of an event."""

    organization_id: str
    checkout_id: str
    rereads: int
    due_at: datetime
    since: datetime
    event_id: str | None = None

    def next_at(self, now: datetime) -> datetime | None:
        """Return when to ask once more after now."""
        return next_reread_at(since=self.since, rereads=self.rereads + 1, now=now)


class _LimitReached(Exception):
    """The limit of verifications in this minute is reached."""


async def reread_card(ctx: Context) -> int:
    """Ask the card provider about what is due; return how much of it is settled now.

    Stops if the provider fails several times in a row. Safe at any time and concurrently: of two workers, one asks.

    Raises: DatabaseUnavailable.
    """
    if not await ctx.card.is_configured():
        return 0
    settled_count = failed_count = 0
    for due in await _list_due(ctx, "card"):
        try:
            settled_count += await _reread_card(ctx, due)
        except PaymentProviderUnavailable:
            failed_count += 1
            if failed_count == FAILED_IN_A_ROW_MAX:
                break
        else:
            failed_count = 0
    return settled_count


async def reread_local(ctx: Context) -> int:
    """Ask the local provider about what is due, within the jobs' share of its limit; return how much is settled now.

    Stops at the limit. The organisations take turns, so that one with many payments does not hold up the others. Safe
    at any time and concurrently, as `reread_card` is.

    Raises: PaymentProviderUnavailable at the first failure, because the provider bans callers that insist;
        DatabaseUnavailable.
    """
    due = await _list_due(ctx, "local")
    if not due or not await ctx.local.is_configured():
        return 0
    settled_count = 0
    for each in _take_turns(_once_each(due)):
        try:
            settled_count += await _reread_local(ctx, each)
        except PaymentNotVerified:
            continue  # The operator has a line in the log.
        except _LimitReached:
            break
    return settled_count


async def forget_counts(ctx: Context) -> int:
    """Delete the counts of past minutes; return how many there were.

    Raises: DatabaseUnavailable.
    """
    async with ctx.db.transaction() as tx:
        return await local_verifications.delete_before(tx, minute=ctx.clock.now() - _COUNTS_KEPT)


async def _list_due(ctx: Context, provider: ProviderName) -> list[_Due]:
    now = ctx.clock.now()
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        checkouts_due = await checkouts.list_due(tx, provider, now=now, limit=_AT_ONCE)
        receipts_due = await receipts.list_due(tx, provider, now=now, limit=_AT_ONCE)
    listed = [
        _Due(each.organization_id, each.id, each.rereads, each.reread_at, each.created_at) for each in checkouts_due
    ]
    for receipt in receipts_due:
        assert receipt.organization_id is not None, "a receipt that is due names a checkout"
        assert receipt.checkout_id is not None, "and its organisation"
        assert receipt.reread_at is not None, "and was listed by its time"
        place = (receipt.organization_id, receipt.checkout_id)
        listed.append(_Due(*place, receipt.rereads, receipt.reread_at, receipt.received_at, receipt.event_id))
    return listed


def _once_each(listed: Sequence[_Due]) -> list[_Due]:
    """Return the first of several that are due for one checkout: they are about one payment."""
    return list({(due.organization_id, due.checkout_id): due for due in reversed(listed)}.values())[::-1]


def _take_turns(listed: Sequence[_Due]) -> list[_Due]:
    """Return what is due in the order in which it is asked about: what has been due the longest in each organisation.

    Then the second of each, and so on.
    """
    in_order = sorted(listed, key=lambda due: due.due_at)
    turns: Counter[str] = Counter()
    numbered = []
    for due in in_order:
        numbered.append((turns[due.organization_id], due))
        turns[due.organization_id] += 1
    return [due for _, due in sorted(numbered, key=lambda each: each[0])]


async def _reread_card(ctx: Context, due: _Due) -> bool:
    """Ask about one checkout; return whether that settled it, or the event.

    Raises: PaymentProviderUnavailable.
    """
    async with ctx.db.transaction(tenant=due.organization_id) as tx:
        number = await checkouts.update_reads_begun(tx, due.organization_id, due.checkout_id)
        checkout = await checkouts.find(tx, due.organization_id, due.checkout_id)
        is_ours = await _put_off(ctx, tx, "card", due)
    if checkout is None or number is None or not is_ours:
        return False
    is_bound = checkout.subscription_reference is not None
    status = await card_reconciliation.reconcile(ctx, CardRead(checkout, number, None, is_bound=is_bound))
    if status == "pending":
        return False
    if due.event_id is not None:
        async with ctx.db.transaction(tenant=due.organization_id) as tx:
            await receipts.update_outcome(tx, "card", due.event_id, status=status, now=ctx.clock.now())
    _log.info("checkout_reread", checkout_id=due.checkout_id, status=status)
    return True


async def _reread_local(ctx: Context, due: _Due) -> bool:
    """Ask about the payment of one checkout; return whether that settled it.

    Raises: PaymentProviderUnavailable; PaymentNotVerified; _LimitReached, whereupon it is still due.
    """
    async with ctx.db.transaction(tenant=due.organization_id) as tx:
        checkout = await checkouts.find(tx, due.organization_id, due.checkout_id)
        if checkout is None or checkout.is_unpaid_at(ctx.clock.now()):
            return False  # Deleted, or a notification came first: it stays due.
        if not await _put_off(ctx, tx, "local", due) or checkout.provider_reference is None:
            return False
        if due.event_id is None:
            # The notification of the same payment, if one came, is then due no more.
            await _put_off(ctx, tx, "local", replace(due, event_id=checkout.provider_reference))
        if not await local_reconciliation.count_verification(ctx, tx, "jobs", now=ctx.clock.now()):
            raise _LimitReached
    status = await local_reconciliation.reconcile(ctx, checkout, checkout.provider_reference)
    if status != "pending":
        _log.info("checkout_reread", checkout_id=due.checkout_id, status=status)
    return status != "pending"


async def _put_off(ctx: Context, tx: Tx, provider: ProviderName, due: _Due) -> bool:
    """Set when to ask the next time; return False if another worker was faster.

    This is done before asking, so that it is due again even if this worker dies. Lock order: docs/locks.md.
    """
    now = ctx.clock.now()
    reread_at = due.next_at(now)
    if due.event_id is not None:
        return await receipts.update_reread(tx, provider, due.event_id, reread_at=reread_at, now=now)
    return await checkouts.update_reread(tx, due.organization_id, due.checkout_id, reread_at=reread_at, now=now)
