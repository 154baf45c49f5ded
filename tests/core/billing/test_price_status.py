"""`price_status` of a card offer: what a `PUT` learns of its price, and what is then for sale."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.billing.card_purchase import CARD_SECRET, WEBHOOK_SECRET, begin_purchase, list_paths, put_object, status_of
from support.billing.catalog import (
    CARD_OFFER,
    LOCAL_OFFER,
    add_price,
    list_offers,
    put_offer,
    put_plan,
    put_provider,
    read_catalog,
    sell,
)
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

from soundmark.core.providers.stripe.client import CardProvider
from soundmark.kit.crypto.secret import Secret

FACTS = "SELECT price_status, currency, amount_minor, price_interval FROM offers"
IDLE = "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
STARTER = {"name": "Codes Starter", "product": "codes", "monthly_code_quota": 100, "active": True}
KNOWN, NOTHING = ("known", "EUR", 4900, "month"), ("unknown", None, None, None)
PRICE_2 = {**CARD_OFFER, "price_reference": "price_2"}
# Objects with which no subscription can begin; None is no object.
UNSALEABLE: dict[str, dict[str, Any] | None] = {
    "unknown": None,
    "inactive": {"active": False},
    "once": {"recurring": None, "type": "one_time"},
}
AWAY = ["refused", "rate_limited", "html"]


@pytest.fixture
async def card(card: RunningSandbox, api: Api) -> RunningSandbox:
    """The card provider, whose offers are for sale as far as their prices are known."""
    assert (await put_provider(api, "card")).status == 200
    await add_price(card)
    return card


async def change_price(
    card: RunningSandbox, changes: dict[str, Any] | None, reference: str = "price_1PlantedMarker"
) -> None:
    await put_object(card, f"/v1/prices/{reference}", {})
    if changes is not None:
        await add_price(card, reference, **changes)


async def buy(tenant: Tenant) -> Answer:
    return await tenant.api.post("/v1/billing/checkouts", params=tenant.query, json={"offer_id": "offer_1"})


async def test_a_price_that_the_provider_has_is_known_and_for_sale(
    api: Api, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    made = await put_offer(api, "offer_1", CARD_OFFER)

    assert (made.status, made.json["price_status"]) == (200, "known")
    assert await list_paths(card) == ["/v1/prices/price_1PlantedMarker"]
    assert (await read_catalog(api))["offers"] == [made.json]
    assert [offer["id"] for offer in await list_offers(api)] == ["offer_1"]
    assert await rival.rows(FACTS) == [KNOWN]
    assert (await buy(tenant)).status == 201


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"recurring": {"interval": "year", "interval_count": 1}}, ("known", "EUR", 4900, "year")),
        ({"recurring": {"interval": "month", "interval_count": 3}}, ("known", "EUR", 4900, None)),
        ({"unit_amount": None, "billing_scheme": "tiered"}, ("known", "EUR", None, "month")),
    ],
    ids=["a year", "three months", "tiers"],
)
async def test_what_has_no_word_in_the_contract_is_null_and_for_sale_all_the_same(
    api: Api, rival: Rival, card: RunningSandbox, changes: dict[str, Any], facts: Any
) -> None:
    await add_price(card, **changes)
    await sell(api, "offer_1", CARD_OFFER)
    assert await rival.rows(FACTS) == [facts]


@pytest.mark.parametrize("name", UNSALEABLE)
async def test_an_active_offer_without_a_price_that_can_be_sold_is_refused(
    api: Api, card: RunningSandbox, name: str
) -> None:
    """Nothing is saved, neither a new offer nor a change of one that is there."""
    await change_price(card, UNSALEABLE[name], "price_2")
    for _ in range(2):
        before = await read_catalog(api)
        refused = await put_offer(api, "offer_1", PRICE_2)
        assert (refused.status, refused.code) == (422, "validation_failed")
        assert [(error["location"], error["pointer"]) for error in refused.json["errors"]] == [
            ("body", "/price_reference")
        ]
        assert await read_catalog(api) == before
        await put_offer(api, "offer_1", CARD_OFFER)


@pytest.mark.parametrize("name", UNSALEABLE)
async def test_an_offer_whose_price_is_gone_can_be_retired(
    api: Api, rival: Rival, card: RunningSandbox, name: str
) -> None:
    """Then its price is missing. It comes back when the provider has it again."""
    await put_offer(api, "offer_1", CARD_OFFER)
    await change_price(card, UNSALEABLE[name])

    retired = await put_offer(api, "offer_1", {**CARD_OFFER, "active": False})

    assert (retired.status, retired.json["active"], retired.json["price_status"]) == (200, False, "missing")
    assert await rival.rows(FACTS) == [("missing", *KNOWN[1:])], "what was known is kept"
    await add_price(card)
    assert (await put_offer(api, "offer_1", CARD_OFFER)).json["price_status"] == "known"


async def test_an_inactive_offer_may_have_a_price_that_was_never_there(
    api: Api, rival: Rival, card: RunningSandbox
) -> None:
    made = await put_offer(api, "offer_1", {**PRICE_2, "active": False})
    assert (made.status, made.json["price_status"]) == (200, "missing")
    assert await rival.rows(FACTS) == [("missing", None, None, None)]
    assert len(await card.calls("card")) == 1


@pytest.mark.parametrize("fault", AWAY)
async def test_without_an_answer_a_new_price_is_unknown_and_not_for_sale(
    api: Api, tenant: Tenant, rival: Rival, card: RunningSandbox, fault: str
) -> None:
    await card.misbehave("card", fault, times=9)  # The client asks more than once if that may help.

    made = await put_offer(api, "offer_1", CARD_OFFER)

    assert (made.status, made.json["price_status"]) == (200, "unknown")
    assert await rival.rows(FACTS) == [NOTHING]
    assert await list_offers(api) == []
    assert (await buy(tenant)).code == "offer_not_found"
    await card.control("/switches/reset")
    assert (await put_offer(api, "offer_1", CARD_OFFER)).json["price_status"] == "known"


@pytest.mark.parametrize("document", [{"id": "price_other"}, {"active": None}], ids=repr)
async def test_an_answer_about_something_else_is_none(
    api: Api, rival: Rival, card: RunningSandbox, document: dict[str, Any]
) -> None:
    await add_price(card, **document)
    assert (await put_offer(api, "offer_1", CARD_OFFER)).json["price_status"] == "unknown"
    assert await rival.rows(FACTS) == [NOTHING]


async def test_without_credentials_card_offers_are_not_for_sale(api: Api, tenant: Tenant) -> None:
    await put_provider(api, "card")
    assert (await put_offer(api, "offer_1", CARD_OFFER)).json["price_status"] == "unknown"
    assert await list_offers(api) == []
    assert (await buy(tenant)).code == "offer_not_found"


async def test_an_outage_takes_no_offer_off_the_shelf(
    api: Api, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """With the same price. A configured provider that then fails at the checkout is 503."""
    await put_offer(api, "offer_1", CARD_OFFER)
    await card.misbehave("card", "refused", times=2)

    assert (await put_offer(api, "offer_1", CARD_OFFER)).json["price_status"] == "known"

    assert await rival.rows(FACTS) == [KNOWN]
    assert (await buy(tenant)).code == "payment_provider_unavailable"


async def test_an_outage_does_not_bring_a_missing_price_back(api: Api, card: RunningSandbox) -> None:
    await put_offer(api, "offer_1", {**PRICE_2, "active": False})
    await card.misbehave("card", "refused")
    assert (await put_offer(api, "offer_1", PRICE_2)).json["price_status"] == "missing"
    assert await list_offers(api) == []


async def test_another_price_forgets_what_is_known_of_the_one_before(
    api: Api, rival: Rival, card: RunningSandbox
) -> None:
    """An amount of another price is never shown."""
    await put_offer(api, "offer_1", CARD_OFFER)
    await card.misbehave("card", "refused")
    assert (await put_offer(api, "offer_1", PRICE_2)).json["price_status"] == "unknown"
    assert await rival.rows(FACTS) == [NOTHING]


async def test_an_offer_of_the_local_provider_has_no_price_status_and_nobody_is_asked(
    api: Api, card: RunningSandbox
) -> None:
    made = await put_offer(api, "offer_1", LOCAL_OFFER)
    assert (made.status, "price_status" in made.json) == (200, False)
    assert await card.calls("card") == []


async def test_what_core_refuses_itself_is_not_asked_about(api: Api, card: RunningSandbox) -> None:
    await put_offer(api, "offer_1", LOCAL_OFFER)
    for offer_id, body, status in (
        ("offer_1", CARD_OFFER, 422),
        ("offer_2", {**CARD_OFFER, "plan_id": "plan_unknown"}, 404),
        ("offer_2", {**CARD_OFFER, "plan_id": "plan_audience_contract"}, 422),
    ):
        assert (await put_offer(api, offer_id, body)).status == status
    assert await card.calls("card") == []


async def test_an_offer_that_somebody_else_made_meanwhile_is_judged_again(api: Api, card: RunningSandbox) -> None:
    await card.hold("card")
    putting = asyncio.create_task(put_offer(api, "offer_1", CARD_OFFER))
    await card.until_held("card")
    assert (await put_offer(api, "offer_1", LOCAL_OFFER)).status == 200
    await card.release("card")

    refused = await putting

    assert [error["pointer"] for error in refused.json["errors"]] == ["/provider"]
    assert [offer["provider"] for offer in (await read_catalog(api))["offers"]] == ["local"]


async def test_of_two_questions_the_one_that_began_later_counts(
    api: Api, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    """The terms are those of the change that was stored last."""
    await put_offer(api, "offer_1", CARD_OFFER)
    clock.freeze()
    await card.hold("card")
    first = asyncio.create_task(put_offer(api, "offer_1", CARD_OFFER))
    await card.until_held("card")
    clock.advance(seconds=1)
    await change_price(card, None)
    second = await put_offer(api, "offer_1", {**CARD_OFFER, "active": False})
    await card.release("card")

    assert (second.json["active"], second.json["price_status"]) == (False, "missing")
    answered = (await first).json
    assert (answered["active"], answered["price_status"]) == (True, "missing")
    assert await rival.rows(FACTS) == [("missing", *KNOWN[1:])]


async def test_no_transaction_is_open_while_the_provider_is_asked(api: Api, rival: Rival, card: RunningSandbox) -> None:
    await card.hold("card")
    putting = asyncio.create_task(put_offer(api, "offer_1", CARD_OFFER))
    await card.until_held("card")
    await rival.until_rows(IDLE)  # The sealing of audit entries has transactions of its own, which end.
    assert (await put_plan(api, "plan_codes_starter", {**STARTER, "monthly_code_quota": 200})).status == 200
    await card.release("card")
    assert (await putting).status == 200


async def test_at_the_deadline_the_price_is_unknown(
    api: Api,
    card: RunningSandbox,
    database_url: Secret,
    outside_urls: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten seconds by default; here less, and the provider never answers."""
    assert CardProvider.__init__.__kwdefaults__["timeout_s"] == 10.0  # type: ignore[index]  # it has defaults
    monkeypatch.setitem(CardProvider.__init__.__kwdefaults__, "timeout_s", 0.3)  # type: ignore[arg-type]  # as above
    await card.hold("card")
    async with running_core(
        core_settings(database_url, **outside_urls, card_secret_key=CARD_SECRET), api.clock
    ) as core:
        answer = await put_offer(core, "offer_1", CARD_OFFER)
    assert (answer.status, answer.json["price_status"]) == (200, "unknown")


@pytest.mark.parametrize("status", ["missing", "unknown"])
async def test_a_customer_who_has_bought_it_keeps_it(
    api: Api, tenant: Tenant, rival: Rival, card: RunningSandbox, status: str
) -> None:
    """A pending checkout is completed, and the price still belongs to its plan."""
    assert (await put_setting(api, "card_webhook_secret", WEBHOOK_SECRET)).status == 200
    purchase = await begin_purchase(tenant, rival, card)
    await rival.run("UPDATE offers SET price_status = %s", status)

    assert await status_of(api, purchase.event("checkout.session.completed")) == "processed"

    assert await rival.rows("SELECT plan_id, status FROM subscriptions") == [("plan_codes_studio", "active")]
