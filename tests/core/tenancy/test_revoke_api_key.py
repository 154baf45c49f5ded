"""`POST /v1/api-keys/{api_key_id}/revoke`: once, and then nothing commits with the key."""

import asyncio
from typing import Any

from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import format_timestamp


async def revoke(tenant: Tenant, key: dict[str, Any]) -> Answer:
    return await tenant.api.post(f"/v1/api-keys/{key['id']}/revoke", params=tenant.query)


async def test_the_answer_is_the_key_revoked_now(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    key = await tenant.make_key()
    api.clock.advance(seconds=1.5)
    answer = await revoke(tenant, key)
    secret = key.pop("secret")
    now = format_timestamp(api.clock.now())
    assert (answer.status, answer.json) == (200, {**key, "status": "revoked", "revoked_at": now})
    assert secret not in answer.body.decode()
    assert (await api.other(token=secret).get("/v1/codes", params=tenant.query)).code == "unauthenticated"
    assert await rival.audited("api_key.revoked") == [("user operator", tenant.project_id, {"api_key_id": key["id"]})]


async def test_a_second_revoke_answers_the_same_bytes(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Also after its expiry; and the log records one revocation."""
    api.clock.freeze()
    key = await tenant.make_key(expires_in_days=1)
    first = await revoke(tenant, key)
    for seconds in (1, 86400):
        api.clock.advance(seconds=seconds)
        again = await revoke(tenant, key)
        assert (again.status, again.body) == (200, first.body)
    assert len(await rival.audited("api_key.revoked")) == 1


async def test_an_expired_key_is_answered_unchanged(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    key = await tenant.make_key(expires_in_days=1)
    api.clock.advance(days=1)
    answer = await revoke(tenant, key)
    assert (answer.status, answer.json["status"], answer.json["revoked_at"]) == (200, "expired", None)
    assert await rival.audited("api_key.revoked") == []


async def test_a_key_is_revoked_in_its_last_millisecond(api: Api, tenant: Tenant) -> None:
    api.clock.freeze()
    key = await tenant.make_key(expires_in_days=1)
    api.clock.advance(days=1, milliseconds=-1)
    assert (await revoke(tenant, key)).json["status"] == "revoked"


async def test_two_at_once_are_one_revocation(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    key = await tenant.make_key()
    async with rival.holding("SELECT 1 FROM api_keys FOR UPDATE"):
        one, two = (asyncio.create_task(revoke(tenant, key)) for _ in range(2))
        await rival.until_someone_waits(2)
    assert (await one).body == (await two).body
    assert len(await rival.audited("api_key.revoked")) == 1


async def test_expiry_is_judged_after_the_lock_wait(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    key = await tenant.make_key(expires_in_days=1)
    async with rival.holding("SELECT 1 FROM api_keys FOR UPDATE"):
        revoking = await rival.while_waiting(revoke(tenant, key))
        api.clock.advance(days=1)
    assert (await revoking).json["status"] == "expired"


async def test_a_key_deleted_during_the_wait_is_not_found(tenant: Tenant, rival: Rival) -> None:
    key = await tenant.make_key()
    async with rival.committing("DELETE FROM api_keys"):
        revoking = await rival.while_waiting(revoke(tenant, key))
    assert (await revoking).code == "api_key_not_found"


async def test_a_request_authorised_before_a_revoke_does_not_commit_after_it(tenant: Tenant, rival: Rival) -> None:
    """The key was active when the request began; the revocation commits first."""
    key = await tenant.make_key()
    server = tenant.with_key(key)
    await server.api.get("/v1/codes", params=tenant.query)  # Its use is recorded, so that nothing waits for that.
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        revoking = await rival.while_waiting(revoke(tenant, key))  # It holds the key's row.
        issuing = asyncio.create_task(server.api.post("/v1/codes", json=tenant.code_body()))
        await rival.until_someone_waits(2)
    assert (await revoking).json["status"] == "revoked"
    assert ((await issuing).status, (await issuing).code) == (401, "unauthenticated")
    assert await rival.rows("SELECT 1 FROM codes") == []


async def test_a_revoke_waits_for_requests_under_way(tenant: Tenant, rival: Rival) -> None:
    """A request that holds the key's authority commits first; after the response to the revocation none does."""
    key = await tenant.make_key()
    server = tenant.with_key(key)
    async with rival.holding("LOCK TABLE codes IN SHARE MODE"):
        issuing = await rival.while_waiting(server.api.post("/v1/codes", json=tenant.code_body()))
        revoking = asyncio.create_task(revoke(tenant, key))
        await rival.until_someone_waits(2)
        assert not revoking.done()
    assert (await issuing).status == 201
    assert (await revoking).json["status"] == "revoked"
    assert (await server.api.post("/v1/codes", json=tenant.code_body())).code == "unauthenticated"


async def test_a_revoked_key_is_refused_by_every_process(api: Api, people: People, tenant: Tenant) -> None:
    """Two Cores on one database; the key was used on both."""
    key = await tenant.make_key()
    for core in (api, people.api):
        assert (await core.other(token=key["secret"]).get("/v1/codes", params=tenant.query)).status == 200
    await revoke(tenant, key)
    for core in (api, people.api):
        answer = await core.other(token=key["secret"]).get("/v1/codes", params=tenant.query)
        assert (answer.status, answer.code) == (401, "unauthenticated")
