"""POST /v1/billing/checkouts with an Idempotency-Key, in the key space that issuance shares."""

import asyncio

from support.api.core_client import Answer
from support.billing.card_purchase import list_keys, list_sessions
from support.billing.local_purchase import list_payments
from support.billing.offers import CARD_OFFER, LOCAL_OFFER, make_card_offer, make_local_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/checkouts"
KEY = "purchase-of-november"


async def buy(tenant: Tenant, offer_id: str = CARD_OFFER, *, key: str = KEY) -> Answer:
    headers = {"Idempotency-Key": key}
    return await tenant.api.post(PATH, params=tenant.query, json={"offer_id": offer_id}, headers=headers)


async def issue(tenant: Tenant, *, key: str = KEY) -> Answer:
    return await tenant.api.post("/v1/codes", json=tenant.code_body(), headers={"Idempotency-Key": key})


async def count_checkouts(rival: Rival) -> int:
    ((count,),) = await rival.rows("SELECT count(*) FROM checkouts")
    return int(count)


async def test_a_repeated_key_gets_the_same_bytes_and_makes_no_second_page(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)

    first, second = await buy(tenant), await buy(tenant)

    assert (first.status, second.status) == (201, 201)
    assert first.body == second.body
    assert (len(await card.calls("card")), await count_checkouts(rival)) == (1, 1)


async def test_a_repeated_key_of_a_local_checkout_makes_no_second_page(
    tenant: Tenant, rival: Rival, local: RunningSandbox
) -> None:
    await make_local_offer(rival)

    first, second = await buy(tenant, LOCAL_OFFER), await buy(tenant, LOCAL_OFFER)

    assert first.body == second.body
    assert len(await local.calls("local")) == 1


async def test_a_key_is_answered_whatever_has_changed_since(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    """The offer is withdrawn, the checkout paid, and the organisation being deleted."""
    await make_card_offer(rival)
    first = await buy(tenant)
    await rival.run("UPDATE offers SET active = false")
    await rival.run("UPDATE checkouts SET status = 'completed', completed_at = now()")
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")

    assert (await buy(tenant)).body == first.body
    assert len(await card.calls("card")) == 1


async def test_a_key_is_free_again_after_a_day(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    await make_card_offer(rival)
    clock.freeze()
    first = await buy(tenant)
    clock.advance(hours=24)

    second = await buy(tenant)

    assert (second.status, len(await list_sessions(card))) == (201, 2)
    assert first.json["id"] != second.json["id"]


async def test_a_key_with_another_offer_is_a_conflict(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    await make_card_offer(rival)
    await make_card_offer(rival, "offer_codes_yearly")
    await buy(tenant)

    assert (await buy(tenant, "offer_codes_yearly")).code == "idempotency_conflict"
    assert len(await card.calls("card")) == 1


async def test_a_key_of_an_issuance_is_a_conflict(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    await make_card_offer(rival)
    assert (await issue(tenant)).status == 201

    assert (await buy(tenant)).code == "idempotency_conflict"
    assert (await card.calls("card"), await count_checkouts(rival)) == ([], 0)


async def test_a_key_of_a_checkout_issues_and_recovers_nothing(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    await buy(tenant)

    recovered = await tenant.api.post("/v1/codes/recover", json=tenant.code_body(), headers={"Idempotency-Key": KEY})

    assert (await issue(tenant)).code == recovered.code == "idempotency_conflict"
    assert len(await card.calls("card")) == 1


async def test_a_key_is_taken_while_the_provider_is_asked(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    """An issuance with the same key must not overwrite what the checkout will be answered with."""
    await make_card_offer(rival)
    await card.hold("card")
    buying = asyncio.create_task(buy(tenant))
    await card.until_held("card")

    issued = await issue(tenant)
    await card.release("card")

    assert issued.code == "idempotency_conflict"
    assert (await buying).status == 201


async def test_a_key_of_another_organisation_is_another_key(
    people: People, tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    first = await buy(tenant)

    second = await buy(await people.tenant_of("ada"))

    assert (second.status, len(await list_sessions(card))) == (201, 2)
    assert first.json["id"] != second.json["id"]


async def test_a_malformed_key_is_refused_before_the_body_is_judged(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    headers = {"Idempotency-Key": b"short"}

    for body in ({"offer_id": CARD_OFFER}, {"offer_id": 7}):
        answer = await tenant.api.post(PATH, params=tenant.query, json=body, headers=headers)
        assert answer.code == "validation_failed"
        assert [fault["pointer"] for fault in answer.json["errors"]] == ["/Idempotency-Key"]
    assert (await card.calls("card"), await count_checkouts(rival)) == ([], 0)


async def test_a_failed_checkout_frees_its_key(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    """A 503 is not kept: the repetition is a new checkout, and the key may be used for anything else."""
    await make_card_offer(rival)
    await card.misbehave("card", "refused")

    refused = await buy(tenant)
    repeated = await buy(tenant)

    assert (refused.code, repeated.status) == ("payment_provider_unavailable", 201)
    assert await rival.rows("SELECT status FROM checkouts ORDER BY created_at") == [("failed",), ("pending",)]


async def test_a_key_of_a_failed_checkout_may_issue(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    await make_card_offer(rival)
    await card.misbehave("card", "refused")
    await buy(tenant)

    assert (await issue(tenant)).status == 201
    assert await rival.rows("SELECT route FROM issuance_receipts") == [("single",)]


async def test_two_requests_with_one_key_at_once_make_one_session(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """The second resumes while the first is still being answered: the provider's own key makes it one session."""
    await make_card_offer(rival)
    await card.hold("card")
    first = asyncio.create_task(buy(tenant))
    await card.until_held("card")

    second = await buy(tenant)
    await card.release("card")

    assert (second.status, second.body) == (201, (await first).body)
    assert (len(await list_sessions(card)), await count_checkouts(rival)) == (1, 1)
    assert len(set(await list_keys(card))) == 1


async def test_ten_requests_with_one_key_at_once_make_one_session(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)

    answers = await asyncio.gather(*(buy(tenant) for _ in range(10)))

    assert {answer.status for answer in answers} == {201}
    assert len({answer.body for answer in answers}) == 1
    assert (len(await list_sessions(card)), await count_checkouts(rival)) == (1, 1)


async def test_two_requests_for_a_local_checkout_at_once_make_one_payment(
    tenant: Tenant, rival: Rival, local: RunningSandbox
) -> None:
    """The local provider has no idempotency keys, so the second request waits for the first."""
    await make_local_offer(rival)
    await local.hold("local")
    first = asyncio.create_task(buy(tenant, LOCAL_OFFER))
    await local.until_held("local")
    second = asyncio.create_task(buy(tenant, LOCAL_OFFER))
    done, _ = await asyncio.wait([second], timeout=0.5)
    await local.release("local")

    assert done == set()
    assert (await first).status == 201
    assert (await second).body == (await first).body
    assert (len(await list_payments(local)), await count_checkouts(rival)) == (1, 1)


async def test_a_local_checkout_whose_process_died_fails_and_is_bought_anew(
    tenant: Tenant, rival: Rival, local: RunningSandbox, clock: FakeClock
) -> None:
    """Its page, if there is one, was never shown to anybody: a second one under the same checkout could be paid too."""
    await make_local_offer(rival)
    await buy(tenant, LOCAL_OFFER)
    await rival.run("UPDATE checkouts SET provider_reference = NULL")
    await rival.run("UPDATE issuance_receipts SET answer = ''")
    clock.advance(seconds=20)

    resumed = await buy(tenant, LOCAL_OFFER)
    anew = await buy(tenant, LOCAL_OFFER)

    assert (resumed.code, anew.status, len(await list_payments(local))) == ("payment_provider_unavailable", 201, 2)
    assert await rival.rows("SELECT status FROM checkouts ORDER BY created_at") == [("failed",), ("pending",)]
