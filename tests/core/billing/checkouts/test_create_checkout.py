"""POST /v1/billing/checkouts: what it answers, stores and refuses."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from support.api.core_client import Answer
from support.api.core_settings import BASE_URL
from support.billing.card_purchase import CUSTOMER, list_keys, list_sessions
from support.billing.local_purchase import list_payments
from support.billing.offers import (
    AMOUNT_MINOR,
    CARD_OFFER,
    LOCAL_OFFER,
    PRICE,
    make_card_offer,
    make_card_subscription,
    make_local_offer,
)
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/checkouts"


async def buy(tenant: Tenant, offer_id: str = CARD_OFFER, *, key: str | None = None) -> Answer:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await tenant.api.post(PATH, params=tenant.query, json={"offer_id": offer_id}, headers=headers)


async def stored(rival: Rival, columns: str) -> list[Any]:
    return await rival.rows(f"SELECT {columns} FROM checkouts ORDER BY created_at, id")


async def test_a_card_checkout_is_pending_with_the_page_of_the_provider(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    await make_card_offer(rival)
    now = clock.freeze()

    answer = await buy(tenant)

    (session,) = await list_sessions(card)
    made = answer.json
    assert answer.status == 201
    assert made.keys() == {"id", "status", "offer_id", "created_at", "expires_at", "checkout_url"}
    assert (made["status"], made["offer_id"], made["checkout_url"]) == ("pending", CARD_OFFER, session["url"])
    assert datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"]) == timedelta(days=1)
    assert await stored(rival, "id, status, provider_reference, price_reference, attempts, reread_at") == [
        (made["id"], "pending", session["id"], PRICE, 1, now + timedelta(minutes=2))
    ]


async def test_the_session_names_our_checkout_everywhere_and_ends_with_it(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    """The provider allows 24 hours at most by its own clock, so the session ends a little earlier."""
    await make_card_offer(rival)
    now = clock.freeze()

    made = (await buy(tenant)).json

    (session,) = await list_sessions(card)
    await card.control(f"/card/sessions/{session['id']}/pay")
    (subscription,) = (await card.look("card"))["subscriptions"]
    metadata = {
        "svc_checkout_id": made["id"],
        "svc_organization_id": tenant.organization_id,
        "svc_offer_id": CARD_OFFER,
    }
    assert subscription["items"]["data"][0]["price"]["id"] == PRICE
    assert session["client_reference_id"] == made["id"]
    assert session["metadata"] == subscription["metadata"] == metadata
    assert session["success_url"] == session["cancel_url"] == f"{BASE_URL}/billing/checkouts/{made['id']}"
    assert session["expires_at"] == int((now + timedelta(hours=23, minutes=55)).timestamp())
    assert await list_keys(card) == [f"{made['id']}-1"]


async def test_the_page_shows_the_address_of_the_caller_until_the_customer_is_known(
    people: People, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    tenant = await people.tenant_of("ada")

    await buy(tenant)
    await rival.run("INSERT INTO card_customers VALUES (%s, %s, now())", tenant.organization_id, CUSTOMER)
    await buy(tenant)

    second, first = await list_sessions(card)
    assert (first["customer_email"], first["customer"]) == ("ada@example.org", None)
    assert (second["customer_email"], second["customer"]) == (None, CUSTOMER)


async def test_a_customer_that_was_deleted_at_the_provider_is_left_out(
    people: People, rival: Rival, card: RunningSandbox
) -> None:
    """Otherwise the organisation could never buy anything again; the next payment makes another customer."""
    await make_card_offer(rival)
    tenant = await people.tenant_of("ada")
    await rival.run("INSERT INTO card_customers VALUES (%s, 'cus_MARKdeleted', now())", tenant.organization_id)

    answer = await buy(tenant)

    (session,) = await list_sessions(card)
    assert (answer.status, session["customer_email"]) == (201, "ada@example.org")
    assert await list_keys(card) == [f"{answer.json['id']}-1", f"{answer.json['id']}-2"]


async def test_a_local_checkout_binds_the_amount_and_registers_a_secret_address(
    tenant: Tenant, rival: Rival, local: RunningSandbox
) -> None:
    """Only the digest of the secret is stored."""
    await make_local_offer(rival)

    made = (await buy(tenant, LOCAL_OFFER)).json

    (payment,) = await list_payments(local)
    payment_id = payment["id"]
    webhook, _, secret = payment["webhook"].rpartition("/")
    assert made["checkout_url"] == payment["link"]
    assert (payment["amount"], payment["tracking_id"]) == (AMOUNT_MINOR, made["id"])
    assert payment["success_link"] == payment["fail_link"] == f"{BASE_URL}/billing/checkouts/{made['id']}"
    assert (webhook, len(secret)) == (f"{BASE_URL}/v1/billing/webhooks/local", 43)
    assert await rival.rows(
        "SELECT kind, subject_id FROM billing_references WHERE digest IN (sha256(%s), sha256(%s)) ORDER BY kind",
        secret.encode(),
        payment_id.encode(),
    ) == [("local_payment", made["id"]), ("local_secret", made["id"])]
    assert await stored(rival, "amount_minor, currency, entitlement_months, provider_reference") == [
        (AMOUNT_MINOR, "TND", 12, payment_id)
    ]


async def test_what_is_bought_stays_what_it_was_when_the_offer_changes(
    tenant: Tenant, rival: Rival, local: RunningSandbox
) -> None:
    await make_local_offer(rival)
    await buy(tenant, LOCAL_OFFER)

    await rival.run("UPDATE offers SET amount_minor = 1, entitlement_months = 36, active = false")

    assert await stored(rival, "amount_minor, entitlement_months, status") == [(AMOUNT_MINOR, 12, "pending")]
    assert len(await list_payments(local)) == 1


@pytest.mark.parametrize(
    "withdrawal",
    [
        "UPDATE offers SET active = false",
        "UPDATE plans SET active = false WHERE id = 'plan_codes_studio'",
        "UPDATE payment_providers SET enabled = false",
    ],
)
async def test_an_offer_that_is_not_for_sale_is_not_found(
    tenant: Tenant, rival: Rival, card: RunningSandbox, withdrawal: str
) -> None:
    await make_card_offer(rival)
    await rival.run(withdrawal)

    assert (await buy(tenant)).code == "offer_not_found"
    assert (await card.calls("card"), await stored(rival, "id")) == ([], [])


@pytest.mark.parametrize("offer_id", ["offer_unknown", "o" * 5000])
async def test_an_unknown_offer_is_not_found(tenant: Tenant, rival: Rival, card: RunningSandbox, offer_id: str) -> None:
    assert (await buy(tenant, offer_id)).code == "offer_not_found"
    assert (await card.calls("card"), await stored(rival, "id")) == ([], [])


async def test_a_product_with_a_card_subscription_that_renews_itself_is_not_sold_again(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    await make_card_subscription(rival, tenant.organization_id, status="past_due")

    assert (await buy(tenant)).code == "subscription_active"
    assert await card.calls("card") == []


@pytest.mark.parametrize("changes", [{"cancel_at_period_end": True}, {"status": "cancelled"}], ids=str)
async def test_a_card_subscription_that_ends_does_not_prevent_the_next(
    tenant: Tenant, rival: Rival, card: RunningSandbox, changes: dict[str, Any]
) -> None:
    await make_card_offer(rival)
    await make_card_subscription(rival, tenant.organization_id, **changes)

    assert (await buy(tenant)).status == 201
    assert len(await list_sessions(card)) == 1


async def test_a_card_subscription_does_not_prevent_another_product_or_provider(
    tenant: Tenant, rival: Rival, card: RunningSandbox, local: RunningSandbox
) -> None:
    await make_card_subscription(rival, tenant.organization_id)
    await make_card_offer(rival, "offer_audience", product="audience")
    await make_local_offer(rival)

    assert (await buy(tenant, "offer_audience")).status == 201
    assert (await buy(tenant, LOCAL_OFFER)).status == 201
    assert (len(await list_sessions(card)), len(await list_payments(local))) == (1, 1)


async def test_an_eleventh_pending_checkout_is_refused_until_one_has_ended(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    await make_card_offer(rival)
    clock.freeze()
    for _ in range(10):
        assert (await buy(tenant)).status == 201
    clock.advance(hours=23)

    refused = await buy(tenant)
    clock.advance(hours=1)
    made = await buy(tenant)

    assert (refused.code, refused.headers["retry-after"]) == ("rate_limited", "3600")
    assert (made.status, len(await list_sessions(card))) == (201, 11)


async def test_pending_checkouts_of_others_do_not_count(
    people: People, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    for _ in range(10):
        await buy(tenant)

    assert (await buy(await people.tenant_of("ada"))).status == 201
    assert len(await list_sessions(card)) == 11


async def test_a_provider_without_credentials_fails_the_checkout(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    await rival.run("DELETE FROM platform_secrets")

    assert (await buy(tenant)).code == "payment_provider_unavailable"
    assert (await card.calls("card"), await stored(rival, "status")) == ([], [("failed",)])


async def test_a_replaced_secret_is_used_at_once(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    await make_card_offer(rival)
    await put_setting(tenant.api, "card_secret_key", "sk_test_another_secret_key")

    assert (await buy(tenant)).code == "payment_provider_unavailable"

    assert await card.complaints() == ["card: Invalid API Key provided: sk_test_****"]
    await card.control("/reset")


async def test_a_checkout_is_audited_without_anything_of_the_provider(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)

    made = (await buy(tenant)).json

    assert len(await list_sessions(card)) == 1
    assert await rival.audited("billing.checkout_created") == [
        ("user operator", None, {"checkout_id": made["id"], "offer_id": CARD_OFFER})
    ]
