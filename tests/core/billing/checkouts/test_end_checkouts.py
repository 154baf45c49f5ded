"""The job that expires checkouts after a day, and fails those that never got a page."""

from collections.abc import AsyncIterator

import pytest
from support.billing.offers import CARD_OFFER, LOCAL_OFFER, make_card_offer, make_local_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.billing.checkouts.jobs import expire_checkouts, fail_checkouts
from soundmark.kit.crypto.secret import Secret

PATH = "/v1/billing/checkouts"


@pytest.fixture
async def jobs(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of a worker that can reach neither provider."""
    urls = {"CARD_API_URL": "http://127.0.0.1:9", "LOCAL_API_URL": "http://127.0.0.1:9"}
    async with make_worker(database_url, clock, **urls) as ctx:
        yield ctx


async def buy(tenant: Tenant, offer_id: str = CARD_OFFER, **headers: str) -> int:
    answer = await tenant.api.post(PATH, params=tenant.query, json={"offer_id": offer_id}, headers=headers)
    return answer.status


async def statuses(rival: Rival) -> list[str]:
    return [status for (status,) in await rival.rows("SELECT status FROM checkouts ORDER BY created_at")]


async def test_a_pending_checkout_expires_after_24_hours_and_not_before(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock, jobs: Context
) -> None:
    await make_card_offer(rival)
    clock.freeze()
    await buy(tenant)

    clock.advance(hours=24, seconds=-1)
    assert (await expire_checkouts(jobs), await statuses(rival)) == (0, ["pending"])
    clock.advance(seconds=1)
    assert (await expire_checkouts(jobs), await statuses(rival)) == (1, ["expired"])
    assert (await expire_checkouts(jobs), len(await card.calls("card"))) == (0, 1)


async def test_the_checkouts_of_every_organisation_and_provider_expire(
    people: People,
    tenant: Tenant,
    rival: Rival,
    card: RunningSandbox,
    local: RunningSandbox,
    clock: FakeClock,
    jobs: Context,
) -> None:
    await make_card_offer(rival)
    await make_local_offer(rival)
    await buy(tenant)
    await buy(await people.tenant_of("ada"), LOCAL_OFFER)
    clock.advance(hours=25)

    assert (await expire_checkouts(jobs), await statuses(rival)) == (2, ["expired", "expired"])
    assert (len(await card.calls("card")), len(await local.calls("local"))) == (1, 1)


async def test_an_expired_checkout_is_still_read_again(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock, jobs: Context
) -> None:
    """Money that was taken counts, even if the notification of a payment in the last minute is lost."""
    await make_card_offer(rival)
    await buy(tenant)
    clock.advance(hours=25)

    await expire_checkouts(jobs)

    assert await rival.rows("SELECT reread_at IS NOT NULL FROM checkouts") == [(True,)]
    assert len(await card.calls("card")) == 1


async def test_a_checkout_without_a_page_fails_after_15_minutes_and_frees_its_key(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock, jobs: Context
) -> None:
    """Its process was killed while it asked the provider, and nobody repeated the request."""
    await make_card_offer(rival)
    clock.freeze()
    await buy(tenant, **{"Idempotency-Key": "purchase-of-november"})
    await rival.run("UPDATE checkouts SET provider_reference = NULL, reread_at = NULL")
    await rival.run("UPDATE issuance_receipts SET answer = ''")

    clock.advance(minutes=15, seconds=-1)
    assert (await fail_checkouts(jobs), await statuses(rival)) == (0, ["pending"])
    clock.advance(seconds=1)
    assert (await fail_checkouts(jobs), await statuses(rival)) == (1, ["failed"])
    assert await rival.rows("SELECT FROM issuance_receipts") == []
    assert (await fail_checkouts(jobs), len(await card.calls("card"))) == (0, 1)


async def test_a_checkout_with_a_page_does_not_fail(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock, jobs: Context
) -> None:
    await make_card_offer(rival)
    await buy(tenant, **{"Idempotency-Key": "purchase-of-november"})
    clock.advance(hours=2)

    assert (await fail_checkouts(jobs), await statuses(rival)) == (0, ["pending"])
    assert await rival.rows("SELECT answer <> '' FROM issuance_receipts") == [(True,)]
    assert len(await card.calls("card")) == 1


async def test_a_page_that_comes_while_the_job_waits_is_kept(
    tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock, jobs: Context
) -> None:
    await make_card_offer(rival)
    await buy(tenant)
    await rival.run("UPDATE checkouts SET provider_reference = NULL")
    clock.advance(minutes=16)

    async with rival.committing("UPDATE checkouts SET provider_reference = 'cs_late'"):
        failing = await rival.while_waiting(fail_checkouts(jobs))

    assert (await failing, await statuses(rival)) == (0, ["pending"])
    assert len(await card.calls("card")) == 1
