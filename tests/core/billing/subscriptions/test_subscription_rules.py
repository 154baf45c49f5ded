"""Each cell of the specification's table, what entitles and until when, and calendar months."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.core.domain.billing.subscription import (
    CARD_STATUS_EVENTS,
    SUBSCRIPTION_PREFIX,
    LiveQuota,
    Subscription,
    SubscriptionEvent,
    SubscriptionProvider,
    SubscriptionStatus,
    find_best,
    find_next_status,
    list_quotas,
)
from soundmark.kit.text.months import add_months

NOW: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
TICK: Final = timedelta(microseconds=1)
STATES: Final = (None, *get_args(SubscriptionStatus))
EVENTS: Final = get_args(SubscriptionEvent)
LIVE: Final = {"trialing", "active", "past_due"}

# The table a second time, as a person reads it: none, trialing, active, past_due, cancelled, expired; "." is unchanged.
OPEN: Final = {
    "card_trialing": "trialing trialing trialing trialing trialing trialing",
    "card_active": "active active active active active active",
    "card_past_due": "past_due past_due past_due past_due past_due past_due",
    "card_cancelled": "cancelled cancelled cancelled cancelled cancelled cancelled",
    "card_expired": ". expired expired expired expired expired",
    "card_other": ". . . . . .",
    "payment_verified": "active . active . . .",
    "contract_activated": "active active active active active active",
    "contract_cancelled": ". cancelled cancelled cancelled cancelled cancelled",
    "period_over": ". expired expired expired . .",
}
CLOSING: Final = {
    "card_trialing": ". . . . . .",
    "card_active": ". . . . . .",
    "card_past_due": ". . . . . .",
    "card_cancelled": ". cancelled cancelled cancelled cancelled cancelled",
    "card_expired": ". expired expired expired expired expired",
    "card_other": ". . . . . .",
    "payment_verified": ". . . . . .",
    "contract_activated": ". . . . . .",
    "contract_cancelled": ". cancelled cancelled cancelled cancelled cancelled",
    "period_over": ". expired expired expired . .",
}


def test_every_cell_of_the_table() -> None:
    for event, is_closing in product(EVENTS, (False, True)):
        found = [find_next_status(state, event, is_closing=is_closing) or "." for state in STATES]
        assert " ".join(found) == (CLOSING if is_closing else OPEN)[event], (event, is_closing)


def test_the_providers_words_are_those_that_it_documents() -> None:
    expected = {
        "trialing": "card_trialing",
        "active": "card_active",
        "past_due": "card_past_due",
        "unpaid": "card_past_due",
        "canceled": "card_cancelled",
        "incomplete_expired": "card_expired",
    }
    assert expected == CARD_STATUS_EVENTS


def subscription(
    provider: SubscriptionProvider, status: SubscriptionStatus, end: datetime | None, **changes: object
) -> Subscription:
    fields: dict[str, object] = {
        "organization_id": "org_1",
        "id": "bsu_1",
        "plan_id": "plan_1",
        "product": "audience",
        "audience_mode": "contract",
        "provider": provider,
        "status": status,
        "current_period_end": None,
        "paid_through": end,
        "cancel_at_period_end": False,
        "monthly_quota": None,
        "checkout_id": None,
        "provider_reference": None,
        "contract_reference": None,
        "last_event_at": None,
        "created_at": NOW,
        "updated_at": NOW,
        **changes,
    }
    return Subscription(**fields)  # type: ignore[arg-type]  # the fields above


@pytest.mark.parametrize("provider", get_args(SubscriptionProvider))
def test_it_entitles_while_it_is_live_and_what_was_paid_has_not_ended(provider: SubscriptionProvider) -> None:
    """A card subscription entitles for three more days, because the event of its renewal may be late.

    Without an end, a contract entitles for good, and anything else is not paid at all.
    """
    last = NOW - timedelta(days=3) if provider == "card" else NOW
    for status in get_args(SubscriptionStatus):
        is_live = status in LIVE
        assert subscription(provider, status, last + TICK).entitles(NOW) is is_live
        assert subscription(provider, status, last).entitles(NOW) is False
        assert subscription(provider, status, None).entitles(NOW) is (is_live and provider == "contract")


def test_at_a_price_that_we_do_not_sell_it_entitles_for_no_day_more() -> None:
    for end, entitles in ((NOW + TICK, True), (NOW, False)):
        assert subscription("card", "active", end, is_price_known=False).entitles(NOW) is entitles
        assert LiveQuota("card", end, 500, is_price_known=False).entitles(NOW) is entitles
    assert LiveQuota("card", NOW, 500, is_price_known=False).ends_at == NOW


@pytest.mark.parametrize("provider", get_args(SubscriptionProvider))
def test_what_is_not_a_cards_is_over_at_the_end_of_its_period(provider: SubscriptionProvider) -> None:
    for status in get_args(SubscriptionStatus):
        assert subscription(provider, status, NOW).is_over(NOW) is (provider != "card" and status in LIVE)
        assert subscription(provider, status, NOW + TICK).is_over(NOW) is False
        assert subscription(provider, status, None).is_over(NOW) is False


def test_the_time_of_an_event_is_no_term() -> None:
    one = subscription("card", "active", NOW)
    unlike = {"last_event_at": NOW, "updated_at": NOW + TICK, "paid_invoice_at": NOW, "paid_period_end": NOW}
    assert one.has_same_terms(subscription("card", "active", NOW, **unlike))
    for changes in (
        {"plan_id": "plan_2"},
        {"cancel_at_period_end": True},
        {"monthly_quota": 1},
        {"audience_mode": None},
        {"current_period_end": NOW},
        {"is_price_known": False},
    ):
        assert not one.has_same_terms(subscription("card", "active", NOW, **changes))
    assert not one.has_same_terms(subscription("card", "active", NOW + TICK))
    assert not one.has_same_terms(subscription("card", "past_due", NOW))


def test_the_highest_quota_counts_of_those_that_entitle_and_then_the_last_end() -> None:
    ended = LiveQuota("local", NOW, 900)
    in_grace = LiveQuota("card", NOW - timedelta(days=2), 500)
    short = LiveQuota("local", NOW + timedelta(days=1), 700)
    long = LiveQuota("local", NOW + timedelta(days=9), 700)
    endless = LiveQuota("contract", None, 700)
    assert find_best([ended], NOW) is None
    assert find_best([ended, in_grace], NOW) == in_grace
    assert find_best([short, in_grace, ended], NOW) == short
    assert find_best([short, long], NOW) == find_best([long, short], NOW) == long
    assert find_best([endless, long], NOW) == find_best([long, endless], NOW) == endless
    assert list_quotas([ended, in_grace, short], NOW) == [500, 700]
    assert in_grace.ends_at == NOW + timedelta(days=1)


@pytest.mark.parametrize(
    ("begins", "months", "anchor_day", "ends"),
    [
        ("2028-01-31", 1, 31, "2028-02-29"),
        ("2027-01-31", 2, 31, "2027-03-31"),
        ("2027-02-28", 1, 31, "2027-03-31"),
        ("2026-12-15", 1, 15, "2027-01-15"),
        ("2028-02-29", 12, 29, "2029-02-28"),
    ],
)
def test_a_month_later_is_the_same_day_or_the_months_last(begins: str, months: int, anchor_day: int, ends: str) -> None:
    at = "T23:59:59.999999+00:00"
    moment = datetime.fromisoformat(begins + at)
    assert add_months(moment, months, anchor_day=anchor_day) == datetime.fromisoformat(ends + at)


def test_months_are_counted_in_utc() -> None:
    """Half past midnight in Tunis on 1 March is still 28 February in UTC."""
    moment = datetime.fromisoformat("2027-03-01T00:30:00+01:00")
    assert add_months(moment, 1, anchor_day=28) == datetime(2027, 3, 28, 23, 30, tzinfo=UTC)


MOMENTS: Final = st.integers(0, 70 * 365 * 86_400).map(lambda seconds: NOW + timedelta(seconds=seconds))


@given(begins=MOMENTS, parts=st.lists(st.integers(1, 36), min_size=1, max_size=6))
def test_months_bought_in_parts_are_worth_as_much_as_together(begins: datetime, parts: list[int]) -> None:
    """Whatever the lengths of the months in between."""
    moment = begins
    for count in parts:
        later = add_months(moment, count, anchor_day=begins.day)
        assert later > moment
        assert later.time() == begins.time()
        moment = later
    assert moment == add_months(begins, sum(parts), anchor_day=begins.day)


@given(begins=MOMENTS, count=st.integers(1, 36))
def test_a_month_has_at_least_28_days_and_keeps_the_day_where_it_can(begins: datetime, count: int) -> None:
    ends = add_months(begins, count, anchor_day=begins.day)
    assert (ends.year * 12 + ends.month) - (begins.year * 12 + begins.month) == count
    assert ends.day == begins.day or (ends.day < begins.day and (ends + timedelta(days=1)).day == 1)
    assert ends - begins >= count * timedelta(days=28)


def test_the_providers_reference_is_never_printed_and_ids_have_their_prefix() -> None:
    """A log line or a traceback may print a record."""
    assert "sub_of_a_provider" not in repr(subscription("card", "active", NOW, provider_reference="sub_of_a_provider"))
    assert SUBSCRIPTION_PREFIX == "bsu_"
