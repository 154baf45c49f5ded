"""Preparing one valid call of each operation of billing."""

from datetime import UTC, datetime
from typing import Final

import httpx2

from support.api.world import OPERATIONS, Call, World, count_rows, send
from support.billing.card_purchase import CARD_SECRET, CUSTOMER, WEBHOOK_SECRET, sell_price
from support.billing.card_purchase import sign as sign_card_body
from support.billing.local_purchase import insert_local_checkout
from support.billing.offers import make_card_offer
from support.tenancy.platform_settings import put_setting

_LONG_AGO: Final = datetime(2026, 1, 1, tzinfo=UTC)


async def fill_plan(world: World) -> Call:
    body = {"name": "Codes Studio", "product": "codes", "monthly_code_quota": 5000, "active": True}
    return Call(path={"plan_id": f"plan_of_{await count_rows(world, 'plans')}"}, json=body)


async def fill_offer(world: World) -> Call:
    body = {"plan_id": "plan_codes_starter", "provider": "card", "active": False, "price_reference": "price_1"}
    return Call(path={"offer_id": f"offer_of_{await count_rows(world, 'offers')}"}, json=body)


async def fill_contract(world: World) -> Call:
    body = {"plan_id": "plan_audience_contract", "contract_reference": "2027-014", "status": "active"}
    return Call(path={"organization_id": world.tenant.organization_id}, json=body)


async def buy_offer(world: World) -> Call:
    """Prepare a checkout."""
    await configure_card(world)
    return Call(params=world.tenant.query, json={"offer_id": await make_card_offer(world.rival)})


async def begin_checkout(world: World) -> Call:
    """Make a checkout that waits for a payment. Those before end: an organisation has only ten."""
    await world.rival.run("UPDATE checkouts SET status = 'failed' WHERE status = 'pending'")
    made = await send(world.people.person("owner"), OPERATIONS["create_checkout"], await buy_offer(world))
    assert made.status == 201, made.body
    return Call(path={"checkout_id": made.json["id"]}, params=world.tenant.query)


async def make_checkout(world: World) -> Call:
    """Make a checkout that has ended, so that it does not keep its organisation."""
    call = await begin_checkout(world)
    await world.rival.run("UPDATE checkouts SET status = 'failed'")
    return call


async def find_portal(world: World) -> Call:
    """Prepare the visit of a customer to the portal."""
    await configure_card(world)
    statement = "INSERT INTO card_customers VALUES (%s, %s, now()) ON CONFLICT DO NOTHING"
    await world.rival.run(statement, world.tenant.organization_id, CUSTOMER)
    return Call(params=world.tenant.query)


async def configure_card(world: World) -> None:
    administrator = world.people.person("platform-admin", realm_access={"roles": ["svc_platform_admin"]})
    assert (await put_setting(administrator, "card_secret_key", CARD_SECRET)).status == 200
    assert (await put_setting(administrator, "card_webhook_secret", WEBHOOK_SECRET)).status == 200
    await sell_price(world.sandbox)


async def sign_card_event(world: World) -> Call:
    """Prepare an event that the card provider signed, of a type that leads to nothing."""
    await configure_card(world)
    event = {"id": "evt_of_the_sweep", "object": "event", "type": "ping", "created": 1, "data": {"object": {}}}
    body = httpx2.Request("POST", "http://core.test", json=event).content
    signature = sign_card_body(body, at_s=world.tenant.api.clock.unix_s())
    return Call(json=event, headers={"Stripe-Signature": signature})


async def notify_of_payment(world: World) -> Call:
    """Prepare a notification of a payment that was counted before, so that nobody is asked."""
    purchase = await insert_local_checkout(world.tenant, world.rival, status="completed", completed_at=_LONG_AGO)
    return Call(params={"payment_id": purchase.payment_id})


async def notify_of_checkout(world: World) -> Call:
    """Prepare the same at the address that was given to the provider."""
    purchase = await insert_local_checkout(world.tenant, world.rival, status="completed", completed_at=_LONG_AGO)
    return Call(path={"secret": purchase.secret}, params={"payment_id": purchase.payment_id})


async def fill_accounting_customer(world: World) -> Call:
    return Call(path={"organization_id": world.tenant.organization_id}, json={"thirdparty_id": 17})
