"""Checkouts whose provider is slow, down, lost or talks nonsense."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer
from support.billing.card_purchase import ADVISED, FINAL, list_keys, list_sessions
from support.billing.offers import CARD_OFFER, LOCAL_OFFER, make_card_offer, make_local_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.secret_leaks import remember_secret
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/checkouts"
KEY = "purchase-of-november"
NO_ANSWERS = ["html", "html_as_json", "half_body"]
REFUSALS = ["refused", "rate_limited", "conflict", "server_error"]
MARKED = {
    "message": "MARK",
    "result": {"message": "MARK", "link": 7},
    "error": {"message": "MARK"},
    "metadata": ["MARK"],
}


async def buy(tenant: Tenant, offer_id: str = CARD_OFFER, *, key: str = KEY) -> Answer:
    headers = {"Idempotency-Key": key}
    return await tenant.api.post(PATH, params=tenant.query, json={"offer_id": offer_id}, headers=headers)


async def statuses(rival: Rival) -> list[Any]:
    return await rival.rows("SELECT status, reread_at FROM checkouts ORDER BY created_at")


@pytest.mark.parametrize(
    ("fault", "merge"),
    [
        *((fault, MARKED) for fault in ("refused", "rate_limited", "conflict", "altered")),
        *((fault, {}) for fault in ("html", "html_as_json", "list", "wrong_object", "endless", "redirect")),
        ("altered", {"client_reference_id": "bco_somebodyElses"}),
        ("altered", {"url": "ftp://pay.example.com/x"}),
    ],
)
async def test_a_card_provider_that_talks_nonsense_fails_the_checkout_at_once(
    tenant: Tenant, rival: Rival, card: RunningSandbox, fault: str, merge: dict[str, Any]
) -> None:
    await make_card_offer(rival)
    await card.misbehave("card", fault, merge=merge, headers=FINAL)

    answer = await buy(tenant)

    assert answer.code == "payment_provider_unavailable"
    assert b"MARK" not in answer.body
    assert (await statuses(rival), len(await card.calls("card"))) == ([("failed", None)], 1)
    assert await rival.rows("SELECT FROM issuance_receipts") == []


@pytest.mark.parametrize("fault", [*NO_ANSWERS, *REFUSALS, "list", "wrong_object"])
async def test_a_local_provider_that_talks_nonsense_is_asked_once(
    tenant: Tenant, rival: Rival, local: RunningSandbox, fault: str
) -> None:
    """It makes a payment at each call, so a lost answer must not be asked for again."""
    await make_local_offer(rival)
    await local.misbehave("local", fault, merge=MARKED)

    answer = await buy(tenant, LOCAL_OFFER)

    assert answer.code == "payment_provider_unavailable"
    assert b"MARK" not in answer.body
    assert (await statuses(rival), len(await local.calls("local"))) == ([("failed", None)], 1)


@pytest.mark.parametrize("link", ["http://pay.example.com/x", "ftp://pay.example.com/x", "https://a:b@pay.example.com"])
async def test_a_page_of_the_local_provider_must_be_secure(
    tenant: Tenant, rival: Rival, local: RunningSandbox, link: str
) -> None:
    await make_local_offer(rival)
    await local.misbehave("local", "altered", merge={"result": {"link": link}})

    assert (await buy(tenant, LOCAL_OFFER)).code == "payment_provider_unavailable"
    assert await statuses(rival) == [("failed", None)]


@pytest.mark.parametrize(
    "changes",
    [
        {"link": 7},
        {"payment_id": "../../etc/passwd"},
        {"developer_tracking_id": "bco_somebodyElses"},
        {"success": False},
    ],
    ids=str,
)
async def test_a_payment_that_is_not_ours_fails_the_checkout(
    tenant: Tenant, rival: Rival, local: RunningSandbox, changes: dict[str, Any]
) -> None:
    await make_local_offer(rival)
    await local.misbehave("local", "altered", merge={"result": changes})

    assert (await buy(tenant, LOCAL_OFFER)).code == "payment_provider_unavailable"
    assert await statuses(rival) == [("failed", None)]


async def test_a_payment_of_another_checkout_fails_the_checkout(
    tenant: Tenant, rival: Rival, local: RunningSandbox
) -> None:
    """Otherwise one payment would complete two checkouts."""
    await make_local_offer(rival)
    await local.misbehave("local", "altered", times=2, merge={"result": {"payment_id": "the-same-payment-twice"}})

    first, second = await buy(tenant, LOCAL_OFFER), await buy(tenant, LOCAL_OFFER, key="another-purchase-now")

    assert (first.status, second.code) == (201, "payment_provider_unavailable")
    assert [status for status, _ in await statuses(rival)] == ["pending", "failed"]


async def test_a_payment_without_the_optional_members_is_accepted(
    tenant: Tenant, rival: Rival, local: RunningSandbox
) -> None:
    """Some examples of the provider's documents lack them."""
    await make_local_offer(rival)
    await local.misbehave("local", "altered", merge={"result": {"developer_tracking_id": None}})

    assert (await buy(tenant, LOCAL_OFFER)).status == 201


@pytest.mark.parametrize("fault", ["lost_answer", "half_body"])
async def test_a_lost_answer_is_asked_for_again_with_the_same_key(
    tenant: Tenant, rival: Rival, card: RunningSandbox, fault: str
) -> None:
    await make_card_offer(rival)
    await card.misbehave("card", fault)

    answer = await buy(tenant)

    assert answer.status == 201
    assert (len(await list_sessions(card)), await list_keys(card)) == (1, [f"{answer.json['id']}-1"] * 2)


async def test_an_answer_that_is_lost_twice_fails_the_checkout(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """A session that nobody has seen cannot be paid."""
    await make_card_offer(rival)
    await card.misbehave("card", "lost_answer", times=2)

    assert (await buy(tenant)).code == "payment_provider_unavailable"
    assert (await statuses(rival), len(await card.calls("card"))) == ([("failed", None)], 2)


async def test_a_failure_that_the_provider_has_stored_is_left_behind(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """The provider repeats a 500 under its idempotency key for a day."""
    await make_card_offer(rival)
    await card.misbehave("card", "server_error")

    answer = await buy(tenant)

    checkout_id = answer.json["id"]
    assert (answer.status, len(await list_sessions(card))) == (201, 1)
    assert await list_keys(card) == [f"{checkout_id}-1", f"{checkout_id}-2"]
    assert await rival.rows("SELECT attempts FROM checkouts") == [(2,)]


async def test_a_provider_that_stores_two_failures_fails_the_checkout(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    await card.misbehave("card", "server_error", times=2)

    assert (await buy(tenant)).code == "payment_provider_unavailable"
    assert (await statuses(rival), len(set(await list_keys(card)))) == ([("failed", None)], 2)


async def test_a_failure_that_the_provider_advises_to_repeat_keeps_its_key(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    await card.misbehave("card", "server_error", headers=ADVISED)

    answer = await buy(tenant)

    assert (answer.status, len(set(await list_keys(card))), len(await list_keys(card))) == (201, 1, 2)


async def test_a_provider_that_limits_is_not_asked_again(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    await make_card_offer(rival)
    await card.misbehave("card", "rate_limited", headers=ADVISED)

    await buy(tenant)

    assert len(await card.calls("card")) == 1


async def test_a_resumed_checkout_leaves_a_stored_failure_behind_too(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """Both requests go from the first key to the second, which leads both to one session."""
    await make_card_offer(rival)
    await card.misbehave("card", "server_error")
    await card.hold("card")
    first = asyncio.create_task(buy(tenant))
    await card.until_held("card")

    second = await buy(tenant)
    await card.release("card")

    assert (await first).body == second.body
    assert (second.status, len(await list_sessions(card))) == (201, 1)
    assert await rival.rows("SELECT attempts FROM checkouts") == [(2,)]


async def test_a_checkout_that_failed_meanwhile_shows_nobody_its_page(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """Its key may be another checkout's by now, so it is left alone; the provider closes the page."""
    await make_card_offer(rival)
    await card.hold("card")
    buying = asyncio.create_task(buy(tenant))
    await card.until_held("card")
    await rival.run("UPDATE checkouts SET status = 'failed'")
    await card.release("card")

    answer = await buying

    (session,) = await list_sessions(card)
    assert (answer.code, session["status"]) == ("payment_provider_unavailable", "expired")
    assert await rival.rows("SELECT provider_reference, status FROM checkouts") == [(None, "failed")]
    assert await rival.rows("SELECT answer FROM issuance_receipts") == [(b"",)]


async def test_a_payment_that_is_known_before_our_commit_keeps_the_checkout_completed(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    await card.hold("card")
    buying = asyncio.create_task(buy(tenant))
    await card.until_held("card")
    await rival.run("UPDATE checkouts SET status = 'completed', completed_at = now()")
    await card.release("card")

    answer = await buying

    assert (answer.status, answer.json["status"]) == (201, "completed")
    assert await statuses(rival) == [("completed", None)]


async def test_nothing_of_the_payer_or_the_provider_is_in_an_answer_a_log_or_the_audit_log(
    people: People, rival: Rival, card: RunningSandbox, local: RunningSandbox
) -> None:
    """The logs of this test are searched for the markers when it ends."""
    await make_card_offer(rival)
    await make_local_offer(rival)
    tenant = await people.tenant_of("mark.payer")
    remember_secret("mark.payer@example.org")
    for fault in ("lost_answer", "half_body", "server_error", "html", "altered", "refused"):
        await card.misbehave("card", fault, merge=MARKED)
        await local.misbehave("local", fault, merge=MARKED)
        for offer_id in (CARD_OFFER, LOCAL_OFFER):
            answer = await buy(tenant, offer_id, key=f"purchase-{fault}-{offer_id}")
            shown = answer.json.pop("checkout_url", "")
            assert b"MARK" not in answer.body.replace(shown.encode(), b"")
            assert b"mark.payer" not in answer.body
        await card.control("/switches/reset")

    audited = str(await rival.audited("billing.checkout_created"))
    assert "MARK" not in audited
    assert len(await card.calls("card")) > 6
