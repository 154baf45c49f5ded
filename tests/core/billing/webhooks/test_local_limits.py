"""How often notifications and jobs may ask the local provider: each in its share, whatever the others do."""

import pytest
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.billing.local_purchase import PATH, LocalPurchase, begin_local_purchase, new_peer, notify, notify_of
from support.database.rival import Rival
from support.outside.redis_server import running_redis
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.billing.local_limit import limit_of_address, limit_of_share
from soundmark.core.features.billing.webhooks.rereads import reread_local
from soundmark.kit.crypto.secret import Secret

COUNTS = "SELECT share, verification_count FROM local_verifications ORDER BY share"


@pytest.mark.parametrize(
    ("per_minute", "public", "jobs"), [(30, 20, 10), (31, 20, 10), (3, 2, 1), (2, 1, 1), (1, 1, 1)]
)
def test_the_limit_is_shared_out_and_everybody_has_at_least_one(per_minute: int, public: int, jobs: int) -> None:
    assert limit_of_share(per_minute, "public") == public
    assert limit_of_share(per_minute, "jobs") == limit_of_address(per_minute) == jobs


@pytest.fixture
async def paid(tenant: Tenant, rival: Rival, local: RunningSandbox, clock: FakeClock) -> list[LocalPurchase]:
    """Thirteen payments of one organisation that are paid, of which nobody has notified us."""
    clock.freeze()
    return [await begin_local_purchase(tenant, rival, local) for _ in range(13)]


async def use_up(rival: Rival, clock: FakeClock, share: str, count: int) -> None:
    minute = clock.now().replace(second=0)
    await rival.run("INSERT INTO local_verifications VALUES (%s, %s, %s)", minute, count, share)


async def test_all_notifications_together_have_two_thirds_in_a_minute_of_the_clock(
    api: Api, people: People, rival: Rival, local: RunningSandbox, clock: FakeClock, paid: list[LocalPurchase]
) -> None:
    """The two Cores of this test are as two processes: they share nothing but the database."""
    await use_up(rival, clock, "public", 18)

    answers = [await notify_of(each, of) for of, each in zip(paid, (api, people.api, api, people.api), strict=False)]

    assert [answer.status for answer in answers] == [200, 200, 429, 429]
    assert answers[2].code == "rate_limited"
    assert answers[2].headers["retry-after"] == str(60 - clock.now().second)
    assert (len(await local.calls("local")), await rival.rows(COUNTS)) == (2, [("public", 20)])
    assert await rival.rows("SELECT count(*) FROM payment_receipts WHERE status = 'pending' AND reread_at > now()") == [
        (2,)
    ], "a job asks if nobody notifies us again"
    clock.advance(seconds=60 - clock.now().second)
    assert (await notify_of(api, paid[2])).json == {"status": "processed"}


async def test_notifications_cannot_use_up_what_the_jobs_have(
    api: Api, work: Context, rival: Rival, clock: FakeClock, paid: list[LocalPurchase]
) -> None:
    clock.advance(minutes=2)
    await use_up(rival, clock, "public", 20)
    assert (await notify_of(api, paid[0])).status == 429

    assert await reread_local(work) == 10
    assert await rival.rows(COUNTS) == [("jobs", 10), ("public", 20)]


async def test_the_jobs_cannot_use_up_what_notifications_have(
    api: Api, work: Context, rival: Rival, local: RunningSandbox, clock: FakeClock, paid: list[LocalPurchase]
) -> None:
    """What is left is due in the next minute."""
    clock.advance(minutes=2)
    await use_up(rival, clock, "jobs", 8)

    assert await reread_local(work) == 2
    assert (await reread_local(work), len(await local.calls("local"))) == (0, 2)

    assert (await notify_of(api, paid[-1])).json == {"status": "processed"}
    clock.advance(minutes=1)
    assert await reread_local(work) == 10


async def test_an_address_has_a_third_and_others_are_served(
    api: Api, rival: Rival, local: RunningSandbox, clock: FakeClock, paid: list[LocalPurchase]
) -> None:
    peer = new_peer()
    statuses = [(await notify_of(api, each, peer=peer)).status for each in paid[:10]]
    refused = await notify_of(api, paid[10], peer=peer)

    assert (statuses, refused.status, refused.code) == ([200] * 10, 429, "rate_limited")
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert (len(await local.calls("local")), await rival.rows(COUNTS)) == (10, [("public", 10)])
    assert (await notify_of(api, paid[11])).json == {"status": "processed"}
    clock.advance(seconds=60)
    assert (await notify_of(api, paid[10], peer=peer)).json == {"status": "processed"}


async def test_what_is_answered_without_a_question_counts_in_no_limit(
    api: Api, tenant: Tenant, rival: Rival, local: RunningSandbox, clock: FakeClock, paid: list[LocalPurchase]
) -> None:
    peer = new_peer()
    unpaid = await begin_local_purchase(tenant, rival, local, status="PENDING")
    await notify_of(api, paid[0], peer=peer)
    await notify_of(api, unpaid, peer=peer)
    for _ in range(12):
        assert (await notify_of(api, paid[0], peer=peer)).json == {"status": "processed"}
        assert (await notify_of(api, unpaid, peer=peer)).json == {"status": "pending"}
        assert (await notify(api, PATH, params={"payment_id": "unknown-0001"}, peer=peer)).status == 404
    assert await rival.rows(COUNTS) == [("public", 2)]
    await rival.run("UPDATE local_verifications SET verification_count = 20")
    for _ in range(12):
        assert (await notify_of(api, paid[1], peer=peer)).status == 429
    clock.advance(seconds=60 - clock.now().second)

    statuses = [(await notify_of(api, each, peer=peer)).status for each in paid[1:9]]

    assert statuses == [200] * 8, "the address has eight left, or ten"


async def test_behind_a_trusted_proxy_the_address_of_the_client_is_limited(
    database_url: Secret,
    outside_urls: dict[str, str],
    rival: Rival,
    local: RunningSandbox,
    clock: FakeClock,
    paid: list[LocalPurchase],
) -> None:
    """What a client claims to have forwarded itself does not count."""
    settings = core_settings(
        database_url, **outside_urls, trusted_proxies="10.0.0.0/8", local_verifications_per_minute="6"
    )
    async with running_core(settings, clock) as core:

        async def notify_through_proxy(number: int, client: str) -> int:
            headers = {"X-Forwarded-For": f"192.0.2.{number}, {client}"}
            return (
                await notify(core, paid[number].path, params=of(paid[number]), peer="10.0.0.1", headers=headers)
            ).status

        assert [await notify_through_proxy(number, "203.0.113.1") for number in range(3)] == [200, 200, 429]
        assert await notify_through_proxy(3, "203.0.113.2") == 200
    assert (len(await local.calls("local")), await rival.rows(COUNTS)) == (3, [("public", 3)])


def of(purchase: LocalPurchase) -> dict[str, str]:
    return {"payment_id": purchase.payment_id}


async def test_several_processes_count_an_address_together_at_a_shared_server(
    database_url: Secret,
    outside_urls: dict[str, str],
    local: RunningSandbox,
    clock: FakeClock,
    paid: list[LocalPurchase],
) -> None:
    peer = new_peer()
    async with running_redis() as redis:
        changes = {**outside_urls, "rate_limit_url": redis.url, "local_verifications_per_minute": "6"}
        settings = core_settings(database_url, **changes)
        async with running_core(settings, clock) as first, running_core(settings, clock) as second:
            statuses = [
                (await notify_of(core, each, peer=peer)).status
                for core, each in zip((first, second, first), paid, strict=False)
            ]
    assert (statuses, len(await local.calls("local"))) == ([200, 200, 429], 2)


async def test_organisations_take_turns_when_the_job_asks(
    work: Context, people: People, rival: Rival, local: RunningSandbox, clock: FakeClock, paid: list[LocalPurchase]
) -> None:
    """One that keeps many payments due does not hold up the payment of another, which is due last."""
    clock.advance(minutes=1)
    other = await begin_local_purchase(await people.tenant_of("ada"), rival, local)
    clock.advance(minutes=3)

    assert await reread_local(work) == 10

    assert (await local.calls("local"))[1]["path"].endswith(other.payment_id), f"after the first of {len(paid)}"
    assert await rival.rows("SELECT status FROM checkouts WHERE id = %s", other.checkout_id) == [("completed",)]
