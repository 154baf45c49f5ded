"""The page on which people wait for a purchase, and to which payment providers send them back."""

from datetime import timedelta

import pytest
from support.billing.card_purchase import WEBHOOK_SECRET, begin_purchase, list_sessions, status_of
from support.billing.local_purchase import begin_local_purchase
from support.billing.offers import CARD_OFFER, make_card_offer, make_card_subscription
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


def buttons(page: PageAnswer) -> list[str | None]:
    return [each.text for each in page.find_all(".//main//form//button")]


def links(page: PageAnswer, within: str) -> dict[str | None, str]:
    return {each.get("href"): "".join(each.itertext()) for each in page.find_all(f".//main//{within}//a")}


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


@pytest.mark.parametrize(("status", "words"), [("failed", "Nothing was paid."), ("expired", "ended without a payment")])
async def test_a_checkout_that_came_to_nothing_leads_back_to_the_offers(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox, status: str, words: str
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    await rival.run("UPDATE checkouts SET status = %s, reread_at = NULL", status)

    page = await operator.get(f"/billing/checkouts/{purchase.checkout_id}")

    assert words in page.text
    offers = f"/organizations/{tenant.organization_id}/billing/offers"
    assert page.find(".//main//a[@class='button']").get("href") == offers
    assert buttons(page) == []


async def test_a_purchase_that_waits_is_listed_with_its_plan_price_and_end_to_all_who_may_buy(
    operator: ConsoleClient,
    tenant: Tenant,
    rival: Rival,
    card: RunningSandbox,
    local: RunningSandbox,
    clock: FakeClock,
) -> None:
    """Also in another browser than the one that it was begun in."""
    by_card = await begin_purchase(tenant, rival, card)
    clock.advance(seconds=1)
    prepaid = await begin_local_purchase(tenant, rival, local, status="PENDING")

    page = await operator.get(f"/organizations/{tenant.organization_id}/billing")

    rows = [" ".join("".join(row.itertext()).split()) for row in page.find_all(".//section//tbody/tr")]
    assert links(page, "section//th") == {
        f"/billing/checkouts/{by_card.checkout_id}": "Studio",
        f"/billing/checkouts/{prepaid.checkout_id}": "Studio",
    }
    assert "By card, renews automatically" in rows[0]
    assert "29.500" in rows[1]
    assert len(page.find_all(".//section//tbody/tr/td/time")) == 2


async def test_a_purchase_of_an_offer_that_is_no_longer_for_sale_is_listed_by_its_id(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    await rival.run("UPDATE offers SET active = false")

    page = await operator.get(f"/organizations/{tenant.organization_id}/billing")

    assert links(page, "section//th") == {f"/billing/checkouts/{purchase.checkout_id}": CARD_OFFER}


async def test_what_blocks_the_deletion_is_named_and_linked(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    path = await buy(operator, tenant, rival)
    await make_card_subscription(rival, tenant.organization_id)
    deletion_path = f"/organizations/{tenant.organization_id}/delete"

    deletion = await operator.get(deletion_path)
    operator.core.refuse("GET /v1/billing/checkouts", 503, "database_unavailable")
    without_names = await operator.get(deletion_path)
    operator.core.recover()
    await operator.submit(path)
    await rival.run("UPDATE subscriptions SET status = 'cancelled'")

    assert links(deletion, "li") == {path: "Studio", f"/organizations/{tenant.organization_id}/billing": "Studio"}
    assert links(without_names, "li")[path] == path.rpartition("/")[2]
    assert deletion.find_all(".//main//form") == [], "nothing can be confirmed while it is blocked"
    assert deletion.find(".//a[@class='button second']").get("href") == deletion_path
    assert (await operator.get(deletion_path)).find_all(".//main//form")
    assert "Purchases that wait" not in (await operator.get(f"/organizations/{tenant.organization_id}/billing")).text
    assert len(await list_sessions(card)) == 1


async def test_a_purchase_is_given_up_on_its_page(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    path = await buy(operator, tenant, rival)
    assert buttons(await operator.get(path)) == ["Give up this purchase"]

    page = await operator.follow(await operator.submit(path))

    assert "The purchase was given up." in page.text
    assert "ended without a payment" in page.text
    assert buttons(page) == []
    assert [each["status"] for each in await list_sessions(card)] == ["expired"]


async def test_a_purchase_that_was_paid_meanwhile_is_shown_as_paid(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    path = await buy(operator, tenant, rival)
    await card.control(f"/card/sessions/{(await list_sessions(card))[0]['id']}/pay")

    page = await operator.follow(await operator.submit(path))

    assert "The payment is confirmed" in page.text
    assert "given up" not in page.text


@pytest.mark.parametrize(("status", "code"), [(409, "checkout_not_cancellable"), (503, "payment_provider_unavailable")])
async def test_a_purchase_that_cannot_be_given_up_stays_on_the_page(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox, status: int, code: str
) -> None:
    path = await buy(operator, tenant, rival)
    operator.core.refuse(f"POST /v1{path}/cancel", status, code)

    page = await operator.submit(path)

    assert (page.status, page.trouble) == (status, code)
    assert buttons(page) == ["Give up this purchase"]
    assert len(await list_sessions(card)) == 1


async def test_a_purchase_whose_page_nobody_can_close_says_until_when_it_is_open(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, local: RunningSandbox
) -> None:
    purchase = await begin_local_purchase(tenant, rival, local, status="PENDING")

    page = await operator.get(f"/billing/checkouts/{purchase.checkout_id}")
    refused = await operator.submit(f"/billing/checkouts/{purchase.checkout_id}")

    assert "only the payment provider can close its page" in page.text
    assert page.find(".//p[@class='hint']/time").get("datetime")
    assert buttons(page) == []
    assert (refused.status, refused.trouble) == (409, "checkout_not_cancellable")


async def test_nobody_gives_up_the_purchase_of_strangers(
    visitors: ConsoleClient, people: People, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    purchase = await begin_purchase(await people.tenant_of("owner"), rival, card)
    await people.tenant_of("stranger")
    visitors.sign_in_as(people, "stranger", clock.now())

    page = await visitors.submit(f"/billing/checkouts/{purchase.checkout_id}")

    assert (page.status, page.trouble) == (404, "page_not_found")
    assert await rival.rows("SELECT status FROM checkouts") == [("pending",)]


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
