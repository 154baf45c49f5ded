"""`GET /v1/billing/offers`."""

from typing import Any

import pytest
from support.api.core_client import Api
from support.billing.catalog import (
    AUDIENCE_PLAN,
    CARD_OFFER,
    LOCAL_OFFER,
    add_price,
    list_offers,
    put_offer,
    put_plan,
    put_provider,
    sell,
)
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.people import People

STARTER = {"id": "plan_codes_starter", "name": "Codes Starter", "product": "codes", "monthly_quota": 100}


async def test_nothing_is_for_sale_at_first(api: Api) -> None:
    assert await list_offers(api) == []


async def test_an_offer_of_the_local_provider_has_its_price(api: Api) -> None:
    assert await sell(api, "offer_1", LOCAL_OFFER) == {
        "id": "offer_1",
        "plan": STARTER,
        "provider": "local",
        "country": "TN",
        "currency": "TND",
        "amount_minor": 149_000,
        "interval": None,
        "entitlement_months": 1,
    }


async def test_a_card_offer_has_the_price_that_the_provider_says(api: Api, card: RunningSandbox) -> None:
    """And never the reference of it."""
    await add_price(card)
    assert await sell(api, "offer_1", CARD_OFFER) == {
        "id": "offer_1",
        "plan": STARTER,
        "provider": "card",
        "country": None,
        "currency": "EUR",
        "amount_minor": 4900,
        "interval": "month",
        "entitlement_months": None,
    }
    assert "PlantedMarker" not in (await api.get("/v1/billing/offers")).body.decode()


async def test_a_plan_of_audience_has_its_quota_of_events(api: Api) -> None:
    await put_plan(api, "plan_1", {**AUDIENCE_PLAN, "monthly_event_quota": 2**53 - 1})
    offer = await sell(api, "offer_1", {**LOCAL_OFFER, "plan_id": "plan_1"})
    assert offer["plan"] == {"id": "plan_1", "name": "Audience Plus", "product": "audience", "monthly_quota": 2**53 - 1}


async def test_only_active_offers_of_active_plans_of_enabled_providers_are_for_sale(api: Api) -> None:
    await put_plan(api, "plan_1", AUDIENCE_PLAN)
    body = {**LOCAL_OFFER, "plan_id": "plan_1"}
    await sell(api, "offer_1", body)
    withdrawals: list[tuple[Any, Any]] = [
        (put_provider(api, "local", enabled=False), put_provider(api, "local")),
        (put_plan(api, "plan_1", {**AUDIENCE_PLAN, "active": False}), put_plan(api, "plan_1", AUDIENCE_PLAN)),
        (put_offer(api, "offer_1", {**body, "active": False}), put_offer(api, "offer_1", body)),
    ]
    for withdraw, restore in withdrawals:
        assert (await withdraw).status == 200
        assert await list_offers(api) == []
        assert (await restore).status == 200
        assert [offer["id"] for offer in await list_offers(api)] == ["offer_1"]


@pytest.mark.parametrize(
    ("country", "found"),
    [("Tn", ["offer_a", "offer_b"]), ("FR", ["offer_b"])],
)
async def test_a_country_leaves_out_the_offers_of_others(
    api: Api, card: RunningSandbox, country: str, found: list[str]
) -> None:
    """An offer of the card provider has no country and is in every answer."""
    await add_price(card)
    await sell(api, "offer_a", LOCAL_OFFER)
    await sell(api, "offer_b", CARD_OFFER)
    assert [offer["id"] for offer in await list_offers(api, country=country)] == found


@pytest.mark.parametrize("country", ["", "TUN", "TÜ"])
async def test_another_country_is_refused(api: Api, country: str) -> None:
    answer = await api.get("/v1/billing/offers", params={"country": country})
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in answer.json["errors"]] == [("query", "/country")]


async def test_it_belongs_to_no_organisation(api: Api, people: People) -> None:
    """Anybody who signed in sees the same; an organisation is no parameter of it."""
    await sell(api, "offer_1", LOCAL_OFFER)
    stranger = people.person("stranger", acr="1")
    assert await list_offers(stranger) == await list_offers(api)
    answer = await stranger.get("/v1/billing/offers", params={"organization_id": "org_" + "A" * 22})
    assert [error["pointer"] for error in answer.json["errors"]] == ["/organization_id"]
    headers = {"X-Svc-Organization-Id": "org_of_nobody"}
    assert (await stranger.get("/v1/billing/offers", headers=headers)).status == 200, "the header is not read"
