"""The page on which people wait for a purchase, and to which payment providers send them back."""

from datetime import timedelta

import pytest
from support.billing.card_purchase import WEBHOOK_SECRET, begin_purchase, list_sessions, status_of
from support.billing.offers import CARD_OFFER, make_card_offer
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.console.pages.billing import begun_checkouts


async def buy(client: ConsoleClient, tenant: Tenant, rival: Rival) -> str:
    """Begin a checkout in this browser, and return the path of its page."""
    await make_card_offer(rival)
    fields = {"offer_id": CARD_OFFER, "idempotency_key": "purchase-of-november"}
    page = await client.submit(f"/organizations/{tenant.organization_id}/billing/offers", fields)
    assert page.status == 200, page.text
    ((checkout_id,),) = await rival.rows("SELECT id FROM checkouts WHERE organization_id = %s", tenant.organization_id)
    return f"/billing/checkouts/{checkout_id}"


def asked_organizations(client: ConsoleClient) -> list[str]:
    """Return the organisation of each call for a checkout, in order."""
    return [
        call.url.params["organization_id"]
        for call in client.core.calls
        if call.url.path.startswith("/v1/billing/checkouts/")
    ]


def has_script(page: PageAnswer) -> bool:
    return any("checkout_wait" in str(each.get("src")) for each in page.find_all(".//script"))


async def test_the_page_waits_for_the_payment_in_the_right_organization(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_tenant(tenant.api)
    path = await buy(operator, tenant, rival)

    page = await operator.get(path)

    assert page.status == 200
    assert "waiting for the payment" in page.text
    assert page.find(".//dl[@class='facts']/dd/bdi").text == "Studio"
    assert has_script(page)
    assert page.find(".//div[@id='waiting']").get("data-status-url") == f"{path}/status"
    assert page.find(".//div[@id='waiting']//a").get("href") == path
    assert asked_organizations(operator) == [tenant.organization_id]
    assert page.find(".//nav[@aria-label='Areas']") is not None
    assert len(await list_sessions(card)) == 1


async def test_a_paid_checkout_is_completed_on_the_page(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    assert (await put_setting(tenant.api, "card_webhook_secret", WEBHOOK_SECRET)).status == 200
    purchase = await begin_purchase(tenant, rival, card)
    assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "processed"

    pasted = await operator.get(f"/search?q={purchase.checkout_id}")
    assert pasted.find(".//ul[@class='found']//a").get("href") == f"/billing/checkouts/{purchase.checkout_id}"
    page = await operator.get(f"/billing/checkouts/{purchase.checkout_id}")

    assert "The payment is confirmed" in page.text
    assert not has_script(page)


@pytest.mark.parametrize(("status", "words"), [("failed", "Nothing was paid."), ("expired", "not used in time")])
async def test_a_checkout_that_came_to_nothing_leads_back_to_the_offers(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox, status: str, words: str
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    await rival.run("UPDATE checkouts SET status = %s, reread_at = NULL", status)

    page = await operator.get(f"/billing/checkouts/{purchase.checkout_id}")

    assert words in page.text
    offers = f"/organizations/{tenant.organization_id}/billing/offers"
    assert page.find(".//main//a[@class='button']").get("href") == offers


async def test_a_purchase_that_waits_is_listed_and_blocks_the_deletion_with_a_link(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    path = await buy(operator, tenant, rival)

    billing = await operator.get(f"/organizations/{tenant.organization_id}/billing")
    deletion = await operator.get(f"/organizations/{tenant.organization_id}/delete")
    await rival.run("UPDATE checkouts SET status = 'failed', reread_at = NULL")

    assert path in [a.get("href") for a in billing.find_all(".//main//li/a")]
    assert path in [a.get("href") for a in deletion.find_all(".//section[@class='trouble']//a")]
    assert deletion.find_all(".//main//form") == [], "nothing can be confirmed while it is blocked"
    assert (
        deletion.find(".//a[@class='button second']").get("href") == f"/organizations/{tenant.organization_id}/delete"
    )
    assert (await operator.get(f"/organizations/{tenant.organization_id}/delete")).find_all(".//main//form")
    assert "Purchases that wait" not in (await operator.get(f"/organizations/{tenant.organization_id}/billing")).text
    assert len(await list_sessions(card)) == 1


async def test_another_browser_asks_each_organization_once(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    clock.advance(seconds=1)
    newer = await make_tenant(tenant.api)
    path = f"/billing/checkouts/{purchase.checkout_id}"

    assert (await operator.get(path)).status == 200
    assert asked_organizations(operator) == [newer.organization_id, tenant.organization_id]
    operator.core.calls.clear()
    assert (await operator.get(path)).status == 200
    assert asked_organizations(operator) == [tenant.organization_id]


async def test_the_checkout_of_strangers_is_a_page_that_does_not_exist(
    visitors: ConsoleClient, people: People, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await people.tenant_of("stranger")
    purchase = await begin_purchase(tenant, rival, card)
    visitors.sign_in_as(people, "stranger", clock.now())

    page = await visitors.get(f"/billing/checkouts/{purchase.checkout_id}")

    assert (page.status, page.trouble) == (404, "page_not_found")


async def test_a_cookie_of_another_person_shows_nothing(
    visitors: ConsoleClient, people: People, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    """Two people may share a browser."""
    tenant = await people.tenant_of("owner")
    visitors.sign_in_as(people, "owner", clock.now())
    path = await buy(visitors, tenant, rival)
    visitors.sign_in_as(people, "stranger", clock.now())

    page = await visitors.get(path)

    assert (page.status, page.trouble) == (404, "page_not_found")
    assert len(await list_sessions(card)) == 1


@pytest.mark.parametrize("checkout_id", ["bco_", "xr_abc", "bco_%2e%2e%2f", "%2e%2e", "bco_" + "a" * 65])
async def test_what_is_no_checkout_id_is_not_asked_for(operator: ConsoleClient, checkout_id: str) -> None:
    page = await operator.get(f"/billing/checkouts/{checkout_id}")

    assert page.status == 404
    assert asked_organizations(operator) == []


async def test_the_script_is_answered_with_the_status_alone(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    path = f"{await buy(operator, tenant, rival)}/status"

    answer = await operator.get(path)

    assert answer.response.json() == {"status": "pending"}
    assert answer.headers["cache-control"] == "no-store"
    clock.advance(seconds=timedelta(days=2).total_seconds())
    signed_out = await operator.get(path)
    assert signed_out.location.startswith("/sign-in?")
    assert len(await list_sessions(card)) == 1


async def test_the_browser_remembers_the_newest_checkouts_alone(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cookie has limited space."""
    monkeypatch.setattr(begun_checkouts, "_KEPT_MAX", 1)
    first = await buy(operator, tenant, rival)
    second = await begin_purchase(tenant, rival, card)
    assert (await operator.get(f"/billing/checkouts/{second.checkout_id}")).status == 200
    operator.core.calls.clear()

    assert (await operator.get(first)).status == 200

    assert any(call.url.path == "/v1/organizations" for call in operator.core.calls)


async def test_the_page_in_french(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    page = await french.get(f"/billing/checkouts/{purchase.checkout_id}")

    assert "en attente du paiement" in page.text
