"""`GET /v1/campaigns`: the campaigns of one project, newest first, for every member."""

from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant


async def ask(tenant: Tenant, **params: Any) -> Answer:
    return await tenant.api.get("/v1/campaigns", params={**tenant.query, "project_id": tenant.project_id, **params})


async def listed(tenant: Tenant, **params: Any) -> Any:
    answer = await ask(tenant, **params)
    assert answer.status == 200, answer.body
    return answer.json


async def test_a_project_without_campaigns_has_an_empty_list(tenant: Tenant) -> None:
    assert await listed(tenant) == {"data": [], "next_cursor": None}


async def test_the_list_is_newest_first(api: Api, tenant: Tenant) -> None:
    campaigns = []
    for name in ("first", "second", "third"):
        campaigns.append(await tenant.make_campaign(name, ends_at="2027-09-23T00:00:00.000Z"))
        api.clock.advance(milliseconds=1)
    assert await listed(tenant) == {"data": campaigns[::-1], "next_cursor": None}


async def test_archived_ones_are_listed_too(api: Api, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    archived = (await api.post(f"/v1/campaigns/{campaign['id']}/archive", params=tenant.query)).json
    assert archived["status"] == "archived"
    assert (await listed(tenant))["data"] == [archived]


async def test_campaigns_of_one_moment_are_ordered_by_id(api: Api, tenant: Tenant) -> None:
    """No campaign appears twice or is left out, also when others are created between the pages."""
    api.clock.freeze()
    made = sorted([(await tenant.make_campaign(str(number)))["id"] for number in range(5)], reverse=True)
    seen: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = await listed(tenant, **params)
        seen += [campaign["id"] for campaign in page["data"]]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
        api.clock.advance(seconds=1)
        await tenant.make_campaign(f"later {len(seen)}")
    assert seen == made


async def test_a_project_shows_its_own_campaigns(api: Api, tenant: Tenant) -> None:
    other = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    own, others = await tenant.make_campaign(), await other.make_campaign()
    await (await make_tenant(api)).make_campaign()
    assert (await listed(tenant))["data"] == [own]
    assert (await listed(other))["data"] == [others]


async def test_the_project_is_named(tenant: Tenant) -> None:
    answer = await tenant.api.get("/v1/campaigns", params=tenant.query)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/project_id"]


async def test_a_foreign_project_is_not_found(api: Api, tenant: Tenant) -> None:
    """Both organisations belong to the caller."""
    foreign = await make_tenant(api)
    for project_id in (foreign.project_id, "prj_" + "A" * 22, "", "prj_\0", "x"):
        answer = await ask(tenant, project_id=project_id)
        assert (answer.status, answer.code) == (404, "project_not_found"), project_id


async def test_a_server_key_lists_its_own_project_and_no_other(api: Api, tenant: Tenant) -> None:
    other = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    own, _ = await tenant.make_campaign(), await other.make_campaign()
    server = tenant.with_key(await tenant.make_key(scopes=["codes:read"]))
    assert (await listed(server))["data"] == [own]
    answer = await ask(server, project_id=other.project_id)
    assert (answer.status, answer.code) == (404, "project_not_found")
    writer = tenant.with_key(await tenant.make_key(scopes=["codes:write"]))
    answer = await ask(writer)
    assert (answer.status, answer.code) == (403, "insufficient_scope")


@pytest.mark.parametrize("role", ["owner", "admin", "member", "billing"])
async def test_every_member_may_list(tenant: Tenant, rival: Rival, role: str) -> None:
    campaign = await tenant.make_campaign()
    await rival.run("UPDATE members SET role = %s", role)
    assert (await listed(tenant))["data"] == [campaign]


@pytest.mark.parametrize("limit", ["0", "101", "x", ""])
async def test_another_limit_is_refused(tenant: Tenant, limit: str) -> None:
    answer = await ask(tenant, limit=limit)
    assert (answer.status, answer.code) == (422, "validation_failed")


async def test_a_cursor_belongs_to_its_organisation_project_and_list(api: Api, tenant: Tenant) -> None:
    other = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    for number in range(2):
        await tenant.make_campaign(str(number))
    cursor = (await listed(tenant, limit=1))["next_cursor"]
    edited = ("B" if cursor[0] == "A" else "A") + cursor[1:]
    for answer in (
        await ask(await make_tenant(api), cursor=cursor),
        await ask(other, cursor=cursor),
        await ask(tenant, cursor=edited),
        await ask(tenant, cursor=""),
        await ask(tenant, cursor="A" * 1100),
        await api.get("/v1/projects", params={**tenant.query, "cursor": cursor}),
    ):
        assert (answer.status, answer.code) == (422, "invalid_cursor")
