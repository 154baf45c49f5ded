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
    }
    assert (await api.get("/v1/organizations")).json == {"data": [answer.json], "next_cursor": None}


async def test_two_organisations_may_have_one_name(api: Api) -> None:
    assert [(await create(api, name="Radio")).status for _ in range(2)] == [201, 201]


async def test_a_name_is_kept_without_the_space_around_it(api: Api) -> None:
    assert (await create(api, name=" \t\n\u00a0Radio  Nordlicht\u2003")).json["name"] == "Radio  Nordlicht"


@pytest.mark.parametrize("name", ["a", "x" * 120, "  " + "x" * 120 + "  ", "ÄÖ☃😀", "Röntgen\u0301", "x" * 119 + "😀"])
async def test_a_name_has_1_to_120_characters_after_trimming(api: Api, name: str) -> None:
    answer = await create(api, name=name)
    assert (answer.status, answer.json["name"]) == (201, name.strip())


@pytest.mark.parametrize(
    "name",
    ["", " ", "\n\t", "x" * 121, "a\0b", "a\nb", "a\x1fb", "a\x7fb", "\0", None, 1, True, ["Radio"], {"a": 1}],
    ids=repr,
)
async def test_another_name_is_refused(api: Api, rival: Rival, name: Any) -> None:
    answer = await create(api, name=name)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/name"]
    assert await rival.rows("SELECT 1 FROM organizations") == []


async def test_a_name_is_required(api: Api) -> None:
    answer = await create(api)
    assert (answer.code, answer.json["errors"][0]["pointer"]) == ("validation_failed", "/name")


@pytest.mark.parametrize("member", ["id", "owner", "subject_id", "role", "created_at", "NAME", ""])
async def test_an_unknown_member_is_refused(api: Api, member: str) -> None:
    """The subject in particular is never taken from the body."""
    answer = await create(api, name="Radio", **{member: "operator"})
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert answer.json["errors"][0]["pointer"] == f"/{member}"


@pytest.mark.parametrize("body", [b"[]", b"null", b'"Radio"', b"1", b"1e400"])
async def test_a_body_that_is_not_an_object_is_refused(api: Api, body: bytes) -> None:
    answer = await api.post("/v1/organizations", content=body, headers={"content-type": "application/json"})
    assert (answer.status, answer.code) == (422, "validation_failed")


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"name":"a","name":"a"}', b'{"name":"\\ud800"}', b'{"name":"\xff"}', b'{"name":NaN}']
)
async def test_broken_json_is_malformed(api: Api, body: bytes) -> None:
    answer = await api.post("/v1/organizations", content=body, headers={"content-type": "application/json"})
    assert (answer.status, answer.code) == (400, "malformed_json")


@pytest.mark.parametrize("number", [b"9007199254740992", b"1e400", b"1" * 5000])
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


@pytest.mark.parametrize("role", ["owner", "admin", "member", "billing"])
async def test_the_list_shows_the_callers_role(api: Api, rival: Rival, role: str) -> None:
    await api.make_organization()
    await rival.run("UPDATE members SET role = %s", role)
    assert (await api.get("/v1/organizations")).json["data"][0]["role"] == role


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
