"""`GET /v1/api-keys`: the inventory of an organisation or of one project, without a secret."""

from typing import Any

from support.api.core_client import Api
from support.tenancy.tenant import Tenant, make_tenant


async def listed(tenant: Tenant, **params: Any) -> Any:
    answer = await tenant.api.get("/v1/api-keys", params={**tenant.query, **params})
    assert answer.status == 200, answer.body
    return answer.json


def without_secret(key: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in key.items() if name != "secret"}


async def test_the_list_is_newest_first_and_without_secrets(api: Api, tenant: Tenant) -> None:
    keys = []
    for _ in range(3):
        keys.append(without_secret(await tenant.make_key()))
        api.clock.advance(milliseconds=1)
    assert await listed(tenant) == {"data": keys[::-1], "next_cursor": None}


async def test_keys_of_one_moment_are_ordered_by_id(api: Api, tenant: Tenant) -> None:
    """No key appears twice or is left out."""
    api.clock.freeze()
    made = sorted([(await tenant.make_key())["id"] for _ in range(5)], reverse=True)
    seen: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = await listed(tenant, **params)
        seen += [key["id"] for key in page["data"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    assert seen == sorted(seen, reverse=True)
    assert sorted(seen, reverse=True) == made


async def test_keys_of_every_status_are_listed(api: Api, tenant: Tenant) -> None:
    api.clock.freeze()
    revoked, expired, active = [await tenant.make_key(expires_in_days=days) for days in (30, 1, 30)]
    assert (await api.post(f"/v1/api-keys/{revoked['id']}/revoke", params=tenant.query)).status == 200
    api.clock.advance(days=1)
    states = {key["id"]: key["status"] for key in (await listed(tenant))["data"]}
    assert states == {revoked["id"]: "revoked", expired["id"]: "expired", active["id"]: "active"}


async def test_a_project_shows_its_own_keys(api: Api, tenant: Tenant) -> None:
    other = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    own, others = await tenant.make_key(), await other.make_key()
    foreign = await make_tenant(api)
    await foreign.make_key()
    assert [key["id"] for key in (await listed(tenant, project_id=tenant.project_id))["data"]] == [own["id"]]
    assert [key["id"] for key in (await listed(tenant, project_id=other.project_id))["data"]] == [others["id"]]
    assert {key["id"] for key in (await listed(tenant))["data"]} == {own["id"], others["id"]}


async def test_a_foreign_project_as_filter_is_not_found(api: Api, tenant: Tenant) -> None:
    foreign = await make_tenant(api)
    for project_id in (foreign.project_id, "prj_" + "A" * 22, "", "prj_\0", "x"):
        answer = await api.get("/v1/api-keys", params={**tenant.query, "project_id": project_id})
        assert (answer.status, answer.code) == (404, "project_not_found"), project_id


async def test_a_cursor_belongs_to_its_organisation_filter_and_list(api: Api, tenant: Tenant) -> None:
    for _ in range(2):
        await tenant.make_key()
    cursor = (await listed(tenant, limit=1))["next_cursor"]
    of_project = (await listed(tenant, limit=1, project_id=tenant.project_id))["next_cursor"]
    foreign = await make_tenant(api)
    edited = ("B" if cursor[0] == "A" else "A") + cursor[1:]
    for path, params in (
        ("/v1/api-keys", {**foreign.query, "cursor": cursor}),
        ("/v1/api-keys", {**tenant.query, "cursor": of_project}),
        ("/v1/api-keys", {**tenant.query, "cursor": cursor, "project_id": tenant.project_id}),
        ("/v1/api-keys", {**tenant.query, "cursor": edited}),
        ("/v1/projects", {**tenant.query, "cursor": cursor}),
        ("/v1/members", {**tenant.query, "cursor": cursor}),
    ):
        answer = await api.get(path, params=params)
        assert (answer.status, answer.code) == (422, "invalid_cursor"), (path, params)
