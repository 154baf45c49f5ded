"""`GET /v1/billing/subscriptions`: what an organisation has, without anything of its payments."""

from datetime import timedelta

import pytest
from support.billing.subscriptions import CONTRACT_PLAN, STUDIO, Buyer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import make_tenant

from soundmark.kit.text.timestamps import format_timestamp

PATH = "/v1/billing/subscriptions"


async def test_it_shows_each_newest_first(buyer: Buyer, clock: FakeClock) -> None:
    now = clock.freeze()
    card = await buyer.buy_card(cancel_at_period_end=True)
    clock.advance(seconds=1)
    await buyer.put_contract("C-1")

    answer = await buyer.tenant.api.get(PATH, params=buyer.tenant.query)

    assert answer.json["next_cursor"] is None
    contract, bought = answer.json["data"]
    assert bought == {
        "id": card.id,
        "plan_id": STUDIO,
        "plan_name": "Codes Studio",
        "product": "codes",
        "provider": "card",
        "status": "active",
        "current_period_end": format_timestamp(now + timedelta(days=30)),
        "paid_through": format_timestamp(now + timedelta(days=30)),
        "cancel_at_period_end": True,
        "created_at": format_timestamp(now),
        "accounting": {"status": "not_scheduled", "invoice_id": None},
    }
    assert (contract["plan_id"], contract["provider"]) == (CONTRACT_PLAN, "contract")
    assert (contract["current_period_end"], contract["paid_through"]) == (None, None)


@pytest.mark.parametrize(("status", "invoice_id"), [("pending", None), ("failed", None), ("completed", 4711)])
async def test_it_shows_the_newest_draft_invoice(
    buyer: Buyer, rival: Rival, status: str, invoice_id: int | None
) -> None:
    card = await buyer.buy_card()
    for number, (each, invoice) in enumerate([("failed", None), (status, invoice_id)]):
        await rival.run(
            "INSERT INTO accounting_outbox (organization_id, id, subscription_id, checkout_id, payment_digest,"
            " description, amount_minor, currency, period_start, period_end, status, due_at, give_up_at, invoice_id,"
            " created_at, updated_at) VALUES (%s, %s, %s, 'bco_1', %s, 'Codes', 1, 'TND', now(), now(), %s,"
            " CASE WHEN %s = 'pending' THEN now() END, now(), %s, now() + %s * interval '1 second', now())",
            buyer.organization_id,
            f"acc_{number}",
            card.id,
            bytes([number]),
            each,
            each,
            invoice,
            number,
        )
    answer = await buyer.tenant.api.get(PATH, params=buyer.tenant.query)
    assert answer.json["data"][0]["accounting"] == {"status": status, "invoice_id": invoice_id}


async def test_its_pages_join_without_a_gap(buyer: Buyer) -> None:
    for number in range(5):
        await buyer.put_contract(f"C-{number}")
    seen, cursor = [], None
    for _ in range(5):
        params = {**buyer.tenant.query, "limit": "2", **({} if cursor is None else {"cursor": cursor})}
        page = (await buyer.tenant.api.get(PATH, params=params)).json
        seen += [each["id"] for each in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    everything = (await buyer.tenant.api.get(PATH, params=buyer.tenant.query)).json["data"]
    assert seen == [each["id"] for each in everything]
    assert len(seen) == 5


async def test_a_cursor_of_another_organisation_is_refused(buyer: Buyer) -> None:
    other = await make_tenant(buyer.tenant.api)
    for number in range(2):
        await buyer.put_contract(f"C-{number}")
    page = await buyer.tenant.api.get(PATH, params={**buyer.tenant.query, "limit": "1"})
    answer = await buyer.tenant.api.get(PATH, params={**other.query, "cursor": page.json["next_cursor"]})
    assert (answer.status, answer.code) == (422, "invalid_cursor")


async def test_no_reference_of_the_provider_is_in_it(buyer: Buyer) -> None:
    await buyer.buy_card()
    body = (await buyer.tenant.api.get(PATH, params=buyer.tenant.query)).body
    assert not [mark for mark in (b"sub_", b"price_", b"cus_", b"bco_") if mark in body]


async def test_usage_shows_the_quotas_of_what_entitles(buyer: Buyer, clock: FakeClock) -> None:
    """By the time, and not by when a job ran."""
    clock.freeze()
    await buyer.buy_prepaid()
    await buyer.tenant.make_entitlement(buyer.rival, monthly_events=700, ends_at=clock.now() + timedelta(days=31))
    usage = (await buyer.tenant.api.get("/v1/usage", params=buyer.tenant.query)).json
    assert usage["codes"]["monthly_quota"] == 1000
    assert {each["mode"]: each["monthly_quota"] for each in usage["audience"]["modes"]} == {
        "demo": 100,
        "contract": 700,
    }
    clock.advance(days=31)

    usage = (await buyer.tenant.api.get("/v1/usage", params=buyer.tenant.query)).json

    assert usage["codes"]["monthly_quota"] == 100
    assert {each["mode"]: each["monthly_quota"] for each in usage["audience"]["modes"]} == {"demo": 100}
