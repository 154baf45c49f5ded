"""GET /v1/billing/checkouts: what waits for a payment."""

from support.billing.card_purchase import begin_purchase
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/checkouts"


async def listed(tenant: Tenant) -> list[str]:
    answer = await tenant.api.get(PATH, params=tenant.query)
    assert answer.status == 200, answer.body
    return [each["id"] for each in answer.json["data"]]


async def test_pending_checkouts_are_listed_oldest_first_as_each_is_shown(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    first = await begin_purchase(tenant, rival, card)
    clock.advance(seconds=1)
    second = await begin_purchase(tenant, rival, card)

    answer = await tenant.api.get(PATH, params=tenant.query)

    shown = [(await tenant.api.get(f"{PATH}/{each.checkout_id}", params=tenant.query)).json for each in (first, second)]
    assert answer.json == {"data": shown}


async def test_what_has_ended_is_not_listed(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    for status in ("failed", "expired"):
        ended = await begin_purchase(tenant, rival, card)
        await rival.run("UPDATE checkouts SET status = %s WHERE id = %s", status, ended.checkout_id)
    pending = await begin_purchase(tenant, rival, card)
    assert await listed(tenant) == [pending.checkout_id]

    clock.advance(hours=24)

    assert await listed(tenant) == [], "even before a job says so"


async def test_those_of_others_are_not_listed(
    tenant: Tenant, people: People, rival: Rival, card: RunningSandbox
) -> None:
    await begin_purchase(tenant, rival, card)

    assert await listed(await people.tenant_of("ada")) == []
