"""The examples of a campaign's summary, and of a stopped campaign."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from soundmark.core.domain.codes.campaign import Summary
from soundmark.core.edge.examples import CAMPAIGN

ARCHIVED: Final = replace(CAMPAIGN, archived_at=datetime(2027, 8, 1, 18, 0, tzinfo=UTC))
SUMMARY: Final = Summary(
    campaign=CAMPAIGN,
    issued_count=100,
    active_count=60,
    expired_count=37,
    revoked_count=3,
    audience_enabled_count=0,
    first_issued_at=datetime(2027, 6, 21, 8, 0, tzinfo=UTC),
    last_issued_at=datetime(2027, 8, 1, 17, 30, tzinfo=UTC),
)
