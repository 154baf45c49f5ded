"""A checkout as Core stores it: its status, and what its records print."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

import pytest
from support.billing.offers import CARD_OFFER, PRICE, make_card_offer
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.core.domain.billing.checkout import (
    CHECKOUT_PREFIX,
    CheckoutPage,
    CheckoutStatus,
    Purchase,
    begin_checkout,
)
from soundmark.core.store.billing import checkouts
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database

NOW: Final = datetime(2026, 11, 23, tzinfo=UTC)
TICK: Final = timedelta(microseconds=1)
CARD: Final = Purchase("offer_1", "plan_1", "codes", "card", "price_MARK", None, None, None)


@pytest.mark.parametrize("status", get_args(CheckoutStatus))
def test_only_a_pending_checkout_expires_and_at_the_end_of_its_24_hours(status: CheckoutStatus) -> None:
    begun = begin_checkout("org_1", "bco_1", CARD, key_digest=None, request_digest=None, now=NOW)
    checkout = replace(begun, status=status)
    end = NOW + timedelta(hours=24)
    assert checkout.status_at(end - TICK) == status
    assert checkout.status_at(end) == ("expired" if status == "pending" else status)


def test_a_payment_that_was_unpaid_is_asked_about_again_after_ten_seconds() -> None:
    begun = begin_checkout("org_1", "bco_1", CARD, key_digest=None, request_digest=None, now=NOW)
    unpaid, end = replace(begun, unpaid_at=NOW), NOW + timedelta(seconds=10)
    assert [begun.is_unpaid_at(NOW), unpaid.is_unpaid_at(end - TICK), unpaid.is_unpaid_at(end)] == [False, True, False]


def test_nothing_that_leads_to_a_page_is_printed_and_ids_have_their_prefix() -> None:
    """A log line or a traceback may print a record."""
    page = CheckoutPage(reference="cs_MARK", url="https://pay.example.org/MARK")
    assert not [record for record in (CARD, page) if "MARK" in repr(record)]
    assert "plan_1" in repr(CARD), "the ids are shown"
    assert CHECKOUT_PREFIX == "bco_"


async def test_a_checkout_that_has_begun_is_what_is_stored_of_it(
    tenant: Tenant, rival: Rival, database_url: Secret
) -> None:
    """The request that begins it goes on with the record in memory, one that resumes it with the stored one."""
    await make_card_offer(rival)
    purchase = replace(CARD, offer_id=CARD_OFFER, plan_id="plan_codes_studio", price_reference=PRICE)
    digests = {"key_digest": bytes(32), "request_digest": bytes(32)}
    begun = begin_checkout(tenant.organization_id, "bco_" + "1" * 22, purchase, **digests, now=NOW)
    db = Database(database_url, pool_size=1, application_name="tests")
    await db.open()
    try:
        async with db.transaction(tenant=tenant.organization_id) as tx:
            await checkouts.insert(tx, begun)
            assert await checkouts.find(tx, tenant.organization_id, begun.id) == begun
    finally:
        await db.close()
