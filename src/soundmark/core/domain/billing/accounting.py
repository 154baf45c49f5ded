"""Draft invoices: what they say, exactly what was paid, and what to do about each.

Amounts are decimals from end to end: a binary float holds neither 10.555 nor most rates of tax.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, Literal, TypeAlias

DraftStatus: TypeAlias = Literal["pending", "processing", "completed", "failed"]
AccountingStatus: TypeAlias = Literal["not_scheduled", "pending", "processing", "completed", "failed"]

DRAFT_PREFIX: Final = "acc_"
TRIED_FOR: Final = timedelta(days=1)  # Contract, section 7, "Accounting".
# An attempt is at most five calls of ten seconds each. It ends well before the next may begin, so that there are never
# two at the same time.
ATTEMPT_MAX: Final = timedelta(seconds=55)
LEASE: Final = timedelta(seconds=75)

_PAUSE_MIN: Final = timedelta(seconds=30)  # Contract, section 7, "Accounting".
_PAUSE_MAX: Final = timedelta(hours=1)
_DOUBLINGS_MAX: Final = 7  # Beyond this, the pause is the longest.
_PRICE_UNIT: Final = Decimal("0.00001")  # The accounting system keeps five decimals of a price.
_HUNDRED: Final = Decimal(100)
# How many decimals the payment providers' unit of a currency has, where it is not two. ISO 4217, with three exceptions
# of the card provider. ISK and UGX no longer have decimals, yet it counts them in hundredths: "to charge 5 UGX,
# provide an amount value of 500". (UGX is in its list of currencies without decimals all the same.) It counts MGA in
# whole units.
# Source: https://docs.stripe.com/currencies, "Zero-decimal", "Three-decimal currencies" and "Special cases".
_DECIMALS: Final = {
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA"), 0),
    **dict.fromkeys(("PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF"), 0),
}


@dataclass(frozen=True, slots=True)
class AccountingState:
    """The newest draft invoice of a subscription. `invoice_id` is the accounting system's, once it is completed."""

    status: AccountingStatus
    invoice_id: int | None


NOT_SCHEDULED: Final = AccountingState("not_scheduled", None)


@dataclass(frozen=True, slots=True)
class DraftInvoice:
    """The draft invoice of one payment, as stored in the outbox.

    `amount_minor` is what was paid, tax included. No attempt may begin before `due_at`, because another is in progress
    or has just failed; it is None once the draft is completed or failed. No attempt follows one that fails after
    `give_up_at`. `posted_invoice_id` is the accounting system's answer to the last post, None if there was none.
    """

    organization_id: str
    id: str
    subscription_id: str
    checkout_id: str
    description: str
    amount_minor: int
    currency: str
    period_start: datetime
    period_end: datetime
    status: DraftStatus
    attempts: int
    due_at: datetime | None
    give_up_at: datetime
    created_at: datetime
    posted_invoice_id: int | None

    @property
    def reference(self) -> str:
        """The external reference by which the accounting system finds the invoice. API v1, "Billing"."""
        return f"svc:{self.id}"

    def next_step(self, now: datetime) -> Literal["nothing", "give_up", "wait", "attempt"]:
        """Return what to do about the draft at `now`. Repeated calls give the same result."""
        if self.due_at is None:
            return "nothing"
        if self.due_at > now:
            return "wait"
        # The worker of the last attempt was killed. Without this, such attempts would never end.
        return "give_up" if self.status == "processing" and self.give_up_at <= now else "attempt"


def pause_after(attempts: int) -> timedelta:
    """Return how long to wait after this number of failed attempts."""
    assert attempts >= 1, "a pause follows an attempt"
    doublings = min(attempts - 1, _DOUBLINGS_MAX)
    return min(_PAUSE_MIN * (1 << doublings), _PAUSE_MAX)


def describe_period(plan_name: str, period_start: datetime, period_end: datetime) -> str:
    """Return the text of an invoice's line."""
    return f"{plan_name}, {period_start:%Y-%m-%d} to {period_end:%Y-%m-%d}"


def amount_of(amount_minor: int, currency: str) -> Decimal:
    """Return an amount in the currency's unit from one in its minor unit."""
    return Decimal(amount_minor).scaleb(-_DECIMALS.get(currency, 2))


def price_without_tax(amount: Decimal, tax_percent: Decimal) -> Decimal:
    """Return the price to which tax at this rate is added to make `amount`, to five decimals.

    With tax, it differs from `amount` by at most a hundred-thousandth, which no currency can show.
    """
    return (amount * _HUNDRED / (_HUNDRED + tax_percent)).quantize(_PRICE_UNIT, ROUND_HALF_UP)


def is_amount(total: Decimal, amount: Decimal) -> bool:
    """Return whether an invoice's total is `amount`, to the last decimal of `amount`."""
    return total.quantize(amount, ROUND_HALF_UP) == amount
