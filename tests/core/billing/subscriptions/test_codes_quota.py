"""The quota of Codes: the highest of all that entitle and the floor, judged when a Code is issued."""

from datetime import timedelta

import pytest
from support.billing.subscriptions import Buyer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock


async def policy_of(buyer: Buyer) -> str:
    body = buyer.tenant.code_body(expires_at="2999-01-01T00:00:00Z")
    return str((await buyer.tenant.api.post("/v1/codes", json=body)).headers["ratelimit-policy"])


async def set_floor(buyer: Buyer, quota: int | None) -> None:
    await buyer.rival.run("UPDATE code_entitlements SET floor_monthly_quota = %s", quota)


async def test_it_applies_from_the_purchase_to_its_end_without_a_job(buyer: Buyer, clock: FakeClock) -> None:
    clock.freeze()
    prepaid = await buyer.buy_prepaid()
    assert prepaid.current_period_end is not None
    assert await policy_of(buyer) == '"codes";q=1000'
    clock.advance(seconds=(prepaid.current_period_end - clock.now()).total_seconds() - 0.001)
    assert await policy_of(buyer) == '"codes";q=1000'

    clock.advance(seconds=0.001)

    assert await policy_of(buyer) == '"codes";q=100'


async def test_the_floor_replaces_starter_and_the_highest_counts(buyer: Buyer) -> None:
    await buyer.buy_prepaid()
    for floor, quota in ((None, 1000), (5, 1000), (3000, 3000), (0, 1000)):
        await set_floor(buyer, floor)
        assert await policy_of(buyer) == f'"codes";q={quota}'
    await buyer.rival.run("UPDATE subscriptions SET status = 'expired'")
    assert await policy_of(buyer) == '"codes";q=0'


async def test_a_plans_new_quota_applies_at_once(buyer: Buyer, rival: Rival) -> None:
    bought = await buyer.buy_prepaid()
    await rival.run("UPDATE plans SET monthly_code_quota = 1234 WHERE id = %s", bought.plan_id)
    try:
        assert await policy_of(buyer) == '"codes";q=1234'
    finally:
        await rival.run("UPDATE plans SET monthly_code_quota = 1000 WHERE id = %s", bought.plan_id)


async def test_what_ends_while_an_issuance_waits_no_longer_counts(buyer: Buyer, clock: FakeClock, rival: Rival) -> None:
    """The subscriptions are read, and the clock too, after the wait for the queue."""
    clock.freeze()
    await set_floor(buyer, 0)
    await buyer.buy_prepaid()
    async with rival.holding("SELECT FROM code_entitlements FOR NO KEY UPDATE"):
        issuing = await rival.while_waiting(buyer.tenant.api.post("/v1/codes", json=buyer.tenant.code_body()))
        clock.advance(hours=20)
        await rival.run("UPDATE subscriptions SET paid_through = %s", clock.now())
    assert (await issuing).code == "quota_exceeded"


@pytest.mark.parametrize(("seconds", "status"), [(9, 201), (10, 429)])
async def test_what_was_paid_with_a_card_may_end_while_a_batch_waits(
    buyer: Buyer, clock: FakeClock, rival: Rival, seconds: int, status: int
) -> None:
    """By time alone: no event, no job and no statement has changed anything."""
    now = clock.freeze()
    await set_floor(buyer, 1)
    await buyer.buy_card(current_period_end=now + timedelta(seconds=10) - timedelta(days=3))
    batch = buyer.tenant.code_body(count=3)
    async with rival.holding("SELECT FROM code_entitlements FOR NO KEY UPDATE"):
        issuing = await rival.while_waiting(buyer.tenant.api.post("/v1/codes/batch", json=batch))
        clock.advance(seconds=seconds)
    assert (await issuing).status == status
    issued = 3 if status == 201 else 0
    assert (await rival.rows("SELECT count(*) FROM codes"))[0] == (issued,)
