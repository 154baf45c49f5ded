"""The offers, and the way to the payment page."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from support.api.core_client import Api
from support.billing.card_purchase import list_sessions
from support.billing.catalog import CARD_OFFER as CARD_TERMS
from support.billing.catalog import LOCAL_OFFER as LOCAL_TERMS
from support.billing.catalog import add_price, put_plan, sell
from support.billing.local_purchase import list_payments
from support.billing.offers import (
    CARD_OFFER,
    LOCAL_OFFER,
    make_card_offer,
    make_card_subscription,
    make_local_offer,
    make_plan,
)
from support.console.client import ConsoleClient
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

HOSTILE = "<img src=x onerror=alert(1)> & '\"=1+1"


def offers_path(tenant: Tenant) -> str:
    return f"/organizations/{tenant.organization_id}/billing/offers"


async def press_buy(client: ConsoleClient, path: str, offer_id: str = CARD_OFFER) -> dict[str, str]:
    """Return the fields of the button of an offer."""
    shown = await client.get(path)
    for form in shown.find_all(".//table//form"):
        fields = {each.get("name") or "": each.get("value") or "" for each in form.iter("input")}
        if fields["offer_id"] == offer_id:
            return fields
    raise AssertionError(shown.text)


async def stored(rival: Rival) -> list[Any]:
    return await rival.rows("SELECT id, status FROM checkouts ORDER BY created_at, id")


async def test_an_offer_is_shown_with_its_quota_and_price(operator: ConsoleClient, tenant: Tenant, api: Api) -> None:
    await sell(api, "offer_prepaid", {**LOCAL_TERMS, "entitlement_months": 12})

    page = await operator.get(offers_path(tenant))

    [row] = page.find_all(".//tbody/tr")
    text = " ".join("".join(row.itertext()).split())
    assert "100 Codes" in text
    assert "TND 149.000 · for 12 months" in text


@pytest.mark.parametrize(
    ("changes", "price"),
    [
        ({}, "€49.00 per month"),
        ({"recurring": {"interval": "year", "interval_count": 1}}, "€49.00 per year"),
        ({"recurring": {"interval": "month", "interval_count": 3}}, "€49.00 · the payment page shows the period"),
        ({"unit_amount": None, "billing_scheme": "tiered"}, "The payment page shows the price."),
    ],
    ids=["month", "year", "quarter", "tiers"],
)
async def test_the_price_of_a_card_offer_is_on_every_page_of_its_purchase(
    operator: ConsoleClient,
    tenant: Tenant,
    api: Api,
    rival: Rival,
    card: RunningSandbox,
    changes: dict[str, Any],
    price: str,
) -> None:
    """As the provider says it: a price with another period than a month or a year does not seem to be paid once."""
    await add_price(card, **changes)
    await sell(api, "offer_card", CARD_TERMS)

    offers = await operator.get(offers_path(tenant))
    way_out = await operator.submit(offers_path(tenant), await press_buy(operator, offers_path(tenant), "offer_card"))
    [(checkout_id, _)] = await stored(rival)
    waiting = await operator.get(f"/billing/checkouts/{checkout_id}")
    pending = await operator.get(offers_path(tenant).removesuffix("/offers"))

    for page in (offers, pending):
        assert " ".join("".join(page.find(".//td[@data-label='Price']").itertext()).split()) == price
    for page in (way_out, waiting):
        facts = ["".join(each.itertext()).strip() for each in page.find_all(".//dl[@class='facts']")[0].findall("dd")]
        assert facts[2] == price


async def test_offers_of_a_country_are_those_that_are_for_sale_there(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await make_card_offer(rival)
    await make_local_offer(rival)

    in_france = await operator.get(f"{offers_path(tenant)}?country=FR")

    assert [each.get("value") for each in in_france.find_all(".//input[@name='offer_id']")] == [CARD_OFFER]
    assert in_france.value("country") == "FR"
    in_tunisia = await operator.get(f"{offers_path(tenant)}?country=TN")
    assert len(in_tunisia.find_all(".//input[@name='offer_id']")) == 2


async def test_the_country_is_remembered_until_another_is_chosen(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await make_card_offer(rival)
    await make_local_offer(rival)

    await operator.get(f"{offers_path(tenant)}?country=FR")
    again = await operator.get(offers_path(tenant))
    await operator.get(f"{offers_path(tenant)}?country=")
    everywhere = await operator.get(offers_path(tenant))

    assert (again.value("country"), len(again.find_all(".//input[@name='offer_id']"))) == ("FR", 1)
    assert (everywhere.value("country"), len(everywhere.find_all(".//input[@name='offer_id']"))) == ("", 2)


@pytest.mark.parametrize(
    ("subscription", "cells"),
    [
        ({}, ["Your plan", "Buy Studio"]),
        ({"cancel_at_period_end": True}, ["Buy Studio", "Buy Studio"]),
        ({"status": "cancelled"}, ["Buy Studio", "Buy Studio"]),
        ({"plan_id": "plan_other"}, ["Change your subscription", "Buy Studio"]),
        ({"provider": "local", "provider_reference": None}, ["Buy Studio", "Extend Studio"]),
    ],
)
async def test_an_offer_says_what_can_be_done_with_it(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, subscription: dict[str, Any], cells: list[str]
) -> None:
    """A second card subscription of a product is refused; a prepaid one is extended."""
    await make_card_offer(rival)
    await make_local_offer(rival)
    await make_plan(rival, "plan_other")
    await make_card_subscription(rival, tenant.organization_id, **subscription)

    page = await operator.get(offers_path(tenant))

    rows = {"card": "By card", "local": "Prepaid"}
    shown = {
        provider: "".join(row.findall("td")[-1].itertext()).strip()
        for row in page.find_all(".//tbody/tr")
        for provider, words in rows.items()
        if words in "".join(row.itertext())
    }
    assert [shown["card"], shown["local"]] == cells


async def test_a_checkout_leads_to_the_page_of_the_provider_with_a_link(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """The policy of the page forbids its forms to lead elsewhere."""
    await make_card_offer(rival)

    page = await operator.submit(offers_path(tenant), await press_buy(operator, offers_path(tenant)))

    [session] = await list_sessions(card)
    assert page.status == 200
    assert page.find(".//main//a[@class='button']").get("href") == session["url"]
    assert page.find(".//main//strong").text == urlsplit(session["url"]).netloc
    bought = ["".join(each.itertext()).strip() for each in page.find_all(".//dl[@class='facts']/dd")]
    assert bought == ["Studio", "1,000 Codes", "The payment page shows the price.", "By card, renews automatically"]
    assert [status for _, status in await stored(rival)] == ["pending"]


async def test_a_double_click_makes_one_checkout(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    fields = await press_buy(operator, offers_path(tenant))

    first = await operator.submit(offers_path(tenant), fields)
    second = await operator.submit(offers_path(tenant), fields)

    link = ".//main//a[@class='button']"
    assert first.find(link).get("href") == second.find(link).get("href")
    assert len(await stored(rival)) == len(await list_sessions(card)) == 1


async def test_every_shown_button_makes_a_checkout_of_its_own(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await make_card_offer(rival)

    keys = {(await press_buy(operator, offers_path(tenant)))["idempotency_key"] for _ in range(3)}

    assert len(keys) == 3


async def test_a_provider_that_is_down_is_named_and_the_same_button_works_later(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    fields = await press_buy(operator, offers_path(tenant))
    await card.misbehave("card", "refused", times=2)

    page = await operator.submit(offers_path(tenant), fields)

    assert (page.status, page.trouble) == (503, "payment_provider_unavailable")
    assert page.value("idempotency_key") == fields["idempotency_key"]
    assert (await operator.submit(offers_path(tenant), fields)).status == 200


async def test_a_second_card_subscription_is_refused_with_the_offers_still_there(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    await make_local_offer(rival)
    fields = await press_buy(operator, offers_path(tenant))
    await make_card_subscription(rival, tenant.organization_id)

    page = await operator.submit(offers_path(tenant), fields)

    assert (page.status, page.trouble) == (409, "subscription_active")
    assert page.find(".//input[@name='offer_id']").get("value") == LOCAL_OFFER
    assert await card.calls("card") == []


@pytest.mark.parametrize("key", ["", "short", "k" * 129, "key with spaces and more"])
async def test_a_button_that_was_tampered_with_buys_nothing(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, key: str
) -> None:
    await make_card_offer(rival)

    page = await operator.submit(offers_path(tenant), {"offer_id": CARD_OFFER, "idempotency_key": key})

    assert (page.status, page.trouble) == (400, "form_malformed")
    assert len(page.value("idempotency_key")) == 43
    assert await stored(rival) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://pay.example.com/pay/1",
        "javascript:alert(1)",
        "https://pay.example.com@evil.example/pay",
        "//pay.example.com/pay",
        "ftp://pay.example.com/pay",
    ],
)
async def test_a_payment_page_that_is_not_safe_is_not_linked(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, url: str
) -> None:
    """Core refuses such an address itself, so it is replaced on the way."""
    await make_card_offer(rival)
    fields = await press_buy(operator, offers_path(tenant))
    answer = {
        "id": "bco_" + "c" * 22,
        "status": "pending",
        "offer_id": CARD_OFFER,
        "created_at": "2026-11-20T10:00:00.000Z",
        "expires_at": "2026-11-21T10:00:00.000Z",
        "checkout_url": url,
    }
    operator.core.answer("POST /v1/billing/checkouts", 201, answer)

    page = await operator.submit(offers_path(tenant), fields)

    assert (page.status, page.trouble) == (502, "payment_address_refused")
    assert url not in page.html


async def test_a_payment_page_on_this_machine_is_linked(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, local: RunningSandbox
) -> None:
    """The sandbox serves its pages there."""
    await make_local_offer(rival)

    page = await operator.submit(offers_path(tenant), await press_buy(operator, offers_path(tenant), LOCAL_OFFER))

    (payment,) = await list_payments(local)
    assert page.find(".//main//a[@class='button']").get("href") == payment["link"]
    assert page.find(".//main//strong").text == local.url.removeprefix("http://")


async def test_a_hostile_plan_name_is_shown_as_text(operator: ConsoleClient, tenant: Tenant, api: Api) -> None:
    plan = {"name": HOSTILE, "product": "codes", "monthly_code_quota": 5, "active": True}
    assert (await put_plan(api, "plan_hostile", plan)).status == 200
    await sell(api, "offer_hostile", {**LOCAL_TERMS, "plan_id": "plan_hostile"})

    page = await operator.get(offers_path(tenant))

    assert f"Buy {HOSTILE}" in page.text
    assert not page.find_all(".//main//img")


async def test_a_member_who_may_not_buy_is_told_so(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "mo", "member")
    await make_card_offer(rival)
    owner = visitors.other().sign_in_as(people, "owner", clock.now())
    visitors.sign_in_as(people, "mo", clock.now())

    shown = await visitors.get(offers_path(tenant))
    page = await visitors.submit(offers_path(tenant), await press_buy(owner, offers_path(tenant)))

    assert "By card" in shown.text
    assert not shown.find_all(".//table//form")
    assert [each.text for each in shown.find_all(".//nav[@class='tabs']//a")] == ["Offers"]
    assert (page.status, page.trouble) == (403, "forbidden")
    assert await stored(rival) == []


async def test_the_offers_in_french(operator: ConsoleClient, tenant: Tenant, api: Api, clock: FakeClock) -> None:
    await sell(api, "offer_prepaid", LOCAL_TERMS)
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    page = await french.get(offers_path(tenant))

    assert "149,000 TND · pour 1 mois" in page.text
    assert "Tunisie" in page.text
