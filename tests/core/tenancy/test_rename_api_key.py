"""`PATCH /v1/api-keys/{api_key_id}`: a name for people, whatever the key's status."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_second_project


async def rename(tenant: Tenant, key: dict[str, Any], name: Any = "Playout", **more: Any) -> Answer:
    return await tenant.api.patch(f"/v1/api-keys/{key['id']}", params=tenant.query, json={"name": name, **more})


async def make_key(tenant: Tenant, **changes: Any) -> dict[str, Any]:
    """Create a key, and return its view without the secret."""
    key = await tenant.make_key(**changes)
    del key["secret"]
    return key


async def names(rival: Rival) -> list[str | None]:
    return [name for (name,) in await rival.rows("SELECT name FROM api_keys ORDER BY created_at, id")]


async def test_a_key_is_named_at_its_creation_or_has_no_name(api: Api, tenant: Tenant) -> None:
    api.clock.freeze()
    made = [await make_key(tenant)]
    for name in (None, " Playout "):
        api.clock.advance(seconds=1)
        made.append(await make_key(tenant, name=name))
    assert [key["name"] for key in made] == [None, None, "Playout"]
    listed = await api.get("/v1/api-keys", params=tenant.query)
    assert listed.json["data"] == made[::-1]


async def test_the_name_changes_and_the_rest_stays(tenant: Tenant, rival: Rival) -> None:
    """The name is not in the audit log: it may be a person's."""
    key = await tenant.make_key()
    server = tenant.with_key(key)
    del key["secret"]
    answer = await rename(tenant, key, " Playout ")
    assert (answer.status, answer.json) == (200, {**key, "name": "Playout"})
    assert (await server.api.get("/v1/caller")).json["id"] == key["id"]
    metadata = {"api_key_id": key["id"]}
    assert await rival.audited("api_key.renamed") == [("user operator", tenant.project_id, metadata)]


async def test_null_removes_the_name(tenant: Tenant, rival: Rival) -> None:
    key = await make_key(tenant, name="Playout")
    assert (await rename(tenant, key, None)).json == {**key, "name": None}
    assert len(await rival.audited("api_key.renamed")) == 1


@pytest.mark.parametrize("name", [None, " Playout "], ids=repr)
async def test_the_same_name_again_writes_nothing(tenant: Tenant, rival: Rival, name: str | None) -> None:
    key = await make_key(tenant, name=name)
    before = await rival.rows("SELECT xmin::text FROM api_keys")
    assert (await rename(tenant, key, name)).json == key
    assert await rival.rows("SELECT xmin::text FROM api_keys") == before
    assert await rival.audited("api_key.renamed") == []


async def test_names_are_not_unique(tenant: Tenant, rival: Rival) -> None:
    for _ in range(2):
        key = await make_key(tenant, name="Playout")
    assert (await rename(tenant, key, "Studio")).status == 200
    assert (await rename(tenant, key, "Playout")).status == 200
    assert await names(rival) == ["Playout"] * 2


async def test_a_revoked_or_expired_key_is_renamed(api: Api, tenant: Tenant) -> None:
    api.clock.freeze()
    revoked, expired = await make_key(tenant), await make_key(tenant, expires_in_days=1)
    await api.post(f"/v1/api-keys/{revoked['id']}/revoke", params=tenant.query)
    api.clock.advance(days=1)
    for key, status in ((revoked, "revoked"), (expired, "expired")):
        answer = await rename(tenant, key)
        assert (answer.status, answer.json["status"], answer.json["name"]) == (200, status, "Playout")


async def test_the_name_is_in_every_view_of_the_key(tenant: Tenant) -> None:
    key = await make_key(tenant, name="Playout")
    rotated = await tenant.api.post(f"/v1/api-keys/{key['id']}/secret", params=tenant.query)
    revoked = await tenant.api.post(f"/v1/api-keys/{key['id']}/revoke", params=tenant.query)
    assert (rotated.json["name"], revoked.json["name"]) == ("Playout", "Playout")
    other = await make_second_project(tenant)
    assert (await other.make_key(name="Playout"))["name"] == "Playout"


async def test_a_key_that_is_revoked_meanwhile_is_renamed_and_stays_revoked(tenant: Tenant, rival: Rival) -> None:
    key = await make_key(tenant)
    async with rival.committing("UPDATE api_keys SET revoked_at = now()"):
        renaming = await rival.while_waiting(rename(tenant, key))
    answer = await renaming
    assert (answer.status, answer.json["status"], answer.json["name"]) == (200, "revoked", "Playout")


async def test_a_request_with_the_key_and_its_renaming_wait_for_each_other(tenant: Tenant, rival: Rival) -> None:
    key = await tenant.make_key()
    server = tenant.with_key(key)
    await server.api.get("/v1/codes", params=tenant.query)  # Its use is recorded, so that nothing waits for that.
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        renaming = await rival.while_waiting(rename(tenant, key))
        issuing = asyncio.create_task(server.api.post("/v1/codes", json=tenant.code_body()))
        await rival.until_someone_waits(2)
    assert ((await renaming).status, (await issuing).status) == (200, 201)


async def test_of_two_that_give_one_name_the_second_writes_nothing(tenant: Tenant, rival: Rival) -> None:
    key = await make_key(tenant)
    async with rival.holding("SELECT FROM api_keys FOR UPDATE"):
        renaming = [asyncio.create_task(rename(tenant, key)) for _ in range(2)]
        await rival.until_someone_waits(2)
    assert [(await answer).json["name"] for answer in renaming] == ["Playout"] * 2
    assert len(await rival.audited("api_key.renamed")) == 1


async def test_a_key_that_is_deleted_meanwhile_is_not_found(tenant: Tenant, rival: Rival) -> None:
    key = await make_key(tenant)
    async with rival.committing("DELETE FROM projects"):
        renaming = await rival.while_waiting(rename(tenant, key))
    assert ((await renaming).status, (await renaming).code) == (404, "api_key_not_found")
