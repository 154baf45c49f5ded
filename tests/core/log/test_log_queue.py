"""What happens enters the log's queue, in the transaction that does it, once, and without a tenant."""

from collections import Counter
from typing import Any

import psycopg
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.archives import export_organization
from support.tenancy.closures import organization_of
from support.tenancy.tenant import Tenant

from soundmark.core.domain.log.entry import (
    commit_issued,
    commit_revoked,
    document_entry,
    issued_entry,
    revoked_entry,
)
from soundmark.core.features.log.integration.sequencing import make_entries
from soundmark.core.store.codes.broadcasts import Broadcast
from soundmark.core.store.log.queue import Queued
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text import base64url


async def queued(rival: Rival) -> Counter[bytes]:
    """Return the entries that the worker makes of what waits."""
    rows = await rival.rows("SELECT kind, count, content FROM log_queue")
    waiting = [Queued(kind, count, bytes(content)) for kind, count, content in rows]
    return Counter(entry for entry, _ in make_entries(waiting))


def entry_of(code: dict[str, Any], *, revoked: bool = False) -> bytes:
    """Return the entry that the owner of a Code computes from its `signed_code`."""
    unsigned = dict(code["signed_code"])
    signature = base64url.decode(unsigned.pop("signature"))
    payload = canonicalize(unsigned)
    record = Broadcast("", payload, signature)
    return revoked_entry(commit_revoked(payload, signature)) if revoked else issued_entry(commit_issued([record]))


async def make_batch(tenant: Tenant, count: int, **changes: Any) -> list[dict[str, Any]]:
    answer = await tenant.api.post("/v1/codes/batch", json={**tenant.code_body(**changes), "count": count})
    assert answer.status == 201, answer.body
    codes: list[dict[str, Any]] = answer.json["data"]
    return codes


async def test_each_issued_code_is_queued(tenant: Tenant, rival: Rival) -> None:
    codes = [await tenant.make_code(), *await make_batch(tenant, 3)]
    assert await queued(rival) == Counter(entry_of(code) for code in codes)


async def test_a_recovered_or_repeated_issuance_is_queued_once(tenant: Tenant, rival: Rival) -> None:
    headers, body = {"Idempotency-Key": "again-and-again-and-again"}, tenant.code_body()
    answers = [(await tenant.api.post("/v1/codes", json=body, headers=headers)).json for _ in range(2)]
    assert answers[0] == answers[1]
    assert await queued(rival) == Counter([entry_of(answers[0])])


async def test_a_refused_issuance_is_not_queued(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_quota(rival, 0)
    assert (await tenant.api.post("/v1/codes", json=tenant.code_body())).code == "quota_exceeded"
    assert not await queued(rival)


async def test_each_revoked_code_is_queued_once_however_often_it_is_revoked(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    single, *batch = await make_batch(tenant, 3)
    stopped = await make_batch(tenant, 3, campaign_id=campaign["id"])
    await rival.run("DELETE FROM log_queue")
    await tenant.revoke(single["xr_id"])
    for _ in range(2):
        await tenant.revoke(stopped[0]["xr_id"])
        body = {"xr_ids": [code["xr_id"] for code in [single, *batch]], "project_id": tenant.project_id}
        answer = await tenant.api.post("/v1/codes/revoke-batch", json=body, params=tenant.query)
        assert answer.status == 200, answer.body
        await tenant.api.post(f"/v1/campaigns/{campaign['id']}/stop", params=tenant.query)
    codes = [single, *batch, *stopped]
    assert await queued(rival) == Counter(entry_of(code, revoked=True) for code in codes)


async def test_an_altered_code_can_still_be_revoked(tenant: Tenant, rival: Rival) -> None:
    """Its entry commits to what is stored."""
    code = await tenant.make_code()
    await rival.run("DELETE FROM log_queue")
    await rival.run("UPDATE broadcasts SET payload = 'x'")
    await tenant.revoke(code["xr_id"])
    signature = base64url.decode(code["signed_code"]["signature"])
    assert await queued(rival) == Counter([revoked_entry(commit_revoked(b"x", signature))])


async def test_a_deletion_queues_its_certificate_and_no_revocation(api: Api, tenant: Tenant, rival: Rival) -> None:
    """What was queued for the organisation stays: no row of the log refers to a tenant."""
    code = await tenant.make_code()
    deleted = await organization_of(tenant).delete()
    assert deleted.status == 204, deleted.body
    certificate = (await api.get(deleted.headers["location"])).json
    assert await queued(rival) == Counter([entry_of(code), document_entry(canonicalize(certificate))])


async def test_the_seal_of_an_archive_is_queued(tenant: Tenant, rival: Rival) -> None:
    seal = (await export_organization(tenant))["seal"]
    assert await queued(rival) == Counter([document_entry(canonicalize(seal))])


async def test_codes_that_are_issued_or_stopped_together_wait_in_few_rows(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_quota(rival, 300)
    campaign = await tenant.make_campaign()
    for _ in range(3):
        await make_batch(tenant, 100, campaign_id=campaign["id"])
    assert await rival.rows("SELECT kind, count FROM log_queue") == [("code.issued", 100)] * 3
    await rival.run("DELETE FROM log_queue")
    await tenant.api.post(f"/v1/campaigns/{campaign['id']}/stop", params=tenant.query)
    assert await rival.rows("SELECT kind, count FROM log_queue ORDER BY count") == [
        ("code.revoked", 44),
        ("code.revoked", 256),
    ]


async def test_an_issuance_notifies_nobody_and_its_process_does_a_moment_later(
    tenant: Tenant, rival: Rival, database_url: Secret
) -> None:
    """A notification takes a lock until the commit, so issuances would wait for each other."""
    async with await psycopg.AsyncConnection.connect(database_url.reveal(), autocommit=True) as connection:
        await connection.execute("LISTEN log_queue")
        async with rival.holding("LOCK TABLE audit_heads IN SHARE MODE"):
            await tenant.make_code()
        heard = [notice.channel async for notice in connection.notifies(stop_after=1)]
    assert heard == ["log_queue"]
