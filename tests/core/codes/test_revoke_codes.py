"""`POST /v1/codes/revoke-batch`: all of the selection or nothing, and always one entry in the log."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_second_project, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

PATH = "/v1/codes/revoke-batch"
UNKNOWN = "xr_" + "A" * 22
# Like the API: it locks the row against everybody who holds it, and then changes it.
REVOKED_KEY = (
    "WITH held AS (SELECT id FROM api_keys FOR UPDATE)"
    " UPDATE api_keys k SET revoked_at = k.created_at FROM held WHERE k.id = held.id"
)


async def make_codes(tenant: Tenant, count: int, **changes: Any) -> list[str]:
    """Issue Codes and return their ids, sorted."""
    answer = await tenant.api.post("/v1/codes/batch", json=tenant.code_body(count=count, **changes))
    assert answer.status == 201, answer.body
    return sorted(code["xr_id"] for code in answer.json["data"])


async def revoke(tenant: Tenant, xr_ids: Any, **changes: Any) -> Answer:
    body = {"project_id": tenant.project_id, "xr_ids": xr_ids, **changes}
    return await tenant.api.post(PATH, params=tenant.query, json=body)


def counts(requested: int, revoked: int) -> dict[str, int]:
    return {"requested_count": requested, "revoked_count": revoked, "unchanged_count": requested - revoked}


async def stored(rival: Rival) -> dict[str, list[str | None]]:
    """Return when each Code and its broadcast were revoked, by id."""
    rows = await rival.rows(
        "SELECT xr_id, c.revoked_at, b.revoked_at FROM codes c JOIN broadcasts b ON b.token = c.broadcast_token"
    )
    return {xr_id: [moment and format_timestamp(moment) for moment in moments] for xr_id, *moments in rows}


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


def pointers(answer: Answer) -> list[str]:
    assert refused(answer) == (422, "validation_failed"), answer.body
    return [error["pointer"] for error in answer.json["errors"]]


async def test_every_code_of_the_selection_is_revoked_at_one_moment(api: Api, tenant: Tenant, rival: Rival) -> None:
    """And no other Code. Receivers get no answer any more."""
    api.clock.freeze()
    *selection, other = await make_codes(tenant, 4)
    api.clock.advance(seconds=1)
    now = format_timestamp(api.clock.now())
    answer = await revoke(tenant, selection)
    assert (answer.status, answer.json) == (200, counts(3, 3))
    assert await stored(rival) == {**{xr_id: [now, now] for xr_id in selection}, other: [None, None]}
    tokens = await rival.rows("SELECT xr_id, broadcast_token FROM codes")
    resolved = {xr_id: (await api.resolve(token)).status for xr_id, token in tokens}
    assert resolved == {**dict.fromkeys(selection, 404), other: 200}


async def test_a_hundred_are_revoked_in_one_request(tenant: Tenant, rival: Rival) -> None:
    selection = await make_codes(tenant, 100)
    assert (await revoke(tenant, selection)).json == counts(100, 100)
    assert all(moment is not None for moments in (await stored(rival)).values() for moment in moments)


async def test_expired_and_revoked_codes_stay_as_they_are(api: Api, tenant: Tenant, rival: Rival) -> None:
    """An expired Code is not marked as revoked, and a revoked one keeps its time."""
    api.clock.freeze()
    (expired,) = await make_codes(tenant, 1, expires_at=format_timestamp(api.clock.now().replace(year=2099)))
    await rival.run("UPDATE codes SET expires_at = issued_at + interval '1 second'")
    revoked, active = await make_codes(tenant, 2)
    await tenant.revoke(revoked)
    earlier = format_timestamp(api.clock.now())
    api.clock.advance(seconds=1)
    now = format_timestamp(api.clock.now())
    assert (await revoke(tenant, [active, revoked, expired])).json == counts(3, 1)
    assert await stored(rival) == {expired: [None, None], revoked: [earlier] * 2, active: [now] * 2}


async def test_a_repetition_changes_nothing_and_is_audited(api: Api, tenant: Tenant, rival: Rival) -> None:
    selection = await make_codes(tenant, 2)
    assert (await revoke(tenant, selection)).json == counts(2, 2)
    before = await stored(rival)
    api.clock.advance(seconds=1)
    assert (await revoke(tenant, selection)).json == counts(2, 0)
    assert await stored(rival) == before
    expected = ("user operator", tenant.project_id)
    assert await rival.audited("code.batch_revoked") == [
        (*expected, {"requested_count": 2, "revoked_count": 2}),
        (*expected, {"requested_count": 2, "revoked_count": 0}),
    ]
    assert await rival.audited("code.revoked") == []


@pytest.mark.parametrize("missing", [UNKNOWN, "xr_\0", "brd_" + "A" * 16])
async def test_one_missing_code_leaves_all_the_others_active(tenant: Tenant, rival: Rival, missing: str) -> None:
    """Whether or not it could be an id. Nothing is logged, since nothing was done."""
    selection = await make_codes(tenant, 2)
    selection.insert(1, missing)
    assert refused(await revoke(tenant, selection)) == (404, "code_not_found")
    assert {moment for moments in (await stored(rival)).values() for moment in moments} == {None}
    assert await rival.audited("code.batch_revoked") == []


@pytest.mark.parametrize("of", ["another organisation", "another project"])
async def test_one_code_of_another_tenant_or_project_leaves_all_the_others_active(
    api: Api, tenant: Tenant, rival: Rival, of: str
) -> None:
    """Both belong to the caller: the one named in the request decides."""
    other = await make_tenant(api) if of == "another organisation" else await make_second_project(tenant)
    selection = [*await make_codes(tenant, 2), *await make_codes(other, 1)]
    for asking in (tenant, other):
        assert refused(await revoke(asking, selection)) == (404, "code_not_found")
    assert {moment for moments in (await stored(rival)).values() for moment in moments} == {None}


@pytest.mark.parametrize(
    ("xr_ids", "pointer"),
    [
        ([], "/xr_ids"),
        ([UNKNOWN, UNKNOWN], "/xr_ids"),
        ([f"xr_{n:022}" for n in range(101)], "/xr_ids"),
        (None, "/xr_ids"),
        ([UNKNOWN, [UNKNOWN]], "/xr_ids/1"),
        (["x" * 161], "/xr_ids/0"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_a_malformed_selection_is_refused(tenant: Tenant, xr_ids: Any, pointer: str) -> None:
    answer = await revoke(tenant, xr_ids)
    assert pointers(answer) == [pointer]
    assert UNKNOWN not in answer.body.decode()


async def test_a_key_revokes_in_its_own_project_only(tenant: Tenant, rival: Rival) -> None:
    other = await make_second_project(tenant)
    own, foreign = await make_codes(tenant, 1), await make_codes(other, 1)
    key = await tenant.make_key(scopes=["codes:write"])
    server = tenant.with_key(key)
    assert refused(await revoke(server, foreign, project_id=other.project_id)) == (404, "project_not_found")
    assert refused(await revoke(server, own + foreign)) == (404, "code_not_found")
    assert (await revoke(server, own)).json == counts(1, 1)
    assert (await stored(rival))[foreign[0]] == [None, None]
    metadata = {"requested_count": 1, "revoked_count": 1}
    assert await rival.audited("code.batch_revoked") == [(f"api_key {key['id']}", tenant.project_id, metadata)]


async def test_a_code_that_does_not_verify_is_revoked(tenant: Tenant, rival: Rival) -> None:
    """A tampered Code must go off the air as well."""
    selection = await make_codes(tenant, 2)
    await rival.run("UPDATE broadcasts SET signature = sha512(signature)")
    assert (await revoke(tenant, selection)).json == counts(2, 2)


async def test_expiry_is_judged_after_the_lock_wait(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Another connection holds one Code of the selection; until then none of them is judged."""
    api.clock.freeze()
    expires_at = format_timestamp(api.clock.now().replace(year=2099))
    one, two, three = await make_codes(tenant, 3, expires_at=expires_at)
    expiring = format_timestamp(api.clock.now())
    await rival.run("UPDATE codes SET expires_at = %s::timestamptz + interval '60 s' WHERE xr_id <> %s", expiring, two)
    async with rival.holding("SELECT 1 FROM codes WHERE xr_id = %s FOR UPDATE", two):
        revoking = await rival.while_waiting(revoke(tenant, [three, two, one]))
        api.clock.advance(seconds=60)
    assert (await revoking).json == counts(3, 1)
    now = format_timestamp(api.clock.now())
    assert await stored(rival) == {one: [None, None], two: [now, now], three: [None, None]}


async def test_a_code_revoked_meanwhile_counts_as_unchanged(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    selection = await make_codes(tenant, 2)
    earlier = api.clock.now()
    async with rival.committing("UPDATE codes SET revoked_at = %s WHERE xr_id = %s", earlier, selection[1]):
        api.clock.advance(seconds=5)
        revoking = await rival.while_waiting(revoke(tenant, selection))
    assert (await revoking).json == counts(2, 1)
    assert (await stored(rival))[selection[1]][0] == format_timestamp(earlier)


async def test_one_code_deleted_during_the_wait_leaves_all_the_others_active(tenant: Tenant, rival: Rival) -> None:
    selection = await make_codes(tenant, 3)
    async with rival.committing("DELETE FROM codes WHERE xr_id = %s", selection[2]):
        revoking = await rival.while_waiting(revoke(tenant, selection))
    assert refused(await revoking) == (404, "code_not_found")
    assert {moment for moments in (await stored(rival)).values() for moment in moments} == {None}


async def test_overlapping_selections_in_opposite_order_do_not_deadlock(tenant: Tenant, rival: Rival) -> None:
    """Rows are locked by id, not in the order of the request, so one of the two gets the first row and finishes."""
    selection = await make_codes(tenant, 5)
    async with rival.holding("SELECT 1 FROM codes WHERE xr_id = %s FOR UPDATE", selection[2]):
        one = asyncio.create_task(revoke(tenant, selection[:4]))
        two = asyncio.create_task(revoke(tenant, selection[:0:-1]))
        await rival.until_someone_waits(2)
    answers = [(await one).json, (await two).json]
    assert sum(answer["revoked_count"] for answer in answers) == 5
    assert [answer["requested_count"] for answer in answers] == [4, 4]


async def test_the_same_selection_twice_at_once_is_revoked_once(api: Api, tenant: Tenant, rival: Rival) -> None:
    """One of the two revokes all of them and the other none; both are in the log."""
    api.clock.freeze()
    selection = await make_codes(tenant, 3)
    async with rival.holding("SELECT 1 FROM codes WHERE xr_id = %s FOR UPDATE", selection[0]):
        one = asyncio.create_task(revoke(tenant, selection))
        two = asyncio.create_task(revoke(tenant, selection[::-1]))
        await rival.until_someone_waits(2)
    assert sorted([(await one).json["revoked_count"], (await two).json["revoked_count"]]) == [0, 3]
    expected = [metadata["revoked_count"] for _, _, metadata in await rival.audited("code.batch_revoked")]
    assert sorted(expected) == [0, 3]


async def test_a_key_that_is_revoked_meanwhile_revokes_nothing(tenant: Tenant, rival: Rival) -> None:
    selection = await make_codes(tenant, 2)
    server = tenant.with_key(await tenant.make_key(scopes=["codes:write"]))
    assert refused(await revoke(server, [UNKNOWN])) == (404, "code_not_found")  # This use is recorded.
    async with rival.committing(REVOKED_KEY):
        revoking = await rival.while_waiting(revoke(server, selection))
    assert refused(await revoking) == (401, "unauthenticated")
    assert {moment for moments in (await stored(rival)).values() for moment in moments} == {None}


async def test_a_project_deleted_meanwhile_is_not_found(tenant: Tenant, rival: Rival) -> None:
    other = await make_second_project(tenant)
    selection = await make_codes(other, 1)
    async with rival.committing("DELETE FROM projects WHERE id = %s", other.project_id):
        revoking = await rival.while_waiting(revoke(other, selection))
    assert refused(await revoking) == (404, "project_not_found")
