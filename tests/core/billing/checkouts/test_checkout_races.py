"""Checkouts that race a closure, the withdrawal of a role, and each other."""

import asyncio

from support.api.core_client import Answer
from support.billing.card_purchase import list_sessions
from support.billing.offers import CARD_OFFER, make_card_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.closures import organization_of
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/checkouts"


async def buy(tenant: Tenant) -> Answer:
    return await tenant.api.post(PATH, params=tenant.query, json={"offer_id": CARD_OFFER})


async def test_a_closure_that_begins_first_refuses_the_checkout(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)

    async with rival.committing("UPDATE organizations SET deletion_requested_at = now()"):
        buying = await rival.while_waiting(buy(tenant))

    assert (await buying).code == "resource_deletion_in_progress"
    assert (await card.calls("card"), await rival.rows("SELECT FROM checkouts")) == ([], [])


async def test_a_closure_waits_for_the_checkout_that_is_being_made_and_is_refused(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)

    async with rival.holding("SELECT FROM code_entitlements FOR UPDATE"):
        buying = await rival.while_waiting(buy(tenant))  # It holds the organisation.
        closing = asyncio.create_task(organization_of(tenant).delete())
        await rival.until_someone_waits(2)

    assert ((await buying).status, len(await list_sessions(card))) == (201, 1)
    assert (await closing).code == "deletion_billing_active"
    assert await rival.rows("SELECT deletion_requested_at FROM organizations") == [(None,)]


async def test_a_closure_while_the_provider_is_asked_for_a_page_is_refused(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    """The checkout is pending from before the provider is asked."""
    await make_card_offer(rival)
    await card.hold("card")
    buying = asyncio.create_task(buy(tenant))
    await card.until_held("card")

    closing = await organization_of(tenant).delete()
    await card.release("card")

    assert (closing.status, closing.code) == (409, "deletion_billing_active")
    assert (await buying).status == 201


async def test_an_organisation_that_is_deleted_meanwhile_is_not_found(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await make_card_offer(rival)
    await card.hold("card")
    buying = asyncio.create_task(buy(tenant))
    await card.until_held("card")
    await rival.run("DELETE FROM organizations")
    await card.release("card")

    assert (await buying).code == "organization_not_found"


async def test_of_twelve_checkouts_at_once_ten_are_made(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    await make_card_offer(rival)

    answers = await asyncio.gather(*(buy(tenant) for _ in range(12)))

    assert sorted(answer.status for answer in answers) == [201] * 10 + [429] * 2
    assert len(await list_sessions(card)) == 10


async def test_a_slow_provider_holds_nobody_up(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    """Nothing is locked while the provider is asked: Codes are issued, and other checkouts are made."""
    await make_card_offer(rival)
    await card.hold("card")
    buying = asyncio.create_task(buy(tenant))
    await card.until_held("card")

    await tenant.make_code()
    other = await buy(tenant)
    await card.release("card")

    assert (other.status, (await buying).status) == (201, 201)
