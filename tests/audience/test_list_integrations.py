"""Reading integrations: newest first, of one project, without any secret."""

from typing import Any

import pytest
from support.audience.client import ORGANIZATION, PROJECT, AudienceApi, AudienceIntegration

QUERY = {"organization_id": ORGANIZATION, "project_id": PROJECT}


async def make_some(audience: AudienceApi, count: int) -> list[AudienceIntegration]:
    """Return integrations, newest first, the last two of the same time."""
    audience.clock.freeze()
    made = []
    for number in range(count):
        audience.clock.advance(seconds=1 if number > 1 else 0)
        made.append(await audience.make_integration())
    return sorted(made, key=lambda one: (one.view["created_at"], one.id), reverse=True)


async def test_the_newest_comes_first_and_the_revoked_are_there(audience: AudienceApi) -> None:
    made = await make_some(audience, 4)
    revoked = (await made[1].change("revoke")).json

    answer = await audience.call("GET", "/v1/integrations", params={**QUERY, "limit": "10"})

    assert answer.status == 200
    assert answer.json == {"data": [made[0].view, revoked, made[2].view, made[3].view]}


async def test_it_continues_after_a_position(audience: AudienceApi) -> None:
    made = await make_some(audience, 5)
    seen: list[dict[str, Any]] = []
    before: dict[str, str] = {}
    for _ in range(3):
        answer = await audience.call("GET", "/v1/integrations", params={**QUERY, "limit": "2", **before})
        seen += answer.json["data"]
        before = {"before_at": seen[-1]["created_at"], "before_id": seen[-1]["id"]}

    assert seen == [one.view for one in made]


async def test_integrations_of_other_tenants_and_projects_are_not_listed(audience: AudienceApi) -> None:
    given = await audience.make_integration()
    for elsewhere in ({"organization_id": "org_of_somebody_else"}, {"project_id": "prj_another"}):
        params = {**QUERY, "limit": "10", **elsewhere}
        assert (await audience.call("GET", "/v1/integrations", params=params)).json == {"data": []}
        answer = await given.read(**elsewhere)
        assert (answer.status, answer.json["code"]) == (404, "integration_not_found")


async def test_one_is_read_without_its_secret(audience: AudienceApi) -> None:
    given = await audience.make_integration()

    answer = await given.read()

    assert (answer.status, answer.json) == (200, given.view)
    assert given.hmac_secret not in answer.body.decode()
    assert set(answer.json) == set(given.view)


@pytest.mark.parametrize("identity", ["int_unknown_to_everybody", "%00", "..%2F", "a" * 200])
async def test_an_unknown_one_is_not_found(audience: AudienceApi, identity: str) -> None:
    answer = await audience.call("GET", f"/v1/integrations/{identity}", params=QUERY)

    assert answer.status == 404


async def test_a_malformed_query_is_refused(audience: AudienceApi, subtests: pytest.Subtests) -> None:
    for changes in [
        {"limit": "0"},
        {"limit": "102"},
        {"limit": "x"},
        {"limit": None},
        {"organization_id": None},
        {"organization_id": "org_\0"},
        {"project_id": None},
        {"project_id": ""},
        {"before_at": "2026-11-20T10:00:00.000Z"},
        {"before_id": "int_x"},
        {"before_at": "yesterday", "before_id": "int_x"},
    ]:
        with subtests.test(changes=changes):
            parameters = {**QUERY, "limit": "10", **changes}
            params = {name: value for name, value in parameters.items() if value is not None}

            answer = await audience.call("GET", "/v1/integrations", params=params)

            assert (answer.status, answer.json["code"]) == (422, "validation_failed")


async def list_inventory(audience: AudienceApi, **params: str) -> Any:
    query = {"limit": "1000", "after_at": "0001-01-01T00:00:00.000Z", "after_id": "", **params}
    answer = await audience.call("GET", f"/v1/organizations/{ORGANIZATION}/integrations", params=query)
    assert answer.status == 200, answer.body
    return answer.json["data"]


async def test_the_inventory_of_an_organisation_is_oldest_first(audience: AudienceApi) -> None:
    made = (await make_some(audience, 4))[::-1]
    revoked = (await made[2].change("revoke")).json

    listed = await list_inventory(audience)

    assert listed == [made[0].view, made[1].view, revoked, made[3].view]


async def test_the_inventory_continues_after_a_position(audience: AudienceApi) -> None:
    made = (await make_some(audience, 5))[::-1]
    seen: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    for _ in range(3):
        seen += await list_inventory(audience, limit="2", **after)
        after = {"after_at": seen[-1]["created_at"], "after_id": seen[-1]["id"]}

    assert seen == [one.view for one in made]


async def test_the_inventory_of_a_project_leaves_out_the_others(audience: AudienceApi) -> None:
    made = await audience.make_integration()

    assert await list_inventory(audience, project_id=PROJECT) == [made.view]
    assert await list_inventory(audience, project_id="prj_another") == []


async def test_the_inventory_of_another_organisation_is_empty(audience: AudienceApi) -> None:
    await audience.make_integration()
    params = {"limit": "9", "after_at": "0001-01-01T00:00:00.000Z", "after_id": ""}

    answer = await audience.call("GET", "/v1/organizations/org_of_somebody_else/integrations", params=params)

    assert (answer.status, answer.json) == (200, {"data": []})


@pytest.mark.parametrize(
    "changes", [{"limit": "0"}, {"limit": "1001"}, {"limit": None}, {"after_at": None}, {"after_id": None}, {"x": "1"}]
)
async def test_a_malformed_query_of_the_inventory_is_refused(
    audience: AudienceApi, changes: dict[str, str | None]
) -> None:
    parameters = {"limit": "9", "after_at": "0001-01-01T00:00:00.000Z", "after_id": "", **changes}
    params = {name: value for name, value in parameters.items() if value is not None}

    answer = await audience.call("GET", f"/v1/organizations/{ORGANIZATION}/integrations", params=params)

    assert (answer.status, answer.json["code"]) == (422, "validation_failed")
