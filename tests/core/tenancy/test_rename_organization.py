"""`PATCH /v1/organizations/{organization_id}`: another name, and nothing else."""

import asyncio
from typing import Any

from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant


async def rename(tenant: Tenant, name: Any = "Radio Südlicht", **more: Any) -> Answer:
    return await tenant.api.patch(f"/v1/organizations/{tenant.organization_id}", json={"name": name, **more})


async def names(rival: Rival) -> list[str]:
    return [name for (name,) in await rival.rows("SELECT name FROM organizations ORDER BY name")]


async def test_the_name_changes_and_the_rest_stays(api: Api, tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    (before,) = (await api.get("/v1/organizations")).json["data"]
    api.clock.advance(seconds=1)
    answer = await rename(tenant)
    assert (answer.status, answer.json) == (200, {**before, "name": "Radio Südlicht"})
    assert (await api.get("/v1/organizations")).json["data"] == [answer.json]
    assert (await api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json == code
    assert (await api.resolve(code["broadcast_token"])).status == 200
    expected = [("user operator", None, {"name": "Radio Südlicht"})]
    assert await rival.audited("organization.updated") == expected


async def test_two_organisations_may_have_one_name(api: Api, tenant: Tenant, rival: Rival) -> None:
    other = await make_tenant(api)
    assert ((await rename(tenant)).status, (await rename(other)).status) == (200, 200)
    assert await names(rival) == ["Radio Südlicht"] * 2


async def test_two_renames_are_one_after_the_other(tenant: Tenant, rival: Rival) -> None:
    """The last one wins; the log records both."""
    async with rival.holding("SELECT 1 FROM organizations FOR UPDATE"):
        one = await rival.while_waiting(rename(tenant, "One"))
        two = asyncio.create_task(rename(tenant, "Two"))
        await rival.until_someone_waits(2)
    assert ((await one).json["name"], (await two).json["name"]) == ("One", "Two")
    assert (await names(rival))[0] in {"One", "Two"}
    expected = [entry["name"] for _, _, entry in await rival.audited("organization.updated")]
    assert sorted(expected) == ["One", "Two"]


async def test_a_caller_who_becomes_an_administrator_meanwhile_is_treated_as_one(tenant: Tenant, rival: Rival) -> None:
    """`role` is the caller's at the time of the change, which may differ from the first look-up."""
    async with rival.committing("UPDATE members SET role = 'admin'"):
        renaming = await rival.while_waiting(rename(tenant))
    assert ((await renaming).status, (await renaming).json["role"]) == (200, "admin")
