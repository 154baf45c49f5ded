"""Until when a card subscription is paid, by each thing that the provider may say of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.core.domain.billing.card import CardInvoice, CardInvoiceLine, CardSubscription
from soundmark.core.domain.billing.paid_through import is_latest_paid, list_prices, move_paid_through
from soundmark.core.domain.billing.subscription import Subscription

NOW: Final = datetime(2026, 11, 26, 12, tzinfo=UTC)
DAY: Final = timedelta(days=1)
MONTH, YEAR = NOW + 30 * DAY, NOW + 365 * DAY
SOLD: Final = {"price_small": "plan_small", "price_large": "plan_large"}
NEW: Final = Subscription(
    organization_id="org_1",
    id="bsu_1",
    plan_id="plan_small",
    product="codes",
    audience_mode=None,
    provider="card",
    status="active",
    current_period_end=None,
    paid_through=None,
    cancel_at_period_end=False,
    monthly_quota=None,
    checkout_id="bco_1",
    provider_reference="sub_1",
    contract_reference=None,
    last_event_at=None,
    created_at=NOW,
    updated_at=NOW,
)


def make_line(end: datetime = MONTH, *, price: str | None = "price_small", **changes: Any) -> CardInvoiceLine:
    line = CardInvoiceLine(
        subscription="sub_1", price=price, is_credit=False, period_start=end - 30 * DAY, period_end=end
    )
    return replace(line, **changes)


def make_invoice(*lines: CardInvoiceLine, at: datetime | None = NOW, **changes: Any) -> CardInvoice:
    invoice = CardInvoice("in_1", "paid", "sub_1", "cus_1", 1900, "EUR", {}, at, lines or (make_line(),))
    return replace(invoice, **changes)


def make_state(invoice: CardInvoice | None = None, **changes: Any) -> CardSubscription:
    state = CardSubscription("sub_1", "active", "cus_1", ("price_small",), YEAR, False, {}, invoice)
    return replace(state, **changes)


def move(*states: CardSubscription, since: Subscription = NEW) -> Subscription:
    """Apply what the provider says, one after the other; each twice, because that must not matter."""
    for state in states:
        once = move_paid_through(since, state, SOLD)
        since = move_paid_through(once, state, SOLD)
        assert since == once
    return since


def test_it_is_paid_through_the_period_of_its_paid_invoice() -> None:
    paid = move(make_state(make_invoice()))
    assert (paid.paid_through, paid.is_price_known) == (MONTH, True)


@pytest.mark.parametrize("status", ["draft", "open", "void", "uncollectible", "invented_later", None])
def test_an_invoice_of_any_other_status_moves_nothing(status: str | None) -> None:
    unpaid = make_state(make_invoice(make_line(YEAR), at=NOW + DAY, status=status))
    assert move(unpaid).paid_through is None
    assert move(make_state(make_invoice()), unpaid).paid_through == MONTH
    assert not is_latest_paid(unpaid)


def test_a_paid_invoice_counts_whatever_its_amount() -> None:
    """A coupon, or a trial."""
    assert move(make_state(make_invoice(amount_paid_minor=0))).paid_through == MONTH


def test_a_failed_renewal_and_a_pause_move_nothing_however_far_the_provider_moves_the_period() -> None:
    paid = move(make_state(make_invoice()))
    for months in range(1, 5):
        unpaid = make_invoice(make_line(MONTH + 30 * months * DAY), at=NOW + 30 * months * DAY, status="open")
        paid = move(make_state(unpaid, status="past_due", current_period_end=MONTH + 30 * months * DAY), since=paid)
        assert paid.paid_through == MONTH


def test_without_an_invoice_or_its_time_or_its_lines_nothing_moves() -> None:
    for invoice in (None, make_invoice(at=None), make_invoice(lines=())):
        assert move(make_state(invoice)).paid_through is None


def test_the_period_is_the_latest_of_the_lines_in_any_order() -> None:
    """Lines of a proration come before or after that of the new period."""
    credit = make_line(MONTH - DAY, is_credit=True)
    for lines in permutations((credit, make_line(MONTH), make_line(MONTH - 9 * DAY), make_line(MONTH - DAY))):
        assert move(make_state(make_invoice(*lines))).paid_through == MONTH


def test_a_line_of_another_subscription_or_of_none_does_not_count() -> None:
    """An operator's own item on an invoice may have any period."""
    others = (make_line(YEAR, subscription="sub_2"), make_line(YEAR, subscription=None))
    assert move(make_state(make_invoice(*others, make_line()))).paid_through == MONTH
    assert move(make_state(make_invoice(*others))).paid_through is None


def test_a_line_that_names_no_price_is_of_the_subscriptions() -> None:
    assert move(make_state(make_invoice(make_line(price=None)))).paid_through == MONTH


def test_the_newest_paid_invoice_counts_even_if_its_period_ends_earlier() -> None:
    """The customer went from a year to a month."""
    yearly, monthly = make_invoice(make_line(YEAR)), make_invoice(make_line(MONTH), at=NOW + DAY)
    assert move(make_state(yearly), make_state(monthly)).paid_through == MONTH
    assert move(make_state(monthly), make_state(yearly)).paid_through == MONTH, "the older one comes too late"


def test_a_credit_pays_for_nothing_even_beside_a_charge() -> None:
    """Who goes from a year to a month is credited for the rest of the year, even if it was never paid."""
    credit = make_line(YEAR, price="price_large", is_credit=True)
    for lines in permutations((credit, make_line(MONTH))):
        back = make_invoice(*lines, at=NOW + DAY, amount_paid_minor=0)
        assert move(make_state(make_invoice()), make_state(back)).paid_through == MONTH


def test_of_two_invoices_of_one_second_the_one_that_is_read_last_counts() -> None:
    first, second = make_invoice(make_line(MONTH)), make_invoice(make_line(MONTH + DAY))
    assert move(make_state(first), make_state(second)).paid_through == MONTH + DAY


def test_a_trial_counts_to_its_end_and_then_what_is_paid() -> None:
    trial = make_state(trial_end=NOW + 14 * DAY)
    assert move(trial).paid_through == NOW + 14 * DAY
    assert move(trial, make_state(make_invoice(), trial_end=NOW + 14 * DAY)).paid_through == MONTH
    assert move(make_state(make_invoice(), trial_end=YEAR)).paid_through == YEAR


def test_a_trial_whose_end_moves_is_followed_in_both_directions() -> None:
    for days in (20, 7):
        assert move(make_state(trial_end=NOW + 14 * DAY), make_state(trial_end=NOW + days * DAY)).paid_through == (
            NOW + days * DAY
        )
    assert move(make_state(make_invoice(), trial_end=YEAR), make_state(trial_end=None)).paid_through == MONTH


def test_at_a_price_that_we_do_not_sell_nothing_moves() -> None:
    """Otherwise a cheap price that nobody sold would pay for the large plan from month to month."""
    elsewhere = make_state(
        make_invoice(make_line(YEAR, price="price_cheap"), at=NOW + DAY), prices=("price_cheap",), trial_end=YEAR
    )
    stopped = move(make_state(make_invoice()), elsewhere)
    assert (stopped.paid_through, stopped.is_price_known) == (MONTH, False)


def test_what_was_paid_at_a_price_that_we_do_not_sell_does_not_count_after_the_return_either() -> None:
    cheap = make_invoice(make_line(YEAR, price="price_cheap"), at=NOW + DAY)
    back = move(make_state(make_invoice()), make_state(cheap, prices=("price_cheap",)), make_state(cheap))
    assert (back.paid_through, back.is_price_known) == (MONTH, True)
    renewed = make_invoice(make_line(MONTH + 30 * DAY), at=NOW + 30 * DAY)
    assert move(make_state(renewed), since=back).paid_through == MONTH + 30 * DAY


def test_the_credit_for_leaving_our_price_does_not_count() -> None:
    """The provider credits the rest of a period that was never paid, so such an invoice is paid at once."""
    credit = make_line(YEAR, price="price_large", is_credit=True)
    left = make_invoice(credit, make_line(MONTH, price="price_cheap"), at=NOW + DAY)
    assert move(make_state(left)).paid_through is None
    returned = make_invoice(replace(credit, price="price_cheap"), make_line(MONTH), at=NOW + DAY)
    assert move(make_state(returned)).paid_through == MONTH, "the credit of the other price does not count either"


def test_an_item_that_we_do_not_sell_beside_ours_does_no_harm() -> None:
    lines = (make_line(), make_line(YEAR, price="price_extra"))
    paid = move(make_state(make_invoice(*lines), prices=("price_extra", "price_small")))
    assert (paid.paid_through, paid.is_price_known) == (MONTH, True)


def test_every_price_that_is_judged_is_listed() -> None:
    state = make_state(make_invoice(make_line(price="price_2"), make_line(price=None)), prices=("price_1",))
    assert list_prices(state) == {"price_1", "price_2"}
    assert list_prices(make_state()) == {"price_small"}


INVOICES: Final = st.builds(
    lambda day, length, status: make_invoice(make_line(NOW + (day + length) * DAY), at=NOW + day * DAY, status=status),
    st.integers(0, 400),
    st.sampled_from([7, 30, 365]),
    st.sampled_from(["paid", "open", "void", "draft"]),
)


@given(invoices=st.lists(INVOICES, max_size=8, unique_by=lambda invoice: invoice.created_at), data=st.data())
def test_the_order_in_which_invoices_are_read_does_not_matter(invoices: list[CardInvoice], data: st.DataObject) -> None:
    read = data.draw(st.permutations(invoices))
    paid = [invoice for invoice in invoices if invoice.status == "paid"]
    newest = max(paid, key=lambda invoice: invoice.created_at or NOW, default=None)
    expected = None if newest is None else newest.lines[0].period_end
    assert move(*(make_state(invoice) for invoice in read)).paid_through == expected
