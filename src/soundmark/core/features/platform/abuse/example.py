"""The example in the published description of these operations."""

from typing import Final

from soundmark.core.domain.platform.abuse_report import AbuseReport, OpenedReport
from soundmark.core.edge.examples import CODE, LATER, ORGANIZATION

REPORT: Final = OpenedReport(
    AbuseReport(
        id="abr_ZmFrZS11cGRhdGUtZXhhbX",
        organization_id=ORGANIZATION.id,
        xr_id=CODE.xr_id,
        category="malware",
        status="open",
        created_at=LATER,
        closed_at=None,
        sealed_text=None,
        sealed_contact=None,
        sealed_note=None,
    ),
    text="It offers a fake update.",
    contact="listener@example.org",
    note=None,
)
