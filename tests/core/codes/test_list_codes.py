"""`GET /v1/codes`: every Code of one organisation exactly once, newest first, in pages."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

ORGANIZATION_HEADER = "X-Svc-Organization-Id"


async def page(tenant: Tenant, **query: Any) -> Answer:
    return await tenant.api.get("/v1/codes", params={**tenant.query, **query})


async def make_codes(tenant: Tenant, count: int) -> list[str]:
    """Issue Codes a millisecond apart and return their ids, newest first."""
    issued = []
    for _ in range(count):
        issued.append((await tenant.make_code())["xr_id"])
        tenant.api.clock.advance(milliseconds=1)
    return issued[::-1]


async def walk(tenant: Tenant, limits: list[int]) -> list[list[str]]:
    """Return the ids on all pages, whose limits cycle through `limits`."""
    pages: list[list[str]] = []
    cursor: str | None = None
    for limit in itertools.cycle(limits):
        answer = await page(tenant, limit=limit, **({} if cursor is None else {"cursor": cursor}))
        assert answer.status == 200, answer.body
        pages.append(ids(answer))
        cursor = answer.json["next_cursor"]
        if cursor is None:
            break
    return pages


def ids(answer: Answer) -> list[str]:
    return [entry["xr_id"] for entry in answer.json["data"]]


async def test_no_codes_are_an_empty_page(tenant: Tenant) -> None:
    assert (await page(tenant)).json == {"data": [], "next_cursor": None}


async def test_an_entry_is_the_code_without_its_signed_record(tenant: Tenant) -> None:
    code = await tenant.make_code()
    del code["intent"], code["signed_code"]
    assert (await page(tenant)).json == {"data": [code], "next_cursor": None}


async def test_the_list_is_newest_first(tenant: Tenant) -> None:
    issued = await make_codes(tenant, 5)
    assert ids(await page(tenant)) == issued


async def test_the_list_is_of_the_whole_organisation_and_no_other(api: Api, tenant: Tenant) -> None:
    other = await make_tenant(api)
    second = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    api.clock.freeze()
    foreign, one, two = [await each.make_code() for each in (other, tenant, second)]
    assert sorted(ids(await page(tenant))) == sorted([one["xr_id"], two["xr_id"]])
    assert ids(await page(other)) == [foreign["xr_id"]]


async def test_the_status_is_judged_at_the_time_of_the_request(api: Api, tenant: Tenant) -> None:
    """Expiry is exact to the millisecond and never stored; a revoked Code stays revoked after its expiry."""
    api.clock.freeze()
    await tenant.make_code(lifetime_s=120, issuer="longer")
    await tenant.make_code(lifetime_s=60, issuer="shorter")
    revoked_at = api.clock.now()
    await tenant.revoke((await tenant.make_code(lifetime_s=60, issuer="revoked"))["xr_id"])

    async def states() -> dict[str, tuple[str, str | None]]:
        data = (await page(tenant)).json["data"]
        return {entry["issuer"]: (entry["status"], entry["revoked_at"]) for entry in data}

    revoked = ("revoked", format_timestamp(revoked_at))
    before = {"longer": ("active", None), "shorter": ("active", None), "revoked": revoked}
    assert await states() == before
    api.clock.advance(seconds=59.999)
    assert await states() == before
    api.clock.advance(seconds=0.001)
    assert await states() == {**before, "shorter": ("expired", None)}


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (100, 100), (None, 50)])
async def test_a_page_has_as_many_codes_as_requested(
    tenant: Tenant, rival: Rival, limit: int | None, count: int
) -> None:
    """50 by default. The rows are written beside the API, because a hundred issuances would cost a second."""
    await tenant.make_code()
    await copy_rows(rival, 100)
    answer = await page(tenant, **({} if limit is None else {"limit": limit}))
    assert (len(answer.json["data"]), answer.json["next_cursor"] is not None) == (count, True)


async def copy_rows(rival: Rival, count: int) -> None:
    """Store further Codes like the only one, each a millisecond older."""
    numbered = "overlay(token placing lpad(n::text, 4, '0') from 5)"
    numbers = f"broadcasts, generate_series(1, {count}) AS n"
    columns = "organization_id, xr_id, project_id, issuer, issued_at, expires_at, broadcast_token, key_id, address"
    await rival.run(
        f"INSERT INTO broadcasts SELECT {numbered}, payload, signature, NULL, organization_id FROM {numbers}"
    )
    await rival.run(
        f"INSERT INTO codes ({columns})"
        " SELECT organization_id, overlay(xr_id placing lpad(n::text, 4, '0') from 4), project_id, issuer,"
        " issued_at - n * interval '1 millisecond', expires_at, overlay(broadcast_token placing lpad(n::text, 4, '0')"
        f" from 5), key_id, address FROM codes, generate_series(1, {count}) AS n"
    )


async def test_exactly_one_page_has_no_next_page(tenant: Tenant) -> None:
    await make_codes(tenant, 3)
    assert [len(each) for each in await walk(tenant, [3])] == [3]
    assert [len(each) for each in await walk(tenant, [2])] == [2, 1]


async def test_codes_issued_between_pages_do_not_shift_the_pages(tenant: Tenant) -> None:
    """A reader of all pages sees what existed at the start, exactly once; new Codes come before the first page."""
    issued = await make_codes(tenant, 5)
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        answer = await page(tenant, **query)
        seen += ids(answer)
        if answer.json["next_cursor"] is None:
            break
        query["cursor"] = answer.json["next_cursor"]
        await make_codes(tenant, 2)
    assert seen == issued


async def test_revoking_and_expiring_between_pages_do_not_shift_the_pages(api: Api, tenant: Tenant) -> None:
    issued = await make_codes(tenant, 4)
    first = await page(tenant, limit=2)
    for xr_id in issued:
        await tenant.revoke(xr_id)
    api.clock.advance(days=2)
    second = await page(tenant, limit=2, cursor=first.json["next_cursor"])
    assert ids(first) + ids(second) == issued


async def test_an_altered_cursor_is_refused(tenant: Tenant) -> None:
    await make_codes(tenant, 2)
    cursor: str = (await page(tenant, limit=1)).json["next_cursor"]
    altered = [cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :] for at in range(len(cursor))]
    for forged in [*altered, cursor + "A", cursor[:-1], cursor + "=", " " + cursor, cursor * 2]:
        answer = await page(tenant, cursor=forged)
        assert (answer.status, answer.code) == (422, "invalid_cursor"), forged


async def test_a_cursor_of_another_organisation_is_refused(api: Api, tenant: Tenant) -> None:
    other = await make_tenant(api)
    await make_codes(other, 2)
    answer = await page(tenant, cursor=(await page(other, limit=1)).json["next_cursor"])
    assert (answer.status, answer.code) == (422, "invalid_cursor")


async def test_a_cursor_of_another_list_is_refused(api: Api, tenant: Tenant) -> None:
    await api.make_project(tenant.organization_id, "Evening show")
    cursor = (await api.get("/v1/projects", params={**tenant.query, "limit": 1})).json["next_cursor"]
    assert (await api.get("/v1/projects", params={**tenant.query, "cursor": cursor})).status == 200
    answer = await page(tenant, cursor=cursor)
    assert (answer.status, answer.code) == (422, "invalid_cursor")


async def test_a_cursor_remains_valid_after_its_code_was_deleted(tenant: Tenant, rival: Rival) -> None:
    issued = await make_codes(tenant, 3)
    first = await page(tenant, limit=2)
    await rival.run("DELETE FROM codes WHERE xr_id = %s", issued[1])
    assert ids(await page(tenant, cursor=first.json["next_cursor"])) == issued[2:]


async def test_a_cursor_does_not_depend_on_where_the_organisation_is_named(api: Api, tenant: Tenant) -> None:
    issued = await make_codes(tenant, 2)
    cursor = (await page(tenant, limit=1)).json["next_cursor"]
    headers = {ORGANIZATION_HEADER: tenant.organization_id}
    assert ids(await api.get("/v1/codes", params={"cursor": cursor}, headers=headers)) == issued[1:]


async def test_the_statuses_of_a_page_are_judged_at_one_moment(api: Api, tenant: Tenant, rival: Rival) -> None:
    """And after the rows were read: a Code is never listed as active when the response begins after its expiry."""
    api.clock.freeze()
    for _ in range(3):
        await tenant.make_code(lifetime_s=timedelta(minutes=1).total_seconds())
    async with rival.holding("LOCK TABLE codes IN ACCESS EXCLUSIVE MODE"):
        listing = await rival.while_waiting(page(tenant))
        api.clock.advance(minutes=1)
    assert [entry["status"] for entry in (await listing).json["data"]] == ["expired"] * 3
