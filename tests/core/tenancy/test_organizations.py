"""Creating and listing organisations."""

import re
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Api
from support.database.rival import Rival

from soundmark.kit.text.timestamps import format_timestamp


async def create(api: Api, **body: Any) -> Any:
    return await api.post("/v1/organizations", json=body)


async def test_the_creator_of_an_organisation_owns_it(api: Api) -> None:
    now = api.clock.freeze()
    answer = await create(api, name="Radio Nordlicht")
    assert answer.status == 201
    identity = answer.json["id"]
    assert re.fullmatch(r"org_[A-Za-z0-9_-]{22}", identity)
    assert answer.json == {
        "id": identity,
        "name": "Radio Nordlicht",
        "role": "owner",
        "created_at": format_timestamp(now),
        "deletion_requested_at": None,
        "suspended_at": None,
    }
    assert (await api.get("/v1/organizations")).json == {"data": [answer.json], "next_cursor": None}


async def test_two_organisations_may_have_one_name(api: Api) -> None:
    assert [(await create(api, name="Radio")).status for _ in range(2)] == [201, 201]


@pytest.mark.parametrize("number", [b"9007199254740992", b"1e400"])
async def test_a_number_that_a_double_cannot_hold_is_invalid(api: Api, number: bytes) -> None:
    headers = {"content-type": "application/json"}
    for body in (b'{"name":%s}', b'{"name":"Radio","more":[%s]}'):
        answer = await api.post("/v1/organizations", content=body % number, headers=headers)
        assert (answer.status, answer.code) == (422, "validation_failed")


async def test_another_media_type_is_refused(api: Api) -> None:
    answer = await api.post("/v1/organizations", content=b'{"name":"a"}', headers={"content-type": "text/plain"})
    assert (answer.status, answer.code) == (415, "unsupported_media_type")


async def test_more_than_a_mebibyte_is_refused(api: Api) -> None:
    answer = await create(api, name="x" * 1024 * 1024)
    assert (answer.status, answer.code) == (413, "payload_too_large")


async def test_the_list_shows_the_callers_organisations_only(api: Api, rival: Rival) -> None:
    own, foreign = await api.make_organization("Own"), await api.make_organization("Foreign")
    await rival.run("UPDATE members SET subject_id = 'other' WHERE organization_id = %s", foreign)
    assert [entry["id"] for entry in (await api.get("/v1/organizations")).json["data"]] == [own]


async def test_the_list_shows_the_callers_role(api: Api, rival: Rival) -> None:
    await api.make_organization()
    await rival.run("UPDATE members SET role = 'admin'")
    assert (await api.get("/v1/organizations")).json["data"][0]["role"] == "admin"


async def test_the_list_is_newest_first(api: Api) -> None:
    created = []
    for _ in range(3):
        created.append(await api.make_organization())
        api.clock.advance(milliseconds=1)
    assert [entry["id"] for entry in (await api.get("/v1/organizations")).json["data"]] == created[::-1]


async def test_a_closing_organisation_is_marked(api: Api, rival: Rival) -> None:
    await api.make_organization()
    now = api.clock.now() - timedelta(days=1)
    await rival.run("UPDATE organizations SET deletion_requested_at = %s", now)
    listed = (await api.get("/v1/organizations")).json["data"][0]
    assert listed["deletion_requested_at"] == format_timestamp(now)
