"""Payments that their provider confirmed to us."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class VerifiedPayment:
    """One payment for one period of a subscription, confirmed by the provider in answer to a request of ours.

    `key` is the provider's reference of the invoice or payment, of which only a digest is stored. `amount_minor`
    includes tax and is in the unit in which the provider counts the currency, a code of ISO 4217 in upper case.
    """

    checkout_id: str
    key: str = field(repr=False)
    amount_minor: int
    currency: str
    plan_name: str
    period_start: datetime
    period_end: datetime
