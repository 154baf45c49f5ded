"""Heads of audit chains in the log: with them, the owner of a download proves that nobody altered it later."""

import asyncio

from soundmark_sdk import LogPolicy, verify_audit_log
from support.api.core_client import Api
from support.database.rival import Rival
from support.log.stored_log import StoredLog
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.domain.log.entry import read_entry
from soundmark.core.features.tenancy.audit_log.heads import log_heads

from .conftest import Integrators

VERIFICATION = "/v1/audit-log/verification"


async def chained(tenant: Tenant) -> int:
    """Wait until every entry has its place, and return how many there are."""
    async with asyncio.timeout(60):
        while (answer := await tenant.api.get(VERIFICATION, params=tenant.query)).json["unsealed"]:
            pass
    entries: int = answer.json["entries"]
    return entries


async def test_a_download_is_verified_with_the_log(
    core: Api, ctx: Context, integrators: Integrators, stored: StoredLog
) -> None:
    tenant = await make_tenant(core)
    await tenant.make_code()
    entries = await chained(tenant)
    assert (await core.get(VERIFICATION, params=tenant.query)).json["logged_head"] is None
    assert await log_heads(ctx) == 1
    assert (await core.get(VERIFICATION, params=tenant.query)).json["logged_head"] is None, "it is not in the tree yet"
    await integrators().integrate_once()
    head = (await core.get(VERIFICATION, params=tenant.query)).json["logged_head"]
    download = await core.get("/v1/audit-log", params=tenant.query, headers={"accept": "application/x-ndjson"})
    lines = download.body.splitlines()
    loop = asyncio.get_running_loop()

    def fetch(digest: str) -> bytes | None:
        answer = asyncio.run_coroutine_threadsafe(core.get(f"/v1/log/proofs/{digest}"), loop).result(60)
        return answer.body if answer.status == 200 else None

    found = await asyncio.to_thread(verify_audit_log, lines, policy=LogPolicy(stored.vkey), fetch_proof=fetch)
    assert (found.organization_id, found.entries, found.unchained, found.covered) == (
        tenant.organization_id,
        entries,
        0,
        entries,
    )
    assert head == {"entries": entries, "chain_hash": core_hash(await listed(tenant), entries)}


async def listed(tenant: Tenant) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = (await tenant.api.get("/v1/audit-log", params=tenant.query)).json["data"]
    return entries


def core_hash(entries: list[dict[str, object]], position: int) -> object:
    return next(entry["chain_hash"] for entry in entries if entry["position"] == position)


async def test_a_head_is_entered_once_for_each_growth_and_the_newest_is_shown(
    core: Api, ctx: Context, integrators: Integrators, stored: StoredLog, rival: Rival, clock: FakeClock
) -> None:
    tenant = await make_tenant(core)
    assert await chained(tenant) == 2
    assert (await log_heads(ctx), await log_heads(ctx)) == (1, 0)
    await integrators().integrate_once()
    for name in ("one", "two", "three"):
        await core.make_project(tenant.organization_id, name)
        await chained(tenant)
        clock.advance(seconds=60)
        assert await log_heads(ctx) == 1
    assert (await core.get(VERIFICATION, params=tenant.query)).json["logged_head"]["entries"] == 2
    kinds = [read_entry(entry).kind for entry in await stored.entries()]
    assert kinds.count("audit.head") == 1
    await integrators().integrate_once()
    assert (await core.get(VERIFICATION, params=tenant.query)).json["logged_head"]["entries"] == 5
    await core.make_project(tenant.organization_id, "four")
    await chained(tenant)
    clock.advance(seconds=60)
    await log_heads(ctx)
    assert await rival.rows("SELECT entries FROM audit_logged_heads ORDER BY entries") == [(5,), (6,)]


async def test_at_most_one_head_of_an_organisation_is_entered_in_a_minute(
    core: Api, ctx: Context, rival: Rival, clock: FakeClock
) -> None:
    """Of the clock, so that a job that begins a moment earlier than the last one skips no minute."""
    tenant, other = await make_tenant(core), await make_tenant(core)
    await chained(tenant)
    await chained(other)
    clock.advance(seconds=60 - clock.freeze().second)
    await rival.run("DELETE FROM audit_unlogged WHERE organization_id = %s", other.organization_id)
    assert await log_heads(ctx) == 1
    for name in ("one", "two"):
        await core.make_project(tenant.organization_id, name)
        await chained(tenant)
        clock.advance(seconds=29.9)
        assert await log_heads(ctx) == 0, "that of this minute is there"
    await core.make_project(other.organization_id, "one")
    await chained(other)
    assert await log_heads(ctx) == 1, "another organisation has its own"
    clock.advance(seconds=0.2)
    assert await log_heads(ctx) == 1, "what grew meanwhile was not forgotten"
    assert await rival.rows(
        "SELECT entries FROM audit_logged_heads WHERE organization_id = %s ORDER BY entries", tenant.organization_id
    ) == [(2,), (4,)]
    clock.advance(seconds=-3600)
    await core.make_project(tenant.organization_id, "three")
    await chained(tenant)
    assert await log_heads(ctx) == 1, "a clock that was set back stops nothing"


async def test_a_head_that_sealing_holds_is_entered_once_it_is_free(core: Api, ctx: Context, rival: Rival) -> None:
    tenant = await make_tenant(core)
    await chained(tenant)
    async with rival.holding("SELECT FROM audit_heads FOR UPDATE"):
        logging = asyncio.create_task(log_heads(ctx))
        await asyncio.sleep(0.2)
        assert not logging.done()
    assert await logging == 1
    await rival.run("INSERT INTO audit_unlogged SELECT id FROM organizations")
    async with rival.holding("SELECT FROM organizations FOR UPDATE"):
        assert await log_heads(ctx) == 0, "it is being deleted"


async def test_two_workers_enter_a_head_once(core: Api, ctx: Context, rival: Rival) -> None:
    tenants = [await make_tenant(core) for _ in range(5)]
    for tenant in tenants:
        await chained(tenant)
    assert sum(await asyncio.gather(log_heads(ctx), log_heads(ctx))) == len(tenants)
    assert await rival.rows("SELECT count(*) FROM audit_logged_heads") == [(len(tenants),)]
