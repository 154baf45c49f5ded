"""`PATCH /v1/projects/{project_id}`: another name, taken once in an organisation."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant


async def rename(tenant: Tenant, name: Any = "Night show", project_id: str | None = None, **more: Any) -> Answer:
    path = f"/v1/projects/{tenant.project_id if project_id is None else project_id}"
    return await tenant.api.patch(path, params=tenant.query, json={"name": name, **more})


async def names(rival: Rival) -> list[str]:
    return [name for (name,) in await rival.rows("SELECT name FROM projects ORDER BY name")]


async def test_the_name_changes_and_the_rest_stays(api: Api, tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    server = tenant.with_key(await tenant.make_key())
    (before,) = (await api.get("/v1/projects", params=tenant.query)).json["data"]
    api.clock.advance(seconds=1)
    answer = await rename(tenant)
    assert (answer.status, answer.json) == (200, {**before, "name": "Night show"})
    assert (await api.get("/v1/projects", params=tenant.query)).json["data"] == [answer.json]
    assert (await server.api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json == code
    assert (await api.resolve(code["broadcast_token"])).status == 200
    expected = [("user operator", tenant.project_id, {"name": "Night show"})]
    assert await rival.audited("project.updated") == expected


@pytest.mark.parametrize("name", ["Evening show", " Evening show "])
async def test_a_name_is_taken_once_in_an_organisation(api: Api, tenant: Tenant, rival: Rival, name: str) -> None:
    await api.make_project(tenant.organization_id, "Evening show")
    answer = await rename(tenant, name)
    assert (answer.status, answer.code) == (409, "project_name_conflict")
    assert await names(rival) == ["Evening show", "Morning show"]
    assert await rival.audited("project.updated") == []


async def test_its_own_name_is_no_conflict(tenant: Tenant) -> None:
    answer = await rename(tenant, " Morning show")
    assert (answer.status, answer.json["name"]) == (200, "Morning show")


async def test_an_abandoned_name_is_free(api: Api, tenant: Tenant) -> None:
    await rename(tenant)
    await api.make_project(tenant.organization_id, "Morning show")


async def test_of_two_concurrent_renames_to_one_name_one_is_refused(api: Api, tenant: Tenant, rival: Rival) -> None:
    other = await api.make_project(tenant.organization_id, "Evening show")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        one = await rival.while_waiting(rename(tenant, "Night show"))
        two = asyncio.create_task(rename(tenant, "Night show", project_id=other))
        await rival.until_someone_waits(2)
    assert ((await one).status, (await two).code) == (200, "project_name_conflict")
    assert await names(rival) == ["Evening show", "Night show"]


async def test_a_name_that_a_new_project_takes_meanwhile_is_taken(tenant: Tenant, rival: Rival) -> None:
    insert = "INSERT INTO projects (organization_id, id, name, created_at) VALUES (%s, 'prj_r', 'Night show', now())"
    async with rival.committing(insert, tenant.organization_id):
        renaming = await rival.while_waiting(rename(tenant))
    assert ((await renaming).status, (await renaming).code) == (409, "project_name_conflict")


async def test_two_that_swap_their_names_are_both_refused(api: Api, tenant: Tenant, rival: Rival) -> None:
    """One after the other: neither finds the other's name free, and neither waits for the other."""
    other = await api.make_project(tenant.organization_id, "Evening show")
    async with rival.holding("SELECT 1 FROM projects FOR UPDATE"):
        one = await rival.while_waiting(rename(tenant, "Evening show"))
        two = asyncio.create_task(rename(tenant, "Morning show", project_id=other))
        await rival.until_someone_waits(2)
    assert ((await one).code, (await two).code) == ("project_name_conflict", "project_name_conflict")
    assert await names(rival) == ["Evening show", "Morning show"]


async def test_a_project_deleted_during_the_wait_is_not_found(tenant: Tenant, rival: Rival) -> None:
    async with rival.committing("DELETE FROM projects"):
        renaming = await rival.while_waiting(rename(tenant))
    assert ((await renaming).status, (await renaming).code) == (404, "project_not_found")
    assert await rival.audited("project.updated") == []
