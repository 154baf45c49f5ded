"""Draft invoices in the accounting system, and the outbox from which a job makes them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

OutboxStatus: TypeAlias = Literal["pending", "processing", "completed", "failed"]
AccountingStatus: TypeAlias = Literal["not_scheduled", "pending", "processing", "completed", "failed"]

OUTBOX_PREFIX: Final = "acc_"
TRIED_FOR: Final = timedelta(days=1)  # Contract, section 7, "Accounting".


@dataclass(frozen=True, slots=True)
class AccountingState:
    """The newest draft invoice of a subscription. `invoice_id` is the accounting system's, once it is completed."""

    status: AccountingStatus
    invoice_id: int | None


NOT_SCHEDULED: Final = AccountingState("not_scheduled", None)


@dataclass(frozen=True, slots=True)
class DraftInvoice:
    """What the one line of a draft invoice says: its text, the amount paid with tax, and the period paid for."""

    description: str
    amount_minor: int
    currency: str
    period_start: datetime
    period_end: datetime


def describe_period(plan_name: str, period_start: datetime, period_end: datetime) -> str:
    """Return the text of an invoice's line."""
    return f"{plan_name}, {period_start:%Y-%m-%d} to {period_end:%Y-%m-%d}"
