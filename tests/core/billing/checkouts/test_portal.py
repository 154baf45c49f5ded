"""POST /v1/billing/portal."""

import pytest
from support.api.core_settings import BASE_URL
from support.billing.card_purchase import CUSTOMER, list_keys
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/portal"


async def make_customer(tenant: Tenant, rival: Rival, reference: str = CUSTOMER) -> None:
    await rival.run("INSERT INTO card_customers VALUES (%s, %s, now())", tenant.organization_id, reference)


async def test_a_customer_gets_a_page_that_returns_to_the_console(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_customer(tenant, rival)

    answer = await tenant.api.post(PATH, params=tenant.query)

    (portal,) = (await card.look("card"))["portal_sessions"]
    assert (answer.status, answer.json) == (200, {"portal_url": portal["url"]})
    assert (portal["customer"], portal["return_url"]) == (CUSTOMER, f"{BASE_URL}/billing")


async def test_the_page_is_not_stored(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    """A second visit asks for another page."""
    await make_customer(tenant, rival)

    await tenant.api.post(PATH, params=tenant.query)
    await tenant.api.post(PATH, params=tenant.query)

    assert len(set(await list_keys(card))) == 2


async def test_without_a_verified_card_payment_there_is_no_customer(tenant: Tenant, card: RunningSandbox) -> None:
    assert (await tenant.api.post(PATH, params=tenant.query)).code == "customer_unavailable"
    assert await card.calls("card") == []


async def test_a_closing_organisation_may_still_cancel(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    """A subscription that renews itself must be cancelled before the organisation can be deleted."""
    await make_customer(tenant, rival)
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")

    assert (await tenant.api.post(PATH, params=tenant.query)).status == 200
    assert len(await card.calls("card")) == 1


@pytest.mark.parametrize("fault", ["refused", "html", "altered"])
async def test_a_provider_that_does_not_answer_as_documented_is_unavailable(
    tenant: Tenant, rival: Rival, card: RunningSandbox, fault: str
) -> None:
    await make_customer(tenant, rival)
    marked = {"url": "ftp://example.com/MARK", "error": {"message": "MARK"}}
    await card.misbehave("card", fault, times=4, merge=marked)

    answer = await tenant.api.post(PATH, params=tenant.query)

    assert answer.code == "payment_provider_unavailable"
    assert b"MARK" not in answer.body


async def test_a_customer_that_the_provider_does_not_know_is_its_failure(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_customer(tenant, rival, "cus_deletedAtTheProvider")

    assert (await tenant.api.post(PATH, params=tenant.query)).code == "payment_provider_unavailable"
    assert len(await card.calls("card")) == 1


async def test_without_credentials_the_portal_is_unavailable(tenant: Tenant, rival: Rival) -> None:
    await make_customer(tenant, rival)

    assert (await tenant.api.post(PATH, params=tenant.query)).code == "payment_provider_unavailable"
