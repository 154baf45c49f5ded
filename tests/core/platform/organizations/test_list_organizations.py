"""`GET /v1/platform/organizations`: every organisation of the deployment."""

from typing import Any

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.suspension import suspend

PATH = "/v1/platform/organizations"


async def names(api: Api, **params: Any) -> list[str]:
    answer = await api.get(PATH, params=params)
    assert answer.status == 200, answer.body
    return [entry["name"] for entry in answer.json["data"]]


@pytest.fixture
async def ids(api: Api, people: People, rival: Rival) -> dict[str, str]:
    """Organisations by name, oldest first, of several owners and in every state."""
    made = {}
    for name in ("Radio Nord", "radio nordwind", "RADIO Süd", "100% Radio", "1000 Radios", "Été"):
        made[name] = await api.make_organization(name)
        api.clock.advance(milliseconds=1)
    made["Olga's"] = (await people.tenant_of("olga")).organization_id
    await rival.run("UPDATE organizations SET name = 'Olga''s' WHERE id = %s", made["Olga's"])
    await suspend(api, made["Radio Nord"])
    await suspend(api, made["RADIO Süd"])
    closing = "UPDATE organizations SET deletion_requested_at = now() WHERE id = ANY(%s)"
    await rival.run(closing, [made["RADIO Süd"], made["Été"]])
    return made


async def test_every_organisation_is_listed_newest_first_whoever_owns_it(api: Api, ids: dict[str, str]) -> None:
    answer = await api.get(PATH)
    assert [entry["id"] for entry in answer.json["data"]] == list(ids.values())[::-1]
    members = {"id", "name", "created_at", "deletion_requested_at", "suspended_at", "suspension_reason"}
    assert {frozenset(entry) for entry in answer.json["data"]} == {frozenset(members)}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("suspended", ["RADIO Süd", "Radio Nord"]),
        ("closing", ["Été", "RADIO Süd"]),
        ("active", ["Olga's", "1000 Radios", "100% Radio", "radio nordwind"]),
    ],
)
@pytest.mark.usefixtures("ids")
async def test_closing_and_suspended_may_both_hold_and_active_is_neither(
    api: Api, status: str, expected: list[str]
) -> None:
    assert await names(api, status=status) == expected


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("radio", ["RADIO Süd", "radio nordwind", "Radio Nord"]),
        ("RADIO NORD", ["radio nordwind", "Radio Nord"]),
        ("RADIO SÜ", []),
        ("RADIO Sü", ["RADIO Süd"]),
        ("100%", ["100% Radio"]),
        ("100_", []),
        ("adio", []),
        ("été", []),
        ("Été", ["Été"]),
        ("org_", []),
        ("'", []),
        ("\\", []),
    ],
)
@pytest.mark.usefixtures("ids")
async def test_a_search_is_the_beginning_of_a_name_without_patterns_and_the_case_of_ascii(
    api: Api, search: str, expected: list[str]
) -> None:
    assert await names(api, search=search) == expected


async def test_a_whole_id_finds_exactly_one(api: Api, ids: dict[str, str], rival: Rival) -> None:
    """Also where another organisation has chosen the id as the beginning of its name."""
    wanted = ids["Radio Nord"]
    await rival.run("UPDATE organizations SET name = %s WHERE id = %s", f"{wanted} and more", ids["Été"])
    assert await names(api, search=wanted) == ["Radio Nord"]
    assert await names(api, search=wanted[:-1]) == [f"{wanted} and more"]


@pytest.mark.usefixtures("ids")
async def test_pages_hold_every_organisation_once_and_a_cursor_belongs_to_search_and_status(api: Api) -> None:
    found, cursor = [], None
    while True:
        answer = await api.get(PATH, params={"limit": 2, "search": "r", **({"cursor": cursor} if cursor else {})})
        found += [entry["name"] for entry in answer.json["data"]]
        cursor = answer.json["next_cursor"]
        if cursor is None:
            break
        for params in ({}, {"search": "ra"}, {"search": "r", "status": "active"}):
            refused = await api.get(PATH, params={**params, "cursor": cursor})
            assert (refused.status, refused.code) == (422, "invalid_cursor")
    assert found == ["RADIO Süd", "radio nordwind", "Radio Nord"]


@pytest.mark.parametrize(
    "params",
    [{"search": ""}, {"search": "a" * 121}, {"search": "a\0"}, {"status": "deleted"}, {"organization_id": "x"}],
)
async def test_another_query_is_refused(api: Api, params: dict[str, str]) -> None:
    answer = await api.get(PATH, params=params)
    assert (answer.status, answer.code) == (422, "validation_failed")
