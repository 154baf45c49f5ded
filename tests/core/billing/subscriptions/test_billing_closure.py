"""What billing means for the deletion of an organisation: what is in its way, and that nothing is left."""

import pytest
from support.billing.subscriptions import PLUS, Buyer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.closures import (
    leave_operation_pending,
    list_mentions,
    organization_of,
    project_of,
    settle_operation,
)

from soundmark.core.features.billing.subscriptions.jobs import end_subscriptions

BLOCKER = "deletion_billing_active"


async def blocking(buyer: Buyer) -> list[str]:
    """Return the ids that the preflight names."""
    preflight = (await organization_of(buyer.tenant).preflight()).json
    found = {each["code"]: each["ids"] for each in preflight["blockers"]}
    assert preflight["can_delete"] is (not found)
    ids: list[str] = found.get(BLOCKER, [])
    return ids


@pytest.mark.parametrize("word", ["trialing", "past_due"])
async def test_a_card_subscription_that_renews_itself_is_in_the_way(buyer: Buyer, word: str) -> None:
    bought = await buyer.buy_card(status=word)

    assert await blocking(buyer) == [bought.id]

    answer = await organization_of(buyer.tenant).delete()
    assert (answer.status, answer.code) == (409, BLOCKER)
    assert (await organization_of(buyer.tenant).preflight()).json["deletion_requested_at"] is None


async def test_one_whose_period_is_over_is_too_until_the_provider_says_that_it_ended(
    buyer: Buyer, clock: FakeClock
) -> None:
    bought = await buyer.buy_card()
    clock.advance(days=90)
    assert await blocking(buyer) == [bought.id]


@pytest.mark.parametrize("changes", [{"cancel_at_period_end": True}, {"status": "canceled"}])
async def test_one_that_is_cancelled_or_set_to_cancel_is_not(buyer: Buyer, changes: dict[str, object]) -> None:
    await buyer.buy_card(**changes)
    assert await blocking(buyer) == []
    assert (await organization_of(buyer.tenant).delete()).status == 204


async def test_what_is_prepaid_and_a_contract_are_not(buyer: Buyer) -> None:
    await buyer.buy_prepaid()
    await buyer.put_contract("C-1")
    assert await blocking(buyer) == []
    assert (await organization_of(buyer.tenant).delete()).status == 204


@pytest.mark.parametrize("provider", ["card", "local"])
async def test_a_pending_checkout_is_in_the_way_for_24_hours(buyer: Buyer, clock: FakeClock, provider: str) -> None:
    clock.freeze()
    checkout = await buyer.make_checkout(provider)
    clock.advance(hours=24, seconds=-1)
    assert await blocking(buyer) == [checkout.id]
    assert (await organization_of(buyer.tenant).delete()).code == BLOCKER

    clock.advance(seconds=1)

    assert await blocking(buyer) == [], "whether the job has run or not"


@pytest.mark.parametrize("status", ["failed", "expired"])
async def test_a_checkout_that_is_not_pending_is_not(buyer: Buyer, rival: Rival, status: str) -> None:
    await buyer.make_checkout()
    await rival.run("UPDATE checkouts SET status = %s", status)
    assert await blocking(buyer) == []


async def test_it_names_a_hundred_at_most(buyer: Buyer, rival: Rival) -> None:
    bought = await buyer.buy_card()
    checkout = await buyer.make_checkout()
    await rival.run(
        "INSERT INTO checkouts (organization_id, id, offer_id, plan_id, product, provider, status, price_reference,"
        " created_at, expires_at) SELECT organization_id, id || n, offer_id, plan_id, product, provider, status,"
        " price_reference, created_at, expires_at FROM checkouts, generate_series(1, 120) n WHERE id = %s",
        checkout.id,
    )
    ids = await blocking(buyer)
    assert len(ids) == 100
    assert ids[0] == bought.id
    await rival.run(
        "INSERT INTO subscriptions (organization_id, id, plan_id, product, provider, status, cancel_at_period_end,"
        " provider_reference, created_at, updated_at) SELECT organization_id, id || n, plan_id, product, provider,"
        " status, false, provider_reference || n, created_at, updated_at FROM subscriptions, generate_series(1, 120) n"
    )
    assert len(await blocking(buyer)) == 100


async def test_a_project_is_not_concerned(buyer: Buyer) -> None:
    await buyer.buy_card()
    assert (await project_of(buyer.tenant).preflight()).json["blockers"] == []
    assert (await project_of(buyer.tenant).delete()).status == 204


async def test_a_subscription_that_is_to_renew_again_stops_the_last_phase(buyer: Buyer, rival: Rival) -> None:
    """The cancellation was taken back in the portal after the deletion was requested."""
    checkout = await buyer.make_checkout()
    state = buyer.state(cancel_at_period_end=True)
    await buyer.apply(checkout, state)
    entry_id = await leave_operation_pending(rival, buyer.tenant)
    assert (await organization_of(buyer.tenant).delete()).code == "deletion_operations_pending"
    await settle_operation(rival, entry_id)
    await buyer.apply(checkout, buyer.state(cancel_at_period_end=False))

    assert (await organization_of(buyer.tenant).delete()).code == BLOCKER

    await buyer.apply(checkout, state)
    assert (await organization_of(buyer.tenant).delete()).status == 204


async def test_nothing_is_left_and_the_certificate_counts_both(buyer: Buyer, rival: Rival, clock: FakeClock) -> None:
    """Found through the catalogue of tables, references and waiting jobs included."""
    bought = await buyer.buy_card(PLUS, cancel_at_period_end=True)
    await buyer.buy_prepaid()
    await buyer.put_contract("C-1", status="active")
    await buyer.make_checkout()
    await fill_billing(rival, buyer.organization_id, bought.id)
    clock.advance(days=1, seconds=1)
    assert {"billing_references", "payment_receipts", "procrastinate_jobs"} <= set(
        await list_mentions(rival, buyer.organization_id)
    )

    certificate = await organization_of(buyer.tenant).certificate()

    assert certificate["deleted"]["core"]["checkouts"] == 3
    assert certificate["deleted"]["core"]["subscriptions"] == 3
    assert certificate["remaining"]["core"]["checkouts"] == certificate["remaining"]["core"]["subscriptions"] == 0
    assert await list_mentions(rival, buyer.organization_id) == ["deletion_certificates"]
    assert await list_mentions(rival, bought.id) == []
    tables = ("accounting_customers", "accounting_outbox", "billing_references", "card_customers", "checkouts")
    for table in (*tables, "issuance_receipts", "payment_receipts", "subscriptions", "audience_entitlements"):
        assert await rival.rows(f"SELECT count(*) FROM {table}") == [(0,)], table


async def fill_billing(rival: Rival, organization_id: str, subscription_id: str) -> None:
    """Insert a row into each table that a payment may fill."""
    for statement in (
        "INSERT INTO billing_references VALUES ('card_customer', '\\x01', %s, 'cus_1')",
        "INSERT INTO card_customers VALUES (%s, 'cus_1', now())",
        "INSERT INTO accounting_customers VALUES (%s, 7, now())",
        (
            "INSERT INTO issuance_receipts (organization_id, key_digest, route, request_digest, answer, created_at)"
            " VALUES (%s, '\\x01', 'checkout', '\\x02', '{}', now())"
        ),
        (
            "INSERT INTO payment_receipts (provider, event_id, event_type, body_digest, organization_id, status,"
            " received_at) VALUES ('card', 'evt_1', 'invoice.paid', '\\x04', %s, 'pending', now())"
        ),
    ):
        await rival.run(statement, organization_id)
    await rival.run(
        "INSERT INTO accounting_outbox (organization_id, id, subscription_id, checkout_id, payment_digest,"
        " description, amount_minor, currency, period_start, period_end, status, due_at, give_up_at, created_at,"
        " updated_at) VALUES (%s, 'acc_1', %s, 'bco_1', '\\x01', 'Codes', 1, 'TND', now(), now(), 'pending', now(),"
        " now(), now(), now())",
        organization_id,
        subscription_id,
    )


async def test_an_export_has_no_billing_rows(buyer: Buyer) -> None:
    bought = await buyer.buy_card()
    answer = await buyer.tenant.api.get(f"/v1/organizations/{buyer.organization_id}/export")
    assert answer.status == 200
    assert not [mark for mark in (bought.id, "sub_", "price_", "plan_") if mark.encode() in answer.body]


async def test_jobs_find_nothing_of_an_organisation_that_is_deleted_meanwhile(
    buyer: Buyer, clock: FakeClock, rival: Rival
) -> None:
    await buyer.buy_prepaid(PLUS)
    clock.advance(days=60)
    async with rival.holding("SELECT pg_advisory_xact_lock(6, hashtext(%s))", buyer.organization_id):
        ending = await rival.while_waiting(end_subscriptions(buyer.ctx))
        await rival.run("DELETE FROM subscriptions")
    assert await ending == 0
    assert (await organization_of(buyer.tenant).delete()).status == 204
    assert await end_subscriptions(buyer.ctx) == 0
