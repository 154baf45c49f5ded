"""Receipts of payment events: the ledger of what providers notified us of."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from soundmark.core.domain.billing.catalog import ProviderName
from soundmark.core.domain.billing.checkout import FIRST_REREAD

ReceiptStatus: TypeAlias = Literal["pending", "processed", "ignored"]

REREAD_PAUSE_MAX: Final = timedelta(hours=1)
REREAD_FOR: Final = timedelta(hours=25)  # A checkout lives for 24 hours; its last payment may be under way then.
# The card provider keeps an event for 30 days: after that, nobody can deliver or list it once more.
FOREIGN_KEPT: Final = timedelta(days=30)
_DOUBLINGS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class PaymentReceipt:
    """The receipt of one payment event. The organisation and the checkout are None until the event is understood."""

    provider: ProviderName
    event_id: str
    event_type: str
    organization_id: str | None
    checkout_id: str | None
    status: ReceiptStatus
    rereads: int
    reread_at: datetime | None
    received_at: datetime


def next_reread_at(*, since: datetime, rereads: int, now: datetime) -> datetime | None:
    """Return when to ask the provider again after `rereads` times; None once it has been 25 hours.

    The pauses double from two minutes to an hour, so a lost notification heals within the hour.
    """
    again_at = now + min(FIRST_REREAD * (1 << min(rereads, _DOUBLINGS_MAX)), REREAD_PAUSE_MAX)
    return again_at if again_at <= since + REREAD_FOR else None
