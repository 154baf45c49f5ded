"""Claims of abuse, which name a Code by its id, and the reports that they become when somebody has found the Code."""

from typing import Final

import structlog
from prometheus_client import Counter

from soundmark.core.domain.platform.abuse_report import AbuseCategory
from soundmark.core.store.platform import abuse_reports
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.database import Database

_log: Final = structlog.get_logger()
_received: Final = Counter("soundmark_abuse_reports_total", "Well-formed abuse reports, by outcome.", ["outcome"])


async def settle_claims_of(db: Database, organization_id: str) -> None:
    """Find the Codes of one organisation that claims name, before they are deleted and the claims fit none.

    Raises: DatabaseUnavailable.
    """
    async with db.transaction(tenant=organization_id) as tx:
        await organizations.hold_marker(tx, organization_id)
        settled = await abuse_reports.update_claims_of(tx, organization_id)
    for report_id, xr_id, category in settled:
        note_settled(report_id, xr_id, category, is_unknown=False)


def note_settled(report_id: str, xr_id: str, category: AbuseCategory, *, is_unknown: bool) -> None:
    """Count a report whose Code somebody has looked for, and log one that fits a Code."""
    _received.labels("unknown" if is_unknown else "stored").inc()
    if not is_unknown:
        _log.info("abuse_reported", report_id=report_id, xr_id=xr_id, category=category)
