"""The jobs of each minute: what is over expires, and the next subscription counts."""

import asyncio
from datetime import timedelta

import pytest
from support.billing.subscriptions import CONTRACT_PLAN, PLUS, Buyer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import make_tenant

from soundmark.core.features.billing.subscriptions import jobs
from soundmark.core.features.billing.subscriptions.jobs import (
    end_subscriptions,
    refresh_ended_entitlements,
    refresh_plan,
)
from soundmark.kit.text.timestamps import format_timestamp


async def test_prepaid_and_contracts_expire_at_the_end_of_their_period(
    buyer: Buyer, clock: FakeClock, rival: Rival
) -> None:
    now = clock.freeze()
    prepaid = await buyer.buy_prepaid()
    assert prepaid.current_period_end is not None
    await buyer.put_contract("C-1", period_end=format_timestamp(prepaid.current_period_end))
    await buyer.buy_card(current_period_end=prepaid.current_period_end)
    clock.advance(seconds=(prepaid.current_period_end - now).total_seconds() - 1)
    assert await end_subscriptions(buyer.ctx) == 0

    clock.advance(seconds=1)

    assert await end_subscriptions(buyer.ctx) == 2
    assert sorted(await buyer.statuses()) == [("card", "active"), ("contract", "expired"), ("local", "expired")]
    ended = [each for each in await rival.audited("billing.entitlement_changed") if each[2]["status"] == "expired"]
    assert [actor for actor, _, _ in ended] == ["system soundmark"] * 2
    assert await end_subscriptions(buyer.ctx) == 0


async def test_it_works_through_every_organisation_in_batches(
    buyer: Buyer, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_AT_ONCE", 2)
    others = [Buyer(await make_tenant(buyer.tenant.api), buyer.rival, buyer.ctx) for _ in range(4)]
    for each in others:
        await each.buy_prepaid()
    clock.advance(days=40)

    assert await end_subscriptions(buyer.ctx) == 4

    assert [await each.statuses() for each in others] == [[("local", "expired")]] * 4


async def test_what_is_extended_meanwhile_does_not_expire(buyer: Buyer, clock: FakeClock, rival: Rival) -> None:
    await buyer.buy_prepaid()
    clock.advance(days=40)
    async with rival.holding("SELECT pg_advisory_xact_lock(6, hashtext(%s))", buyer.organization_id):
        ending = await rival.while_waiting(end_subscriptions(buyer.ctx))
        await rival.run("UPDATE subscriptions SET paid_through = paid_through + interval '1 year'")

    assert await ending == 0
    assert await buyer.statuses() == [("local", "active")]


async def test_two_workers_expire_it_once(buyer: Buyer, clock: FakeClock, rival: Rival) -> None:
    await buyer.buy_prepaid()
    clock.advance(days=40)
    async with rival.holding("SELECT pg_advisory_xact_lock(6, hashtext(%s))", buyer.organization_id):
        ending = [asyncio.create_task(end_subscriptions(buyer.ctx)) for _ in range(2)]
        await rival.until_someone_waits(2)

    assert sorted(await asyncio.gather(*ending)) == [0, 1]
    assert len(await rival.audited("billing.entitlement_changed")) == 2


async def test_a_worker_that_dies_leaves_it_to_the_next(buyer: Buyer, clock: FakeClock, rival: Rival) -> None:
    await buyer.buy_prepaid()
    clock.advance(days=40)
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        ending = await rival.while_waiting(end_subscriptions(buyer.ctx))
        await rival.kill_waiting_sessions()
        assert isinstance((await asyncio.gather(ending, return_exceptions=True))[0], Exception)
    assert await buyer.statuses() == [("local", "active")]

    assert await end_subscriptions(buyer.ctx) == 1


async def test_after_a_contract_the_next_subscription_counts(buyer: Buyer, clock: FakeClock) -> None:
    """One that expires by the job: the job carries on with the other."""
    await buyer.rival.run("UPDATE plans SET monthly_event_quota = 900 WHERE id = %s", PLUS)
    now = clock.freeze()
    prepaid = await buyer.buy_prepaid(PLUS, months=12)
    end = now + timedelta(days=1)
    reference = f"operator-self_service-{buyer.organization_id}"
    await buyer.tenant.make_entitlement(buyer.rival, "contract")  # Another mode has nothing to do with it.
    await buyer.rival.run(
        "INSERT INTO subscriptions (organization_id, id, plan_id, product, audience_mode, provider, status,"
        " current_period_end, paid_through, cancel_at_period_end, contract_reference, created_at, updated_at)"
        " VALUES (%s, 'bsu_1', %s, 'audience', 'self_service', 'contract', 'active', %s, %s, false, %s, %s, %s)",
        buyer.organization_id,
        CONTRACT_PLAN,
        end,
        end,
        reference,
        now,
        now,
    )
    await refresh_plan(buyer.ctx, plan_id=CONTRACT_PLAN)
    assert await buyer.entitlement("self_service") == (5000, end, 2)
    clock.advance(days=1)

    await end_subscriptions(buyer.ctx)

    assert await buyer.entitlement("self_service") == (900, prepaid.current_period_end, 3)


async def test_after_a_cards_grace_the_next_subscription_counts(buyer: Buyer, clock: FakeClock) -> None:
    """The card's status is the provider's, so nothing expires here."""
    now = clock.freeze()
    card = await buyer.buy_card(PLUS)
    assert card.current_period_end == now + timedelta(days=30)
    await buyer.rival.run(
        "INSERT INTO plans (id, name, product, monthly_event_quota, active, updated_at) VALUES"
        " ('plan_audience_small', 'Small', 'audience', 10, true, now()) ON CONFLICT DO NOTHING"
    )
    await buyer.rival.run(
        "INSERT INTO subscriptions (organization_id, id, plan_id, product, audience_mode, provider, status,"
        " current_period_end, paid_through, cancel_at_period_end, created_at, updated_at)"
        " VALUES (%s, 'bsu_2', 'plan_audience_small', 'audience', 'self_service', 'local', 'active', %s, %s, false,"
        " %s, %s)",
        buyer.organization_id,
        now + timedelta(days=90),
        now + timedelta(days=90),
        now,
        now,
    )
    clock.advance(days=33, seconds=-1)
    assert await refresh_ended_entitlements(buyer.ctx) == 0
    assert await buyer.entitlement("self_service") == (20000, now + timedelta(days=33), 1)
    clock.advance(seconds=1)

    made = await buyer.tenant.make_integration(mode="self_service")

    assert made["mode"] == "self_service"
    assert await buyer.entitlement("self_service") == (10, now + timedelta(days=90), 2), "without waiting for the job"
    assert await refresh_ended_entitlements(buyer.ctx) == 0


async def test_the_job_carries_on_where_nobody_asks(buyer: Buyer, clock: FakeClock) -> None:
    now = clock.freeze()
    await buyer.buy_card(PLUS)
    await buyer.buy_card(PLUS, current_period_end=now + timedelta(days=31))
    await buyer.rival.run("UPDATE audience_entitlements SET ends_at = %s", now + timedelta(days=1))
    clock.advance(days=2)

    assert await refresh_ended_entitlements(buyer.ctx) == 1

    assert await buyer.entitlement("self_service") == (20000, now + timedelta(days=34), 3)
    assert await refresh_ended_entitlements(buyer.ctx) == 0
    clock.advance(days=60)
    assert await refresh_ended_entitlements(buyer.ctx) == 0, "none is left"


async def test_a_plans_new_quota_reaches_everybody_who_has_it(buyer: Buyer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_AT_ONCE", 1)
    others = [Buyer(await make_tenant(buyer.tenant.api), buyer.rival, buyer.ctx) for _ in range(2)]
    for each in (buyer, *others):
        await each.put_contract(f"C-{each.organization_id}")
    await buyer.put_contract(f"C-{buyer.organization_id}", status="cancelled")
    await buyer.rival.run("UPDATE plans SET monthly_event_quota = 6000 WHERE id = %s", CONTRACT_PLAN)
    try:
        for _ in range(2):
            assert await refresh_plan(buyer.ctx, plan_id=CONTRACT_PLAN) == 2
        assert [await each.entitlement("contract") for each in others] == [(6000, None, 2)] * 2
    finally:
        await buyer.rival.run("UPDATE plans SET monthly_event_quota = 5000 WHERE id = %s", CONTRACT_PLAN)


async def test_an_operators_own_quota_stays_when_the_plan_changes(buyer: Buyer) -> None:
    await buyer.tenant.make_entitlement(buyer.rival, monthly_events=7)
    await refresh_plan(buyer.ctx, plan_id=CONTRACT_PLAN)
    assert await buyer.entitlement("contract") == (7, None, 1)


async def test_a_plan_that_changes_while_it_is_bought_finds_the_purchase(buyer: Buyer, rival: Rival) -> None:
    """Whoever buys holds the plan, so the change comes before, or its job comes after."""
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        putting = await rival.while_waiting(buyer.put_contract("C-1"))
        changing = asyncio.create_task(
            rival.run("UPDATE plans SET monthly_event_quota = 5000 WHERE id = %s", CONTRACT_PLAN)
        )
        await rival.until_someone_waits(2)
    assert (await putting).status == 200
    assert await changing == 1
