"""Subscriptions, and the way to the card provider's portal."""

from urllib.parse import urlsplit

import pytest
from support.billing.card_purchase import CUSTOMER
from support.billing.offers import make_card_subscription
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant


def billing_path(tenant: Tenant) -> str:
    return f"/organizations/{tenant.organization_id}/billing"


async def make_customer(tenant: Tenant, rival: Rival) -> None:
    await rival.run("INSERT INTO card_customers VALUES (%s, %s, now())", tenant.organization_id, CUSTOMER)


def read_tiles(page: PageAnswer) -> list[tuple[str, str]]:
    return [
        (str(tile.findtext("dt")), "".join(text for dd in tile.findall("dd[@class='value']") for text in dd.itertext()))
        for tile in page.find_all(".//dl[@class='tiles']/div")
    ]


async def test_without_a_subscription_the_page_says_what_everybody_has(operator: ConsoleClient, tenant: Tenant) -> None:
    page = await operator.get(billing_path(tenant))

    assert "No subscriptions." in page.text
    assert read_tiles(page) == [("Your plan: Codes", "Starter"), ("Codes issued this month", "0")]


async def test_the_current_plan_its_use_and_its_renewal_are_on_the_page(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await make_card_subscription(rival, tenant.organization_id, current_period_end="2031-07-26T12:00:00Z")
    await tenant.make_code()

    page = await operator.get(billing_path(tenant))

    assert read_tiles(page) == [("Your plan: Codes", "Studio"), ("Codes issued this month", "1")]
    assert "Renews on 26 Jul 2031" in page.text
    operator.core.refuse("GET /v1/usage", 503, "database_unavailable")
    assert read_tiles(await operator.get(billing_path(tenant))) == [("Your plan: Codes", "Studio")]


async def test_a_subscription_is_shown_with_its_invoice(operator: ConsoleClient, tenant: Tenant, rival: Rival) -> None:
    await make_card_subscription(rival, tenant.organization_id, status="past_due", cancel_at_period_end=True)

    page = await operator.get(billing_path(tenant))

    [row] = page.find_all(".//tbody/tr")
    text = " ".join("".join(row.itertext()).split())
    for words in (
        "Studio",
        "By card, renews automatically",
        "payment overdue",
        "Nothing has been paid yet.",
        "Does not renew.",
        "no draft",
    ):
        assert words in text


async def test_a_subscription_is_shown_with_the_end_of_what_is_paid(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await make_card_subscription(rival, tenant.organization_id, paid_through="2031-07-26T12:00:00Z")

    page = await operator.get(billing_path(tenant))

    [row] = page.find_all(".//tbody/tr")
    assert "2031" in "".join(row.itertext())


async def test_the_portal_is_offered_to_those_who_pay_by_card(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    offered = []
    for is_paid in (False, True):
        if is_paid:
            await make_card_subscription(rival, tenant.organization_id)
        page = await operator.get(billing_path(tenant))
        offered.append("Manage card subscriptions" in page.text)

    assert offered == [False, True]


async def test_subscriptions_have_pages(operator: ConsoleClient, tenant: Tenant, rival: Rival) -> None:
    for number in range(101):
        await make_card_subscription(
            rival,
            tenant.organization_id,
            id=f"bsu_{number:022}",
            status="cancelled",
            provider_reference=f"sub_MARK{number}",
        )
    # As Core writes them, which cursors rely on.
    await rival.run("UPDATE subscriptions SET created_at = date_trunc('milliseconds', created_at)")

    first = await operator.get(billing_path(tenant))
    second = await operator.get(str(first.find(".//a[@rel='next']").get("href")))

    assert (len(first.find_all(".//tbody/tr")), len(second.find_all(".//tbody/tr"))) == (100, 1)


async def test_the_portal_is_a_link_and_those_who_return_find_their_organization(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_customer(tenant, rival)

    page = await operator.submit(billing_path(tenant))

    (portal,) = (await card.look("card"))["portal_sessions"]
    assert page.find(".//main//a[@class='button']").get("href") == portal["url"]
    assert page.find(".//main//strong").text == urlsplit(portal["url"]).netloc
    assert (await operator.get("/billing")).location == billing_path(tenant)
    assert len(await card.calls("card")) == 1


async def test_those_who_return_in_another_browser_choose_their_organization(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    page = await operator.get("/billing")

    assert page.find(".//main//li/a").get("href") == billing_path(tenant)


async def test_another_person_in_the_same_browser_is_not_sent_to_the_first_ones_organization(
    visitors: ConsoleClient, people: People, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    tenant, own = await people.tenant_of("owner"), await people.tenant_of("stranger")
    await make_customer(tenant, rival)
    visitors.sign_in_as(people, "owner", clock.now())
    assert (await visitors.submit(billing_path(tenant))).status == 200
    visitors.sign_in_as(people, "stranger", clock.now())

    page = await visitors.get("/billing")

    assert page.find(".//main//li/a").get("href") == billing_path(own)
    assert len(await card.calls("card")) == 1


async def test_without_a_card_payment_there_is_no_portal(
    operator: ConsoleClient, tenant: Tenant, card: RunningSandbox
) -> None:
    page = await operator.submit(billing_path(tenant))

    assert (page.status, page.trouble) == (409, "customer_unavailable")
    assert page.find(".//h2").text
    assert await card.calls("card") == []


@pytest.mark.parametrize("fault", ["refused", "wrong_object"])
async def test_a_portal_that_cannot_be_opened_is_named(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox, fault: str
) -> None:
    await make_customer(tenant, rival)
    await card.misbehave("card", fault, times=2)

    page = await operator.submit(billing_path(tenant))

    assert (page.status, page.trouble) == (503, "payment_provider_unavailable")


async def test_a_member_without_a_billing_role_is_told_so(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "mo", "member")
    visitors.sign_in_as(people, "mo", clock.now())

    page = await visitors.get(billing_path(tenant))

    assert (page.status, page.trouble) == (403, "forbidden")
