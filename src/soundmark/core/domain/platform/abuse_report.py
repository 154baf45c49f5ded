"""Reports of abuse, which receivers send about Codes."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

REPORT_PREFIX: Final = "abr_"
TEXT_CHARS_MAX: Final = 2000
CONTACT_CHARS_MAX: Final = 254
# Contract, section 13, and its details: until when what people wrote is kept.
KEPT_AFTER_CLOSING: Final = timedelta(days=90)
KEPT_AT_MOST: Final = timedelta(days=365)

AbuseCategory = Literal["spam", "malware", "impersonation", "illegal", "other"]
AbuseStatus = Literal["open", "closed"]


@dataclass(frozen=True, slots=True)
class AbuseReport:
    """A report as it is stored. `organization_id` is None once the organisation was deleted.

    What people wrote is sealed, and None if it was not given or has been deleted.
    """

    id: str
    organization_id: str | None
    xr_id: str
    category: AbuseCategory
    status: AbuseStatus
    created_at: datetime
    closed_at: datetime | None
    sealed_text: bytes | None = field(repr=False)
    sealed_contact: bytes | None = field(repr=False)
    sealed_note: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class OpenedReport:
    """A report with what people wrote."""

    report: AbuseReport
    text: str | None = field(repr=False)
    contact: str | None = field(repr=False)
    note: str | None = field(repr=False)
