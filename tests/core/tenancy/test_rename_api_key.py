"""`PATCH /v1/api-keys/{api_key_id}`: a name for people, whatever the key's status."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_second_project, make_tenant


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


@pytest.mark.parametrize("name", [None, "Playout", " Playout "], ids=repr)
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


@pytest.mark.parametrize("name", ["a", "x" * 120, " \t\n" + "x" * 120 + "\u2003", "Ä☃😀\u202e"])
async def test_a_name_has_1_to_120_characters_after_trimming(tenant: Tenant, rival: Rival, name: str) -> None:
    key = await make_key(tenant, name=name)
    await rename(tenant, key, "Playout")
    assert (await rename(tenant, key, name)).json["name"] == name.strip()
    assert await names(rival) == [name.strip()]


@pytest.mark.parametrize("name", ["", " \t", "x" * 121, "a\0b", "a\nb", "a\x7fb", 1, True, [], {}], ids=repr)
async def test_another_name_is_refused(tenant: Tenant, rival: Rival, name: Any) -> None:
    key = await make_key(tenant)
    created = await tenant.api.post("/v1/api-keys", json=tenant.key_body(name=name))
    for answer in (await rename(tenant, key, name), created):
        assert (answer.status, answer.code) == (422, "validation_failed")
        assert [error["pointer"] for error in answer.json["errors"]] == ["/name"]
    assert await names(rival) == [None]


async def test_a_lone_surrogate_is_no_json(tenant: Tenant) -> None:
    key = await make_key(tenant)
    answer = await tenant.api.patch(
        f"/v1/api-keys/{key['id']}",
        params=tenant.query,
        content=rb'{"name": "\ud800"}',
        headers={"Content-Type": "application/json"},
    )
    assert (answer.status, answer.code) == (400, "malformed_json")


@pytest.mark.parametrize(("body", "pointer"), [({}, "/name"), ({"name": "A", "scopes": ["codes:read"]}, "/scopes")])
async def test_the_name_is_required_and_nothing_else_can_be_changed(
    tenant: Tenant, body: dict[str, Any], pointer: str
) -> None:
    key = await make_key(tenant)
    answer = await tenant.api.patch(f"/v1/api-keys/{key['id']}", params=tenant.query, json=body)
    assert (answer.status, answer.code, answer.json["errors"][0]["pointer"]) == (422, "validation_failed", pointer)


async def test_a_revoked_or_expired_key_is_renamed(api: Api, tenant: Tenant) -> None:
    api.clock.freeze()
    revoked, expired = await make_key(tenant), await make_key(tenant, expires_in_days=1)
    await api.post(f"/v1/api-keys/{revoked['id']}/revoke", params=tenant.query)
    api.clock.advance(days=1)
    for key, status in ((revoked, "revoked"), (expired, "expired")):
        answer = await rename(tenant, key)
        assert (answer.status, answer.json["status"], answer.json["name"]) == (200, status, "Playout")


@pytest.mark.parametrize("table", ["organizations", "projects"])
async def test_renaming_goes_on_while_the_tenant_is_deleted(tenant: Tenant, rival: Rival, table: str) -> None:
    key = await make_key(tenant)
    await rival.run(f"UPDATE {table} SET deletion_requested_at = now()")
    assert (await rename(tenant, key)).json["name"] == "Playout"


@pytest.mark.parametrize("api_key_id", ["key_" + "A" * 22, "key_", "x", "key_%00"])
async def test_an_unknown_key_is_not_found(tenant: Tenant, api_key_id: str) -> None:
    answer = await rename(tenant, {"id": api_key_id})
    assert (answer.status, answer.code) == (404, "api_key_not_found")


async def test_a_key_of_another_organisation_is_not_found(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Both organisations belong to the caller."""
    key = await make_key(await make_tenant(api))
    answer = await rename(tenant, key)
    assert (answer.status, answer.code) == (404, "api_key_not_found")
    assert await names(rival) == [None]


async def test_a_key_cannot_rename_a_key(tenant: Tenant) -> None:
    key = await tenant.make_key(scopes=["codes:read", "codes:write", "audience:read", "audience:write"])
    answer = await rename(tenant.with_key(key), key)
    assert (answer.status, answer.code) == (403, "user_token_required")


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


async def test_a_caller_who_is_demoted_meanwhile_renames_nothing(tenant: Tenant, rival: Rival) -> None:
    key = await make_key(tenant)
    async with rival.committing("UPDATE members SET role = 'member'"):
        renaming = await rival.while_waiting(rename(tenant, key))
    assert ((await renaming).status, (await renaming).code) == (403, "forbidden")
    assert await names(rival) == [None]


async def test_a_rename_cut_before_its_commit_changes_nothing(tenant: Tenant, rival: Rival) -> None:
    key = await make_key(tenant)
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        renaming = await rival.while_waiting(rename(tenant, key))
        await rival.kill_waiting_sessions()
        answer = await renaming
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await names(rival) == [None]
    assert await rival.audited("api_key.renamed") == []
