"""`PUT /v1/billing/admin/offers/{offer_id}`."""

from typing import Any

import pytest
from support.api.core_client import Api
from support.billing.catalog import (
    AUDIENCE_PLAN,
    CARD_OFFER,
    CODES_PLAN,
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

from soundmark.kit.text.timestamps import format_timestamp

OFFERS = {"card": CARD_OFFER, "local": LOCAL_OFFER}


@pytest.mark.parametrize("provider", OFFERS)
async def test_an_offer_is_made_and_changed(api: Api, provider: str) -> None:
    api.clock.freeze()
    price = {"card": {"price_reference": "price_2"}, "local": {"amount_minor": 1, "entitlement_months": 36}}[provider]
    for changes in ({}, {}, price, {**price, "active": False}):
        api.clock.advance(seconds=1)
        answer = await put_offer(api, "offer_1", {**OFFERS[provider], **changes})
        now = format_timestamp(api.clock.now())
        status = {"price_status": "unknown"} if provider == "card" else {}
        expected = {"offer_id": "offer_1", **OFFERS[provider], **changes, **status, "updated_at": now}
        assert (answer.status, answer.json) == (200, expected)
        assert (await read_catalog(api))["offers"] == [expected]


@pytest.mark.parametrize("offer_id", ["offer_a", "offer_" + "a" * 64])
async def test_an_id_is_chosen_by_the_caller(api: Api, offer_id: str) -> None:
    answer = await put_offer(api, offer_id, CARD_OFFER)
    assert (answer.status, answer.json["offer_id"]) == (200, offer_id)


@pytest.mark.parametrize("offer_id", ["offer_", "offer_" + "a" * 65, "plan_1"])
async def test_another_id_is_refused(api: Api, offer_id: str) -> None:
    answer = await put_offer(api, offer_id, CARD_OFFER)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in answer.json["errors"]] == [("path", "/offer_id")]


@pytest.mark.parametrize("plan_id", ["plan_unknown", "plan_\0"])
async def test_an_offer_needs_a_plan(api: Api, plan_id: str) -> None:
    """A text that no plan can have as its id is the id of no plan."""
    for body in OFFERS.values():
        answer = await put_offer(api, "offer_1", {**body, "plan_id": plan_id})
        assert (answer.status, answer.code) == (404, "plan_not_found")
    assert (await read_catalog(api))["offers"] == []


async def test_an_inactive_plan_may_have_offers(api: Api) -> None:
    await put_plan(api, "plan_1", {**CODES_PLAN, "active": False})
    assert (await put_offer(api, "offer_1", {**LOCAL_OFFER, "plan_id": "plan_1"})).status == 200


@pytest.mark.parametrize(
    ("provider", "changes", "pointers"),
    [
        ("card", {"price_reference": "prod_1"}, ["/price_reference"]),
        ("card", {"price_reference": "price_" + "a" * 250}, ["/price_reference"]),
        ("card", {"price_reference": "price_1/../2"}, ["/price_reference"]),
        ("card", {"amount_minor": 100}, ["/amount_minor"]),
        ("card", {"provider": "contract"}, ["/provider"]),
        ("local", {"country": "FR"}, ["/country"]),
        ("local", {"currency": "EUR"}, ["/currency"]),
        ("local", {"amount_minor": 0}, ["/amount_minor"]),
        ("local", {"amount_minor": 2**53}, ["/amount_minor"]),
        ("local", {"amount_minor": 10.5}, ["/amount_minor"]),
        ("local", {"entitlement_months": 0}, ["/entitlement_months"]),
        ("local", {"entitlement_months": 37}, ["/entitlement_months"]),
        ("local", {"price_reference": "price_1"}, ["/price_reference"]),
    ],
    ids=repr,
)
async def test_another_body_is_refused(api: Api, provider: str, changes: dict[str, Any], pointers: list[str]) -> None:
    answer = await put_offer(api, "offer_1", {**OFFERS[provider], **changes})
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert {error["pointer"] for error in answer.json["errors"]} == set(pointers)
    assert "price_1PlantedMarker" not in answer.body.decode()
    assert (await read_catalog(api))["offers"] == []


@pytest.mark.parametrize(
    ("body", "pointer", "message"),
    [
        (CARD_OFFER, "/provider", "must stay local"),
        ({**LOCAL_OFFER, "plan_id": "plan_1"}, "/plan_id", "must stay plan_codes_starter"),
    ],
    ids=["provider", "plan"],
)
async def test_its_provider_and_its_plan_never_change(api: Api, body: Any, pointer: str, message: str) -> None:
    await put_plan(api, "plan_1", CODES_PLAN)
    await put_offer(api, "offer_1", LOCAL_OFFER)
    before = await read_catalog(api)
    answer = await put_offer(api, "offer_1", body)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert answer.json["errors"] == [{"location": "body", "pointer": pointer, "message": message}]
    assert await read_catalog(api) == before


@pytest.mark.parametrize("provider", OFFERS)
async def test_the_plan_of_contracts_has_no_offer(api: Api, provider: str) -> None:
    """It is granted by contract only. API v1, "Billing", audience contract rules."""
    answer = await put_offer(api, "offer_1", {**OFFERS[provider], "plan_id": "plan_audience_contract", "active": False})
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/plan_id"]
    assert (await read_catalog(api))["offers"] == []


async def test_a_change_is_one_event_of_the_log_without_the_price(api: Api, capsys: Any) -> None:
    await put_offer(api, "offer_1", CARD_OFFER)
    await put_offer(api, "offer_1", LOCAL_OFFER)
    log = capsys.readouterr().out
    changes = [line for line in log.splitlines() if "offer_changed" in line]
    assert len(changes) == 1, "what was refused is no change"
    for part in (
        "offer_id=offer_1",
        "plan_id=plan_codes_starter",
        "provider=card",
        "active=True",
        "subject_id=operator",
    ):
        assert part in changes[0]
    assert "PlantedMarker" not in log


async def test_a_change_leaves_pending_checkouts_as_they_are(api: Api, rival: Rival) -> None:
    """And does not wait for a transaction that makes one."""
    organization_id = await api.make_organization()
    await sell(api, "offer_1", LOCAL_OFFER)
    insert = (
        "INSERT INTO checkouts (organization_id, id, offer_id, plan_id, product, provider, status, amount_minor,"
        " currency, entitlement_months, created_at, expires_at) VALUES (%s, 'bco_1', 'offer_1', 'plan_codes_starter',"
        " 'codes', 'local', 'pending', 149000, 'TND', 1, now(), now() + interval '1 day')"
    )
    async with rival.committing(insert, organization_id):
        changed = await put_offer(api, "offer_1", {**LOCAL_OFFER, "amount_minor": 1, "active": False})
        assert changed.status == 200
    assert await rival.rows("SELECT status, amount_minor FROM checkouts") == [("pending", 149_000)]
    assert await list_offers(api) == []


async def test_of_two_concurrent_changes_the_last_one_holds(api: Api, rival: Rival) -> None:
    """The second waits for the first to commit; neither is an error."""
    await put_offer(api, "offer_1", LOCAL_OFFER)
    async with rival.committing("UPDATE offers SET amount_minor = 1"):
        changing = await rival.while_waiting(put_offer(api, "offer_1", LOCAL_OFFER))
    assert (await changing).json["amount_minor"] == 149_000


@pytest.mark.parametrize(("body", "status"), [(LOCAL_OFFER, 200), (CARD_OFFER, 422)], ids=["same", "another"])
async def test_of_two_that_make_one_offer_the_second_changes_it(
    api: Api, rival: Rival, body: dict[str, Any], status: int
) -> None:
    """Its provider is judged after the wait."""
    insert = (
        "INSERT INTO offers (id, plan_id, provider, active, country, currency, amount_minor, entitlement_months,"
        " updated_at) VALUES ('offer_1', 'plan_codes_starter', 'local', true, 'TN', 'TND', 1, 1, now())"
    )
    async with rival.committing(insert):
        making = await rival.while_waiting(put_offer(api, "offer_1", body))
    assert (await making).status == status
    ((amount_minor,),) = await rival.rows("SELECT amount_minor FROM offers")
    assert amount_minor == (149_000 if status == 200 else 1)


async def test_one_plan_may_have_offers_of_both_providers(api: Api, card: RunningSandbox) -> None:
    await add_price(card)
    await put_plan(api, "plan_1", AUDIENCE_PLAN)
    for provider, body in OFFERS.items():
        assert (await put_provider(api, provider)).status == 200
        assert (await put_offer(api, f"offer_{provider}", {**body, "plan_id": "plan_1"})).status == 200
    assert [offer["id"] for offer in await list_offers(api)] == ["offer_card", "offer_local"]
