"""`GET /v1/members`."""

from typing import Any

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp


@pytest.fixture
async def tenant_of_operator(api: Api) -> Tenant:
    """The operator's organisation."""
    return await make_tenant(api)


async def listed(tenant: Tenant, **params: Any) -> Any:
    answer = await tenant.api.get("/v1/members", params={**tenant.query, **params})
    assert answer.status == 200, answer.body
    return answer.json


async def test_the_creator_of_an_organisation_is_its_owner(people: People) -> None:
    now = people.api.clock.freeze()
    tenant = await people.tenant_of("alice")
    member = {
        "subject_id": "alice",
        "email": "alice@example.org",
        "role": "owner",
        "created_at": format_timestamp(now),
    }
    assert await listed(tenant) == {"data": [member], "next_cursor": None}


async def test_ties_continue_by_subject(api: Api, rival: Rival) -> None:
    """All joined at the same time: each is on one page, whatever characters the subjects have."""
    api.clock.freeze()
    tenant = await make_tenant(api)
    subjects = {"operator", "a", "A", "ä", "b|1", "b/1", "10", "9", "x" * 255}
    for subject_id in subjects - {"operator"}:
        await tenant.make_member(rival, subject_id, "member")
    pages: list[list[str]] = []
    params: dict[str, Any] = {"limit": 2}
    while True:
        page = await listed(tenant, **params)
        pages.append([member["subject_id"] for member in page["data"]])
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]
    seen = [subject_id for page in pages for subject_id in page]
    assert [len(page) for page in pages] == [2, 2, 2, 2, 1]
    assert (len(seen), set(seen)) == (9, subjects)


@pytest.mark.parametrize("character", ["ä", "\u2028", "😀"])
async def test_every_possible_subject_fits_in_a_cursor(
    tenant_of_operator: Tenant, rival: Rival, character: str
) -> None:
    """255 characters take up to 1020 bytes, and the cursor with them must still be accepted."""
    for number in range(3):
        await tenant_of_operator.make_member(rival, character * 254 + str(number), "member")
    first = await listed(tenant_of_operator, limit=2)
    second = await listed(tenant_of_operator, limit=2, cursor=first["next_cursor"])
    subjects = [member["subject_id"] for page in (first, second) for member in page["data"]]
    assert (len(set(subjects)), second["next_cursor"]) == (4, None)
