"""`GET /v1/audience/integrations`: those of one project, newest first, in pages, and never a secret."""

from typing import Any

from support.api.core_client import Api
from support.tenancy.tenant import Tenant, make_tenant


async def listed(tenant: Tenant, **query: Any) -> Any:
    answer = await tenant.api.get("/v1/audience/integrations", params={**tenant.in_project, **query})
    assert answer.status == 200, answer.body
    return answer.json


async def test_all_pages_together_are_every_integration_newest_first(api: Api, tenant: Tenant) -> None:
    """Also where several were created within one millisecond."""
    api.clock.freeze()
    made = []
    for number in range(5):
        api.clock.advance(seconds=number % 2)
        integration = await tenant.make_integration()
        del integration["hmac_secret"]
        made.append(integration)
    await tenant.change_integration("revoke", made[0]["id"])
    expected = sorted(made, key=lambda each: (each["created_at"], each["id"]), reverse=True)
    seen: list[Any] = []
    cursor: dict[str, str] = {}
    for size in (2, 2, 1):
        page = await listed(tenant, limit=2, **cursor)
        assert len(page["data"]) == size
        seen += page["data"]
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else {}
    assert cursor == {}
    assert [each["id"] for each in seen] == [each["id"] for each in expected]
    assert [each for each in seen if each["id"] != made[0]["id"]] == [
        each for each in expected if each["id"] != made[0]["id"]
    ]
    assert "xhm_" not in str(seen)


async def test_a_page_holds_as_many_as_a_page_may(tenant: Tenant) -> None:
    assert await listed(tenant, limit=100) == {"data": [], "next_cursor": None}
    for limit in (0, 101):
        answer = await tenant.api.get("/v1/audience/integrations", params={**tenant.in_project, "limit": limit})
        assert (answer.status, answer.code) == (422, "validation_failed")


async def test_only_the_projects_own_are_listed(api: Api, tenant: Tenant) -> None:
    await tenant.make_integration()
    other = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    assert (await listed(other))["data"] == []
    assert (await listed(await make_tenant(api)))["data"] == []


async def test_a_cursor_belongs_to_its_project(api: Api, tenant: Tenant) -> None:
    other = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    for _ in range(2):
        await tenant.make_integration()
    cursor = (await listed(tenant, limit=1))["next_cursor"]
    for params in ({**other.in_project, "cursor": cursor}, {**tenant.in_project, "cursor": cursor[:-1] + "A"}):
        answer = await api.get("/v1/audience/integrations", params=params)
        assert (answer.status, answer.code) == (422, "invalid_cursor")
