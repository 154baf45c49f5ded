"""Creating and listing projects."""

import re
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival

from soundmark.kit.text.timestamps import format_timestamp


@pytest.fixture
async def organization_id(api: Api) -> str:
    """The id of a new organisation."""
    return await api.make_organization()


async def create(api: Api, organization_id: Any, name: Any = "Morning show", **more: Any) -> Answer:
    return await api.post("/v1/projects", json={"organization_id": organization_id, "name": name, **more})


async def test_a_project_belongs_to_its_organisation(api: Api, organization_id: str) -> None:
    now = api.clock.freeze()
    answer = await create(api, organization_id)
    assert answer.status == 201
    identity = answer.json["id"]
    assert re.fullmatch(r"prj_[A-Za-z0-9_-]{22}", identity)
    assert answer.json == {
        "id": identity,
        "organization_id": organization_id,
        "name": "Morning show",
        "created_at": format_timestamp(now),
        "deletion_requested_at": None,
    }
    listed = await api.get("/v1/projects", params={"organization_id": organization_id})
    assert listed.json == {"data": [answer.json], "next_cursor": None}


async def test_a_name_is_taken_once_in_an_organisation(api: Api, organization_id: str) -> None:
    await create(api, organization_id)
    answer = await create(api, organization_id, " Morning show ")
    assert (answer.status, answer.code) == (409, "project_name_conflict")


async def test_a_name_may_be_taken_in_two_organisations(api: Api, organization_id: str) -> None:
    await create(api, organization_id)
    assert (await create(api, await api.make_organization())).status == 201


async def test_names_that_differ_in_case_are_two(api: Api, organization_id: str) -> None:
    await create(api, organization_id)
    assert (await create(api, organization_id, "morning show")).status == 201


async def test_one_of_two_projects_of_one_name_at_once_is_refused(api: Api, organization_id: str, rival: Rival) -> None:
    """The second waits for the first to commit, and then sees it."""
    insert = "INSERT INTO projects (organization_id, id, name, created_at) VALUES (%s, 'prj_r', 'Morning show', now())"
    async with rival.committing(insert, organization_id):
        answer = create(api, organization_id)
        refused = await rival.while_waiting(answer)
    assert ((await refused).status, (await refused).code) == (409, "project_name_conflict")


async def test_a_stranger_learns_of_the_organisation_before_the_shape(api: Api) -> None:
    """A caller without a role in the organisation does not learn whether the body is valid."""
    answer = await create(api, "org_" + "A" * 22, name=7, more=1)
    assert (answer.status, answer.code) == (404, "organization_not_found")


async def test_the_list_is_newest_first_and_of_one_organisation(api: Api, organization_id: str) -> None:
    other = await api.make_organization()
    await create(api, other)
    created = []
    for name in ("one", "two", "three"):
        created.append((await create(api, organization_id, name)).json["id"])
        api.clock.advance(milliseconds=1)
    listed = await api.get("/v1/projects", params={"organization_id": organization_id})
    assert [entry["id"] for entry in listed.json["data"]] == created[::-1]
