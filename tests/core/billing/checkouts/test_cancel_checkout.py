"""POST /v1/billing/checkouts/{checkout_id}/cancel: what it ends, and what it leaves as it is."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Answer
from support.billing.card_purchase import WEBHOOK_SECRET, begin_purchase, list_sessions, put_object, status_of
from support.billing.local_purchase import list_payments
from support.billing.offers import CARD_OFFER, LOCAL_OFFER, make_card_offer, make_local_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.closures import organization_of
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/checkouts"
KEY = "purchase-of-november"
STATUSES = "SELECT status, reread_at IS NULL FROM checkouts ORDER BY created_at, id"


async def buy(tenant: Tenant, offer_id: str = CARD_OFFER, *, key: str = KEY) -> Answer:
    headers = {"Idempotency-Key": key}
    return await tenant.api.post(PATH, params=tenant.query, json={"offer_id": offer_id}, headers=headers)


async def cancel(tenant: Tenant, checkout_id: str) -> Answer:
    return await tenant.api.post(f"{PATH}/{checkout_id}/cancel", params=tenant.query)


async def list_operations(card: RunningSandbox) -> list[str]:
    """Return what Core asked the card provider after it had made the page."""
    return [call["operation"] for call in (await card.calls("card"))[1:]]


@pytest.fixture
async def checkout(tenant: Tenant, rival: Rival, card: RunningSandbox) -> dict[str, Any]:
    """A checkout of the card provider that has its page."""
    await make_card_offer(rival)
    made = await buy(tenant)
    assert (made.status, len(await list_sessions(card))) == (201, 1)
    return dict(made.json)


async def test_the_provider_closes_the_page_and_the_checkout_has_expired(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    answer = await cancel(tenant, checkout["id"])

    (session,) = await list_sessions(card)
    shown = await tenant.api.get(f"{PATH}/{checkout['id']}", params=tenant.query)
    assert (answer.status, answer.json["status"], session["status"]) == (200, "expired", "expired")
    assert answer.json == shown.json
    assert await rival.rows(STATUSES) == [("expired", True)]
    assert await list_operations(card) == ["expire_session"]


async def test_the_organisation_can_then_be_deleted(tenant: Tenant, checkout: dict[str, Any]) -> None:
    preflight = await organization_of(tenant).preflight()
    assert preflight.json["blockers"] == [{"code": "deletion_billing_active", "ids": [checkout["id"]]}]

    await cancel(tenant, checkout["id"])

    assert (await organization_of(tenant).preflight()).json["blockers"] == []
    assert (await organization_of(tenant).delete()).status == 204


async def test_it_is_recorded_once_however_often_it_is_repeated(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    first, second = await cancel(tenant, checkout["id"]), await cancel(tenant, checkout["id"])

    assert (first.status, first.body) == (second.status, second.body)
    assert await rival.audited("billing.checkout_cancelled") == [
        ("user operator", None, {"checkout_id": checkout["id"], "offer_id": CARD_OFFER})
    ]
    assert await list_operations(card) == ["expire_session"]


@pytest.mark.parametrize("status", ["completed", "failed", "expired"])
async def test_a_checkout_that_has_ended_is_returned_as_it_is(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any], status: str
) -> None:
    completed_at = "now()" if status == "completed" else "NULL"
    await rival.run(f"UPDATE checkouts SET status = %s, completed_at = {completed_at}", status)

    answer = await cancel(tenant, checkout["id"])

    assert (answer.status, answer.json["status"]) == (200, status)
    assert (await rival.audited("billing.checkout_cancelled"), await list_operations(card)) == ([], [])


async def test_a_checkout_whose_day_is_over_is_returned_as_expired(
    tenant: Tenant, card: RunningSandbox, checkout: dict[str, Any], clock: FakeClock
) -> None:
    clock.advance(hours=24)

    assert (await cancel(tenant, checkout["id"])).json["status"] == "expired"
    assert await list_operations(card) == []


async def test_other_checkouts_stay_pending(tenant: Tenant, rival: Rival, checkout: dict[str, Any]) -> None:
    other = await buy(tenant, key="another-purchase-now")

    await cancel(tenant, checkout["id"])

    assert await rival.rows("SELECT id FROM checkouts WHERE status = 'pending'") == [(other.json["id"],)]


async def test_a_key_keeps_its_answer_and_another_key_buys_again(
    tenant: Tenant, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    """As after a day."""
    await cancel(tenant, checkout["id"])

    assert (await buy(tenant)).json == checkout
    assert (await buy(tenant, key="another-purchase-now")).status == 201
    assert len(await list_sessions(card)) == 2


async def test_a_purchase_that_was_paid_meanwhile_is_completed(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    """Its event has not arrived yet."""
    (session,) = await list_sessions(card)
    await card.control(f"/card/sessions/{session['id']}/pay")

    answer = await cancel(tenant, checkout["id"])

    assert (answer.status, answer.json["status"]) == (200, "completed")
    assert await rival.rows(STATUSES) == [("completed", True)]
    assert await rival.rows("SELECT provider, status FROM subscriptions") == [("card", "active")]
    assert await rival.audited("billing.checkout_cancelled") == []


async def test_a_payment_that_settles_later_keeps_the_checkout(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    """Such as a direct debit: the page is used, and the money may arrive."""
    (session,) = await list_sessions(card)
    await card.control(f"/card/sessions/{session['id']}/pay-later")

    answer = await cancel(tenant, checkout["id"])
    await card.control(f"/card/sessions/{session['id']}/settle")

    assert (answer.status, answer.code) == (409, "checkout_not_cancellable")
    assert answer.json["detail"].endswith(f"ends by itself at {checkout['expires_at']} at the latest.")
    assert await rival.rows(STATUSES) == [("pending", False)]
    assert (await cancel(tenant, checkout["id"])).json["status"] == "completed"


async def test_a_page_that_was_closed_before_ends_the_checkout(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    """By a process that died before it could store that, or by somebody at the provider."""
    (session,) = await list_sessions(card)
    await card.control(f"/card/sessions/{session['id']}/expire")

    assert (await cancel(tenant, checkout["id"])).json["status"] == "expired"
    assert await rival.rows(STATUSES) == [("expired", True)]
    assert len(await rival.audited("billing.checkout_cancelled")) == 1


@pytest.mark.parametrize("fault", ["refused", "rate_limited", "server_error", "html", "wrong_object", "list"])
async def test_a_provider_that_fails_changes_nothing(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any], fault: str
) -> None:
    await card.misbehave("card", fault, times=4)

    answer = await cancel(tenant, checkout["id"])

    assert (answer.status, answer.code) == (503, "payment_provider_unavailable")
    assert await rival.rows(STATUSES) == [("pending", False)]
    assert await rival.audited("billing.checkout_cancelled") == []
    assert (await list_sessions(card))[0]["status"] == "open"


async def test_a_session_that_the_provider_lacks_is_left_to_a_person(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    """The credential is that of another account, where the page may still be paid."""
    await rival.run("UPDATE checkouts SET provider_reference = 'cs_test_MARKgone'")

    with capture_logs() as logs:
        answer = await cancel(tenant, checkout["id"])

    assert answer.code == "payment_provider_unavailable"
    assert "card_object_missing" in [each["event"] for each in logs]
    assert await rival.rows(STATUSES) == [("pending", False)]
    assert await list_operations(card) == ["expire_session"]


async def test_a_session_that_the_provider_calls_open_after_all_changes_nothing(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    (session,) = await list_sessions(card)
    await card.control(f"/card/sessions/{session['id']}/expire")
    await put_object(card, f"/v1/checkout/sessions/{session['id']}", {**session, "status": "open"})

    assert (await cancel(tenant, checkout["id"])).code == "payment_provider_unavailable"
    assert await rival.rows(STATUSES) == [("pending", False)]


async def test_a_payment_that_arrives_after_all_completes_the_checkout(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """Money that was taken counts."""
    assert (await put_setting(tenant.api, "card_webhook_secret", WEBHOOK_SECRET)).status == 200
    purchase = await begin_purchase(tenant, rival, card)
    await rival.run("UPDATE checkouts SET status = 'expired', reread_at = NULL")

    assert (await cancel(tenant, purchase.checkout_id)).json["status"] == "expired"
    assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "processed"

    assert await rival.rows(STATUSES) == [("completed", True)]


async def test_a_payment_whose_event_comes_while_the_page_is_being_closed_counts(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    """The provider is slow to answer, and the event commits before."""
    await card.hold("card", "expire_session")
    cancelling = asyncio.create_task(cancel(tenant, checkout["id"]))
    await card.until_held("card")
    await rival.run("UPDATE checkouts SET status = 'completed', completed_at = now(), reread_at = NULL")
    await card.release("card")

    assert (await cancelling).json["status"] == "completed"
    assert await rival.rows(STATUSES) == [("completed", True)]
    assert await rival.audited("billing.checkout_cancelled") == []


async def test_of_two_at_once_one_ends_the_checkout(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    await card.hold("card", "expire_session", times=2)
    both = [asyncio.create_task(cancel(tenant, checkout["id"])) for _ in range(2)]
    await card.until_held("card", 2)
    await card.release("card")

    first, second = await asyncio.gather(*both)

    assert (first.status, first.body) == (second.status, second.body)
    assert len(await rival.audited("billing.checkout_cancelled")) == 1


async def test_nothing_is_locked_while_the_provider_is_asked(
    tenant: Tenant, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    await card.hold("card", "expire_session")
    cancelling = asyncio.create_task(cancel(tenant, checkout["id"]))
    await card.until_held("card")

    await tenant.make_code()
    assert (await buy(tenant, key="another-purchase-now")).status == 201
    await card.release("card")

    assert (await cancelling).status == 200


async def test_a_checkout_whose_organisation_is_deleted_meanwhile_is_not_found(
    tenant: Tenant, rival: Rival, card: RunningSandbox, checkout: dict[str, Any]
) -> None:
    await card.hold("card", "expire_session")
    cancelling = asyncio.create_task(cancel(tenant, checkout["id"]))
    await card.until_held("card")
    await rival.run("DELETE FROM organizations")
    await card.release("card")

    assert (await cancelling).code == "checkout_not_found"


async def test_a_checkout_that_is_being_made_fails_and_its_page_is_closed(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """Whoever makes it finds that at the end; its key is free."""
    await make_card_offer(rival)
    await card.hold("card")
    buying = asyncio.create_task(buy(tenant))
    await card.until_held("card")
    ((checkout_id,),) = await rival.rows("SELECT id FROM checkouts")

    answer = await cancel(tenant, checkout_id)
    await card.release("card")

    assert (answer.status, answer.json["status"]) == (200, "failed")
    assert (await buying).code == "payment_provider_unavailable"
    assert [session["status"] for session in await list_sessions(card)] == ["expired"]
    assert await rival.rows(STATUSES) == [("failed", True)]
    assert len(await rival.audited("billing.checkout_cancelled")) == 1
    assert (await buy(tenant)).status == 201


async def test_a_local_checkout_that_is_being_made_fails_and_shows_nobody_its_page(
    tenant: Tenant, rival: Rival, local: RunningSandbox
) -> None:
    await make_local_offer(rival)
    await local.hold("local")
    buying = asyncio.create_task(buy(tenant, LOCAL_OFFER))
    await local.until_held("local")
    ((checkout_id,),) = await rival.rows("SELECT id FROM checkouts")

    answer = await cancel(tenant, checkout_id)
    await local.release("local")

    assert (answer.json["status"], (await buying).code) == ("failed", "payment_provider_unavailable")
    assert len(await list_payments(local)) == 1
    assert await rival.rows("SELECT status, provider_reference FROM checkouts") == [("failed", None)]


async def test_no_credential_means_the_provider_cannot_be_reached(
    tenant: Tenant, rival: Rival, checkout: dict[str, Any]
) -> None:
    await rival.run("DELETE FROM platform_secrets")

    assert (await cancel(tenant, checkout["id"])).code == "payment_provider_unavailable"
    assert await rival.rows(STATUSES) == [("pending", False)]
