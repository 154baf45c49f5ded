"""The job that makes draft invoices in the accounting system."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import (
    ATTEMPT_MAX,
    LEASE,
    DraftInvoice,
    amount_of,
    is_amount,
    pause_after,
    price_without_tax,
)
from soundmark.core.providers.dolibarr.client import AccountingCallFailed, FoundInvoice, NewDraft
from soundmark.core.providers.dolibarr.server import AccountingServer, find_accounting_server, find_tax_percent
from soundmark.core.steps.invoices import MAKE_DRAFT
from soundmark.core.store.billing import accounting_customers, outbox
from soundmark.kit.postgres.job_queue import Later
from soundmark.kit.postgres.jobs import add_deferred
from soundmark.settings.registry import AccountingSettings

_log: Final = structlog.get_logger()
# The search and the read need "Read customer's invoices"; the read alone also needs the third party to be visible.
_MISSING_RIGHT: Final = "missing_right_read_all_third_parties"


@dataclass(frozen=True, slots=True)
class _DraftAttempt:
    draft: DraftInvoice
    thirdparty_id: int | None


@dataclass(frozen=True, slots=True)
class _Accounting:
    """The accounting system as it is configured at an attempt."""

    server: AccountingServer
    tax_percent: Decimal


@dataclass(frozen=True, slots=True)
class _DraftResult:
    """How an attempt ended. A failure is final; a pending draft is tried again."""

    status: Literal["pending", "completed", "failed"]
    reason: str | None = None
    invoice_id: int | None = None


class _NotNow(Exception):
    """The draft cannot be made at present."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason: Final = reason


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` make draft invoices."""
    add_deferred(app, ctx, MAKE_DRAFT, make_draft)


async def make_draft(ctx: Context, *, organization_id: str, outbox_id: str) -> None:
    """Make the draft invoice of one payment, exactly one, or leave it to a person.

    1. Begin an attempt: mark it in the row, with the time until which nobody else may begin one.
    2. Search the accounting system for the draft, in case an earlier attempt made it.
    3. If there is none, make it, and store its id in the row at once. But if an earlier post was answered with an id,
       read that invoice first: only one that is gone is made again.
    4. Search again, whatever the answer was, or else read the invoice, and compare what is there with what was paid.
    5. Store the result in the row.

    Safe to run late, repeatedly, in any order and concurrently. If a worker is killed after phase 3, the next attempt
    finds its draft and adopts it. Phases 2 to 4 end before the next attempt may begin. The draft is never validated and
    never paid.

    Raises: Later, with the time at which to run again; DatabaseUnavailable.
    Source: API v1, "Billing", accounting worker; contract, section 7, "Accounting"; docs/adr/0023 and 0034.
    """
    attempt = await _begin(ctx, organization_id, outbox_id)
    if attempt is None:
        return
    try:
        async with asyncio.timeout(ATTEMPT_MAX.total_seconds()):
            ended = await _search_post_search(ctx, attempt)
    except _NotNow as not_now:
        ended = _DraftResult("pending", not_now.reason)
    except AccountingCallFailed as failed:
        ended = _DraftResult("pending", failed.code)
    except Exception as error:  # noqa: BLE001 - such as a key that cannot be unsealed
        ended = _DraftResult("pending", type(error).__name__)
    again_at = await _note(ctx, attempt.draft, ended)
    if again_at is not None:
        raise Later(again_at)


async def _begin(ctx: Context, organization_id: str, outbox_id: str) -> _DraftAttempt | None:
    """Carry out phase 1; return None if there is nothing to do.

    Raises: Later.
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        draft = await outbox.lock(tx, organization_id, outbox_id)
        if draft is None:
            return None
        now = ctx.clock.now()
        match draft.next_step(now):
            case "nothing":
                return None
            case "wait":
                assert draft.due_at is not None, "a draft that waits has a due time"
                raise Later(draft.due_at)
            case "give_up":
                await outbox.update_ended(tx, draft, status="failed", now=now)
                _log.error("draft_invoice_failed", outbox_id=outbox_id, attempt=draft.attempts, reason="worker_killed")
                return None
            case "attempt":
                begun = replace(draft, attempts=draft.attempts + 1, due_at=now + LEASE)
                await outbox.update_processing(tx, begun, now=now)
                return _DraftAttempt(begun, await accounting_customers.find_thirdparty_id(tx, organization_id))


async def _search_post_search(ctx: Context, attempt: _DraftAttempt) -> _DraftResult:
    """Carry out phases 2 to 4.

    Raises: _NotNow; AccountingCallFailed; DatabaseUnavailable; kit.crypto.sealing.SealBroken.
    """
    draft, thirdparty_id = attempt.draft, attempt.thirdparty_id
    accounting = await _find_accounting(ctx, draft)
    if thirdparty_id is None:
        raise _NotNow("no_thirdparty")
    found = await ctx.accounting.find_invoices(accounting.server, draft.reference)
    if found:
        return _compare(found, draft, thirdparty_id)
    if draft.posted_invoice_id is not None:
        known = await _read_posted(ctx, accounting, draft, thirdparty_id, invoice_id=draft.posted_invoice_id)
        if known is not None:
            return known
    posted = await _post(ctx, accounting, draft, thirdparty_id)
    found = await ctx.accounting.find_invoices(accounting.server, draft.reference)
    if found:
        return _compare(found, draft, thirdparty_id)
    if isinstance(posted, AccountingCallFailed):
        return await _explain_failed_post(ctx, accounting, thirdparty_id, posted)
    known = await _read_posted(ctx, accounting, draft, thirdparty_id, invoice_id=posted)
    # If even its id is not found, another post would be as blind as this one.
    return known or _DraftResult("failed", "not_found_after_post")


async def _read_posted(
    ctx: Context, accounting: _Accounting, draft: DraftInvoice, thirdparty_id: int, *, invoice_id: int
) -> _DraftResult | None:
    """Read an invoice that a post was answered with, and that the search does not find; return None if it is gone.

    Raises: AccountingCallFailed.
    """
    try:
        invoice = await ctx.accounting.find_invoice(accounting.server, invoice_id)
    except AccountingCallFailed as failed:
        if failed.is_forbidden:
            return _DraftResult("failed", _MISSING_RIGHT)
        raise
    if invoice is None:
        return None
    if invoice.reference != draft.reference:
        # Somebody changed the reference, or the settings name another accounting system than at the post.
        return _DraftResult("failed", "another_reference")
    return _compare([invoice], draft, thirdparty_id)


async def _explain_failed_post(
    ctx: Context, accounting: _Accounting, thirdparty_id: int, failure: AccountingCallFailed
) -> _DraftResult:
    """Return why a post cannot succeed.

    Raises: AccountingCallFailed, if a later attempt may succeed.
    """
    try:
        if not await ctx.accounting.has_thirdparty(accounting.server, thirdparty_id):
            return _DraftResult("failed", "unknown_thirdparty")
    except AccountingCallFailed as failed:
        if failed.is_forbidden:
            # The search cannot see this third party's invoices, so it does not say whether the draft was made.
            return _DraftResult("failed", _MISSING_RIGHT)
        raise
    raise failure


async def _find_accounting(ctx: Context, draft: DraftInvoice) -> _Accounting:
    """Return the accounting system as it is configured now.

    Raises: _NotNow; DatabaseUnavailable; kit.crypto.sealing.SealBroken.
    """
    given = await ctx.platform_settings.read(AccountingSettings)
    server, tax_percent = find_accounting_server(given), find_tax_percent(given)
    if not given.accounting_enable_invoice_sync:
        raise _NotNow("switched_off")
    if server is None or tax_percent is None:
        raise _NotNow("not_configured")
    if draft.currency != ctx.accounting_currency:
        raise _NotNow("another_currency")
    return _Accounting(server, tax_percent)


async def _post(
    ctx: Context, accounting: _Accounting, draft: DraftInvoice, thirdparty_id: int
) -> int | AccountingCallFailed:
    """Carry out phase 3; return the new draft's id, which is stored by then, or what went wrong.

    Raises: _NotNow if the lease is over: somebody else may be at this draft already; DatabaseUnavailable.
    """
    assert draft.due_at is not None, "an attempt has a lease"
    if ctx.clock.now() >= draft.due_at:
        raise _NotNow("overtaken")
    amount = amount_of(draft.amount_minor, draft.currency)
    new = NewDraft(
        reference=draft.reference,
        thirdparty_id=thirdparty_id,
        date=draft.created_at,
        description=draft.description,
        price=price_without_tax(amount, accounting.tax_percent),
        tax_percent=accounting.tax_percent,
        period_start=draft.period_start,
        period_end=draft.period_end,
    )
    try:
        invoice_id = await ctx.accounting.create_draft(accounting.server, new)
    except AccountingCallFailed as failed:
        return failed
    async with ctx.db.transaction(tenant=draft.organization_id) as tx:
        await outbox.update_posted(tx, draft, invoice_id=invoice_id, now=ctx.clock.now())
    return invoice_id


def _compare(found: list[FoundInvoice], draft: DraftInvoice, thirdparty_id: int) -> _DraftResult:
    """Return whether what the accounting system has is the draft. What is not, only a person can put right."""
    if len(found) > 1:
        return _DraftResult("failed", "several_invoices")
    (invoice,) = found
    if invoice.thirdparty_id != thirdparty_id:
        return _DraftResult("failed", "another_thirdparty")
    if not is_amount(invoice.total, amount_of(draft.amount_minor, draft.currency)):
        return _DraftResult("failed", "another_total")
    return _DraftResult("completed", invoice_id=invoice.id)


async def _note(ctx: Context, draft: DraftInvoice, ended: _DraftResult) -> datetime | None:
    """Carry out phase 5; return when to try again, None if the draft is completed or failed."""
    async with ctx.db.transaction(tenant=draft.organization_id) as tx:
        now = ctx.clock.now()
        again_at = now + pause_after(draft.attempts) if ended.status == "pending" else None
        status = ended.status
        if again_at is not None and again_at > draft.give_up_at:
            status, again_at = "failed", None
        is_current = await outbox.update_ended(
            tx, draft, status=status, invoice_id=ended.invoice_id, due_at=again_at, now=now
        )
    log = _log.error if status == "failed" else _log.info
    event = "draft_invoice_failed" if status == "failed" else "draft_invoice_attempt"
    log(
        event,
        outbox_id=draft.id,
        attempt=draft.attempts,
        status=status,
        reason=ended.reason,
        is_recorded=is_current,
    )
    return again_at if is_current else None
