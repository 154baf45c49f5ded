"""Codes, campaigns and events for the tests of reports."""

from datetime import datetime
from typing import Any

from support.api.core_client import Answer
from support.audience.recorded_events import (
    RecordedEvent,
)

XR = [f"xr_{letter * 22}" for letter in "ABCDE"]
CAMPAIGNS = ["cmp_" + "a" * 22, "cmp_" + "b" * 22]
# Some Codes belong to campaigns, others to none.
CAMPAIGN_OF = dict(zip(XR, [CAMPAIGNS[0], CAMPAIGNS[0], CAMPAIGNS[1], None, None], strict=True))
RETENTION_DAYS = 6


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json["code"]


def make_event(at: datetime, token: int = 1, xr_id: str = XR[0], **changes: Any) -> RecordedEvent:
    return RecordedEvent(at=at, token=token, xr_id=xr_id, campaign_id=CAMPAIGN_OF[xr_id], **changes)
