"""After a failover, a Core that still reads the old primary answers with no intent that was revoked on the new one."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.failover.postgres_pair import PostgresPair, running_pair, url_at
from support.processes.running_apps import running_core
from support.tenancy.suspension import suspend
from support.tenancy.tenant import make_tenant

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate
from soundmark.kit.postgres.promotions import LEASE_S

pytestmark = pytest.mark.xdist_group("failover")


@pytest.fixture(scope="module")
def pair() -> Iterator[PostgresPair]:
    """A primary and its synchronous standby."""
    with running_pair() as running:
        yield running


@pytest.fixture(scope="module")
def pair_url(pair: PostgresPair) -> Secret:
    """The URL of Core's database on the node that is the primary at first."""
    url = pair.create_database("soundmark_core")
    migrate(url, "soundmark.core")
    return url


@pytest.fixture
async def core(pair_url: Secret) -> AsyncIterator[Api]:
    """A Core that stays on the first primary, also after another server was promoted."""
    async with running_core(core_settings(pair_url)) as api:
        yield api


def refused(answer: Answer) -> tuple[int, str, str]:
    return (answer.status, answer.code, answer.headers["retry-after"])


UNAVAILABLE = (503, "database_unavailable", "1")


async def test_a_standby_that_confirms_nothing_ends_the_lease_after_five_seconds(core: Api, pair: PostgresPair) -> None:
    token = (await (await make_tenant(core)).make_code())["broadcast_token"]
    assert (await core.resolve(token)).status == 200
    pair.standby.signal(signal.SIGSTOP)
    try:
        assert (await core.resolve(token)).status == 200
        core.clock.advance(seconds=LEASE_S)
        assert refused(await core.resolve(token)) == UNAVAILABLE
        # What does not exist is no secret, but the old primary cannot know it.
        assert refused(await core.resolve("brd_" + "u" * 16)) == UNAVAILABLE
    finally:
        pair.standby.signal(signal.SIGCONT)
    async with asyncio.timeout(30):
        while (await core.resolve(token)).status != 200:  # noqa: ASYNC110 - the standby confirms again
            await asyncio.sleep(0.05)


async def test_a_wait_for_the_standby_that_somebody_cancels_is_no_confirmation(core: Api, pair: PostgresPair) -> None:
    """PostgreSQL then commits on the primary alone, and says so in a warning."""
    token = (await (await make_tenant(core)).make_code())["broadcast_token"]
    assert (await core.resolve(token)).status == 200
    pair.standby.signal(signal.SIGSTOP)
    try:
        core.clock.advance(seconds=LEASE_S)
        resolving = asyncio.create_task(core.resolve(token))
        waits = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%soundmark.lease%'"
        await asyncio.to_thread(pair.primary.wait_for, f"SELECT 1 {waits}")
        await asyncio.to_thread(pair.primary.execute, f"SELECT pg_cancel_backend(pid) {waits}")
        assert refused(await resolving) == UNAVAILABLE
    finally:
        pair.standby.signal(signal.SIGCONT)


async def test_without_a_synchronous_standby_nothing_is_written(core: Api, pair: PostgresPair) -> None:
    token = (await (await make_tenant(core)).make_code())["broadcast_token"]
    pair.primary.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
    pair.primary.execute("ALTER SYSTEM SET autovacuum = off")  # It writes, too.
    pair.primary.execute("SELECT pg_reload_conf()")
    try:
        core.clock.advance(seconds=LEASE_S)
        assert (await core.resolve(token)).status == 200
        # So does a vacuum that has begun, and the chain of audit entries.
        at_rest = (
            "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'autovacuum worker')"
            " AND NOT EXISTS (SELECT FROM audit_unsealed)"
        )
        await asyncio.to_thread(pair.primary.wait_for, at_rest, database="soundmark_core")
        before = pair.primary.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        for _ in range(3):
            core.clock.advance(seconds=LEASE_S)
            assert (await core.resolve(token)).status == 200
        assert pair.primary.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text") == before
        leases = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%soundmark.lease%' AND pid <> pg_backend_pid()"
        assert pair.primary.execute(leases) == []
    finally:
        pair.primary.execute("ALTER SYSTEM RESET autovacuum")
        pair.primary.require_standby()


async def test_a_write_whose_wait_for_the_standby_somebody_cancels_is_acknowledged_to_nobody(
    core: Api, pair: PostgresPair, subtests: pytest.Subtests
) -> None:
    """Such as by a tool that ends long statements. A failover would undo the write."""
    tenant = await make_tenant(core)
    code = await tenant.make_code()
    writes = {
        "/v1/projects": {"organization_id": tenant.organization_id, "name": "Another"},
        "/v1/codes": tenant.code_body(),
        f"/v1/codes/{code['xr_id']}/revoke?organization_id={tenant.organization_id}": None,
    }
    cancel = (
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
        " WHERE wait_event = 'SyncRep' AND query NOT LIKE '%soundmark.lease%'"
    )
    for path, body in writes.items():
        with subtests.test(path):
            pair.standby.signal(signal.SIGSTOP)
            try:
                writing = asyncio.create_task(core.post(path, json=body))
                async with asyncio.timeout(30):
                    # Another loop of Core may wait too, and Core may try again.
                    while not writing.done():
                        await asyncio.to_thread(pair.primary.execute, cancel)
                answer = await writing
                assert (answer.status, answer.code) == (503, "database_unavailable")
            finally:
                pair.standby.signal(signal.SIGCONT)


async def test_after_a_promotion_the_old_primary_is_read_for_five_seconds_and_what_ends_codes_waits_as_long(
    core: Api, pair: PostgresPair, pair_url: Secret
) -> None:
    """The last test of this pair, whose servers go separate ways."""
    tenant, other = await make_tenant(core), await make_tenant(core)
    codes = [await tenant.make_code() for _ in range(2)]
    token, of_other = codes[0]["broadcast_token"], (await other.make_code())["broadcast_token"]
    assert (await core.resolve(token)).status == 200
    await asyncio.to_thread(pair.fail_over)
    async with running_core(core_settings(url_at(pair_url, pair.primary.port))) as new_core:
        suspending = asyncio.create_task(suspend(new_core, other.organization_id))
        revoking = asyncio.create_task(new_core.post(f"/v1/codes/{codes[0]['xr_id']}/revoke", params=tenant.query))
        with psycopg.connect(url_at(pair_url, pair.primary.port).reveal(), autocommit=True) as connection:
            async with asyncio.timeout(30):
                for done in (
                    "SELECT 1 FROM broadcasts WHERE revoked_at IS NOT NULL",
                    "SELECT 1 FROM suspended_organizations",
                ):
                    while not connection.execute(done).rowcount:  # noqa: ASYNC110 - it happens in PostgreSQL
                        await asyncio.sleep(0.01)
        # Both are done and not yet acknowledged, so the old primary may still be read.
        assert [(await core.resolve(each)).status for each in (token, of_other)] == [200, 200]
        assert not revoking.done()
        assert not suspending.done()
        core.clock.advance(seconds=LEASE_S)
        new_core.clock.advance(seconds=LEASE_S)
        assert [(await revoking).status, (await suspending).status] == [200, 200]
        for each in (token, of_other):
            assert refused(await core.resolve(each)) == UNAVAILABLE
            assert (await new_core.resolve(each)).status == 404
        # Once is enough.
        assert (await new_core.post(f"/v1/codes/{codes[1]['xr_id']}/revoke", params=tenant.query)).status == 200
