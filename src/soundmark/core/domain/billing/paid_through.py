"""Until when a card subscription is paid, by what the provider says of it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from soundmark.core.domain.billing.card import CardInvoice, CardSubscription
from soundmark.core.domain.billing.subscription import Subscription

# The plan of each price that we sell or sold, by the price's reference at the provider.
SoldPrices: TypeAlias = Mapping[str, str]


def list_prices(state: CardSubscription) -> set[str]:
    """Return the references of all prices by which `move_paid_through` judges `state`."""
    lines = () if state.latest_invoice is None else state.latest_invoice.lines
    return {*state.prices, *(line.price for line in lines if line.price is not None)}


def is_latest_paid(state: CardSubscription) -> bool:
    """Return whether the subscription's latest invoice is paid, whatever its amount."""
    return state.latest_invoice is not None and state.latest_invoice.status == "paid"


def move_paid_through(subscription: Subscription, state: CardSubscription, sold: SoldPrices) -> Subscription:
    """Return the subscription with what `state` shows to be paid; repeated calls change nothing more.

    It is paid through the end of the trial, or of the period of the newest paid invoice if that is later. Any other
    invoice moves nothing, in neither direction. Nothing moves while the subscription has a price that we do not sell.

    Source: contract, section 7, what entitles.
    """
    if not any(price in sold for price in state.prices):
        return replace(subscription, is_price_known=False)
    period_end, invoice_at = subscription.paid_period_end, subscription.paid_invoice_at
    invoice = state.latest_invoice
    if invoice is not None and is_latest_paid(state) and _is_newest(invoice, invoice_at):
        paid_until = find_period_end(invoice, state.reference, sold)
        if paid_until is not None:
            period_end, invoice_at = paid_until, invoice.created_at
    return replace(
        subscription,
        paid_through=max((end for end in (state.trial_end, period_end) if end is not None), default=None),
        paid_period_end=period_end,
        paid_invoice_at=invoice_at,
        is_price_known=True,
    )


def find_period_end(invoice: CardInvoice, subscription: str, sold: SoldPrices) -> datetime | None:
    """Return the end of the period that an invoice charges for a subscription: the latest of its charges.

    Lines of another subscription, or of a price that we do not sell, do not count. Nor do credits: a customer who
    leaves a price is credited for the rest of a period, paid or not. None if the invoice charges for nothing that we
    sell.
    """
    charges = (
        line
        for line in invoice.lines
        if line.subscription == subscription and not line.is_credit and (line.price is None or line.price in sold)
    )
    return max((line.period_end for line in charges), default=None)


def _is_newest(invoice: CardInvoice, newest_at: datetime | None) -> bool:
    """Return whether no paid invoice is newer. Two of one second are taken in the order in which they are read."""
    return invoice.created_at is not None and (newest_at is None or invoice.created_at >= newest_at)
