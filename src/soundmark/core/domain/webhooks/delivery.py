"""Deliveries: an event on its way to one endpoint."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

DeliveryStatus = Literal["pending", "delivered", "failed"]

KEPT: Final = timedelta(days=30)  # Contract, section 9: for this long, events and deliveries are kept.
# Contract, section 9: the pauses before the second attempt and those after it. The attempt after the last pause is the
# last one.
RETRY_AFTER: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=10),
)


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """The delivery of one event to one endpoint. `next_attempt_at` is None once it is delivered or failed."""

    organization_id: str
    id: str
    endpoint_id: str
    event_id: str
    event_type: str
    status: DeliveryStatus
    attempts: int
    last_status_code: int | None
    last_error: str | None
    next_attempt_at: datetime | None
    created_at: datetime
