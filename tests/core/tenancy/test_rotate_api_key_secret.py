"""`POST /v1/api-keys/{api_key_id}/secret`: another secret for the same key, and the old one is void."""

import asyncio
import re
from typing import Any

from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import format_timestamp


async def rotate(tenant: Tenant, key: dict[str, Any]) -> Answer:
    return await tenant.api.post(f"/v1/api-keys/{key['id']}/secret", params=tenant.query)


async def works(tenant: Tenant, secret: str, core: Api | None = None) -> bool:
    answer = await (core or tenant.api).other(token=secret).get("/v1/codes", params=tenant.query)
    assert answer.status in {200, 401}
    return answer.status == 200


async def test_the_key_stays_and_its_secret_changes(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    key = await tenant.make_key()
    api.clock.advance(days=1)
    answer = await rotate(tenant, key)
    rotated = answer.json
    assert answer.status == 200
    assert re.fullmatch(r"xak_[A-Za-z0-9_-]{43}", rotated["secret"])
    assert rotated["secret"] != key["secret"]
    now = format_timestamp(api.clock.now())
    assert rotated == {**key, "secret": rotated["secret"], "secret_rotated_at": now}
    assert await works(tenant, rotated["secret"])
    assert not await works(tenant, key["secret"])
    metadata = {"api_key_id": key["id"]}
    assert await rival.audited("api_key.secret_rotated") == [("user operator", tenant.project_id, metadata)]


async def test_the_old_secret_is_rejected_at_once_on_every_process(api: Api, people: People, tenant: Tenant) -> None:
    """Two Cores on one database, both of which knew the old secret a moment ago."""
    key = await tenant.make_key()
    for core in (api, people.api):
        assert await works(tenant, key["secret"], core)
    rotated = (await rotate(tenant, key)).json
    for core in (people.api, api):
        assert not await works(tenant, key["secret"], core)
        assert await works(tenant, rotated["secret"], core)


async def test_each_secret_voids_the_one_before(tenant: Tenant) -> None:
    secrets = [key := await tenant.make_key()]
    secrets += [(await rotate(tenant, key)).json for _ in range(3)]
    assert [await works(tenant, one["secret"]) for one in secrets] == [False, False, False, True]


async def test_a_revoked_key_is_given_no_secret(tenant: Tenant, rival: Rival) -> None:
    key = await tenant.make_key()
    await tenant.api.post(f"/v1/api-keys/{key['id']}/revoke", params=tenant.query)
    before = await rival.rows("SELECT digest FROM api_key_digests")
    answer = await rotate(tenant, key)
    assert (answer.status, answer.code) == (409, "api_key_not_active")
    assert await rival.rows("SELECT digest FROM api_key_digests") == before
    assert await rival.audited("api_key.secret_rotated") == []


async def test_an_expired_key_is_given_no_secret(api: Api, tenant: Tenant) -> None:
    """From the millisecond of its expiry."""
    api.clock.freeze()
    key = await tenant.make_key(expires_in_days=1)
    api.clock.advance(days=1, milliseconds=-1)
    assert (await rotate(tenant, key)).json["expires_at"] == key["expires_at"]
    api.clock.advance(milliseconds=1)
    answer = await rotate(tenant, key)
    assert (answer.status, answer.code) == (409, "api_key_not_active")


async def test_expiry_is_judged_after_the_lock_wait(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    key = await tenant.make_key(expires_in_days=1)
    async with rival.holding("SELECT 1 FROM api_keys FOR UPDATE"):
        rotating = await rival.while_waiting(rotate(tenant, key))
        api.clock.advance(days=1)
    assert (await rotating).code == "api_key_not_active"


async def test_a_revoke_that_comes_first_wins(tenant: Tenant, rival: Rival) -> None:
    key = await tenant.make_key()
    async with rival.committing("UPDATE api_keys SET revoked_at = now()"):
        rotating = await rival.while_waiting(rotate(tenant, key))
    assert (await rotating).code == "api_key_not_active"


async def test_of_two_at_once_the_last_secret_works(tenant: Tenant, rival: Rival) -> None:
    """Both return a secret, of which one is already void: there are never two valid ones."""
    key = await tenant.make_key()
    async with rival.holding("SELECT 1 FROM api_keys FOR UPDATE"):
        rotating = [asyncio.create_task(rotate(tenant, key)) for _ in range(2)]
        await rival.until_someone_waits(2)
    secrets = [(await answer).json["secret"] for answer in rotating]
    assert sorted([await works(tenant, secret) for secret in secrets]) == [False, True]
    assert not await works(tenant, key["secret"])


async def test_a_request_with_the_old_secret_does_not_commit_after_the_rotation(tenant: Tenant, rival: Rival) -> None:
    """The secret was valid when the request began; the rotation commits while it waits to act."""
    key = await tenant.make_key()
    server = tenant.with_key(key)
    await server.api.get("/v1/codes", params=tenant.query)  # Its use is recorded, so that nothing waits for that.
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        rotating = await rival.while_waiting(rotate(tenant, key))  # It holds the key's row.
        issuing = asyncio.create_task(server.api.post("/v1/codes", json=tenant.code_body()))
        await rival.until_someone_waits(2)
    assert (await rotating).status == 200
    assert ((await issuing).status, (await issuing).code) == (401, "unauthenticated")
    assert await rival.rows("SELECT 1 FROM codes") == []


async def test_a_rotation_waits_for_requests_under_way(tenant: Tenant, rival: Rival) -> None:
    key = await tenant.make_key()
    async with rival.holding("LOCK TABLE codes IN SHARE MODE"):
        issuing = await rival.while_waiting(tenant.with_key(key).api.post("/v1/codes", json=tenant.code_body()))
        rotating = asyncio.create_task(rotate(tenant, key))
        await rival.until_someone_waits(2)
    assert ((await issuing).status, (await rotating).status) == (201, 200)
