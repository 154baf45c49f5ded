"""POST /v1/billing/portal."""

from urllib.parse import parse_qs

import pytest
from support.api.core_settings import BASE_URL
from support.database.rival import Rival
from support.outside.card_stand_in import CUSTOMER, PORTAL_URL, CardStandIn
from support.outside.outside_server import Fault
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/portal"


async def make_customer(tenant: Tenant, rival: Rival, reference: str = CUSTOMER) -> None:
    await rival.run("INSERT INTO card_customers VALUES (%s, %s, now())", tenant.organization_id, reference)


async def test_a_customer_gets_a_page_that_returns_to_the_console(
    tenant: Tenant, rival: Rival, card: CardStandIn
) -> None:
    await make_customer(tenant, rival)

    answer = await tenant.api.post(PATH, params=tenant.query)

    assert (answer.status, answer.json) == (200, {"portal_url": PORTAL_URL})
    assert parse_qs(card.received[0].body.decode()) == {
        "customer": [CUSTOMER],
        "return_url": [f"{BASE_URL}/billing"],
    }


async def test_the_page_is_not_stored(tenant: Tenant, rival: Rival, card: CardStandIn) -> None:
    """A second visit asks for another page."""
    await make_customer(tenant, rival)

    await tenant.api.post(PATH, params=tenant.query)
    await tenant.api.post(PATH, params=tenant.query)

    assert len(set(card.keys)) == 2


async def test_without_a_verified_card_payment_there_is_no_customer(tenant: Tenant, card: CardStandIn) -> None:
    assert (await tenant.api.post(PATH, params=tenant.query)).code == "customer_unavailable"
    assert card.received == []


async def test_a_closing_organisation_may_still_cancel(tenant: Tenant, rival: Rival, card: CardStandIn) -> None:
    """A subscription that renews itself must be cancelled before the organisation can be deleted."""
    await make_customer(tenant, rival)
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")

    assert (await tenant.api.post(PATH, params=tenant.query)).status == 200
    assert len(card.received) == 1


@pytest.mark.parametrize("fault", ["refused", "html", "wrong_object"])
async def test_a_provider_that_does_not_answer_as_documented_is_unavailable(
    tenant: Tenant, rival: Rival, card: CardStandIn, fault: Fault
) -> None:
    await make_customer(tenant, rival)
    card.faults += [fault] * 4

    answer = await tenant.api.post(PATH, params=tenant.query)

    assert answer.code == "payment_provider_unavailable"
    assert b"MARK" not in answer.body


async def test_a_customer_that_the_provider_does_not_know_is_its_failure(
    tenant: Tenant, rival: Rival, card: CardStandIn
) -> None:
    await make_customer(tenant, rival, "cus_deletedAtTheProvider")

    assert (await tenant.api.post(PATH, params=tenant.query)).code == "payment_provider_unavailable"
    assert len(card.received) == 1


async def test_without_credentials_the_portal_is_unavailable(tenant: Tenant, rival: Rival) -> None:
    await make_customer(tenant, rival)

    assert (await tenant.api.post(PATH, params=tenant.query)).code == "payment_provider_unavailable"
