"""`GET /v1/campaigns`: the campaigns of one project, newest first, for every member."""

from typing import Any

from support.api.core_client import Answer, Api
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
