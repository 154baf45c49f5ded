"""Commands on abuse reports."""

from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.codes.signed_facts import read_facts
from soundmark.core.domain.platform.abuse_report import (
    KEPT_AFTER_CLOSING,
    KEPT_AT_MOST,
    REPORT_PREFIX,
    AbuseCategory,
    AbuseReport,
    AbuseStatus,
    OpenedReport,
)
from soundmark.core.problems import AbuseReportNotFound
from soundmark.core.steps.abuse_claims import note_settled
from soundmark.core.store.codes import broadcasts
from soundmark.core.store.platform import abuse_reports
from soundmark.core.store.tenancy import organizations
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.text.ids import mint
from soundmark.kit.text.paging import Page, Position, cut_page

_AT_ONCE: Final = 500
CLAIMS_AT_ONCE: Final = 20  # Each asks every organisation.
_ROUNDS_MAX: Final = 50
_TABLE: Final = "abuse_reports"
_NOBODY: Final = "org_nobody"  # No id has this shape.
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class NewReport:
    """What somebody reports; exactly one of `token` and `xr_id` names the Code."""

    token: str | None
    xr_id: str | None
    category: AbuseCategory
    text: str = field(repr=False)
    contact: str | None = field(repr=False)


async def receive_report(ctx: Context, new: NewReport) -> None:
    """Store a report about a Code. What fits no Code is not kept, with the same work.

    A token finds its Code at once. An id does not: its report is a claim until `settle_claims` finds the Code.

    Source: contract, section 13.
    """
    if new.token is None:
        assert new.xr_id is not None, "one of the two names the Code"
        async with ctx.db.transaction(tenant=_NOBODY) as tx:
            await abuse_reports.insert(tx, _make_report(ctx, new, new.xr_id, None), is_claim=True)
        return
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        found = (await broadcasts.find_many(tx, [new.token])).get(new.token)
    facts = None if found is None else read_facts(found.payload)
    organization_id, xr_id = (_NOBODY, "") if facts is None else (facts.organization_id, facts.xr_id)
    async with ctx.db.transaction(tenant=organization_id) as tx:
        # Without an organisation that stays until the report is there, it is deleted again.
        marker = await organizations.hold_marker(tx, organization_id)
        report = _make_report(ctx, new, xr_id, None if marker is None else organization_id)
        await abuse_reports.insert(tx, report, is_claim=False)
        is_unknown = await abuse_reports.delete_without_organization(tx, report.id)
    note_settled(report.id, xr_id, new.category, is_unknown=is_unknown)


async def settle_claims(ctx: Context) -> int:
    """Find the Codes that the oldest claims name, and delete the claims that fit none; return how many there were.

    It asks every organisation, about at most `CLAIMS_AT_ONCE` Codes. Safe at any time and concurrently.

    Raises: DatabaseUnavailable.
    Source: contract, section 13.
    """
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        claims = await abuse_reports.list_claims(tx, limit=CLAIMS_AT_ONCE)
        found = (
            dict(await abuse_reports.list_organizations_of_codes(tx, [xr_id for _, xr_id, _ in claims]))
            if claims
            else {}
        )
    for report_id, xr_id, category in claims:
        organization_id = found.get(xr_id, _NOBODY)
        async with ctx.db.transaction(tenant=organization_id) as tx:
            is_unknown = await organizations.hold_marker(tx, organization_id) is None
            if is_unknown:
                is_mine = await abuse_reports.delete_claim(tx, report_id)
            else:
                is_mine = await abuse_reports.update_claim(tx, report_id, organization_id=organization_id)
        if is_mine:
            note_settled(report_id, xr_id, category, is_unknown=is_unknown)
    return len(claims)


async def settle_waiting_claims(ctx: Context) -> int:
    """Settle the claims that wait, up to a thousand, as `settle_claims` does; return how many there were."""
    settled = 0
    for _ in range(_ROUNDS_MAX):
        count = await settle_claims(ctx)
        settled += count
        if count < CLAIMS_AT_ONCE:
            break
    return settled


def _make_report(ctx: Context, new: NewReport, xr_id: str, organization_id: str | None) -> AbuseReport:
    report_id = mint(ctx.entropy, REPORT_PREFIX)
    return AbuseReport(
        id=report_id,
        organization_id=organization_id,
        xr_id=xr_id,
        category=new.category,
        status="open",
        created_at=ctx.clock.now(),
        closed_at=None,
        sealed_text=_seal(ctx.sealer, report_id, "sealed_text", new.text),
        sealed_contact=_seal(ctx.sealer, report_id, "sealed_contact", new.contact),
        sealed_note=None,
    )


async def list_reports(
    ctx: Context, *, status: AbuseStatus | None, before: Position | None, limit: int
) -> Page[OpenedReport]:
    """Return the reports, newest first, with what people wrote. The first page settles claims before.

    Raises: SealBroken if one was sealed under another master key.
    """
    if before is None:
        await settle_claims(ctx)
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        rows = await abuse_reports.list_newest_first(tx, status=status, before=before, limit=limit + 1)
    page = cut_page(rows, limit, lambda row: Position(row.created_at, row.id))
    return Page([_open(ctx.sealer, row) for row in page.entries], page.next_position)


async def put_report(
    ctx: Context, report_id: str, *, status: AbuseStatus, note: str | None, subject_id: str
) -> OpenedReport:
    """Set the state of a report and the note on it. Reopening does not restore what was deleted.

    Raises: AbuseReportNotFound.
    """
    async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
        found = await abuse_reports.lock(tx, report_id)
        if found is None:
            raise AbuseReportNotFound
        now = ctx.clock.now()
        closed_at = None if status == "open" else found.closed_at or now
        sealed_note = _seal(ctx.sealer, report_id, "sealed_note", note)
        changed = replace(found, status=status, closed_at=closed_at, sealed_note=sealed_note)
        await abuse_reports.update(tx, changed)
    _log.info("abuse_report_changed", report_id=report_id, status=status, subject_id=subject_id)
    return _open(ctx.sealer, changed)


async def forget_reports(ctx: Context) -> int:
    """Delete what people wrote: 90 days after a report was closed, and 365 days after it was made; return how many.

    Safe at any time and concurrently.

    Raises: DatabaseUnavailable.
    Source: contract, section 13, and its details.
    """
    forgotten = 0
    while True:
        now = ctx.clock.now()
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            count = await abuse_reports.update_forgotten(
                tx, closed_before=now - KEPT_AFTER_CLOSING, created_before=now - KEPT_AT_MOST, limit=_AT_ONCE
            )
        forgotten += count
        if count < _AT_ONCE:
            return forgotten


def _open(sealer: Sealer, report: AbuseReport) -> OpenedReport:
    def unseal(column: str, sealed: bytes | None) -> str | None:
        return None if sealed is None else sealer.unseal(sealed, table=_TABLE, column=column, row=report.id).decode()

    return OpenedReport(
        report,
        text=unseal("sealed_text", report.sealed_text),
        contact=unseal("sealed_contact", report.sealed_contact),
        note=unseal("sealed_note", report.sealed_note),
    )


def _seal(sealer: Sealer, report_id: str, column: str, text: str | None) -> bytes | None:
    return None if text is None else sealer.seal(text.encode(), table=_TABLE, column=column, row=report_id)
